package webhooks

import (
	"encoding/json"
	"testing"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
)

// TestEraseReadsLittle: with many deliveries, indexes find those of a number, and no
// statement scans the table.
func TestEraseReadsLittle(t *testing.T) {
	pool := batchPool(t)
	const number = "+25779123412"
	for _, fill := range []string{
		`INSERT INTO webhook_endpoints (company_id, url, secret) SELECT c, 'https://x.example', ''
			FROM generate_series(1, 5) c`,
		`INSERT INTO webhook_deliveries (company_id, id, at, phone_number) SELECT 1 + n % 5, n * 8, now(),
			'+2577' || lpad(n::text, 7, '0') FROM generate_series(1, 50000) n`,
		`INSERT INTO webhook_deliveries (company_id, id, at, phone_number, data) SELECT 1 + n % 5, n * 8 + 2, now(),
			'+2576' || lpad(n::text, 7, '0'), '{}' FROM generate_series(1, 5000) n`,
		`INSERT INTO webhook_deliveries (company_id, id, at, phone_number, data) VALUES (1, 480002, now(), '` + number +
			`', '{}')`,
	} {
		if _, err := pool.Exec(t.Context(), fill); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := pool.Exec(t.Context(), `VACUUM ANALYZE webhook_delivered, webhook_endpoints`); err != nil {
		t.Fatal(err)
	}
	const few = 100 // blocks; the table and its indexes have over 1,000
	for name, try := range map[string]struct {
		statement string
		args      []any
	}{
		"received": {receivedOf, []any{[]string{number}, []int64{2}, []int64{81 * 8}}},
		"purged":   {purgedOf, []any{[]string{number}, int64(10)}},
		"naming":   {namingOf, []any{[]string{number}, int64(10)}},
	} {
		if n, plan := blocks(t, pool, try.statement, try.args...); n > few {
			t.Errorf("%s looks at %d blocks:\n%s", name, n, plan)
		}
	}
}

// blocks runs a statement and returns how many blocks it reads, and its plan.
func blocks(t *testing.T, db postgres.DB, statement string, args ...any) (n int64, plan string) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) `+statement, args...).Scan(&plan)
	})
	var plans []struct {
		Plan struct {
			Hit  int64 `json:"Shared Hit Blocks"`
			Read int64 `json:"Shared Read Blocks"`
		}
	}
	if err == nil {
		err = json.Unmarshal([]byte(plan), &plans)
	}
	if err != nil || len(plans) != 1 {
		t.Fatal(statement, err)
	}
	return plans[0].Plan.Hit + plans[0].Plan.Read, plan
}

// TestErasedAsItIsDelivered: an event whose result is being stored is either erased or
// reported as pending.
func TestErasedAsItIsDelivered(t *testing.T) {
	const number = "+25779123412"
	forms := []string{number}
	for name, try := range map[string]struct {
		id    int64
		data  *string
		erase func(tx pgx.Tx) (erased, pending int64, err error)
	}{
		"received": {1*idSpan + 2, new(`{"inbound_id":1,"from":"` + number +
			`","to":"8080","message":"a secret","received_at":"2026-03-01T08:02:11+00:00"}`),
			func(tx pgx.Tx) (int64, int64, error) {
				erased, pending, err := EraseReceived(t.Context(), tx,
					[]Subject{{CompanyID: 1, MessageID: 1}, {CompanyID: 1, MessageID: 2}}, forms, "erased")
				return erased, int64(len(pending)), err
			}},
		"purged": {1 * idSpan, nil, func(tx pgx.Tx) (int64, int64, error) {
			return ErasePurged(t.Context(), tx, number, 100, "erased")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := New(batchPool(t), Options{AllowPrivate: true})
			setEndpoint(t, w, 1, "http://127.0.0.1:1/")
			perform(t, w, `INSERT INTO webhook_undelivered (company_id, id, at, due, claimed_until, phone_number, data)
				VALUES (1, $1, now(), now(), now() + interval '30 seconds', $2, $3)`, try.id, number, try.data)
			var erased, pending int64
			err := behind(t, w, func(tx pgx.Tx) error {
				r := outcome{job: job{storedEvent: storedEvent{company: 1, id: try.id}}, state: delivered,
					attempt: Attempt{Result: result2xx}}
				if err := tx.QueryRow(t.Context(), `SELECT claimed_until FROM webhook_undelivered`).Scan(&r.claim); err != nil {
					return err
				}
				return w.In(tx).store(t.Context(), []outcome{r})
			}, func() error {
				return pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) (err error) {
					erased, pending, err = try.erase(tx)
					return err
				})
			})
			if err != nil || erased+pending != 1 {
				t.Errorf("%d erased, %d pending, %v", erased, pending, err)
			}
			if err := pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) (err error) {
				erased, pending, err = try.erase(tx)
				return err
			}); err != nil || erased != 1 || pending != 0 {
				t.Errorf("again: %d erased, %d pending, %v", erased, pending, err)
			}
		})
	}
}
