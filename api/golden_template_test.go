package api

import (
	"strings"
	"testing"
)

func templated(sender, text any, recipients ...any) string {
	return object("sender", sender, "template", text, "recipients", recipients)
}

func to(number, variables any) bulkItem {
	return bulkItem{"phone_number": number, "variables": variables}
}

type vars = map[string]any

func TestGoldenTemplate(t *testing.T) {
	t.Parallel()
	good := to("+25779123456", vars{"code": "1234"})
	ok := func(recipients, items, left int) string {
		return object("batch_id", "ULID", "status", "queued", "sender", "ACME", "recipients_count", recipients, "item_count",
			items, "remaining_items", left)
	}
	const (
		number   = " field must be a valid Burundi (+257) number."
		text     = "Votre code est {{code}}"
		required = "The recipients.0.variables field is required."
	)
	runGolden(t, "/v1/sms/template", []golden{
		// rule api 2.2, 4.3
		{"accepted", "live", 10, templated("ACME", text, good, to("61234567", vars{"code": long(255)})), 200, ok(2, 3, 7),
			""},
		{"500", "live", 600, templated("ACME", text, repeat(500, good)...), 200, ok(500, 500, 100), ""},
		{"whitespace in the braces", "live", 10, templated("ACME", "{{ code\t}}", good), 200, ok(1, 1, 9), ""},
		{"null is empty", "live", 10, templated("ACME", text, to("79123456", vars{"code": nil})), 200, ok(1, 1, 9), ""},
		{"empty string is a value", "live", 10, templated("ACME", text, to("79123456", vars{"code": ""})), 200, ok(1, 1, 9),
			""},
		{"extra keys, whatever they hold", "live", 10,
			templated("ACME", text, to("79123456", vars{"code": "1", "other": long(300), "third": 5})), 200, ok(1, 1, 9), ""},
		{"no placeholder, empty map", "live", 10, templated("ACME", "Bonjour", to("79123456", vars{})), 200, ok(1, 1, 9), ""},
		{"no placeholder, empty list", "live", 10, templated("ACME", "Bonjour {{1x}} { {a}}", to("79123456", []any{})), 200,
			ok(1, 1, 9), ""},
		{"last key wins", "live", 10,
			`{"sender":"ACME","template":"{{a}}","recipients":[{"phone_number":"79123456","variables":{"a":5,"a":"x"}}]}`, 200,
			ok(1, 1, 9), ""},
		{"billed as rendered", "live", 10, templated("ACME", "{{a}}"+long(150), to("79123456", vars{"a": long(11)}),
			to("79123456", vars{"a": "ж"})), 200, ok(2, 5, 5), ""},

		// rule api 7.1
		{"no sender", "live", 0, object("template", text, "recipients", []any{good}), 422,
			failsBatch("sender", "The sender field is required."), ""},
		{"bad sender", "live", 0, templated("TOOLONGSENDER", text, good), 422,
			failsBatch("sender", "The sender must be 1-11 alphanumeric characters."), ""},
		{"no template", "live", 0, templated("ACME", nil, good), 422,
			failsBatch("template", "The template field is required."), ""},
		{"template as a number", "live", 0, templated("ACME", 5, good), 422,
			failsBatch("template", "The template field is required."), ""},
		{"blank template", "live", 0, templated("ACME", " \n", good), 422,
			failsBatch("template", "The template field is required."), ""},
		{"template with U+0000", "live", 0, templated("ACME", "a\x00", good), 422,
			failsBatch("template", "The template field is required."), ""},
		{"601 characters", "live", 0, templated("ACME", long(593)+"{{code}}", to("79123456", vars{"code": 5})), 422,
			failsBatch(
				"template", "The template field must not exceed 600 characters."), ""},
		{"no recipients", "live", 0, object("sender", "ACME", "template", text), 422,
			failsBatch("recipients", "The recipients field must contain at least one item."), ""},
		{"empty recipients", "live", 0, object("sender", "ACME", "template", text, "recipients", []any{}), 422,
			failsBatch("recipients", "The recipients field must contain at least one item."), ""},
		{"recipients as a string", "live", 0, object("sender", "ACME", "template", text, "recipients", "x"), 422,
			failsBatch("recipients", "The recipients field must contain at least one item."), ""},
		{"501", "live", 0, templated("ACME", long(601), repeat(501, good)...), 422, failsBatch(
			"template", "The template field must not exceed 600 characters.", "recipients",
			"The recipients field must not contain more than 500 items."), ""},
		{"no number", "live", 0, templated("ACME", text, bulkItem{"variables": vars{"code": "1"}}), 422, failsBatch(
			"recipients.0.phone_number", "The recipients.0.phone_number field is required."), ""},
		{"bad number", "live", 0, templated("ACME", text, good, to("x", vars{"code": "1"})), 422,
			failsBatch("recipients.1.phone_number", "The recipients.1.phone_number"+number), ""},
		{"no variables", "live", 0, templated("ACME", "Bonjour", bulkItem{"phone_number": "79123456"}), 422,
			failsBatch("recipients.0.variables", required), ""},
		{"null variables", "live", 0, templated("ACME", text, to("79123456", nil)), 422,
			failsBatch("recipients.0.variables", required), ""},
		{"variables as a list", "live", 0, templated("ACME", text, to("79123456", []any{"a"})), 422,
			failsBatch("recipients.0.variables", required), ""},
		{"variables as a string", "live", 0, templated("ACME", text, to("79123456", "a")), 422,
			failsBatch("recipients.0.variables", required), ""},
		{"long variable", "live", 0, templated("ACME", text, to("79123456", vars{"code": long(256)})), 422, failsBatch(
			"recipients.0.variables.code", "The recipients.0.variables.code field must not exceed 255 characters."), ""},
		{"variable with U+0000", "live", 0, templated("ACME", text, to("79123456", vars{"code": "\x00"})), 422, failsBatch(
			"recipients.0.variables.code", "The recipients.0.variables.code field must not exceed 255 characters."), ""},
		{"variable as a number", "live", 0, templated("ACME", text, to("79123456", vars{"code": 1234})), 422, failsBatch(
			"recipients.0.variables.code", "The recipients.0.variables.code field must be a string."), ""},
		{"recipients that are no objects", "live", 0, templated("ACME", text, 5), 422, failsBatch(
			"recipients.0.phone_number", "The recipients.0.phone_number field is required.", "recipients.0.variables", required),
			""},

		// rule api 7.2, in its order: each case also violates all later rules
		{"no company", "nocompany", 0, templated(testSender, text, to("29123456", vars{})), 400,
			messageJSON("You must create a company before sending messages."), ""},
		{"test sender", "new", -1, templated(testSender, text, to("29123456", vars{})), 400, messageJSON(
			"Bulk send does not support the test sender (INTUMWATEST); use the single-message endpoint for test traffic."), ""},
		{"company not approved", "new", -1, templated("NONE", text, to("29123456", vars{})), 400,
			messageJSON("Your company must be approved before sending messages."), ""},
		{"company not verified", "approved", -1, templated("NONE", text, to("29123456", vars{})), 400,
			messageJSON("Your company must be verified before sending messages."), ""},
		{"unknown sender", "live", -1, templated("NONE", text, to("29123456", vars{})), 400, messageJSON("Sender not found."),
			""},
		{"sender not approved", "live", -1, templated("NEWS", text, to("29123456", vars{})), 400,
			messageJSON("The sender must be approved before sending messages."), ""},
		{"another country", "live", -1, templated("KIGALI", text, to("29123456", vars{})), 400, messageJSON(
			"The phone number country (BI) does not match the sender ID's telco country (RW)."), ""},
		{"no carrier", "live", -1, templated("ACME", text, to("29123456", vars{})), 400,
			messageJSON("Recipient #1: no carrier serves this phone number."), ""},
		{"missing variable", "live", -1, templated("ACME", text, to("79123456", vars{})), 400,
			messageJSON("Recipient #1 is missing required template variables: code."), ""},
		{"missing variables, in order of first use, each once", "live", -1,
			templated("ACME", "{{b}} {{ a }} {{c}} {{b}}", to("79123456", vars{"b": "", "a": nil, "c": "1"}),
				to("79123456", vars{"c": "1", "A": "x"}), to("79123456", vars{})),
			400, messageJSON("Recipient #2 is missing required template variables: b, a."), ""},
		{"renders to nothing", "live", -1, templated("ACME", "{{a}}{{b}}", to("79123456", vars{"a": "x", "b": ""}),
			to("79123456", vars{"a": nil, "b": ""})), 400, messageJSON("Recipient #2's message is empty."), ""},
		{"over 255 segments", "live", -1, templated("ACME", strings.Repeat("{{a}}", 120), to("79123456", vars{"a": "x"}),
			to("79123456", vars{"a": strings.Repeat("ж", 255)})), 400,
			messageJSON("Recipient #2's message is too long."), ""},
		{"no credit", "live", -1, templated("ACME", text, good), 400,
			messageJSON("Insufficient SMS credits. This batch requires 1 credit."), ""},
		{"one credit short", "live", 2, templated("ACME", text, good, to("79123456", vars{"code": long(200)})), 400,
			messageJSON("Insufficient SMS credits. This batch requires 3 credits."), ""},
		{"no token", "", 0, templated("ACME", text, good), 401, messageJSON("Unauthenticated."), ""},
	})
}

// The recorded text is exactly the rendered template.
func TestTemplateRendersOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	got := w.do("live", "POST", "/v1/sms/template", templated("ACME", "  {{a}} {{ b }} {{1}} {{a-b}} {{{a}}} ",
		to("79123456", vars{"a": "{{b}}", "b": nil})))
	if got.status != 200 {
		t.Fatal(got.body)
	}
	var body string
	if err := w.pool.QueryRow(t.Context(), `SELECT body FROM messages`).Scan(&body); err != nil {
		t.Fatal(err)
	}
	if want := "  {{b}}  {{1}} {{a-b}} {{{b}}} "; body != want {
		t.Errorf("the message is %q, not %q", body, want)
	}
}
