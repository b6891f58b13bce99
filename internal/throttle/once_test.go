package throttle_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"intumwa/internal/testenv"
	"intumwa/internal/throttle"
)

// deaf is a connection that, when lose is set, drops with the reply to a script.
type deaf struct {
	net.Conn
	lose *atomic.Bool
	sent atomic.Bool
}

func (d *deaf) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("evalsha")) && d.lose.CompareAndSwap(true, false) {
		d.sent.Store(true)
	}
	return d.Conn.Write(b)
}

func (d *deaf) Read(b []byte) (int, error) {
	n, err := d.Conn.Read(b)
	if d.sent.Load() {
		return 0, io.EOF
	}
	return n, err
}

// losing is a client of Redis that loses the reply to the next script when lose is set.
func losing(t *testing.T) (client *redis.Client, prefix string, lose *atomic.Bool) {
	t.Helper()
	plain, prefix := testenv.Redis(t)
	options := *plain.Options()
	lose = new(atomic.Bool)
	options.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		return &deaf{Conn: conn, lose: lose}, err
	}
	client = redis.NewClient(&options)
	t.Cleanup(func() { _ = client.Close() })
	return client, prefix, lose
}

// TestWindowCountedOnce: after a lost reply a request passes and is not counted again in
// its user's window.
func TestWindowCountedOnce(t *testing.T) {
	client, prefix, lose := losing(t)
	th := throttle.New(client, throttle.Options{Prefix: prefix, Limit: 4, Window: time.Hour, Timeout: patient})
	if got := th.Allow(t.Context(), 1); !got.Allowed || got.Remaining != 3 { // Redis has the script
		t.Fatalf("the first: %+v", got)
	}
	lose.Store(true)
	if got := th.Allow(t.Context(), 1); !got.Allowed {
		t.Errorf("whose answer is lost: %+v", got)
	}
	if lose.Load() {
		t.Fatal("no answer was lost")
	}
	for remaining := 1; remaining >= 0; remaining-- {
		if got := th.Allow(t.Context(), 1); !got.Allowed || got.Remaining != remaining {
			t.Errorf("%+v, want %d remaining", got, remaining)
		}
	}
	if got := th.Allow(t.Context(), 1); got.Allowed {
		t.Errorf("a fifth: %+v", got)
	}
}

// TestCountedOnce: after a lost reply, messages are not counted again or undone twice.
func TestCountedOnce(t *testing.T) {
	client, prefix, lose := losing(t)
	c := counting{t, throttle.NewRepeats(client, throttle.RepeatOptions{Prefix: prefix, Timeout: patient}),
		throttle.RepeatLimits{Texts: 3}}
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
