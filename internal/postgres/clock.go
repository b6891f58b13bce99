package postgres

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// reading is a time that the database's clock reported.
type reading struct {
	theirs time.Time
	when   time.Time // by this machine's clocks, the monotonic one too
}

// heard is what Now goes by; nil: nothing has been heard yet.
var heard atomic.Pointer[reading]

// Now is the time of the database's clock, the one clock of all processes. It decides
// what is due, over or allowed, and is the time in everything that is written, signed and
// shown (rule choices 10.3). Each machine has its own idea of the time, and one that is an
// hour wrong must not send a message an hour early or take one for expired. It is as exact
// as the quickest answer of late (ReadClock), and goes on by this machine's monotonic clock,
// so that setting the other changes nothing; before the first answer it is the other. It may
// step back, has no monotonic part and measures no duration: for that there is [time.Now].
func Now() time.Time { return Moment(time.Now()) }

// Moment is the time of the database's clock when this machine's clock had t, as [time.Now] gave
// it. The zero time stays what it is.
func Moment(t time.Time) time.Time {
	h := heard.Load()
	if t.IsZero() || h == nil {
		return t.Round(0)
	}
	return h.theirs.Add(t.Sub(h.when))
}

// Ahead is by how much this machine's clock is ahead of the database's; negative: behind.
func Ahead() time.Duration {
	now := time.Now()
	return now.Round(0).Sub(Moment(now))
}

// ReadClock reads the database's time, for Now. A process does so when it starts and
// every few seconds: clocks drift, are set, and another server may have become the primary.
func ReadClock(ctx context.Context, pool *pgxpool.Pool) error {
	conn, err := pool.Acquire(ctx) // the wait for it is none of the round trip
	if err != nil {
		return fmt.Errorf("asking the database for the time: %w", err)
	}
	defer conn.Release()
	var theirs time.Time
	asked := time.Now()
	if err := conn.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&theirs); err != nil {
		return fmt.Errorf("asking the database for the time: %w", err)
	}
	half := time.Since(asked) / 2
	when := asked.Add(half) // wrong by half at the most
	switch {
	case heard.Load() != nil && Moment(when).Sub(theirs).Abs() <= half: // what is known may be so
	case when.Round(0).Sub(theirs).Abs() <= half: // this clock may be right
		heard.Store(&reading{when.Round(0), when})
	default:
		heard.Store(&reading{theirs, when})
	}
	return nil
}
