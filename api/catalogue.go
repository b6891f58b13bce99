package api

// entry is a row of the error catalogue in the reference: what a text means,
// what to do, and whether the same request may be sent again as it is.
type entry struct {
	Status int
	Text   string // N and K stand for what is substituted
	Cause  string
	Fix    string
	Retry  string
}

const (
	retryNo     = "no"
	retryAfter  = "after the fix"
	retryLater  = "yes, after Retry-After"
	retryAtOnce = "yes, in a moment"
)

// catalogue has every text that a client can see; the tests hold it to the
// OpenAPI document.
var catalogue = []entry{
	{400, "You must create a company before sending messages.", "The user of the token has no company.", "Create one in the dashboard.", retryAfter},
	{400, "Bulk send does not support the test sender (" + usualTestSender + "); use the single-message endpoint for test traffic.", "Test mode is for single messages.", "POST /v1/sms, or an approved sender.", retryNo},
	{400, "Your company must be approved before sending messages.", "An administrator has not approved the company yet.", "Wait for the approval; meanwhile use the test mode.", retryAfter},
	{400, "Your company must be verified before sending messages.", "Bulk and template sends need a verified company.", "Have it verified; single sends work already.", retryAfter},
	{400, "Sender not found.", "The company has no such sender; its case counts.", "Register the sender in the dashboard.", retryAfter},
	{400, "The sender must be approved before sending messages.", "The sender waits for its approval.", "Wait for it, or use another sender.", retryAfter},
	{400, "The phone number country (BI) does not match the sender ID's telco country (K).", "The sender belongs to operators of another country.", "Use a sender of the recipients' country.", retryNo},
	{400, "No carrier serves this phone number.", "The number is valid and no carrier takes it.", "Try another number of the recipient.", retryNo},
	{400, "Recipient #N: no carrier serves this phone number.", "The same, in a batch. Recipients are counted from 1.", "Leave the recipient out.", retryNo},
	{400, "Recipient #N is missing required template variables: K.", "The first recipient that lacks values, and which.", "Give every placeholder a value; null is one.", retryNo},
	{400, "Recipient #N's message is empty.", "The template renders to nothing for them.", "Leave the recipient out, or give a value.", retryNo},
	{400, "Recipient #N's message is too long.", "The rendered text has more than 255 segments.", "Shorten the values.", retryNo},
	{400, "The message is too long.", "The text has more segments than this installation allows.", "Shorten it.", retryNo},
	{400, "Insufficient SMS credits. This message requires N credits.", "The balance is below the cost. Nothing was charged.", "Buy credits.", retryAfter},
	{400, "Insufficient SMS credits. This batch requires N credits.", "The same, for a whole batch. Nothing was queued.", "Buy credits, or send a part.", retryAfter},
	{400, "Verify a test number before sending test messages.", "Test mode has no verified number.", "PUT /v1/test-number, then verify.", retryAfter},
	{400, "Test messages can only be sent to your verified test number.", "Another recipient in test mode.", "Send to the test number.", retryNo},
	{400, "Test quota exceeded.", "The pool of test segments is used up. Failed ones come back.", "Go live.", retryNo},
	{400, "This number is already your verified test number.", "There is nothing to do.", "–", retryNo},
	{400, "The test number cannot be replaced any more.", "It was replaced as often as it may be.", "Keep the number; go live.", retryNo},
	{400, "The code is not right.", "Another code than the last that was sent.", "Type it again; five tries.", retryNo},
	{400, "There is no code to confirm. Ask for a new one.", "None was sent, or it was used.", "PUT /v1/test-number.", retryNo},
	{400, "The code has expired. Ask for a new one.", "It is over 10 minutes old.", "PUT /v1/test-number.", retryNo},
	{400, "The code was mistyped too often. Ask for a new one.", "Five wrong tries.", "PUT /v1/test-number.", retryNo},
	{400, "The request body is not valid JSON.", "A syntax error, invalid UTF-8, half a surrogate pair, or nested too deep.", "Encode the body with a JSON library.", retryNo},
	{400, "The Idempotency-Key header is not valid.", "It is not 1 to 255 visible ASCII characters, or there are two.", "A UUID will do.", retryNo},
	{401, "Unauthenticated.", "No token, or one that is mistyped or revoked.", "Authorization: Bearer <API_TOKEN>.", retryAfter},
	{404, "Not found.", "No such path, message, batch or delivery, or it is another company's.", "Check the address.", retryNo},
	{405, "Method not allowed.", "The path takes other methods.", "See the Allow header.", retryNo},
	{408, "The request body took too long to arrive.", "The connection is too slow, or it broke.", "Send smaller batches.", retryAtOnce},
	{409, "A request with this idempotency key is still being processed.", "The first request has not been answered yet.", "Wait a moment and repeat it.", retryAtOnce},
	{413, "The request body is too large.", "It is over 16 MiB.", "At most 500 recipients a request.", retryNo},
	{415, "The Content-Type must be application/json.", "The body is declared as something else.", "Content-Type: application/json.", retryNo},
	{422, "The phone number is required.", "phone_number is missing, null or blank.", "Give one.", retryNo},
	{422, "The phone number must be a valid Burundi (+257) number.", "It is no Burundi mobile number.", "+257 and 8 digits, or 8 digits.", retryNo},
	{422, "The sender is required.", "sender is missing, null or blank.", "Give one.", retryNo},
	{422, "The sender must be 1-11 alphanumeric characters.", "Other characters, spaces, or too long.", "ASCII letters and digits only.", retryNo},
	{422, "The message content is required.", "message is missing, null, blank or no string.", "Give one.", retryNo},
	{422, "The message must not exceed 600 characters.", "Unicode code points are counted.", "Shorten it, or send two.", retryNo},
	{422, "The given data was invalid.", "A batch failed the validation; errors has the fields.", "Read errors.", retryNo},
	{422, "The sender field is required.", "A batch without a sender.", "Give one.", retryNo},
	{422, "The messages field must contain at least one item.", "messages is missing, empty or no list.", "1 to 500 messages.", retryNo},
	{422, "The messages field must not contain more than 500 items.", "Too many.", "Send several batches.", retryNo},
	{422, "The messages.N.phone_number field is required.", "Items are counted from 0.", "Give one.", retryNo},
	{422, "The messages.N.phone_number field must be a valid Burundi (+257) number.", "It is no Burundi mobile number.", "Correct it or leave it out.", retryNo},
	{422, "The messages.N.message field is required.", "Missing, blank or no string.", "Give one.", retryNo},
	{422, "The messages.N.message field must not exceed 600 characters.", "Too long.", "Shorten it.", retryNo},
	{422, "The template field is required.", "template is missing, blank or no string.", "Give one.", retryNo},
	{422, "The template field must not exceed 600 characters.", "Counted before rendering.", "Shorten it.", retryNo},
	{422, "The recipients field must contain at least one item.", "recipients is missing, empty or no list.", "1 to 500 recipients.", retryNo},
	{422, "The recipients field must not contain more than 500 items.", "Too many.", "Send several batches.", retryNo},
	{422, "The recipients.N.phone_number field is required.", "Recipients are counted from 0 here.", "Give one.", retryNo},
	{422, "The recipients.N.phone_number field must be a valid Burundi (+257) number.", "It is no Burundi mobile number.", "Correct it or leave it out.", retryNo},
	{422, "The recipients.N.variables field is required.", "Missing, null or no object; {} is fine.", "Give an object.", retryNo},
	{422, "The recipients.N.variables.K field must not exceed 255 characters.", "The value is too long.", "Shorten it.", retryNo},
	{422, "The recipients.N.variables.K field must be a string.", "The value is a number, a list or an object.", "Quote it; null is fine.", retryNo},
	{422, "There are N further fields that are not listed.", "Over 2,000 fields fail; this stands at the key `more`.", "Correct what is listed first.", retryNo},
	{422, "The variables field is required.", "Preview: variables is no object.", "Give an object.", retryNo},
	{422, "The variables.K field must not exceed 255 characters.", "Preview: the value is too long.", "Shorten it.", retryNo},
	{422, "The variables.K field must be a string.", "Preview: the value is no string.", "Quote it.", retryNo},
	{422, "The idempotency key was already used with a different request.", "The same key came with another body or endpoint within 24 hours.", "A new key for a new request.", retryNo},
	{422, textStatusInvalid, "List: unknown status.", "One of the three.", retryNo},
	{422, textBatchInvalid, "List: not an id.", "batch_id of the send result.", retryNo},
	{422, textFromInvalid, "List: not a time.", "RFC 3339.", retryNo},
	{422, textToInvalid, "List: not a time.", "RFC 3339.", retryNo},
	{422, textLimitInvalid, "List: out of bounds.", "1 to 100.", retryNo},
	{422, textCursorInvalid, "List: not a cursor of this list.", "next_cursor of the page before, same filters.", retryNo},
	{422, textStateInvalid, "Deliveries: unknown state.", "One of the three.", retryNo},
	{422, textEventInvalid, "Deliveries: unknown event.", "One of the two.", retryNo},
	{422, textMessageIDInvalid, "Deliveries: not a message_id.", "The integer of the webhook, not the ULID.", retryNo},
	{422, textSinceInvalid, "Deliveries: not a time.", "RFC 3339.", retryNo},
	{422, textCodeRequired, "Test number: no code.", "Give one.", retryNo},
	{422, textCodeInvalid, "Test number: not six digits.", "Type it as in the SMS.", retryNo},
	{429, "Too Many Attempts.", "Over the rate of send requests, of codes, or of wrong tokens from one address.", "Wait for Retry-After seconds.", retryLater},
	{500, "Server error.", "A fault of ours; it is in our log.", "Repeat with the same Idempotency-Key.", retryAtOnce},
	{503, "Service unavailable.", "We cannot take requests just now. Nothing was charged.", "Repeat with the same Idempotency-Key.", retryLater},
}
