package dispatcher

import (
	"context"
	"sync"
	"testing"
	"time"

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
	settled := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for waits := 0; ; {
			select {
			case <-settled:
				return
			case <-time.After(100 * time.Millisecond):
			}
			// Without a limit of its own a statement waits for the balance for 5 s.
			if err := b.pool.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity
				WHERE datname = current_database() AND wait_event_type = 'Lock' AND clock_timestamp() - query_start > interval '3 s'`).Scan(&waits); err != nil || waits > 0 {
				t.Errorf("%d sessions have waited for a lock for 3 s (%v)", waits, err)
				return
			}
		}
	})
	refused := ended(smpp.Rejected, smpp.StatusInvDstAddr, nil)
	b.settle(settlement{results: []result{refused(live, 1), refused(test, 1)}})
	if err := b.d.payOwed(t.Context()); err != nil { // they are held still
		t.Error(err)
	}
	close(settled)
	watching.Wait()
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
