package companies

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/accounts"
	"intumwa/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// world has the stores of a process.
type world struct {
	testenv.Filled

	companies *Store
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return on(testenv.Pool(t))
}

// on returns the stores of another process on the same database.
func on(pool *pgxpool.Pool) *world {
	return &world{testenv.Filled{Pool: pool}, New(pool, nil)}
}

func (a *world) createCompany(ctx context.Context, n NewCompany) (c accounts.Company, err error) {
	err = pgx.BeginFunc(ctx, a.Pool, func(tx pgx.Tx) error {
		c, err = a.companies.CreateCompany(ctx, tx, n)
		return err
	})
	return c, err
}
