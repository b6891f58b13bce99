package accounts

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const testPassword = "correct horse battery"

func newAccounts(t *testing.T) *Accounts {
	t.Helper()
	return on(testenv.Pool(t))
}

// on is another process' Accounts on the same database.
func on(pool database) *Accounts {
	return New(pool.(*pgxpool.Pool), Options{TestSender: "INTUMWATEST", OTPKey: []byte("key"), Replacements: 3})
}

func (a *Accounts) mustUser(t *testing.T, email string) User {
	t.Helper()
	u, err := a.CreateUser(t.Context(), NewUser{Email: email, Name: "A Person", Password: testPassword})
	if err != nil {
		t.Fatalf("CreateUser: %v", err)
	}
	return u
}

func (a *Accounts) mustToken(t *testing.T, email string) (Token, string) {
	t.Helper()
	token, text, err := a.CreateToken(t.Context(), email, "test")
	if err != nil {
		t.Fatalf("CreateToken: %v", err)
	}
	return token, text
}

func (a *Accounts) createCompany(ctx context.Context, n NewCompany) (c Company, err error) {
	err = pgx.BeginFunc(ctx, a.pool, func(tx pgx.Tx) error {
		c, err = a.CreateCompany(ctx, tx, n)
		return err
	})
	return c, err
}

func (a *Accounts) mustCompany(t *testing.T, email string) Company {
	t.Helper()
	c, err := a.createCompany(t.Context(), NewCompany{OwnerEmail: email, Name: "Company"})
	if err != nil {
		t.Fatalf("CreateCompany: %v", err)
	}
	return c
}

func (a *Accounts) mustSender(t *testing.T, company int64, name string) Sender {
	t.Helper()
	s, err := a.CreateSender(t.Context(), company, name, "", false)
	if err != nil {
		t.Fatalf("CreateSender: %v", err)
	}
	return s
}

func (a *Accounts) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	if _, err := a.pool.Exec(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func ptr[T any](v T) *T { return &v }
