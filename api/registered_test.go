package api

import (
	"strings"
	"testing"

	"intumwa/accounts/senders"
	"intumwa/sms"
)

// TestSenderAtCarriers: a sender that is approved by us is refused only toward the carrier that does not know it, in
// all three sends, naming the first such recipient. Nothing is charged, and a registration counts at once although the
// sender is cached. The carrier's default counts without a record, and a reload changes it. Test messages need none.
func TestSenderAtCarriers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	w.credits("live", 100)
	const atLumitel, atLeo, nowhere = "61123456", "79123456", "29123456"
	const refused, refusedOne = "Sender not registered with this carrier.",
		"Recipient #2: sender not registered with this carrier."
	var acme int64
	if err := w.pool.QueryRow(t.Context(), `SELECT id FROM senders WHERE company_id = $1 AND name = 'ACME'`,
		w.company["live"]).Scan(&acme); err != nil {
		t.Fatal(err)
	}
	set := func(carrier, state string) {
		t.Helper()
		// As another process does, whose notice has not come yet: this process's cache does not know of it.
		if _, err := w.pool.Exec(t.Context(), `INSERT INTO sender_carriers (sender_id, company_id, carrier, state)
			VALUES ($1, $2, $3, $4)
			ON CONFLICT (sender_id, carrier) DO UPDATE SET state = excluded.state`, acme, w.company["live"], carrier,
			state); err != nil {
			t.Fatal(err)
		}
	}
	ledger := func() (n int) {
		t.Helper()
		if err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM ledger`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	balance := func() int64 {
		t.Helper()
		b, err := w.deps.Ledger.Balance(t.Context(), w.company["live"])
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	bodies := func(numbers ...string) map[string]string {
		var items, recipients []any
		for _, n := range numbers {
			items, recipients = append(items, item(n, "Bonjour")), append(recipients, to(n, vars{}))
		}
		return map[string]string{"/v1/sms/bulk": bulk("ACME", items...),
			"/v1/sms/template": templated("ACME", "Bonjour {{name}}", recipients...)}
	}
	sends := func(path, body, text string) {
		t.Helper()
		money, rows := balance(), ledger()
		r := w.do("live", "POST", path, body)
		switch {
		case text == "" && (r.status != 200 || balance() == money || ledger() == rows):
			t.Errorf("%s %s: %d %s; the balance is %d, was %d", path, body, r.status, r.body, balance(), money)
		case text != "" && (r.status != 400 || r.body != messageJSON(text) ||
			strings.Contains(text, "registered") != (r.header.Get("X-Error-Code") == "sender_not_registered") ||
			balance() != money || ledger() != rows):
			t.Errorf("%s %s: %d %s (%s); want %q; the balance is %d, was %d", path, body, r.status, r.body,
				r.header.Get("X-Error-Code"), text, balance(), money)
		}
	}
	fresh := func() { w.deps.Holders.ForgetCompany("all") }

	sends("/v1/sms", single(atLeo, "ACME", "Bonjour"), "") // nothing is recorded, and nothing is required
	set("lumitel", "approved")
	for _, state := range []string{"requested", "sent", "refused"} {
		set("leo", state)
		fresh()
		sends("/v1/sms", single(atLeo, "ACME", "Bonjour"), refused)
		sends("/v1/sms", single(atLumitel, "ACME", "Bonjour"), "")
		for path, body := range bodies(atLumitel, atLeo, atLeo) {
			sends(path, strings.ReplaceAll(body, "{{name}}", ""), refusedOne)
		}
		for path, body := range bodies(atLumitel, atLeo, nowhere) { // a number without a carrier comes first, wherever it is
			sends(path, body, "Recipient #3: no carrier serves this phone number.")
		}
		for path, body := range bodies(atLumitel, atLeo) { // it comes before missing variables
			sends(path, body, refusedOne)
		}
		for path, body := range bodies(atLumitel, atLumitel) {
			sends(path, strings.ReplaceAll(body, "{{name}}", ""), "")
		}
	}
	w.credits("live", 0) // it comes before credits
	sends("/v1/sms", single(atLeo, "ACME", "Bonjour"), refused)
	for path, body := range bodies(atLumitel, atLeo) {
		sends(path, body, refusedOne)
	}
	w.credits("live", 100)

	for _, state := range []string{"approved", "not_needed"} { // a moment ago
		for path, body := range bodies(atLumitel, atLeo) {
			set("leo", "sent")
			fresh()
			sends(path, body, refusedOne)
			set("leo", state)
			sends(path, strings.ReplaceAll(body, "{{name}}", ""), "")
		}
		set("leo", "sent")
		fresh()
		sends("/v1/sms", single(atLeo, "ACME", "Bonjour"), refused)
		set("leo", state)
		sends("/v1/sms", single(atLeo, "ACME", "Bonjour"), "")
	}

	// The default of a carrier.
	if _, err := w.pool.Exec(t.Context(), `DELETE FROM sender_carriers`); err != nil {
		t.Fatal(err)
	}
	reload := func(required bool) {
		t.Helper()
		routes, err := sms.NewRoutes([]sms.Route{{Carrier: "lumitel", Prefixes: []string{"6"}},
			{Carrier: "leo", Prefixes: []string{"7"}, Registration: required}})
		if err != nil {
			t.Fatal(err)
		}
		w.deps.Intake.SetRoutes(routes)
	}
	fresh()
	reload(true)
	sends("/v1/sms", single(atLeo, "ACME", "Bonjour"), refused)
	sends("/v1/sms", single(atLumitel, "ACME", "Bonjour"), "")
	if _, err := w.deps.TestNumbers.SetTestNumber(t.Context(), "live@example.com", "+25779123456", true); err != nil {
		t.Fatal(err)
	}
	if r := w.do("live", "POST", "/v1/sms", single(atLeo, testSender, "Bonjour")); r.status != 200 {
		t.Errorf("a test message: %d %s", r.status, r.body)
	}
	if _, _, err := w.senders.SetRegistration(t.Context(), acme, "leo",
		senders.RegistrationChange{State: senders.RegistrationApproved}); err != nil {
		t.Fatal(err)
	}
	sends("/v1/sms", single(atLeo, "ACME", "Bonjour"), "")
	if _, err := w.pool.Exec(t.Context(), `DELETE FROM sender_carriers`); err != nil {
		t.Fatal(err)
	}
	fresh()
	sends("/v1/sms", single(atLeo, "ACME", "Bonjour"), refused)
	reload(false)
	sends("/v1/sms", single(atLeo, "ACME", "Bonjour"), "")
}
