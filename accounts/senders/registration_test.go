package senders

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"intumwa/accounts"
	"intumwa/internal/postgres"
	"intumwa/sms"
)

// TestWorksAt: a recorded state says whether a sender works at a carrier; without one the carrier's configuration does.
// The principal and the recorded row give one answer.
func TestWorksAt(t *testing.T) {
	a := newWorld(t)
	user := a.User(t, "aline@example.com")
	company := a.Company(t, user.Email)
	s, err := a.senders.CreateSender(t.Context(), company.ID, "ISOKO", "", true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.senders.CreateSender(t.Context(), company.ID, "PLAIN", "", true); err != nil {
		// read after ISOKO: it has nothing of its rows
		t.Fatal(err)
	}
	for _, c := range []struct {
		state              string
		required, optional bool
	}{{"", false, true}, {"requested", false, false}, {"sent", false, false}, {"approved", true, true},
		{"refused", false, false}, {"not_needed", true, true}} {
		if c.state != "" {
			_, r, err := a.senders.SetRegistration(t.Context(), s.ID, "leo", RegistrationChange{State: c.state, Reason: "x"})
			if err != nil || r.State != c.state || r.Works != c.required || r.Sender != "ISOKO" || r.CompanyID != company.ID {
				t.Fatalf("%+v, %v", r, err)
			}
		}
		p, err := a.holders.PrincipalOf(t.Context(), user.ID)
		if err != nil {
			t.Fatal(err)
		}
		of := p.Company.Senders
		if of["ISOKO"].WorksAt("leo", true) != c.required || of["ISOKO"].WorksAt("leo", false) != c.optional {
			t.Errorf("recorded %q: %+v", c.state, of["ISOKO"])
		}
		for _, other := range []bool{of["ISOKO"].WorksAt("lumitel", true), of["PLAIN"].WorksAt("leo", true),
			of["NONE"].WorksAt("leo", true)} {
			if other {
				t.Errorf("recorded %q: it counts elsewhere: %+v", c.state, of)
			}
		}
	}
}

// TestSetRegistration: the day of the sending, the time of the state, the letters, the lists, and what is refused.
func TestSetRegistration(t *testing.T) {
	a := newWorld(t)
	company := a.Company(t, a.User(t, "aline@example.com").Email)
	s, err := a.senders.CreateSender(t.Context(), company.ID, "ISOKO", "", true)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		sender int64
		change RegistrationChange
		kind   error
	}{{s.ID, RegistrationChange{State: "maybe"}, accounts.ErrInvalid}, {s.ID, RegistrationChange{}, accounts.ErrInvalid},
		{s.ID, RegistrationChange{State: "refused"}, accounts.ErrInvalid},
		{s.ID, RegistrationChange{State: "refused", Reason: strings.Repeat("x", MaxPurpose+1)}, accounts.ErrInvalid},
		{s.ID, RegistrationChange{State: "sent", Reason: "a\x00"}, accounts.ErrInvalid},
		{s.ID, RegistrationChange{State: "sent", SentOn: time.Now().AddDate(0, 0, 3)}, accounts.ErrInvalid},
		{999, RegistrationChange{State: "sent"}, accounts.ErrNotFound}} {
		if _, _, err := a.senders.SetRegistration(t.Context(), c.sender, "leo", c.change); !errors.Is(err, c.kind) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	letters := func() (n int) {
		t.Helper()
		if err := a.Pool.QueryRow(t.Context(), `with gone as (delete from letters returning kind)
			select count(*) filter (where kind = 'registration') from gone`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	set := func(to RegistrationChange, wantLetters int) (is Registration) {
		t.Helper()
		_, is, err := a.senders.SetRegistration(t.Context(), s.ID, "leo", to)
		if n := letters(); err != nil || n != wantLetters {
			t.Errorf("%+v: %d letters, %v", to, n, err)
		}
		return is
	}
	if r := set(RegistrationChange{State: "requested"}, 0); r.SentOn != nil {
		t.Errorf("%+v", r)
	}
	today := postgres.Now().In(sms.Burundi).Format(time.DateOnly)
	sent := set(RegistrationChange{State: "sent"}, 0)
	if sent.SentOn == nil || sent.SentOn.Format(time.DateOnly) != today {
		t.Errorf("%+v; today is %s", sent, today)
	}
	day := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	if r := set(RegistrationChange{State: "sent", SentOn: day}, 0); r.SentOn == nil || !r.SentOn.Equal(day) ||
		!r.ChangedAt.Equal(sent.ChangedAt) {
		t.Errorf("%+v", r)
	}
	if r := set(RegistrationChange{State: "sent"}, 0); !r.SentOn.Equal(day) {
		t.Errorf("the day is forgotten: %+v", r)
	}
	if _,
		err := a.Pool.Exec(t.Context(), `update sender_carriers set changed_at = now() - interval '8 days'`); err != nil {
		t.Fatal(err)
	}
	if late, err := a.senders.LateRegistrations(t.Context(), 0, 10); err != nil || len(late) != 1 || !late[0].Late() ||
		late[0].Company != company.Name {
		t.Errorf("late: %+v, %v", late, err)
	}
	if all, late, err := a.senders.WaitingRegistrations(t.Context()); all != 1 || late != 1 || err != nil {
		t.Error(all, late, err)
	}
	refused := set(RegistrationChange{State: "refused", Reason: " Whose\nname? "}, 1)
	if refused.Reason != "Whose name?" || refused.SentOn == nil || time.Since(refused.ChangedAt) > time.Hour {
		t.Errorf("%+v", refused)
	}
	set(RegistrationChange{State: "refused", Reason: "Whose name?"}, 0)
	set(RegistrationChange{State: "refused", Reason: "A bank's."}, 1)
	set(RegistrationChange{State: "approved"}, 1)
	set(RegistrationChange{State: "approved"}, 0)
	if waiting, err := a.senders.Registrations(t.Context(), s.ID, true, 0, 10); err != nil || len(waiting) != 0 {
		t.Error(waiting, err)
	}

	// Its document.
	paper := append([]byte("%PDF-1.7\n"), bytes.Repeat([]byte{'x'}, 1000)...)
	for name, file := range map[string][]byte{"letter.pdf": []byte("text"), "letter.txt": paper,
		"large.pdf": append(paper, make([]byte, accounts.MaxDocument)...)} {
		if err := a.senders.SetRegistrationDocument(t.Context(), refused.ID, name, file); !errors.Is(
			err, accounts.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := a.senders.SetRegistrationDocument(t.Context(), 999, "letter.pdf", paper); !errors.Is(
		err, accounts.ErrNotFound) {
		t.Error(err)
	}
	for _, name := range []string{"first.pdf", "letter.pdf"} {
		if err := a.senders.SetRegistrationDocument(t.Context(), refused.ID, name, paper); err != nil {
			t.Fatal(err)
		}
	}
	of, err := a.senders.RegistrationsOf(t.Context(), sms.CompanyID(company.ID))
	if err != nil {
		t.Fatal(err)
	}
	d := of[s.ID]["leo"].Document
	if part, err := a.senders.RegistrationDocumentPart(t.Context(), refused.ID, d, 9, 100); err != nil ||
		d.Name != "letter.pdf" || d.Size != len(paper) || string(part) != strings.Repeat("x", 100) {
		t.Errorf("%+v: %q, %v", d, part, err)
	}
}
