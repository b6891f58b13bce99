package testnumbers

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/accounts"
	"intumwa/accounts/keys"
	"intumwa/accounts/people"
	"intumwa/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// world has the stores of a process.
type world struct {
	testenv.Filled

	people      *people.Store
	keys        *keys.Store
	holders     *keys.Holders
	testNumbers *Store
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return on(testenv.Pool(t))
}

// on returns the stores of another process on the same database.
func on(pool *pgxpool.Pool) *world {
	holders := keys.NewHolders(pool, keys.Options{})
	return &world{testenv.Filled{Pool: pool}, people.New(pool), keys.New(pool, nil, holders), holders,
		New(pool, Options{Key: []byte("key"), Forget: holders.Forget})}
}

func (a *world) mustToken(t *testing.T, email string) (keys.Token, string) {
	t.Helper()
	token, text, err := a.keys.CreateToken(t.Context(), email, "test", accounts.TokenLimits{})
	if err != nil {
		t.Fatalf("CreateToken: %v", err)
	}
	return token, text
}
