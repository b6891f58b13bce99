package letters

import (
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts/companies"
	"intumwa/accounts/letter"
	"intumwa/accounts/people"
	"intumwa/accounts/senders"
	"intumwa/sms"
)

// TestLettersAreMailed: each kind of letter is sent once, although several processes send, in the owner's language, and
// without customers' text.
func TestLettersAreMailed(t *testing.T) {
	w := newWorld(t, "")
	w.run(w.other().Run) // another process
	for _, language := range []string{"fr", "en"} {
		email := language + "@example.com"
		u, company := w.user(email), w.company(email, "Buy at evil.example")
		if err := w.people.SetLanguage(t.Context(), u.ID, language); err != nil {
			t.Fatal(err)
		}
		wish, err := w.senders.RequestSender(t.Context(), sms.CompanyID(company.ID), "SHOP"+language, "",
			"news of evil.example")
		if err != nil {
			t.Fatal(err)
		}
		l, _ := w.letters.words.ByTag(language)
		set := func(change companies.CompanyChange) func() error {
			return func() error { _, err := w.companies.SetCompany(t.Context(), company.ID, change); return err }
		}
		write := func(kind string, data any) func() error {
			return func() error {
				return pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error {
					return letter.Write(t.Context(), tx, kind, sms.CompanyID(company.ID), data)
				})
			}
		}
		at := func(change senders.RegistrationChange) func() error {
			return func() error {
				_, _, err := w.senders.SetRegistration(t.Context(), wish.ID, "leo", change)
				return err
			}
		}
		for i, step := range []struct {
			do            func() error
			subject, text string
		}{
			{set(companies.CompanyChange{Approved: new(true)}), l.T("mail.approved.subject"), w.url},
			{set(companies.CompanyChange{Verified: new(true)}), l.T("mail.verified.subject"), l.T("mail.verified.text") +
				"\n\n" + w.url + "/campaigns"},
			{set(companies.CompanyChange{Approved: new(false)}), l.T("mail.disapproved.subject"), w.url},
			{set(companies.CompanyChange{Verified: new(false)}), l.T("mail.unverified.subject"), w.url},
			{func() error { _, err := w.senders.RefuseSender(t.Context(), wish.ID, "Whose name is it?"); return err },
				l.T("mail.sender.refused.subject", wish.Name), "Whose name is it?"},
			{func() error { _, err := w.senders.SetSender(t.Context(), wish.ID, true); return err },
				l.T("mail.sender.approved.subject", wish.Name), "/messages/new"},
			{at(senders.RegistrationChange{State: senders.RegistrationRefused, Reason: "Whose name is it?"}),
				l.T("mail.registration.refused.subject", wish.Name, "leo"), "Whose name is it?"},
			{at(senders.RegistrationChange{State: senders.RegistrationApproved}),
				l.T("mail.registration.approved.subject", wish.Name, "leo"), w.url + "/senders"},
			{write(letter.Balance, letter.BalanceValues{Credits: 40, Threshold: 50}), l.T("mail.low.subject"),
				l.T("mail.low.text", 40, 50)},
			{write(letter.Endpoint, letter.EndpointValues{URL: "https://shop.example/hook", Given: true}),
				l.T("mail.rotated.subject"), "https://shop.example/hook.\n\n" + l.T("mail.given.text")},
			{write(letter.Contacts, letter.ContactsValues{By: "aline@shop.example", Contacts: 250}), l.T("mail.contacts.subject"),
				l.N("mail.contacts.text", 250, "aline@shop.example")},
			{func() error { // an endpoint fails for good
				w.exec(`insert into webhook_endpoints (company_id, url, secret, active, given_up_at)
					values ($1, 'https://evil.example', 'x', true, now() - interval '1 hour')`, company.ID)
				_, err := w.letters.writeFailing(t.Context())
				return err
			}, l.T("mail.failing.subject"), w.url + "/deliveries?state=failed"},
		} {
			if err := step.do(); err != nil {
				t.Fatal(err)
			}
			w.letters.Wake("") // as a notice does
			m := w.mail(email, i)
			if m.Subject != step.subject || !strings.Contains(m.Text, step.text) || strings.Contains(m.Text+m.Subject, "evil") {
				t.Errorf("%d, %s: %q\n%s", i, step.subject, m.Subject, m.Text)
			}
		}
		if written, err := w.letters.writeFailing(t.Context()); err != nil || written != 0 {
			t.Errorf("written again: %d, %v", written, err)
		}
	}
	w.until("nothing waits", func() bool { return w.count(`select count(*) from letters`) == 0 })
	if n := len(w.mails.Mails()); n != 24 {
		t.Errorf("%d mails", n)
	}
}

