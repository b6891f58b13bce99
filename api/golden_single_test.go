package api

import (
	"strings"
	"testing"
)

func single(number, sender, text any) string {
	return object("phone_number", number, "sender", sender, "message", text)
}

func TestGoldenSingle(t *testing.T) {
	t.Parallel()
	const number = "+25779123456"
	ok := func(items, left int) string {
		return object("id", "ULID", "item_count", items, "remaining_items", left, "status", "queued", "to", number, "sender",
			"ACME",
			"message", "Message queued for delivery.")
	}
	runGolden(t, "/v1/sms", []golden{
		// rule api 2.1, 4.1
		{"accepted", "live", 10, single(number, "ACME", "Bonjour"), 200, ok(1, 9), ""},
		{"local form", "live", 10, single("79123456", "ACME", "Bonjour"), 200, ok(1, 9), ""},
		{"00257 form", "live", 10, single("00257 79-12.34(56)", "ACME", "Bonjour"), 200, ok(1, 9), ""},
		{"257 form", "live", 10, single("25779123456", "ACME", "Bonjour"), 200, ok(1, 9), ""},
		{"160 septets", "live", 10, single(number, "ACME", long(160)), 200, ok(1, 9), ""},
		{"161 septets", "live", 10, single(number, "ACME", long(161)), 200, ok(2, 8), ""},
		{"600 characters", "live", 10, single(number, "ACME", long(600)), 200, ok(4, 6), ""},
		{"600 emoji", "live", 30, single(number, "ACME", strings.Repeat("😀", 600)), 200, ok(19, 11), ""},
		{"71 code units", "live", 10, single(number, "ACME", strings.Repeat("ж", 71)), 200, ok(2, 8), ""},
		{"exactly the balance", "live", 2, single(number, "ACME", long(161)), 200, ok(2, 0), ""},
		{"not verified is enough", "approved", 10, single(number, "ACME", "Bonjour"), 200, ok(1, 9), ""},
		{"unknown fields", "live", 10, `{"phone_number":"79123456","sender":"ACME","message":"x","extra":{"a":[1]}}`, 200,
			ok(1, 9), ""},
		{"last key wins", "live", 10,
			`{"message":null,"phone_number":"x","sender":"ACME","message":"x","phone_number":"79123456"}`, 200, ok(1, 9), ""},
		{"escaped key", "live", 10, `{"phone\u005fnumber":"79123456","sender":"ACME","message":"x"}`, 200, ok(1, 9), ""},
		{"foreign country of the sender", "live", 10, single(number, "KIGALI", "x"), 200,
			strings.Replace(ok(1, 9), `"ACME"`, `"KIGALI"`, 1), ""},

		// rule api 7.1
		{"no number", "live", 0, object("sender", "ACME", "message", "x"), 422,
			failsFirst("phone_number", "The phone number is required."), ""},
		{"null number", "live", 0, single(nil, "ACME", "x"), 422, failsFirst("phone_number", "The phone number is required."),
			""},
		{"blank number", "live", 0, single("\u00a0\t ", "ACME", "x"), 422,
			failsFirst("phone_number", "The phone number is required."), ""},
		{"foreign number", "live", 0, single("+250788123456", "ACME", "x"), 422,
			failsFirst("phone_number", "The phone number must be a valid Burundi (+257) number."), ""},
		{"fixed line", "live", 0, single("+25722201234", "ACME", "x"), 422,
			failsFirst("phone_number", "The phone number must be a valid Burundi (+257) number."), ""},
		{"number as a number", "live", 0, single(79123456, "ACME", "x"), 422,
			failsFirst("phone_number", "The phone number must be a valid Burundi (+257) number."), ""},
		{"no sender", "live", 0, object("phone_number", number, "message", "x"), 422,
			failsFirst("sender", "The sender is required."), ""},
		{"blank sender", "live", 0, single(number, " ", "x"), 422, failsFirst("sender", "The sender is required."), ""},
		{"long sender", "live", 0, single(number, "ABCDEFGHIJKL", "x"), 422,
			failsFirst("sender", "The sender must be 1-11 alphanumeric characters."), ""},
		{"sender with a hyphen", "live", 0, single(number, "AC-ME", "x"), 422,
			failsFirst("sender", "The sender must be 1-11 alphanumeric characters."), ""},
		{"sender of other letters", "live", 0, single(number, "ACMÉ", "x"), 422,
			failsFirst("sender", "The sender must be 1-11 alphanumeric characters."), ""},
		{"sender not trimmed", "live", 0, single(number, "ACME ", "x"), 422,
			failsFirst("sender", "The sender must be 1-11 alphanumeric characters."), ""},
		{"sender as a list", "live", 0, single(number, []string{"ACME"}, "x"), 422,
			failsFirst("sender", "The sender must be 1-11 alphanumeric characters."), ""},
		{"no message", "live", 0, object("phone_number", number, "sender", "ACME"), 422,
			failsFirst("message", "The message content is required."), ""},
		{"blank message", "live", 0, single(number, "ACME", " \n\u2003"), 422,
			failsFirst("message", "The message content is required."), ""},
		{"message as a number", "live", 0, single(number, "ACME", 5), 422,
			failsFirst("message", "The message content is required."), ""},
		{"message with U+0000", "live", 0, single(number, "ACME", "a\x00b"), 422,
			failsFirst("message", "The message content is required."), ""},
		{"601 characters", "live", 0, single(number, "ACME", long(601)), 422,
			failsFirst("message", "The message must not exceed 600 characters."), ""},
		{"601 emoji", "live", 0, single(number, "ACME", strings.Repeat("😀", 601)), 422,
			failsFirst("message", "The message must not exceed 600 characters."), ""},
		{"keys in another case", "live", 0, `{"Phone_Number":"79123456","Sender":"ACME","MESSAGE":"x"}`, 422, failsFirst(
			"phone_number", "The phone number is required.", "sender", "The sender is required.", "message",
			"The message content is required."), ""},
		{"everything wrong", "live", 0, single("12", "!", long(601)), 422, failsFirst(
			"phone_number", "The phone number must be a valid Burundi (+257) number.", "sender",
			"The sender must be 1-11 alphanumeric characters.",
			"message", "The message must not exceed 600 characters."), ""},
		{"second and third wrong", "live", 0, single(number, nil, nil), 422,
			failsFirst("sender", "The sender is required.", "message", "The message content is required."), ""},
		{"a list", "live", 0, `[1]`, 422, failsFirst(
			"phone_number", "The phone number is required.", "sender", "The sender is required.", "message",
			"The message content is required."), ""},
		{"validation before the rules", "nocompany", 0, single("12", "ACME", "x"), 422,
			failsFirst("phone_number", "The phone number must be a valid Burundi (+257) number."), ""},

		// rule api 7.2, in its order
		{"no company", "nocompany", 0, single(number, "ACME", "x"), 400,
			messageJSON("You must create a company before sending messages."), ""},
		{"company not approved", "new", 0, single(number, "NONE", "x"), 400,
			messageJSON("Your company must be approved before sending messages."), ""},
		{"unknown sender", "live", 0, single("29123456", "NONE", "x"), 400, messageJSON("Sender not found."), ""},
		{"sender in another case", "live", 0, single(number, "acme", "x"), 400, messageJSON("Sender not found."), ""},
		{"sender not approved", "live", 0, single("29123456", "NEWS", "x"), 400,
			messageJSON("The sender must be approved before sending messages."), ""},
		{"no carrier", "live", -1, single("29123456", "ACME", "x"), 400, messageJSON("No carrier serves this phone number."),
			""},
		{"no credit", "live", -1, single(number, "ACME", "x"), 400,
			messageJSON("Insufficient SMS credits. This message requires 1 credit."), ""},
		{"one credit short", "live", 1, single(number, "ACME", long(161)), 400,
			messageJSON("Insufficient SMS credits. This message requires 2 credits."), ""},

		// rule choices 1.3
		{"malformed", "live", 0, `{"phone_number":`, 400, messageJSON("The request body is not valid JSON."), ""},
		{"two values", "live", 0, `{} {}`, 400, messageJSON("The request body is not valid JSON."), ""},
		{"invalid UTF-8", "live", 0, "{\"message\":\"\xff\"}", 400,
			messageJSON("The request body is not valid JSON: it is not encoded in UTF-8."), ""},
		{"half a surrogate pair", "live", 0, `{"message":"\ud83d"}`, 400, messageJSON("The request body is not valid JSON."),
			""},
		{"too deep", "live", 0, strings.Repeat(`[`, 10_001) + strings.Repeat(`]`, 10_001), 400,
			messageJSON("The request body is not valid JSON."), ""},
		{"no token", "", 0, single(number, "ACME", "x"), 401, messageJSON("Unauthenticated."), ""},
	})
}

