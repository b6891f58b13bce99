package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"intumwa/intake"
)

// describe adds the refusals to the OpenAPI document: each operation's error responses, at the key x-refusals, and the
// codes of X-Error-Code, at the value x-codes.
func describe(text string) []byte {
	shared := &sharedResponses{by: map[string]response{}}
	operation := ""
	described := placeOfRefusals.ReplaceAllStringFunc(text, func(place string) string {
		if name, ok := strings.CutPrefix(place, `"operationId": "`); ok {
			operation = strings.TrimSuffix(name, `"`)
			return place
		}
		return members(responsesOf(operation, shared))
	})
	return []byte(strings.NewReplacer(`"x-shared-refusals": {}`, members(shared.all()), `"x-codes"`,
		quoted(errorCodes())).Replace(described))
}

var placeOfRefusals = regexp.MustCompile(`"operationId": "\w+"|"x-refusals": \{\}`)

// response is a Response Object of OpenAPI, or a reference to one.
type response struct {
	Ref         string           `json:"$ref,omitempty"`
	Description string           `json:"description,omitempty"`
	Headers     map[string]ref   `json:"headers,omitempty"`
	Content     map[string]media `json:"content,omitempty"`
}

type ref struct {
	Ref string `json:"$ref"`
}

type media struct {
	Schema   ref                `json:"schema"`
	Examples map[string]example `json:"examples"`
}

type example struct {
	Summary string `json:"summary"`
	Value   any    `json:"value"`
}

// member is one member of a JSON object with ordered members.
type member struct {
	name  string
	value any
}

// responsesOf returns the error responses of an operation, in the order of their statuses.
func responsesOf(operation string, shared *sharedResponses) (all []member) {
	var statuses []int
	for _, r := range refusals {
		if r.isOf(operation) && !slices.Contains(statuses, r.status) {
			statuses = append(statuses, r.status)
		}
	}
	slices.Sort(statuses)
	for _, status := range statuses {
		all = append(all, member{strconv.Itoa(status), shared.of(status, operation, responseOf(operation, status))})
	}
	return all
}

func (r *refusal) isOf(operation string) bool {
	return slices.Contains(strings.Fields(string(r.on)), operation)
}

// descriptions describe the error responses by status.
var descriptions = map[int]string{
	400: "A business rule forbids it, or the request cannot be read. Nothing was queued or charged.",
	401: "The API key is missing, mistyped, revoked or expired.",
	403: "The API key does not allow it: its scopes, or the networks from which it works.",
	404: "It does not exist, or belongs to another company.",
	408: "The body did not arrive in time.",
	409: "The first request with this idempotency key is still being processed: try again in a moment.",
	410: "Events after the cursor were deleted before you got them. Continue with next_cursor.",
	413: "The body is larger than 16 MiB.",
	415: "The body is not declared as JSON.",
	422: "Validation failed. The body lists every wrong field or parameter, with its texts.",
	429: "Too many requests in this window, too many look-ups of one user at a time, or too many wrong API keys from " +
		"one address.",
	500: "An error on our side.",
	503: "We cannot accept requests at the moment, or a look-up would take too long: try again. Nothing was queued or " +
		"charged, unless `X-Error-Code` is `outcome_unknown`: then the request may have been accepted. Repeat it with the " +
		"same `Idempotency-Key`, or look it up.",
}

// responseOf returns the response that describes an operation's refusals with a status.
func responseOf(operation string, status int) response {
	examples := map[string]example{}
	for _, r := range refusals {
		if r.status != status || !r.isOf(operation) {
			continue
		}
		name := r.code
		if name == "" {
			name = "more_than_listed"
		}
		for n := 2; examples[name].Value != nil; n++ {
			name = r.code + "_" + strconv.Itoa(n)
		}
		examples[name] = example{r.cause.en, r.example(operation)}
		if r.code == intake.RefuseOptedOut.Reason && inBatch(operation) {
			one := intake.OptedOutRecipient{Position: 2, Number: "+25779123400"}
			examples[name] = example{r.cause.en, refusedView{r.example(operation).(message), []intake.OptedOutRecipient{one}}}
			examples["opted_out_several"] = example{r.cause.en,
				refusedView{message{intake.RefuseRecipientsOptedOut("2", "5").Text},
					[]intake.OptedOutRecipient{one, {Position: 5, Number: "+25761234500"}}}}
		}
		if r == cursorExpired {
			examples[name] = example{r.cause.en, expiredView{message{r.text}, documentedCursor}}
		}
		if name := oneCredit[r.code]; name != "" { // "1 credit", not "1 credits"
			examples[name] = example{r.cause.en, message{strings.ReplaceAll(strings.Replace(r.text, "N credits", "1 credit", 1),
				" N ", " 2 ")}}
		}
	}
	schema := "#/components/schemas/Message"
	switch {
	case status == 422:
		schema = "#/components/schemas/Invalid"
	case status == 410:
		schema = "#/components/schemas/Expired"
	case status == 400 && inBatch(operation):
		schema = "#/components/schemas/RefusedBatch"
	}
	return response{Description: descriptions[status], Headers: headersOf(operation, status),
		Content: map[string]media{"application/json": {ref{schema}, examples}}}
}

