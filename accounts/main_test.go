package accounts

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/crypto/argon2"

	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const testPassword = "correct horse battery"

func newAccounts(t *testing.T) *Accounts {
	t.Helper()
	return on(testenv.Pool(t))
}

// on returns the Accounts of another process on the same database.
func on(pool postgres.DB) *Accounts {
	return New(pool.(*pgxpool.Pool), Options{TestSender: "INTUMWATEST", OTPKey: []byte("key"), Replacements: 3})
}

// cheapHash is a hash of testPassword with low parameters: a thousandth of CreateUser's time.
var cheapHash = func() string {
	h := phc{memory: 64, time: 1, threads: 1, salt: []byte("saltsalt")}
	h.key = argon2.IDKey([]byte(testPassword), h.salt, h.time, h.memory, h.threads, argonKey)
	return h.String()
}()

// mustUser stores a user whose password is testPassword.
func (a *Accounts) mustUser(t *testing.T, email string) User {
	t.Helper()
	rows, _ := a.pool.Query(t.Context(), `insert into users (email, name, password_hash, language) values ($1, 'A Person', $2, 'fr') returning `+userColumns, email, cheapHash)
	u, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[User])
	if err != nil {
		t.Fatalf("storing a user: %v", err)
	}
	return u
}

func (a *Accounts) mustToken(t *testing.T, email string) (Token, string) {
	t.Helper()
	token, text, err := a.CreateToken(t.Context(), email, "test", TokenLimits{})
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
