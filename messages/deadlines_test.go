package messages_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/messages"
	"intumwa/sms"
)

// sweep gives the messages that are older than validity their deadlines, by steps of limit.
func (d *testStore) sweep(validity time.Duration, limit int) (done bool) {
	d.Helper()
	d.tx(func(ctx context.Context, tx pgx.Tx) (err error) {
		done, err = d.Expiring(ctx, tx, validity, limit)
		return err
	})
	return done
}

// TestExpiring: the sweep visits each message once, and gives those that are pending at the end of their validity a
// deadline.
func TestExpiring(t *testing.T) {
	d := newTestStore(t)
	ids := d.pending(6)
	d.exec(`UPDATE messages SET created_at = now() - interval '2 hours' WHERE id <= $1`, ids[4])
	d.exec(`UPDATE messages SET expire_at = now() + interval '1 day' WHERE id = $1`, ids[0])
	d.exec(`UPDATE messages SET carrier = $2 WHERE id = $1`, ids[1], sms.SandboxCarrier)
	d.finish(messages.Final{MessageID: ids[2], Status: sms.Sent, At: time.Now()})
	deadlines := func() []int64 {
		return column[int64](d, `SELECT message_id FROM deadlines WHERE look_at = expires_at ORDER BY 1`)
	}
	if !d.sweep(3*time.Hour, 10) || len(deadlines()) > 0 {
		t.Error("a message is older than three hours")
	}
	if d.sweep(time.Hour, 3) || !slices.Equal(deadlines(), ids[:1]) {
		t.Errorf("after the first step: %v", deadlines())
	}
	d.exec(`DELETE FROM deadlines`)
	if !d.sweep(time.Hour, 3) || !slices.Equal(deadlines(), ids[3:5]) {
		t.Errorf("after the second step: %v", deadlines())
	}
	if n := d.count(`SELECT count(*) FROM deadlines d JOIN messages m ON m.id = d.message_id
		AND d.expires_at = m.created_at + interval '1 hour'`); n != 2 {
		t.Errorf("%d expire an hour after their acceptance", n)
	}
	d.exec(`DELETE FROM deadlines`)
	if !d.sweep(time.Hour, 3) || len(deadlines()) > 0 {
		t.Error("a message is visited twice")
	}
	// A sweep that was rolled back has no effect.
	crash := errors.New("crash")
	if err := pgx.BeginFunc(t.Context(), d.pool, func(tx pgx.Tx) error {
		_, err := d.Expiring(t.Context(), tx, 0, 100)
		return errors.Join(err, crash)
	}); !errors.Is(err, crash) || !d.sweep(0, 100) || !slices.Equal(deadlines(), ids[5:]) {
		t.Errorf("after a crash: %v, %v", err, deadlines())
	}
}

// TestOverdue: a process decides the overdue messages of its carriers, with their timeouts, and of carriers that no
// process has. A message that waits is looked at again.
func TestOverdue(t *testing.T) {
	d := newTestStore(t)
	ids := d.pending(6)
	d.exec(`UPDATE messages SET created_at = now() - interval '2 hours', carrier = CASE id WHEN $1 THEN 'leo' WHEN $2
		THEN 'onatel' WHEN $3 THEN 'smart' ELSE carrier END`,
		ids[1], ids[2], ids[3])
	d.exec(`DELETE FROM outbox WHERE message_id <> $1`, ids[4]) // carriers have the others
	d.sweep(time.Hour, 100)
	d.finish(messages.Final{MessageID: ids[5], Status: sms.Sent, At: time.Now()})
	overdue := func(served ...string) map[int64]string {
		t.Helper()
		var got map[int64]string
		d.tx(func(ctx context.Context, tx pgx.Tx) (err error) {
			times := messages.ReceiptTimeouts{Own: map[string]time.Duration{carrier: time.Minute, "leo": 2 * time.Hour},
				Served: append(served, carrier, "leo"), Otherwise: time.Minute}
			got, _, err = d.Overdue(ctx, tx, times, 100)
			return err
		})
		return got
	}
	if got, want := overdue("onatel", "smart"), map[int64]string{ids[0]: carrier}; !maps.Equal(got, want) {
		t.Errorf("of its own: %v, want %v", got, want)
	}
	if got, want := overdue("onatel"), map[int64]string{ids[3]: "smart"}; !maps.Equal(got, want) {
		t.Errorf("and of carriers that no process has: %v, want %v", got, want)
	}
	same(t, "still to be looked at", column[int64](d, `SELECT message_id FROM deadlines ORDER BY 1`),
		[]int64{ids[1], ids[2], ids[4]})
	d.exec(`UPDATE outbox SET expires_at = now(), claimed_by = 1`) // in flight beyond its validity
	d.exec(`UPDATE deadlines SET look_at = now()`)
	if got, want := overdue("onatel"), map[int64]string{ids[4]: carrier}; !maps.Equal(got, want) {
		t.Errorf("later: %v, want %v", got, want)
	}
}
