package companies

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/accounts"
	"intumwa/accounts/people"
	"intumwa/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// world has the stores of a process.
type world struct {
	pool      *pgxpool.Pool
	people    *people.Store
	companies *Store
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return on(testenv.Pool(t))
}

// on returns the stores of another process on the same database.
func on(pool *pgxpool.Pool) *world {
	return &world{pool, people.New(pool), New(pool, nil)}
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

func (a *world) createCompany(ctx context.Context, n NewCompany) (c accounts.Company, err error) {
	err = pgx.BeginFunc(ctx, a.pool, func(tx pgx.Tx) error {
		c, err = a.companies.CreateCompany(ctx, tx, n)
		return err
	})
	return c, err
}

func (a *world) mustCompany(t *testing.T, email string) accounts.Company {
	t.Helper()
	c, err := a.createCompany(t.Context(), NewCompany{OwnerEmail: email, Name: "Company"})
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

func ptr[T any](v T) *T { return &v }
