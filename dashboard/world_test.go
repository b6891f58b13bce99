package dashboard

import (
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/crypto/argon2"

	"intumwa/accounts"
	"intumwa/accounts/companies"
	"intumwa/accounts/keys"
	"intumwa/accounts/people"
	"intumwa/accounts/senders"
	"intumwa/accounts/testnumbers"
	"intumwa/billing"
	"intumwa/billing/orders"
	"intumwa/campaigns"
	"intumwa/internal/letters"
	"intumwa/internal/mail"
	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
	"intumwa/internal/throttle"
	"intumwa/messages/statistics"
	"intumwa/tools/mailcatcher"
	"intumwa/webhooks"
)

func TestMain(m *testing.M) {
	testenv.Parallel(3) // one of them is TestByHand
	code := testenv.Run(m)
	endChromium()
	os.Exit(code)
}

const testPassword = "twelve green bananas"

// world is a dashboard with its own database and mail server.
type world struct {
	t           *testing.T
	pool        *pgxpool.Pool
	people      *people.Store
	signIn      *people.SignIn
	sessions    *people.Sessions
	companies   *companies.Store
	keys        *keys.Store
	holders     *keys.Holders
	senders     *senders.Store
	testNumbers *testnumbers.Store
	hooks       *webhooks.Webhooks // running
	api         *requested
	mails       *mailcatcher.Catcher
	smtp        string // its address
	url         string
	d           *Dashboard

	campaigns *campaigns.Campaigns
	letters   *letters.Letters
}

// newWorld starts a dashboard and the background work behind it; change may modify its deps and options. Tests with
// separate worlds run in parallel.
func newWorld(t *testing.T, change func(*Deps, *Options)) *world {
	t.Helper()
	w := stillWorld(t, change)
	w.run(w.d.Run)
	w.run(w.campaigns.Run)
	w.run(w.letters.Run)
	w.run(w.d.deps.Imports.Run)
	w.run(func(ctx context.Context) error { return statistics.New(w.pool).RunTallies(ctx, w.d.log) })
	return w
}

// stillWorld is newWorld without the background work; the test does it.
func stillWorld(t *testing.T, change func(*Deps, *Options)) *world {
	t.Helper()
	t.Parallel()
	return loneWorld(t, change)
}

// loneWorld is stillWorld for a test that runs alone.
func loneWorld(t *testing.T, change func(*Deps, *Options)) *world {
	t.Helper()
	pool, batch := testenv.Pools(t, postgres.Options{StatementTimeout: time.Minute},
		postgres.Options{MaxConns: 4, BatchUpdates: true})
	w := &world{t: t, pool: pool, mails: mailcatcher.New(),
		api: &requested{status: http.StatusOK, answer: acceptedAnswer}}
	deps := accountsOn(w.pool)
	w.people, w.signIn, w.sessions, w.companies, w.keys, w.holders, w.senders, w.testNumbers = deps.People, deps.SignIn,
		deps.Sessions, deps.Companies, deps.Keys, deps.Holders, deps.Senders, deps.TestNumbers
	smtp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.smtp = smtp.Addr().String()
	mailer, err := mail.New(mail.Options{Server: w.smtp, From: "Intumwa <no-reply@example.com>", TLS: mail.Plain})
	if err != nil {
		t.Fatal(err)
	}
	w.run(func(ctx context.Context) error { return w.mails.ServeSMTP(ctx, smtp) })
	w.run(mailer.Run)

	w.hooks = webhooks.New(batch, webhooks.Options{AllowPrivate: true, SecretKey: &[32]byte{2},
		Idle:        50 * time.Millisecond,
		RetryDelays: []time.Duration{10 * time.Millisecond, 10 * time.Millisecond}})
	w.run(w.hooks.Run)

	server := httptest.NewUnstartedServer(nil)
	w.url = "http://" + server.Listener.Addr().String()
	deps.Ledger, deps.Statements, deps.Webhooks, deps.Mailer, deps.API, deps.Many = billing.New(w.pool),
		billing.New(w.pool), w.hooks, mailer, w.api, batch
	options := Options{PublicURL: w.url, DocsURL: "https://api.example.com/docs", AdminTOTP: true, SMPP: true, AtOnce: 64,
		AtOnceOfOne: 64,
		Log:         slog.New(slog.NewTextHandler(t.Output(), nil))}
	w.sends(&deps, &options)
	if change != nil {
		change(&deps, &options)
	}
	if w.d, err = New(deps, options); err != nil {
		t.Fatal(err)
	}
	w.campaigns = w.d.deps.Campaigns
	if w.letters, err = letters.New(w.pool, w.people, w.companies, w.senders, w.d.deps.Mailer, w.url, "",
		w.d.log); err != nil {
		t.Fatal(err)
	}
	server.Config.Handler = w.d
	server.Start()
	t.Cleanup(server.Close)
	return w
}

