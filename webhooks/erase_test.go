package webhooks

import (
	"encoding/json"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestEraseReadsLittle: with many deliveries, those of a number are found by indexes, and no
// statement reads through the table.
func TestEraseReadsLittle(t *testing.T) {
	pool := batchPool(t)
	const number = "+25779123412"
	for _, fill := range []string{
		`INSERT INTO webhook_endpoints (company_id, url, secret) SELECT c, 'https://x.example', '' FROM generate_series(1, 5) c`,
		`INSERT INTO webhook_deliveries (company_id, id, at, phone_number) SELECT 1 + n % 5, n * 8, now(), '+2577' || lpad(n::text, 7, '0') FROM generate_series(1, 50000) n`,
		`INSERT INTO webhook_deliveries (company_id, id, at, phone_number, data) SELECT 1 + n % 5, n * 8 + 2, now(), '+2576' || lpad(n::text, 7, '0'), '{}' FROM generate_series(1, 5000) n`,
		`INSERT INTO webhook_deliveries (company_id, id, at, phone_number, data) VALUES (1, 480002, now(), '` + number + `', '{}')`,
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
		var text []byte
		err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			return tx.QueryRow(t.Context(), `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) `+try.statement, try.args...).Scan(&text)
		})
		if err != nil {
			t.Fatal(name, err)
		}
		var plans []struct {
			Plan struct {
				Hit  int64 `json:"Shared Hit Blocks"`
				Read int64 `json:"Shared Read Blocks"`
			}
		}
		if err := json.Unmarshal(text, &plans); err != nil || len(plans) != 1 {
			t.Fatal(name, err)
		}
		if n := plans[0].Plan.Hit + plans[0].Plan.Read; n > few {
			t.Errorf("%s looks at %d blocks:\n%s", name, n, text)
		}
	}
}
