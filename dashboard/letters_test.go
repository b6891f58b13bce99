package dashboard

import (
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"intumwa/accounts"
	"intumwa/internal/mail"
	"intumwa/sms"
)

// unsent is how many letters wait.
func (w *world) unsent() (n int) {
	w.t.Helper()
	if err := w.pool.QueryRow(context.WithoutCancel(w.t.Context()), `select count(*) from letters`).Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

// TestDecisionsAreMailed: whatever hand decides, a page, a command or psql, the owner hears of it once, in the owner's
// language, although several processes send.
func TestDecisionsAreMailed(t *testing.T) {
	w := newWorld(t, nil)
	for range 2 { // two more processes
		other, err := New(w.d.rooms, w.d.opts)
		if err != nil {
			t.Fatal(err)
		}
		w.run(other.Run)
	}
	aline, bob := w.user("aline@example.com", false), w.user("bob@example.com", false)
	if err := w.accounts.SetLanguage(t.Context(), bob.ID, "en"); err != nil {
		t.Fatal(err)
	}
	first, second := w.company(aline.Email, "Buy at evil.example"), w.company(bob.Email, "bob")
	root := newClient(w)
	root.inside("root@example.com")
	hear := func(to string, n int, subject string, says ...string) {
		t.Helper()
		w.d.WakeLetters("") // as a notice does
		m := w.mail(to, n)
		if m.Subject != subject {
			t.Errorf("the mail is about %q, not %q", m.Subject, subject)
		}
		for _, text := range append(says, w.url) {
			if !strings.Contains(m.Text, text) {
				t.Errorf("%q lacks %q:\n%s", subject, text, m.Text)
			}
		}
		if strings.Contains(m.Text+m.Subject, "evil") {
			t.Errorf("the mail says what a stranger wrote:\n%s", m.Text)
		}
	}
	path := func(c accounts.Company) string { return "/admin/companies/" + strconv.FormatInt(c.ID, 10) }
	root.wants(root.post(path(first)+"/approve"), http.StatusSeeOther)
	hear(aline.Email, 0, "Votre entreprise est approuvée", "un par un")
	root.wants(root.post(path(first)+"/verify"), http.StatusSeeOther)
	hear(aline.Email, 1, "Votre entreprise est vérifiée", "campagnes")
	root.wants(root.post(path(first)+"/withdraw", "reason", "papers"), http.StatusSeeOther)
	hear(aline.Email, 2, "L’approbation de votre entreprise a été retirée")

	yes, no := true, false
	for i, change := range []accounts.CompanyChange{{Approved: &yes}, {Verified: &yes}, {Verified: &no}} {
		if _, err := w.accounts.SetCompany(t.Context(), second.ID, change); err != nil {
			t.Fatal(err)
		}
		hear(bob.Email, i, []string{"Your company is approved", "Your company is verified", "The verification of your company has been taken back"}[i])
	}
	if _, err := w.accounts.SetCompany(t.Context(), second.ID, accounts.CompanyChange{Approved: &yes, SmartEncoding: &yes}); err != nil { // no news
		t.Fatal(err)
	}

	wish, err := w.accounts.AskSender(t.Context(), sms.CompanyID(second.ID), "BOB", "", "news for bob's clients")
	if err != nil {
		t.Fatal(err)
	}
	sender := "/admin/senders/" + strconv.FormatInt(wish.ID, 10)
	root.wants(root.post(sender+"/withdraw", "reason", "Whose name is it?"), http.StatusSeeOther)
	hear(bob.Email, 3, "Your sender ID BOB is not approved", "Whose name is it?", "/senders")
	if _, err := w.accounts.AskSender(t.Context(), sms.CompanyID(second.ID), "BOB", "", "bob is my name"); err != nil { // no news for him
		t.Fatal(err)
	}
	root.wants(root.post(sender+"/approve"), http.StatusSeeOther)
	hear(bob.Email, 4, "Your sender ID BOB is approved", "/messages/new")

	w.until("nothing waits", func() bool { return w.unsent() == 0 })
	if n := len(w.mails.Mails()); n != 8 {
		t.Errorf("%d mails", n)
	}
}

// gate is a mail server's address that hangs up on everybody until it is opened; then it leads to the server.
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

// TestLettersWait: a letter that no mail server takes is kept, and not by its process, until one does; it says what holds
// by then. One that is too old is given up.
func TestLettersWait(t *testing.T) {
	g := newGate(t)
	w := newWorld(t, func(rooms *Rooms, _ *Options) {
		var err error
		if rooms.Mailer, err = mail.New(mail.Options{Server: g.Addr().String(), From: "no-reply@example.com", TLS: mail.Plain}); err != nil {
			t.Fatal(err)
		}
	})
	u := w.user("aline@example.com", false)
	company := w.company(u.Email, "aline")
	yes, no := true, false
	set := func(kind string, change accounts.CompanyChange) {
		t.Helper()
		if _, err := w.accounts.SetCompany(t.Context(), company.ID, change); err != nil {
			t.Fatal(err)
		}
		w.d.WakeLetters("")
		w.until("it was tried, and put off for a minute", func() bool {
			var tried bool
			err := w.pool.QueryRow(t.Context(), `select tries = 1 and due_at between now() + interval '5 seconds' and now() + interval '1 minute' from letters where kind = $1`, kind).Scan(&tried)
			return err == nil && tried
		})
	}
	set("approval", accounts.CompanyChange{Approved: &yes})
	set("verification", accounts.CompanyChange{Verified: &yes})
	set("approval", accounts.CompanyChange{Approved: &no})
	w.exec(`update letters set written_at = now() - interval '4 days', due_at = now() where kind = 'verification'`)
	w.d.WakeLetters("")
	w.until("the old one is given up", func() bool { return w.unsent() == 1 })

	g.server = w.smtp
	g.opened.Store(true)
	w.exec(`update letters set due_at = now()`)
	w.d.WakeLetters("")
	if m := w.mail(u.Email, 0); m.Subject != "L’approbation de votre entreprise a été retirée" {
		t.Errorf("%+v", m)
	}
	w.until("it is done with", func() bool { return w.unsent() == 0 })
	if n := len(w.mails.Mails()); n != 1 {
		t.Errorf("%d mails", n)
	}
}
