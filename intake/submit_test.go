package intake

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/sms"
)

// TestSubmit: a message over SMPP is charged once, refused under the rules of a batch, and recorded with its origin. A
// part is one segment whatever its encoding, and must fit one.
func TestSubmit(t *testing.T) {
	d := newDistrict(t, 10)
	in := d.process(t)
	class := uint8(0)
	submit := func(change func(*Submit)) error {
		t.Helper()
		s := Submit{Number: "+25779123456", Sender: "ACME", Message: "Amahoro",
			Origin: messages.Origin{Account: 7, Bind: 8, Registered: 1}}
		change(&s)
		_, err := in.Submit(t.Context(), d.principal, s)
		return err
	}
	part := &sms.Part{Reference: 513, Total: 3, Number: 2}
	wide := &sms.Part{Reference: 513, Total: 3, Number: 2, Wide: true, Coding: sms.CodingUCS2}
	for _, c := range []struct {
		name   string
		change func(*Submit)
		reason string // "": accepted
		cost   int64
	}{
		{"plain", func(*Submit) {}, "", 1},
		{"urgent, with a class", func(s *Submit) { s.Origin.Urgent, s.Origin.Class = true, &class }, "", 1},
		{"three segments", func(s *Submit) { s.Message = strings.Repeat("x", 400) }, "", 3},
		{"a part of 153 septets", func(s *Submit) { s.Origin.Part, s.Message = part, strings.Repeat("x", 153) }, "", 1},
		{"a part of 154 septets", func(s *Submit) { s.Origin.Part, s.Message = part, strings.Repeat("x", 154) }, "too_long",
			0},
		{"a part of 67 code units", func(s *Submit) { s.Origin.Part, s.Message = wide, strings.Repeat("x", 67) }, "", 1},
		{"a part of 68 code units", func(s *Submit) { s.Origin.Part, s.Message = wide, strings.Repeat("x", 68) }, "too_long",
			0},
		{"another's sender", func(s *Submit) { s.Sender = "BANK" }, "sender_not_found", 0},
		{"the test sender", func(s *Submit) { s.Sender = "TEST" }, "test_sender", 0},
		{"more than is left", func(s *Submit) { s.Message = strings.Repeat("x", 1000) }, "insufficient_credits", 0},
	} {
		before := d.credits(t)
		err := submit(c.change)
		refusal, _ := errors.AsType[sms.Refusal](err)
		if refusal.Reason != c.reason || c.reason == "" && err != nil {
			t.Errorf("%s: %v, want %q", c.name, err, c.reason)
		}
		if cost := before - d.credits(t); cost != c.cost {
			t.Errorf("%s costs %d, want %d", c.name, cost, c.cost)
		}
	}
	got, err := postgres.All(t.Context(), d.pool, "reading", pgx.RowTo[string], `SELECT concat_ws(' ', smpp_key, smpp_bind,
		registered, urgent, message_class, part, o.lane, channel) FROM messages m JOIN outbox o ON o.message_id = m.id
		ORDER BY m.id`)
	if want := "7 8 1 f 1 2|7 8 1 t 0 0 2|7 8 1 f 1 2|7 8 1 f 33620738 1 2|7 8 1 f 1103840215810 1 2"; err != nil ||
		strings.Join(got, "|") != want {
		t.Errorf("recorded %q, %v; want %q", strings.Join(got, "|"), err, want)
	}
	for _, flag := range []string{"verified", "approved"} {
		if _, err := d.pool.Exec(t.Context(), `UPDATE companies SET `+flag+` = false`); err != nil {
			t.Fatal(err)
		}
		d.holders.ForgetCompany("")
		p, err := d.holders.PrincipalOf(t.Context(), d.principal.UserID)
		if err != nil {
			t.Fatal(err)
		}
		d.principal = p
		if refusal, _ := errors.AsType[sms.Refusal](submit(func(*Submit) {})); refusal.Reason != "company_not_"+flag {
			t.Errorf("a company that is not %s: %q", flag, refusal.Reason)
		}
	}
}

func (d *district) credits(t *testing.T) (n int64) {
	t.Helper()
	if err := d.pool.QueryRow(context.Background(), `SELECT credits FROM balances`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
