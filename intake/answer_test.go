package intake

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// cutConn loses the answer to the write at which cut reaches 0.
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

// TestOneRoundTrip: a request that can be paid is written by one write to PostgreSQL. If the answer to it is lost, the
// client learns that the request was accepted and what is left, or that it was refused; it is charged once.
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
	if left, err := send(); left != 2 || err != nil { // on a connection that has prepared nothing
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
	d.books(t, 0, 5)
}
