package keys

import (
	"testing"

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
	testenv.Filled

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
	return &world{testenv.Filled{Pool: pool}, New(pool, []byte("key"), holders), holders, people.New(pool),
		companies.New(pool, holders.Forget), senders.New(pool, "INTUMWATEST", holders.Forget),
		testnumbers.New(pool, testnumbers.Options{Key: []byte("key"), Forget: holders.Forget})}
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
func (a *world) mustPerson(t *testing.T, company int64, email string, role accounts.Role) testenv.User {
	t.Helper()
	u := a.User(t, email)
	a.Exec(t, `update users set company_id = $2, role = $3 where id = $1`, u.ID, company, role)
	return u
}
