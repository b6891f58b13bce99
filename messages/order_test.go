package messages_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/messages"
	"intumwa/messages/rerouting"
	"intumwa/messages/submission"
	"intumwa/sms"
)

// TestOtherOrdersSkipLocks: statements that lock rows in another order than a verdict (message, then outbox, each by
// its id) skip locked rows and get them at the next call.
func TestOtherOrdersSkipLocks(t *testing.T) {
	for _, c := range []struct {
		what  string
		hold  string // the locked rows: of one message of two
		setup string
		do    func(ctx context.Context, d *testStore, ids []int64) (int64, error)
	}{
		{"handing over", `SELECT FROM messages WHERE id = $1 FOR UPDATE`, ``,
			func(ctx context.Context, d *testStore, _ []int64) (int64, error) {
				n, _, err := d.Reroute(ctx, carrier, rerouting.To{Carrier: "other"}, 0, 0, 10, submission.Resend)
				return n, err
			}},
		{"handing back", `SELECT FROM messages WHERE id = $1 FOR UPDATE`,
			`UPDATE outbox SET original_carrier = 'lumitel', carrier = 'other'`,
			func(ctx context.Context, d *testStore, _ []int64) (int64, error) {
				return d.Return(ctx, rerouting.To{Carrier: carrier}, 10)
			}},
		{"readdressing", `SELECT FROM messages WHERE id = $1 FOR UPDATE`, ``,
			func(ctx context.Context, d *testStore, ids []int64) (int64, error) {
				return d.Readdress(ctx, ids, carrier, rerouting.To{Carrier: "other"})
			}},
		{"freeing", `SELECT FROM outbox WHERE message_id = $1 FOR UPDATE`, `UPDATE outbox SET claimed_by = 7`,
			func(ctx context.Context, d *testStore, _ []int64) (int64, error) { return d.freed(7), nil }},
		{"claiming", `SELECT FROM outbox WHERE message_id = $1 FOR UPDATE`, ``,
			func(ctx context.Context, d *testStore, ids []int64) (int64, error) {
				claimed, err := d.Claim(ctx, 1, carrier, ids, false)
				return int64(len(claimed)), err
			}},
		{"noting", `SELECT FROM outbox WHERE message_id = $1 FOR UPDATE`, `UPDATE outbox SET pushed_at = NULL`,
			func(ctx context.Context, d *testStore, ids []int64) (n int64, err error) {
				before := d.count(`SELECT count(*) FROM outbox WHERE pushed_at IS NULL`)
				err = d.Pushed(ctx, carrier, ids)
				return int64(before - d.count(`SELECT count(*) FROM outbox WHERE pushed_at IS NULL`)), err
			}},
	} {
		t.Run(c.what, func(t *testing.T) {
			d := newTestStore(t)
			ids := d.pending(2)
			if c.setup != "" {
				d.exec(c.setup)
			}
			ctx := context.WithoutCancel(t.Context())
			tx, err := d.pool.Begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback(ctx) }()
			if _, err := tx.Exec(ctx, `SET LOCAL idle_in_transaction_session_timeout = 0`); err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec(ctx, c.hold, ids[0]); err != nil {
				t.Fatal(err)
			}
			if n, err := c.do(t.Context(), d, ids); n != 1 || err != nil {
				t.Errorf("beside a locked one: %d, %v; want 1", n, err)
			}
			if err := tx.Rollback(ctx); err != nil {
				t.Fatal(err)
			}
			if n, err := c.do(t.Context(), d, ids); n != 1 || err != nil {
				t.Errorf("afterwards: %d, %v; want the other", n, err)
			}
		})
	}
}

// TestVerdictsInOneOrder: concurrent settlements of the same messages in opposite orders do not deadlock, and settle
// each message once.
func TestVerdictsInOneOrder(t *testing.T) {
	d := newHotStore(t)
	for range 10 {
		ids := d.pending(60)
		var settled atomic.Int64
		errs := make(chan error, 4)
		for w := range cap(errs) {
			finals := make([]messages.Final, len(ids))
			for i := range ids {
				id := ids[i]
				if w%2 == 1 {
					id = ids[len(ids)-1-i]
				}
				finals[i] = messages.Final{MessageID: id, Status: sms.Failed, At: time.Now(), Reason: "x"}
			}
			go func() {
				errs <- pgx.BeginFunc(d.Context(), d.pool, func(tx pgx.Tx) error {
					got, err := d.Finish(d.Context(), tx, finals, messages.Rows{})
					settled.Add(int64(len(got)))
					return err
				})
			}()
		}
		for range cap(errs) {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		if n := settled.Load(); n != int64(len(ids)) {
			t.Errorf("%d messages were settled, want %d", n, len(ids))
		}
	}
	if n := d.count(`SELECT count(*) FROM messages WHERE status <> 2`); n != 0 {
		t.Errorf("%d are not final", n)
	}
}
