package dispatcher

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/dispatcher/core"
	"intumwa/dispatcher/settling"
	"intumwa/internal/queue"
	"intumwa/smpp"
)

// retried returns a temporarily refused message that is due again. Its claimant reads,
// after the commit, which segments are out.
func (b *bench) retried() *core.InFlight {
	b.Helper()
	m := b.begun(1)
	b.settle(settling.Settlement{Results: []core.Result{ended(smpp.Rejected, smpp.StatusThrottled, nil)(m, 1)}})
	b.exec(`UPDATE outbox SET due_at = now() WHERE message_id = $1`, m.Msg.ID)
	return m
}

// storeWith returns stores with their own pool.
func (b *bench) storeWith(change func(*pgxpool.Config)) core.Stores {
	b.Helper()
	config := b.pool.Config()
	config.MaxConns, config.MinConns, config.MinIdleConns = 1, 0, 0
	change(config)
	pool, err := pgxpool.NewWithConfig(b.Context(), config)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	return core.NewStores(pool)
}

// TestSlowClaim: a slow claim keeps its rows although another claim fails meanwhile.
// Otherwise two processes would submit the message.
func TestSlowClaim(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	m := b.retried()
	if err := b.d.core.Queue.Push(t.Context(), []queue.Item{
		{MessageID: m.Msg.ID, CompanyID: 1, Carrier: "lumitel", Lane: queue.Single}}); err != nil {
		t.Fatal(err)
	}
	committed, goOn := make(chan struct{}, 10), make(chan struct{})
	b.d.core.Carrying = b.storeWith(func(c *pgxpool.Config) {
		c.AfterRelease = func(*pgx.Conn) bool {
			committed <- struct{}{}
			<-goOn
			return true
		}
	})
	taken := make(chan []*core.InFlight, 1)
	go func() {
		got, _ := b.worker.Take(t.Context(), queue.Single, 10)
		taken <- got
	}()
	select {
	case <-committed:
	case got := <-taken:
		t.Fatalf("%d are claimed, and none waits", len(got))
	}
	looked := make(chan error, 1)
	go func() {
		looked <- errors.Join(b.d.recovery.ReleaseOrphans(t.Context()), b.d.recovery.ReleaseOrphans(t.Context()))
	}()
	select {
	case err := <-looked:
		looked <- err
	case <-time.After(time.Second): // the searches wait for the claim
	}
	close(goOn)
	got := <-taken
	if err := <-looked; err != nil {
		t.Fatal(err)
	}
	if n := b.count(`SELECT count(*) FROM outbox WHERE claimed_by = 7`); len(got) != 1 || n != 1 {
		t.Errorf("%d messages are about to be submitted here, of which %d are claimed", len(got), n)
	}
}

// TestLostClaim: a claimed message whose submit records cannot be read is given back at once. A search releases a claim
// whose caller got no answer after the commit. Messages in flight stay.
func TestLostClaim(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	lost, held := b.retried(), b.begun(1)
	var connections atomic.Int64
	b.d.core.Store = b.storeWith(func(c *pgxpool.Config) {
		c.BeforeConnect = func(context.Context, *pgx.ConnConfig) error {
			if connections.Add(1) > 1 {
				return errors.New("the database is away")
			}
			return nil
		}
		c.AfterRelease = func(*pgx.Conn) bool { return false }
	})
	if got := b.worker.TakeDirect(t.Context(), queue.Single, 10, 0); len(got) != 0 ||
		b.count(`SELECT count(*) FROM outbox WHERE claimed_by = 7`) != 1 {
		t.Fatalf("%d are in hand, or a message that was claimed without its submit records is claimed still", len(got))
	}
	select {
	case <-b.d.core.InFlight.Failed:
	default:
		t.Error("no look follows")
	}
	b.d.core.Store = b.d.core.Carrying
	if got, err := b.d.core.Store.Outbox.ClaimDue(t.Context(), 7, "lumitel", int(queue.Single), 10, 0,
		false); err != nil || len(got) != 1 {
		// the answer is lost
		t.Fatal(len(got), err)
	}
	if err := b.d.recovery.ReleaseOrphans(t.Context()); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[int64]int{lost.Msg.ID: 0, held.Msg.ID: 7} {
		if got := b.count(`SELECT coalesce(claimed_by, 0) FROM outbox WHERE message_id = $1`, id); got != want {
			t.Errorf("message %d is claimed by %d, want %d", id, got, want)
		}
	}
}
