package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestFleet is a short make bench BENCH=fleet: several processes per role, two carriers.
// Every message is sent, reported and charged once, and each role's cost is counted.
func TestFleet(t *testing.T) {
	ctx := t.Context()
	s, binary := measurable(t)
	w, err := newWorld(ctx, s, setup{endpoint: true, fleet: &fleet{2, 2, 2}}, binary, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	const n = 300
	m, err := w.measured(ctx, n, w.spread(n))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.once(n); err != nil {
		t.Error(err)
	}
	if err := w.audited(ctx); err != nil {
		t.Error(err)
	}
	for _, c := range w.ours() {
		if got := c.stats().Accepted; got != n/2 {
			t.Errorf("a carrier got %d of %d messages, half of which are its own", got, n)
		}
	}
	for _, name := range []string{cpuOf(roleOf("api")), cpuOf("PostgreSQL"), allCPU, "commits", "WAL"} {
		if m.value(name) <= 0 {
			t.Errorf("%s is %v: nothing was counted", name, m.value(name))
		}
	}
	for _, name := range []string{roleOf("dispatcher"), roleOf("webhooks"), idlest("api", 2), idlest("dispatcher", 2)} {
		// possibly less than a tick
		if !slices.ContainsFunc(m.figures, func(f single) bool { return f.name == cpuOf(name) }) {
			t.Errorf("the CPU of the %s was not measured", name)
		}
	}

	// Lost and repeated messages are errors.
	w.wrongly(t, n+1, "300 of 301 messages reached a carrier", "webhooks reported 300 of 301 messages")
	w.sink.count([]byte(fmt.Sprintf(`{"event":"sms.sent","data":{"message_id":%d}}`, w.sink.any())))
	w.wrongly(t, n, "1 webhooks came twice")
	if _, err := w.twice(n)(ctx); err != nil {
		t.Fatal(err)
	}
	w.wrongly(t, n, "150 messages reached their carrier twice", "150 of 300 messages reached a carrier")
}

// wrongly expects these errors of once, and no others.
func (w *world) wrongly(t *testing.T, n int, wants ...string) {
	t.Helper()
	if err := w.once(n); err == nil || err.Error() != strings.Join(wants, "\n") {
		t.Errorf("of %d messages: %v, want %q", n, err, wants)
	}
}

// twice sends every message a second time.
func (w *world) twice(n int) work {
	return func(ctx context.Context) (measurement, error) {
		first := w.take(n)
		return w.drive(ctx, 4, n, n, func(c *client, i int) error {
			c.body = appendSingle(c.body[:0], here, first+i/2)
			return c.send("/v1/sms", w.token)
		})
	}
}

// any returns a message that was reported to the sink.
func (s *sink) any() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.seen {
		return id
	}
	return -1
}
