package keys

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/accounts"
	"intumwa/accounts/companies"
	"intumwa/accounts/people"
	"intumwa/accounts/senders"
	"intumwa/accounts/testnumbers"
	"intumwa/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// world has the stores of a process.
type world struct {
	pool        *pgxpool.Pool
	keys        *Store
	holders     *Holders
	people      *people.Store
	companies   *companies.Store
	senders     *senders.Store
	testNumbers *testnumbers.Store
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return on(testenv.Pool(t))
}

// on returns the stores of another process on the same database.
func on(pool *pgxpool.Pool) *world {
	holders := NewHolders(pool, Options{Key: []byte("key")})
	return &world{pool, New(pool, []byte("key"), holders), holders, people.New(pool), companies.New(pool, holders.Forget),
		senders.New(pool, "INTUMWATEST", holders.Forget),
		testnumbers.New(pool, testnumbers.Options{Key: []byte("key"), Forget: holders.Forget})}
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

func (a *world) mustToken(t *testing.T, email string) (Token, string) {
	t.Helper()
	token, text, err := a.keys.CreateToken(t.Context(), email, "test", accounts.TokenLimits{})
	if err != nil {
		t.Fatalf("CreateToken: %v", err)
	}
	return token, text
}

func (a *world) mustSender(t *testing.T, company int64, name string) accounts.Sender {
	t.Helper()
	s, err := a.senders.CreateSender(t.Context(), company, name, "", false)
	if err != nil {
		t.Fatalf("CreateSender: %v", err)
	}
	return s
}

// mustPerson is a user who has joined a company.
func (a *world) mustPerson(t *testing.T, company int64, email string, role accounts.Role) people.User {
	t.Helper()
	a.mustUser(t, email)
	a.exec(t, `update users set company_id = $2, role = $3 where email = $1`, email, company, role)
	u, err := a.people.UserByEmail(t.Context(), email)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func (a *world) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	if _, err := a.pool.Exec(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func ptr[T any](v T) *T { return &v }
