package dispatcher

import (
	"context"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/oklog/ulid/v2"

	"intumwa/dispatcher/settling"
	"intumwa/internal/testenv"
	"intumwa/messages"
	"intumwa/sms"
	"intumwa/webhooks"
)

// record accepts n messages to a number of the sandbox.
func record(t *testing.T, pool *pgxpool.Pool, number sms.Number, n int) (ids []int64) {
	t.Helper()
	all := make([]*messages.Message, n)
	for i := range all {
		all[i] = &messages.Message{ULID: ulid.Make(), CompanyID: 7, UserID: 7, Number: number, Sender: "INTUMWATEST",
			Body: "x", Segments: 1, Test: true}
	}
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) (err error) {
		ids, err = messages.New(pool).Insert(t.Context(), tx, all)
		return err
	})
	if err != nil || len(ids) != n {
		t.Fatalf("%d of %d recorded: %v", len(ids), n, err)
	}
	return ids
}

func count(t *testing.T, pool *pgxpool.Pool, query string, args ...any) (n int) {
	t.Helper()
	if err := pool.QueryRow(context.WithoutCancel(t.Context()), query, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// run runs n sandboxes until the test ends.
func run(t *testing.T, pool *pgxpool.Pool, hooks *webhooks.Webhooks, n int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for range n {
		running.Go(func() {
			if err := settling.NewSandbox(pool, hooks, nil, nil).Run(ctx); err != nil {
				t.Errorf("ended: %v", err)
			}
		})
	}
	t.Cleanup(func() { cancel(); running.Wait() })
}

// TestManyBecomeFinalOnce: several sandboxes make messages final, more than fit in one transaction: each once, with one
// event. Those not due wait.
func TestManyBecomeFinalOnce(t *testing.T) {
	t.Parallel()
	pool := testenv.Pool(t)
	hooks := webhooks.New(pool, webhooks.Options{AllowPrivate: true})
	if _, err := hooks.SetEndpoint(t.Context(), 7, webhooks.Setting{URL: "http://127.0.0.1:1/"}); err != nil {
		t.Fatal(err)
	}
	const each = 700
	sent, failed := record(t, pool, "+25701000001", each), record(t, pool, "+25701000003", each)
	later := record(t, pool, "+25701000004", 1)
	run(t, pool, hooks, 3)
	until(t, "they are final",
		func() bool { return count(t, pool, `SELECT count(*) FROM messages WHERE status <> 0`) >= 2*each })
	for _, query := range []string{
		`SELECT count(*) FROM messages WHERE id = ANY($1) AND status = 1 AND sent_at IS NOT NULL AND failure_reason IS NULL`,
		`SELECT count(*) FROM webhook_deliveries WHERE id / 8 = ANY($1)`,
	} {
		if n := count(t, pool, query, sent); n != each {
			t.Errorf("%s: %d, not %d", query, n, each)
		}
	}
	if n := count(t, pool, `SELECT count(*) FROM messages WHERE id = ANY($1) AND status = 2
		AND failure_reason = 'ESME_RINVDSTADR' AND failed_at IS NOT NULL`, failed); n != each {
		t.Errorf("%d of %d failed", n, each)
	}
	if n := count(t, pool, `SELECT count(*) FROM webhook_deliveries`); n != 2*each {
		t.Errorf("%d events, not %d", n, 2*each)
	}
	if n := count(t, pool, `SELECT count(*) FROM messages WHERE id = ANY($1) AND status = 0`, later); n != 1 {
		t.Error("what is due in 30 seconds is final already")
	}
}

// TestOutageIsWaitedOut: messages that a failing database did not make final become
// final afterwards.
func TestOutageIsWaitedOut(t *testing.T) {
	t.Parallel()
	pool := testenv.Pool(t)
	ids := record(t, pool, "+25701000003", 3)
	if _, err := pool.Exec(t.Context(), `ALTER TABLE sandbox RENAME TO sandbox_away`); err != nil {
		t.Fatal(err)
	}
	failed := make(chan struct{})
	s := settling.NewSandbox(pool, webhooks.New(pool, webhooks.Options{}), nil, nil)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if _, err := s.Settle(ctx); err == nil {
			t.Error("nothing is wrong")
		}
		close(failed)
		_ = s.Run(ctx)
	})
	defer running.Wait()
	defer cancel()
	<-failed
	if _, err := pool.Exec(t.Context(), `ALTER TABLE sandbox_away RENAME TO sandbox`); err != nil {
		t.Fatal(err)
	}
	until(t, "they are final", func() bool {
		return count(t, pool, `SELECT count(*) FROM messages WHERE id = ANY($1) AND status = 2`, ids) == len(ids)
	})
}
