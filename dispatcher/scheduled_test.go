package dispatcher

import (
	"testing"
	"time"

	"intumwa/dispatcher/recovery"
)

// TestReleaseLooksOn: after a look from the beginning that finds nothing due, the next ones read only the last minute,
// until the next whole one. Messages recorded meanwhile are released.
func TestReleaseLooksOn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var at recovery.Releasing
	schedule := func(id int, due time.Duration) {
		t.Helper()
		b.exec(`INSERT INTO scheduled (message_id, company_id, carrier, lane, due_at, expires_at)
			VALUES ($1, 1, 'lumitel', 0, now() + make_interval(secs => $2), now() + interval '1 day')`, id, due.Seconds())
	}
	for _, due := range []time.Duration{0, time.Hour} { // none is scheduled; none is due
		if due > 0 {
			schedule(1, due)
		}
		at = recovery.Releasing{}
		if rest, err := b.d.recovery.ReleaseDue(t.Context(), &at); err != nil || rest != b.d.core.Opts.SweepInterval {
			t.Fatalf("it rests %s, %v", rest, err)
		}
		for lane, after := range at.After {
			if behind := time.Since(after.At); behind > 2*recovery.ReleaseBehind || behind < recovery.ReleaseBehind/2 {
				t.Errorf("lane %d: it goes on from %s", lane, after.At)
			}
		}
	}
	schedule(2, -time.Second)
	if _, err := b.d.recovery.ReleaseDue(t.Context(), &at); err != nil ||
		b.count(`SELECT count(*) FROM outbox WHERE message_id = 2`) != 1 {
		t.Errorf("what is due was not released, %v", err)
	}
}
