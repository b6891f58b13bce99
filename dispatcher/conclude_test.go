package dispatcher

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/smpp"
	"intumwa/sms"
)

// TestSettlingWaitsForNoBalance: a balance that somebody holds keeps no message
// from its end; what it gets back comes as soon as it is free.
func TestSettlingWaitsForNoBalance(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.d.opts.Refund = RefundFailed
	live, test := b.begun(1), b.begun(1)
	for _, statement := range []string{`UPDATE messages SET test = true WHERE id = 2`, `UPDATE balances SET test_used = 3`} {
		if _, err := b.pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	ctx := context.WithoutCancel(t.Context())
	holder, err := b.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Rollback(ctx) }()
	if _, err := holder.Exec(ctx, `SET LOCAL idle_in_transaction_session_timeout = 0; SELECT FROM balances FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	refused := ended(smpp.Rejected, smpp.StatusInvDstAddr, nil)
	b.settle(settlement{results: []result{refused(live, 1), refused(test, 1)}})
	if err := b.d.payOwed(t.Context()); err != nil { // they are held still
		t.Error(err)
	}
	if took := time.Since(start); took > 4*time.Second { // a lock's timeout is 5 s
		t.Errorf("it took %s", took)
	}
	for _, m := range []*inFlight{live, test} {
		if status, _ := b.status(m.msg.ID); status != sms.Failed {
			t.Errorf("message %d is %v", m.msg.ID, status)
		}
	}
	state := func(credits, used, owed int) {
		t.Helper()
		c, u, o := b.count(`SELECT credits FROM balances`), b.count(`SELECT test_used FROM balances`), b.count(`SELECT count(*) FROM returns`)
		if c != credits || u != used || o != owed {
			t.Errorf("%d credits, %d used of the test pool, %d owed; want %d, %d, %d", c, u, o, credits, used, owed)
		}
	}
	state(98, 3, 2)
	if err := holder.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := b.tasks(); err != nil {
			t.Error(err)
		}
		state(99, 2, 0)
	}
}

// TestSettlingIsTriedAgain: a settling transaction that gave way to another's
// deadlock is tried again before anything is refused.
func TestSettlingIsTriedAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	m := b.begun(1)
	if _, err := b.pool.Exec(t.Context(), `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET deadlock_timeout = 500', current_database()); END $$`); err != nil {
		t.Fatal(err)
	}
	b.pool.Reset()
	holds, over := make(chan struct{}), make(chan error, 1)
	go func() {
		over <- pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), `SET LOCAL deadlock_timeout = '60s'; SET LOCAL idle_in_transaction_session_timeout = 0`); err != nil {
				return err
			}
			if _, err := tx.Exec(t.Context(), `SELECT FROM outbox WHERE message_id = $1 FOR UPDATE`, m.msg.ID); err != nil {
				return err
			}
			close(holds)
			for waits := false; !waits; {
				if err := tx.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid)))`).Scan(&waits); err != nil {
					return err
				}
			}
			_, err := tx.Exec(t.Context(), `SELECT FROM messages WHERE id = $1 FOR UPDATE`, m.msg.ID) // against the order
			return err
		})
	}()
	<-holds
	// commit is what settle calls; an error of it refuses the receipts that came with it.
	if err := b.s.commit(settlement{results: []result{ended(smpp.Rejected, smpp.StatusInvDstAddr, nil)(m, 1)}}); err != nil {
		t.Errorf("%v (it gave way: %v)", err, postgres.GaveWay(err))
	}
	if err := <-over; err != nil {
		t.Errorf("the other: %v", err)
	}
	if status, _ := b.status(m.msg.ID); status != sms.Failed {
		t.Errorf("it is %v", status)
	}
	var deadlocks int
	// A backend that rests afterwards adds its own to the counter after ten seconds.
	for deadline := time.Now().Add(30 * time.Second); deadlocks == 0 && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		deadlocks = b.count(`SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`)
	}
	if deadlocks == 0 {
		t.Error("there was no deadlock")
	}
}
