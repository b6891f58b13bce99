package messages_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/messages"
	"intumwa/messages/outbox"
	"intumwa/sms"
)

// TestPlansOfEmptyTables: statements that were planned while the tables were empty, and are not planned again, do not
// read all of them later.
func TestPlansOfEmptyTables(t *testing.T) {
	d := newHotStore(t)
	config := d.pool.Config()
	config.MaxConns = 1
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	store := storesOf(pool)
	if _, err := store.PutOff(t.Context(), outbox.Quiet{}, []int64{1}); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Claim(t.Context(), 1, carrier, []int64{1}, false); err != nil {
		t.Fatal(err)
	}
	if err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := store.Finish(context.Background(), tx, []messages.Final{{MessageID: 1, Status: sms.Sent}},
			messages.Rows{Dispatcher: 1, Leave: []messages.Claim{{MessageID: 1}}})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := store.CancelledScheduled(context.Background(), tx, []int64{1})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	ids := d.pending(1)
	d.exec(`INSERT INTO messages OVERRIDING SYSTEM VALUE SELECT r.* FROM generate_series(1000, 20999) n
		JOIN messages m ON m.id = $1
		CROSS JOIN LATERAL jsonb_populate_record(m, jsonb_build_object('id', n, 'ulid', md5(n::text)::uuid, 'batch_id',
		n / 10)) r`, ids[0])
	d.exec(`INSERT INTO scheduled SELECT id, company_id, carrier, 1, now(), now() FROM messages WHERE id >= 1000`)
	d.exec(`INSERT INTO outbox (message_id, company_id, carrier, lane, expires_at) SELECT id, company_id, carrier, 1,
		now() + interval '1 hour' FROM messages WHERE id >= 1000`)
	d.exec(`INSERT INTO opt_outs (company_id, phone_number, source) SELECT company_id, '+257' || id, 'handset'
		FROM messages`)
	d.exec(`INSERT INTO senders (company_id, name, approved) SELECT company_id, 'S' || id, true FROM messages`)
	for _, one := range []struct{ of, args string }{
		{`FROM outbox o LEFT JOIN unnest%`, `('{1}', '{NULL}', NULL, 1, '{1000,1001,1002}')`},
		{`DELETE FROM scheduled s USING found%`, `('{1000,1001,1002}')`},
		{`UPDATE outbox o SET claimed_by = $1%`, `(1, false, '{1000,1001,1002}', 'lumitel')`},
		{`UPDATE messages m SET status = u.status%`,
			`('{1000,1001,1002}', '{1,1,1}', '{now,now,now}', '{NULL,NULL,NULL}', '{7,7,7}', '{1,1,1}')`},
		{`DELETE FROM outbox o USING (SELECT unnest%`, `('{1000,1001,1002}', 7, '{1,1,1}')`},
		{`FOR UPDATE SKIP LOCKED%claimed_by = CASE%`, `(1, false, '{1000,1001,1002}', 'lumitel')`},
	} {
		var name string
		if err := pool.QueryRow(t.Context(), `SELECT name FROM pg_prepared_statements WHERE statement LIKE '%' || $1`,
			one.of).Scan(&name); err != nil {
			t.Fatal(err)
		}
		var text []byte
		tx, err := pool.Begin(t.Context())
		if err == nil {
			err = tx.QueryRow(t.Context(), `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE `+name+one.args,
				pgx.QueryExecModeSimpleProtocol).Scan(&text)
			_ = tx.Rollback(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		if pages := pagesOf(t, text); pages > 150 {
			t.Errorf("%d pages are read by %s\n%s", pages, one.of, text)
		}
	}
}
