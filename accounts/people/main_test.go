package people

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/crypto/argon2"

	"intumwa/accounts"
	"intumwa/accounts/companies"
	"intumwa/accounts/keys"
	"intumwa/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const testPassword = "correct horse battery"

// world has the stores of a process.
type world struct {
	testenv.Filled

	people    *Store
	signIn    *SignIn
	sessions  *Sessions
	companies *companies.Store
	keys      *keys.Store
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return on(testenv.Pool(t))
}

// on returns the stores of another process on the same database.
func on(pool *pgxpool.Pool) *world {
	return &world{testenv.Filled{Pool: pool}, New(pool), NewSignIn(pool, nil), NewSessions(pool), companies.New(pool, nil),
		keys.New(pool, nil, nil)}
}

// cheapHash is a hash of testPassword with low parameters: a thousandth of CreateUser's time.
var cheapHash = func() string {
	h := phc{memory: 64, time: 1, threads: 1, salt: []byte("saltsalt")}
	h.key = argon2.IDKey([]byte(testPassword), h.salt, h.time, h.memory, h.threads, argonKey)
	return h.String()
}()

// mustUser stores a user whose password is testPassword.
func (a *world) mustUser(t *testing.T, email string) User {
	t.Helper()
	rows, _ := a.Pool.Query(t.Context(), `insert into users (email, name, password_hash, language)
		values ($1, 'A Person', $2, 'fr') returning `+userColumns, email, cheapHash)
	u, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[User])
	if err != nil {
		t.Fatalf("storing a user: %v", err)
	}
	return u
}

func (a *world) mustToken(t *testing.T, email string) (keys.Token, string) {
	t.Helper()
	token, text, err := a.keys.CreateToken(t.Context(), email, "test", accounts.TokenLimits{})
	if err != nil {
		t.Fatalf("CreateToken: %v", err)
	}
	return token, text
}

func (a *world) createCompany(ctx context.Context, n companies.NewCompany) (c accounts.Company, err error) {
	err = pgx.BeginFunc(ctx, a.Pool, func(tx pgx.Tx) error {
		c, err = a.companies.CreateCompany(ctx, tx, n)
		return err
	})
	return c, err
}
