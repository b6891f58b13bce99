package intake

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/oklog/ulid/v2"

	"intumwa/internal/postgres"
	"intumwa/messages"
)

// cutConn drops the response to the write at which cut reaches 0.
type cutConn struct {
	net.Conn
	cut  *atomic.Int32
	lost atomic.Bool
}

func (c *cutConn) Write(b []byte) (int, error) {
	if c.cut.Add(-1) == 0 {
		c.lost.Store(true)
	}
	return c.Conn.Write(b)
}

func (c *cutConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.lost.Load() {
		return 0, net.ErrClosed
	}
	return n, err
}

// TestOneRoundTrip: a request that can be paid takes one write to PostgreSQL. If the response is lost, the client
// learns whether the request was accepted and what is left; it is charged once.
func TestOneRoundTrip(t *testing.T) {
	d := newDistrict(t, 5)
	var cut atomic.Int32
	config := d.pool.Config()
	dial := config.ConnConfig.DialFunc
	config.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		return &cutConn{Conn: conn, cut: &cut}, err
	}
	config.MaxConns = 1
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	d.pool = pool
	in := d.process(t)
	send := func() (left int64, err error) {
		answer, err := in.Send(t.Context(), d.principal, d.request("x", nil))
		var got Accepted
		if err == nil {
			err = json.Unmarshal(answer.Body, &got)
		}
		return got.RemainingItems, err
	}
	if left, err := send(); left != 4 || err != nil { // prepares the statements
		t.Fatal(left, err)
	}
	cut.Store(1)
	if left, err := send(); left != 3 || err != nil || cut.Load() >= 0 {
		t.Errorf("the answer is lost: %d left, %v, %d", left, err, cut.Load())
	}
	if left, err := send(); left != 2 || err != nil { // on a connection without prepared statements
		t.Fatal(left, err)
	}
	cut.Store(100)
	if left, err := send(); left != 1 || err != nil || cut.Load() != 99 {
		t.Errorf("%d left, %v, after %d writes", left, err, 100-cut.Load())
	}
	if left, err := send(); left != 0 || err != nil {
		t.Fatal(left, err)
	}
	for range 2 { // the second reads the balance first
		if _, err := send(); !errors.Is(err, RefuseCredits("message", "1")) {
			t.Errorf("without credits: %v", err)
		}
	}
	d.checkLedger(t, 0, 5)
}

// TestAnotherBackend: the outcome of a COMMIT is found although another server process has the number of the one that
// ran it; while that one runs, the outcome is unknown.
func TestAnotherBackend(t *testing.T) {
	d := newDistrict(t, 5)
	in := d.process(t)
	began := time.Now().Add(-2 * time.Second)
	tx, err := postgres.Begin(t.Context(), d.another(t)) // a connection of its own
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	lost := []*request{{messages: []*messages.Message{{ULID: ulid.Make()}}}}
	for _, try := range []struct {
		name  string
		began time.Time
		known bool
	}{{"another", began, true}, {"the same", time.Now(), false}} {
		ctx, cancel := context.WithTimeout(t.Context(), map[bool]time.Duration{true: time.Minute, false: 2 * time.Second}[try.known])
		took, err := in.committer.tookEffect(ctx, &written{backend: tx.Backend(), began: try.began, requests: lost})
		cancel()
		if took || (err == nil) != try.known {
			t.Errorf("%s: %t, %v", try.name, took, err)
		}
	}
}
