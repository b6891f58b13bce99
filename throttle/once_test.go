package throttle_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"intumwa/internal/testenv"
	"intumwa/throttle"
)

// deaf is a connection that is lost, when lose is set, with the answer to a script.
type deaf struct {
	net.Conn
	lose  *atomic.Bool
	asked atomic.Bool
}

func (d *deaf) Write(octets []byte) (int, error) {
	if bytes.Contains(octets, []byte("evalsha")) && d.lose.CompareAndSwap(true, false) {
		d.asked.Store(true)
	}
	return d.Conn.Write(octets)
}

func (d *deaf) Read(octets []byte) (int, error) {
	n, err := d.Conn.Read(octets)
	if d.asked.Load() {
		return 0, io.EOF
	}
	return n, err
}

// TestCountedOnce: what was counted is not counted again when the answer is lost, nor
// taken back twice.
func TestCountedOnce(t *testing.T) {
	client, prefix := testenv.Redis(t)
	options := *client.Options()
	var lose atomic.Bool
	options.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		return &deaf{Conn: conn, lose: &lose}, err
	}
	losing := redis.NewClient(&options)
	t.Cleanup(func() { _ = losing.Close() })
	c := counting{t, throttle.NewRepeats(losing, throttle.RepeatOptions{Prefix: prefix, Timeout: patient}), throttle.RepeatLimits{Texts: 3}}
	c.try(throttle.NoRepeat, 0, to("1", "another")).Undo(t.Context()) // Redis has the scripts
	lose.Store(true)
	c.try(throttle.NoRepeat, 0, to("1", "a"))
	if lose.Load() {
		t.Fatal("no answer was lost")
	}
	c.try(throttle.NoRepeat, 0, to("1", "a"))
	third := c.try(throttle.NoRepeat, 0, to("1", "a"))
	c.try(throttle.TooManyTexts, 0, to("1", "a"))
	lose.Store(true)
	third.Undo(t.Context())
	c.try(throttle.NoRepeat, 0, to("1", "a"))
	c.try(throttle.TooManyTexts, 0, to("1", "a"))
}
