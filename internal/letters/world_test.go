package letters

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/accounts"
	"intumwa/accounts/companies"
	"intumwa/accounts/people"
	"intumwa/accounts/senders"
	"intumwa/internal/mail"
	"intumwa/internal/testenv"
	"intumwa/tools/mailcatcher"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// world is a database, a mail server, and letters that are being sent.
type world struct {
	t         *testing.T
	pool      *pgxpool.Pool
	people    *people.Store
	companies *companies.Store
	senders   *senders.Store
	mails     *mailcatcher.Catcher
	smtp      string // its address
	url       string
	mailer    *mail.Mailer
	letters   *Letters
}

// newWorld starts them; server is the mail server's address if it is not the world's own.
func newWorld(t *testing.T, server string) *world {
	t.Helper()
	t.Parallel()
	w := &world{t: t, pool: testenv.Pool(t), mails: mailcatcher.New(), url: "https://sms.example.com"}
	w.people, w.companies, w.senders = people.New(w.pool), companies.New(w.pool, nil),
		senders.New(w.pool, "INTUMWATEST", nil)
	smtp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.smtp = smtp.Addr().String()
	w.run(func(ctx context.Context) error { return w.mails.ServeSMTP(ctx, smtp) })
	if w.mailer, err = mail.New(mail.Options{Server: cmp.Or(server, w.smtp), From: "Intumwa <no-reply@example.com>",
		TLS: mail.Plain}); err != nil {
		t.Fatal(err)
	}
	w.letters = w.other()
	w.run(w.letters.Run)
	return w
}

// other returns the letters of another process.
func (w *world) other() *Letters {
	w.t.Helper()
	l, err := New(w.pool, w.people, w.companies, w.senders, w.mailer, w.url+"/", "comptes@example.com",
		slog.New(slog.NewTextHandler(w.t.Output(), nil)))
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

// run runs a part until the test ends.
func (w *world) run(part func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- part(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("a part ended with %v", err)
		}
	})
}

func (w *world) user(email string) people.User {
	w.t.Helper()
	u, err := w.people.CreateUser(w.t.Context(),
		people.NewUser{Email: email, Name: "Aline N.", Password: "twelve green bananas"})
	if err != nil {
		w.t.Fatal(err)
	}
	return u
}

func (w *world) company(email, name string) (c accounts.Company) {
	w.t.Helper()
	err := pgx.BeginFunc(w.t.Context(), w.pool, func(tx pgx.Tx) (err error) {
		c, err = w.companies.CreateCompany(w.t.Context(), tx, companies.NewCompany{OwnerEmail: email, Name: name})
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// mail returns the n-th mail to an address, from 0.
func (w *world) mail(to string, n int) mailcatcher.Mail {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 30*time.Second)
	defer cancel()
	m, err := w.mails.Wait(ctx, to, n)
	if err != nil {
		w.t.Fatal(err)
	}
	return m
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	if _, err := w.pool.Exec(w.t.Context(), sql, args...); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) count(query string) (n int) {
	w.t.Helper()
	if err := w.pool.QueryRow(w.t.Context(), query).Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

// until waits until a condition holds.
func (w *world) until(what string, condition func() bool) {
	w.t.Helper()
	for end := time.Now().Add(30 * time.Second); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("%s: not within 30s", what)
		}
	}
}