func TestGoldenTestMode(t *testing.T) {
	t.Parallel()
	const number = "+25761234567"
	ok := func(items, left int) string {
		return object("id", "ULID", "item_count", items, "remaining_items", left, "status", "queued", "to", number, "sender",
			testSender,
			"message", "Message queued for delivery.")
	}
	runGolden(t, "/v1/sms", []golden{
		// rule api 4.4; rule choices 6.2
		{"no company", "nocompany", 0, single(number, testSender, "x"), 400,
			messageJSON("You must create a company before sending messages."), ""},
		{"no verified number", "new", 0, single(number, testSender, "x"), 400,
			messageJSON("Verify a test number before sending test messages."), ""},
		{"another recipient", "live", 0, single("+25779123456", testSender, "x"), 400,
			messageJSON("Test messages can only be sent to your verified test number."), ""},
		{"more than the pool", "live", 0, single(number, testSender, strings.Repeat("😀", 200)), 400,
			messageJSON("Test quota exceeded."), ""},
		{"without credits", "live", -1, single("61 23 45 67", testSender, "x"), 200, ok(1, 4), ""},
		{"three segments", "live", -1, single(number, testSender, long(400)), 200, ok(3, 1), ""},
		{"too much for what is left", "live", 10, single(number, testSender, long(161)), 400,
			messageJSON("Test quota exceeded."), ""},
		{"the last", "live", -1, single(number, testSender, "x"), 200, ok(1, 0), ""},
		{"used up", "live", 10, single(number, testSender, "x"), 400, messageJSON("Test quota exceeded."), ""},
		{"live goes on", "live", 10, single(number, "ACME", "x"), 200, strings.Replace(ok(1, 9), testSender, "ACME", 1), ""},
	})
}
