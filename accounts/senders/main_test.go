package senders

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/accounts"
	"intumwa/accounts/companies"
	"intumwa/accounts/keys"
	"intumwa/accounts/people"
	"intumwa/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// world has the stores of a process.
type world struct {
	pool      *pgxpool.Pool
	people    *people.Store
	companies *companies.Store
	senders   *Store
	holders   *keys.Holders
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return on(testenv.Pool(t))
}

// on returns the stores of another process on the same database.
func on(pool *pgxpool.Pool) *world {
	return &world{pool, people.New(pool), companies.New(pool, nil), New(pool, "INTUMWATEST", nil),
		keys.NewHolders(pool, keys.Options{})}
}

// mustUser stores a user, who cannot sign in.
func (a *world) mustUser(t *testing.T, email string) people.User {
	t.Helper()
	a.exec(t, `insert into users (email, name, password_hash, language) values ($1, 'A Person', 'none', 'fr')`, email)
	u, err := a.people.UserByEmail(t.Context(), email)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func (a *world) mustCompany(t *testing.T, email string) (c accounts.Company) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), a.pool, func(tx pgx.Tx) (err error) {
		c, err = a.companies.CreateCompany(t.Context(), tx, companies.NewCompany{OwnerEmail: email, Name: "Company"})
		return err
	})
	if err != nil {
		t.Fatalf("CreateCompany: %v", err)
	}
	return c
}

func (a *world) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	if _, err := a.pool.Exec(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func wants(t *testing.T, what string, err, kind error, text string) {
	t.Helper()
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: got %v, want %v with %q", what, err, kind, text)
	}
}

func (a *world) mustSender(t *testing.T, company int64, name string) accounts.Sender {
	t.Helper()
	s, err := a.senders.CreateSender(t.Context(), company, name, "", false)
	if err != nil {
		t.Fatalf("CreateSender: %v", err)
	}
	return s
}