// accountsOn returns deps with those of accounts, on a pool.
func accountsOn(pool *pgxpool.Pool) Deps {
	key := []byte("key")
	holders := keys.NewHolders(pool, keys.Options{Key: key})
	return Deps{Pool: pool, Orders: orders.New(pool, orders.Options{}), People: people.New(pool), SignIn: people.NewSignIn(pool, &[32]byte{1}),
		Sessions:  people.NewSessions(pool),
		Companies: companies.New(pool, holders.Forget), Keys: keys.New(pool, key, holders), Holders: holders,
		Senders:     senders.New(pool, testSender, holders.Forget),
		TestNumbers: testnumbers.New(pool, testnumbers.Options{Key: key, Forget: holders.Forget})}
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

// cheapHash is a hash of testPassword with low parameters: a thousandth of CreateUser's time.
var cheapHash = func() string {
	salt, code := []byte("saltsalt"), base64.RawStdEncoding
	key := argon2.IDKey([]byte(testPassword), salt, 1, 64, 1, 32)
	return fmt.Sprintf("$argon2id$v=%d$m=64,t=1,p=1$%s$%s", argon2.Version, code.EncodeToString(salt),
		code.EncodeToString(key))
}()

// user stores a user whose password is testPassword.
func (w *world) user(email string, administrator bool) people.User {
	w.t.Helper()
	w.exec(`insert into users (email, name, password_hash, administrator, language) values ($1, 'Aline N.', $2, $3, 'fr')`,
		email, cheapHash, administrator)
	u, err := w.people.UserByEmail(w.t.Context(), email)
	if err != nil {
		w.t.Fatal(err)
	}
	return u
}

func (w *world) company(email, name string) accounts.Company {
	w.t.Helper()
	var c accounts.Company
	err := pgx.BeginFunc(w.t.Context(), w.pool, func(tx pgx.Tx) (err error) {
		if c, err = w.companies.CreateCompany(w.t.Context(), tx,
			companies.NewCompany{OwnerEmail: email, Name: name}); err != nil {
			return err
		}
		return billing.Open(w.t.Context(), tx, c.ID)
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// limit allows n in a window, by default a minute.
func limit(t *testing.T, n int, window time.Duration) *throttle.Throttle {
	t.Helper()
	client, prefix := testenv.Redis(t)
	return throttle.New(client, throttle.Options{Prefix: prefix, Limit: n, Window: window, Timeout: patience})
}

// owner is Aline, signed in, with an unapproved company.
func (w *world) owner() (*client, people.User, accounts.Company) {
	w.t.Helper()
	u := w.user("aline@example.com", false)
	company := w.company(u.Email, "Isoko")
	c := newClient(w)
	c.signIn(u.Email)
	return c, u, company
}

// secondFactor gives a user a second factor and returns its recovery codes.
func (w *world) secondFactor(u people.User) []string {
	w.t.Helper()
	secret, err := w.signIn.BeginSecondFactor(w.t.Context(), u.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	recovery, err := w.signIn.ConfirmSecondFactor(w.t.Context(), people.Session{User: u}, codeOf(w.t, secret))
	if err != nil {
		w.t.Fatal(err)
	}
	return recovery
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
