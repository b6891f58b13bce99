package senders

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/accounts"
	"intumwa/accounts/keys"
	"intumwa/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// world has the stores of a process.
type world struct {
	testenv.Filled

	senders *Store
	holders *keys.Holders
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return on(testenv.Pool(t))
}

// on returns the stores of another process on the same database.
func on(pool *pgxpool.Pool) *world {
	return &world{testenv.Filled{Pool: pool}, New(pool, "INTUMWATEST", nil),
		keys.NewHolders(pool, keys.Options{})}
}

func (a *world) mustSender(t *testing.T, company int64, name string) accounts.Sender {
	t.Helper()
	s, err := a.senders.CreateSender(t.Context(), company, name, "", false)
	if err != nil {
		t.Fatalf("CreateSender: %v", err)
	}
	return s
}
