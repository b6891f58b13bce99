package api

import (
	"strings"
	"testing"
	"time"

	"intumwa/accounts/companies"
	"intumwa/intake"
	"intumwa/internal/testenv"
	"intumwa/internal/throttle"
)

// A company's limits refuse with these exact texts. A company without limits has those of the rules.
func TestGoldenLimits(t *testing.T) {
	t.Parallel()
	rdb, prefix := testenv.Redis(t)
	limits := func(o *intake.Options) {
		o.Repeats = throttle.NewRepeats(rdb, throttle.RepeatOptions{Prefix: prefix, Timeout: 5 * time.Second})
	}
	w := newWorld(t, worldOptions{Intake: limits}).settle()
	w.exec(`UPDATE companies SET repeat_seconds = 30, number_a_day = 4, credits_a_day = 12 WHERE id = $1`,
		w.company["live"])
	w.customer("texts", &companies.NewCompany{Approved: true, Verified: true})
	w.sender("texts", "ACME", "", true)
	w.credits("texts", 1000)
	w.exec(`UPDATE companies SET repeats_a_day = 3, number_a_day = 4 WHERE id = $1`, w.company["texts"])
	template := templated("ACME", "Bonjour {{nom}}", to("79000001", vars{"nom": "Ann"}),
		to("79000002", vars{"nom": "Ben"}))
	for _, c := range []struct {
		name, as, path, body string
		status               int
		code, text           string
	}{
		{"a single", "live", "/v1/sms", object("phone_number", "79000009", "sender", "ACME", "message", "a"), 200, "", ""},
		{"the same single", "live", "/v1/sms", object("phone_number", "79000009", "sender", "ACME", "message", "a"), 400,
			"repeated_too_soon",
			"The same message can be sent to this phone number only once in 30 seconds."},
		{"a batch", "live", "/v1/sms/bulk", bulk("ACME", item("79000001", "a"), item("79000002", "a")), 200, "", ""},
		{"the same in a batch", "live", "/v1/sms/bulk", bulk("ACME", item("79000003", "a"), item("79000002", "a")), 400,
			"repeated_too_soon",
			"Recipient #2: the same message can be sent to this phone number only once in 30 seconds."},
		{"twice in a batch", "live", "/v1/sms/bulk", bulk("ACME", item("79000004", "b"), item("79000004", "b")), 400,
			"repeated_too_soon",
			"Recipient #2: the same message can be sent to this phone number only once in 30 seconds."},
		{"a template", "live", "/v1/sms/template", template, 200, "", ""},
		{"the same template", "live", "/v1/sms/template", template, 400, "repeated_too_soon",
			"Recipient #1: the same message can be sent to this phone number only once in 30 seconds."},
		{"too many to a number", "live", "/v1/sms/bulk", bulk("ACME", item("79000001", "c"), item("79000001", "d"),
			item("79000001", "e")), 400, "number_limit",
			"Recipient #3: at most 4 messages a day can be sent to this phone number."},
		{"over the day's credits", "live", "/v1/sms/bulk", bulk("ACME", repeated(8)...), 400, "daily_cap",
			"Daily spending limit exceeded. This batch requires 8 credits; 7 of 12 are left today."},
		{"a single over them", "live", "/v1/sms", object("phone_number", "79000008", "sender", "ACME", "message", long(600)),
			200, "", ""},
		{"a long single over them", "live", "/v1/sms", object("phone_number", "79000007", "sender", "ACME", "message",
			long(600)), 400, "daily_cap",
			"Daily spending limit exceeded. This message requires 4 credits; 3 of 12 are left today."},
		{"a text of three a day", "texts", "/v1/sms/bulk", bulk("ACME", item("79000001", "a"), item("79000001", "a"),
			item("79000001", "a")), 200, "", ""},
		{"a fourth", "texts", "/v1/sms", object("phone_number", "79000001", "sender", "ACME", "message", "a"), 400,
			"repeated_too_often",
			"The same message can be sent to this phone number at most 3 times a day."},
		{"a fourth in a batch", "texts", "/v1/sms/bulk", bulk("ACME", item("79000001", "a")), 400, "repeated_too_often",
			"Recipient #1: the same message can be sent to this phone number at most 3 times a day."},
		{"a fourth message", "texts", "/v1/sms", object("phone_number", "79000001", "sender", "ACME", "message", "b"), 200,
			"", ""},
		{"a fifth", "texts", "/v1/sms", object("phone_number", "79000001", "sender", "ACME", "message", "c"), 400,
			"number_limit",
			"At most 4 messages a day can be sent to this phone number."},
		{"validation comes before", "live", "/v1/sms", object("phone_number", "123", "sender", "ACME", "message", "a"), 422,
			"phone_number_invalid", ""},
		{"the rules come before", "live", "/v1/sms/bulk", bulk("NONE", item("79000001", "a")), 400, "sender_not_found",
			"Sender not found."},
		{"a company without limits", "other", "/v1/sms/bulk", bulk("ACME", item("79000001", "a"), item("79000001", "a"),
			item("79000001", "a"), item("79000001", "a"), item("79000001", "a")), 200, "", ""},
		{"a company without limits, again", "other", "/v1/sms/bulk",
			bulk("ACME", item("79000001", "a"), item("79000001", "a")), 200, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.t = t
			before := w.recorded()
			got := w.do(c.as, "POST", c.path, c.body)
			if got.status != c.status || got.header.Get("X-Error-Code") != c.code {
				t.Errorf("%d %s: %s; want %d %s", got.status, got.header.Get("X-Error-Code"), got.body, c.status, c.code)
			}
			if c.status == 400 {
				sameJSON(t, got.body, messageJSON(c.text))
			}
			if after := w.recorded(); c.status != 200 && after != before {
				t.Errorf("a refused request left something: %v, then %v", before, after)
			}
		})
	}
}

// repeated returns n messages of a batch, each to another number.
func repeated(n int) (items []any) {
	for i := range n {
		items = append(items, item("7910000"+string(rune('0'+i)), strings.Repeat("x", i+1)))
	}
	return items
}
