package letter_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/accounts/companies"
	"intumwa/accounts/keys"
	"intumwa/accounts/people"
	"intumwa/accounts/senders"
	"intumwa/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// world has the stores of a process.
type world struct {
	testenv.Filled

	people    *people.Store
	signIn    *people.SignIn
	sessions  *people.Sessions
	companies *companies.Store
	senders   *senders.Store
	keys      *keys.Store
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return on(testenv.Pool(t))
}

// on returns the stores of another process on the same database.
func on(pool *pgxpool.Pool) *world {
	return &world{testenv.Filled{Pool: pool}, people.New(pool), people.NewSignIn(pool, nil), people.NewSessions(pool),
		companies.New(pool, nil), senders.New(pool, "", nil), keys.New(pool, nil, nil)}
}

const testPassword = "correct horse battery"

func (a *world) mustUser(t *testing.T, email string) people.User {
	t.Helper()
	u, err := a.people.CreateUser(t.Context(), people.NewUser{Email: email, Name: "A Person", Password: testPassword})
	if err != nil {
		t.Fatal(err)
	}
	return u
}