// gate is the address of a mail server. It closes every connection until it is opened, and then relays to the server.
type gate struct {
	net.Listener

	server string
	opened atomic.Bool
}

func newGate(t *testing.T) *gate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{Listener: l}
	var group sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); group.Wait() })
	group.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			group.Go(func() { g.lead(c) })
		}
	})
	return g
}

func (g *gate) lead(c net.Conn) {
	defer func() { _ = c.Close() }()
	if !g.opened.Load() {
		return
	}
	s, err := net.Dial("tcp", g.server)
	if err != nil {
		return
	}
	var back sync.WaitGroup
	back.Go(func() { _, _ = io.Copy(c, s); _ = c.Close() })
	_, _ = io.Copy(s, c)
	_ = s.Close()
	back.Wait()
}

// TestLettersAreRetried: a letter that no mail server accepts is stored, and mailed later with the state of that time.
// A letter that is too old is dropped.
func TestLettersAreRetried(t *testing.T) {
	g := newGate(t)
	w := newWorld(t, g.Addr().String())
	u := w.user("aline@example.com")
	company := w.company(u.Email, "aline")
	set := func(kind string, change companies.CompanyChange) {
		t.Helper()
		if _, err := w.companies.SetCompany(t.Context(), company.ID, change); err != nil {
			t.Fatal(err)
		}
		w.letters.Wake("")
		w.until("it was tried, and put off for a minute", func() bool {
			var tried bool
			err := w.pool.QueryRow(t.Context(), `select tries = 1 and due_at between now() + interval '5 seconds'
				and now() + interval '1 minute' from letters where kind = $1`, kind).Scan(&tried)
			return err == nil && tried
		})
	}
	set("approval", companies.CompanyChange{Approved: new(true)})
	set("verification", companies.CompanyChange{Verified: new(true)})
	set("approval", companies.CompanyChange{Approved: new(false)})
	w.exec(`update letters set written_at = now() - interval '4 days', due_at = now() where kind = 'verification'`)
	w.letters.Wake("")
	w.until("the old one is given up", func() bool { return w.count(`select count(*) from letters`) == 1 })

	g.server = w.smtp
	g.opened.Store(true)
	w.exec(`update letters set due_at = now()`)
	w.letters.Wake("")
	if m := w.mail(u.Email, 0); m.Subject != "Votre entreprise n’est plus approuvée" {
		t.Errorf("%+v", m)
	}
	w.until("it is done with", func() bool { return w.count(`select count(*) from letters`) == 0 })
	if n := len(w.mails.Mails()); n != 1 {
		t.Errorf("%d mails", n)
	}
}

// TestLetterToNobody: the warning about an address without an account is dropped.
func TestLetterToNobody(t *testing.T) {
	w := newWorld(t, "")
	if err := people.NewSignIn(w.pool, nil).WarnOfTries(t.Context(), "nobody@example.com"); err != nil {
		t.Fatal(err)
	}
	w.until("it is dropped", func() bool { return w.count(`select count(*) from letters`) == 0 })
	if n := len(w.mails.Mails()); n != 0 {
		t.Errorf("%d mails", n)
	}
}