// oneCredit names the examples of refusals that count credits, for one credit.
var oneCredit = map[string]string{"insufficient_credits": "insufficient_credit", "daily_cap": "daily_cap_of_one"}

// headersOf returns the headers that the document promises. Sends have the rate headers once the token is
// authenticated, so 429 and 503 may come without them.
func headersOf(operation string, status int) map[string]ref {
	names := map[string]string{"X-Request-Id": "RequestID", "X-Error-Code": "ErrorCode"}
	if strings.Contains(string(onPaid), operation) && status != 401 && status != 403 {
		known := ""
		if status == 429 || status == 503 {
			known = "OfUser"
		}
		names["X-RateLimit-Limit"], names["X-RateLimit-Remaining"] = "RateLimitLimit"+known, "RateLimitRemaining"+known
		if status == 429 {
			names["X-RateLimit-Reset"] = "RateLimitReset"
		}
	}
	if status == 429 || status == 503 {
		names["Retry-After"] = "RetryAfter"
	}
	headers := make(map[string]ref, len(names))
	for name, component := range names {
		headers[name] = ref{"#/components/headers/" + component}
	}
	return headers
}

// example returns the refusal's body in an operation, with values in place of N and K.
func (r *refusal) example(operation string) any {
	if r.status != 422 || r.field == "" {
		text := strings.NewReplacer("#N", "#2", " N ", " 2 ", "(K)", "(RW)", "(K to N)", "(JOIN to 8080)", ": K.",
			": code.").Replace(r.text)
		return message{text}
	}
	fill := strings.NewReplacer(".N.K", ".0.send_at", ".N.", ".0.", " N ", " 48000 ", ".K", ".code", " K ",
		" colour ").Replace
	field, text := fill(r.field), fill(r.text)
	if field == "K" {
		field = "colour"
	}
	body := invalidView{Message: text, Errors: problems{listed: []problem{{field, text}}}}
	if inBatch(operation) || strings.HasPrefix(r.field, optOutsEmpty.field) ||
		operation == "putContacts" {
		body.Message = textInvalid
	}
	return body
}

// sharedNames names the responses that several operations have.
var sharedNames = map[int]string{401: "Unauthenticated", 403: "Forbidden", 404: "NotFound", 408: "TooSlow",
	409: "KeyInUse", 413: "TooLarge", 415: "NotJSON",
	429: "TooMany", 500: "Fault", 503: "Away"}

// sharedResponses collects the responses that several operations have, by name.
type sharedResponses struct {
	names []string
	by    map[string]response
}

// of returns a reference if other operations have the same response, else the response.
func (s *sharedResponses) of(status int, operation string, r response) response {
	name := sharedNames[status]
	switch {
	case name == "":
		return r
	case status == 403:
		if slices.Contains(strings.Fields(string(onReads)), operation) {
			name += "ToRead"
		}
	case operation == "createVerification" && status != 401 && status != 409:
		name += "OfVerification"
	case (operation == "checkVerification" || operation == "cancelVerification") && (status == 409 || status == 429):
		name = "Ended" + name
	case strings.Contains(string(onSends), operation) && status != 401 && status != 409:
		name += "OfSend"
	case (status == 429 || status == 503) && operation == "putTestNumber":
		name += "OfCode"
	case status == 429 && operation == "listEvents":
		name += "OfEvents"
	case status == 429 && strings.Contains(string(onLooks), operation):
		name += "OfLookup"
	}
	if _, known := s.by[name]; !known {
		s.names = append(s.names, name)
		s.by[name] = r
	}
	return response{Ref: "#/components/responses/" + name}
}

func (s *sharedResponses) all() (all []member) {
	for _, name := range s.names {
		all = append(all, member{name, s.by[name]})
	}
	return all
}

// errorCodes returns all codes, each once, in the order of the refusals.
func errorCodes() (all []string) {
	for _, r := range refusals {
		if r.code != "" && !slices.Contains(all, r.code) {
			all = append(all, r.code)
		}
	}
	return all
}

// members returns the JSON of an object's members without the braces.
func members(all []member) string {
	var out strings.Builder
	for i, m := range all {
		if i > 0 {
			out.WriteString(",\n          ")
		}
		fmt.Fprintf(&out, "%q: %s", m.name, intake.Encode(m.value))
	}
	return out.String()
}

// quoted returns the JSON of a list's elements without the brackets.
func quoted(all []string) string {
	text, _ := json.Marshal(all) // strings always marshal
	return string(bytes.Trim(text, "[]"))
}
