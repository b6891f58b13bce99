package handsets_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/inbound/handsets"
	"intumwa/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// testStore is a store on its own database.
type testStore struct {
	testing.TB
	pool *pgxpool.Pool
	*handsets.Store
}

func newTestStore(t testing.TB) *testStore {
	pool := testenv.Pool(t)
	return &testStore{TB: t, pool: pool, Store: handsets.New(pool)}
}

func (d *testStore) tx(do func(ctx context.Context, tx pgx.Tx) error) {
	d.Helper()
	ctx := d.Context()
	if err := pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error { return do(ctx, tx) }); err != nil {
		d.Fatal(err)
	}
}

func (d *testStore) keep(inbound ...handsets.Inbound) {
	d.Helper()
	for i := range inbound {
		if inbound[i].At.IsZero() {
			inbound[i].At = time.Now()
		}
		inbound[i].Carrier, inbound[i].Link = "lumitel", "l1"
		if inbound[i].Octets == nil {
			inbound[i].Octets = []byte{}
		}
	}
	d.tx(func(ctx context.Context, tx pgx.Tx) error { return d.Keep(ctx, tx, inbound) })
}

func (d *testStore) exec(statement string, args ...any) {
	d.Helper()
	testenv.Exec(d, d.pool, statement, args...)
}

// plan returns PostgreSQL's plan of a statement.
func (d *testStore) plan(statement string, args ...any) (plan string) {
	d.Helper()
	rows, err := d.pool.Query(d.Context(), "EXPLAIN "+statement, args...)
	if err != nil {
		d.Fatal(err)
	}
	var line string
	if _, err := pgx.ForEachRow(rows, []any{&line}, func() error { plan += line + "\n"; return nil }); err != nil {
		d.Fatal(err)
	}
	return plan
}
