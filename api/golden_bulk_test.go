package api

import (
	"strconv"
	"testing"
)

type bulkItem = map[string]any

func bulk(sender any, items ...any) string { return object("sender", sender, "messages", items) }

func item(number, text any) bulkItem { return bulkItem{"phone_number": number, "message": text} }

func repeat(n int, v any) []any {
	items := make([]any, n)
	for i := range items {
		items[i] = v
	}
	return items
}

func TestGoldenBulk(t *testing.T) {
	t.Parallel()
	good := item("+25779123456", "Bonjour")
	ok := func(recipients, items, left int) string {
		return object("batch_id", "ULID", "status", "queued", "sender", "ACME", "recipients_count", recipients, "item_count",
			items, "remaining_items", left)
	}
	const number = " field must be a valid Burundi (+257) number."
	runGolden(t, "/v1/sms/bulk", []golden{
		// rule api 2.2, 4.2
		{"accepted", "live", 10, bulk("ACME", good, item("61234567", long(161))), 200, ok(2, 3, 7), ""},
		{"one", "live", 10, bulk("ACME", good), 200, ok(1, 1, 9), ""},
		{"duplicates are messages", "live", 10, bulk("ACME", good, good), 200, ok(2, 2, 8), ""},
		{"500", "live", 600, bulk("ACME", repeat(500, good)...), 200, ok(500, 500, 100), ""},
		{"exactly the balance", "live", 2, bulk("ACME", good, good), 200, ok(2, 2, 0), ""},

		// rule api 7.1
		{"no sender", "live", 0, object("messages", []any{good}), 422, failsBatch("sender", "The sender field is required."),
			""},
		{"null sender", "live", 0, bulk(nil, good), 422, failsBatch("sender", "The sender field is required."), ""},
		{"bad sender", "live", 0, bulk("A B", good), 422,
			failsBatch("sender", "The sender must be 1-11 alphanumeric characters."), ""},
		{"sender as a number", "live", 0, bulk(12, good), 422,
			failsBatch("sender", "The sender must be 1-11 alphanumeric characters."), ""},
		{"no messages", "live", 0, object("sender", "ACME"), 422,
			failsBatch("messages", "The messages field must contain at least one item."), ""},
		{"empty messages", "live", 0, object("sender", "ACME", "messages", []any{}), 422,
			failsBatch("messages", "The messages field must contain at least one item."), ""},
		{"messages as an object", "live", 0, object("sender", "ACME", "messages", good), 422,
			failsBatch("messages", "The messages field must contain at least one item."), ""},
		{"501", "live", 0, bulk("!", repeat(501, bulkItem{})...), 422, failsBatch(
			"sender", "The sender must be 1-11 alphanumeric characters.", "messages",
			"The messages field must not contain more than 500 items."), ""},
		{"item without a number", "live", 0, bulk("ACME", good, bulkItem{"message": "x"}), 422, failsBatch(
			"messages.1.phone_number", "The messages.1.phone_number field is required."), ""},
		{"item with a bad number", "live", 0, bulk("ACME", item("123", "x"), good), 422,
			failsBatch("messages.0.phone_number", "The messages.0.phone_number"+number), ""},
		{"item without a message", "live", 0, bulk("ACME", good, good, bulkItem{"phone_number": "79123456"}), 422, failsBatch(
			"messages.2.message", "The messages.2.message field is required."), ""},
		{"item with a blank message", "live", 0, bulk("ACME", item("79123456", " ")), 422,
			failsBatch("messages.0.message", "The messages.0.message field is required."), ""},
		{"item with U+0000", "live", 0, bulk("ACME", item("79123456", "a\x00")), 422,
			failsBatch("messages.0.message", "The messages.0.message field is required."), ""},
		{"item with a long message", "live", 0, bulk("ACME", item("79123456", long(601))), 422, failsBatch(
			"messages.0.message", "The messages.0.message field must not exceed 600 characters."), ""},
		{"items that are no objects", "live", 0, bulk("ACME", "abc", nil), 422, failsBatch(
			"messages.0.phone_number", "The messages.0.phone_number field is required.", "messages.0.message",
			"The messages.0.message field is required.",
			"messages.1.phone_number", "The messages.1.phone_number field is required.", "messages.1.message",
			"The messages.1.message field is required."), ""},
		{"everything wrong", "live", 0, bulk("", append(repeat(11, any(good)), item(5, long(601)))...), 422, failsBatch(
			"sender", "The sender field is required.", "messages.11.phone_number", "The messages.11.phone_number"+number,
			"messages.11.message", "The messages.11.message field must not exceed 600 characters."), ""},
		{"nothing at all", "live", 0, `null`, 422, failsBatch("sender", "The sender field is required.", "messages",
			"The messages field must contain at least one item."), ""},

		// rule api 7.2, in its order: each case also violates all later rules
		{"no company", "nocompany", 0, bulk(testSender, item("29123456", "x")), 400,
			messageJSON("You must create a company before sending messages."), ""},
		{"test sender", "new", -1, bulk(testSender, item("29123456", "x")), 400, messageJSON(
			"Bulk send does not support the test sender (INTUMWATEST); use the single-message endpoint for test traffic."), ""},
		{"company not approved", "new", -1, bulk("NONE", item("29123456", "x")), 400,
			messageJSON("Your company must be approved before sending messages."), ""},
		{"company not verified", "approved", -1, bulk("NONE", item("29123456", "x")), 400,
			messageJSON("Your company must be verified before sending messages."), ""},
		{"unknown sender", "live", -1, bulk("NONE", item("29123456", "x")), 400, messageJSON("Sender not found."), ""},
		{"sender not approved", "live", -1, bulk("NEWS", item("29123456", "x")), 400,
			messageJSON("The sender must be approved before sending messages."), ""},
		{"another country", "live", -1, bulk("KIGALI", item("29123456", "x")), 400, messageJSON(
			"The phone number country (BI) does not match the sender ID's telco country (RW)."), ""},
		{"no carrier", "live", -1, bulk("ACME", good, item("29123456", "x"), item("29123457", "x")), 400,
			messageJSON("Recipient #2: no carrier serves this phone number."), ""},
		{"no credit", "live", -1, bulk("ACME", good), 400,
			messageJSON("Insufficient SMS credits. This batch requires 1 credit."), ""},
		{"one credit short", "live", 2, bulk("ACME", good, item("79123456", long(161))), 400,
			messageJSON("Insufficient SMS credits. This batch requires 3 credits."), ""},
		{"no token", "", 0, bulk("ACME", good), 401, messageJSON("Unauthenticated."), ""},
		{"malformed", "live", 0, `{"sender"}`, 400, messageJSON("The request body is not valid JSON."), ""},
	})
}

// Each invalid item is reported under its own index.
func TestBulkIndexes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	items := repeat(500, any(bulkItem{}))
	var want []string
	for i := range items {
		for _, field := range []string{"phone_number", "message"} {
			path := "messages." + strconv.Itoa(i) + "." + field
			want = append(want, path, "The "+path+" field is required.")
		}
	}
	got := w.do("live", "POST", "/v1/sms/bulk", bulk("ACME", items...))
	sameJSON(t, got.body, failsBatch(want...))
}
