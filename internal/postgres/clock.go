package postgres

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// reading is a time by the database's clock.
type reading struct {
	theirs time.Time
	when   time.Time // by this machine's clocks, with the monotonic one
}

// lastReading is the basis of Now; nil: the database has not answered yet.
var lastReading atomic.Pointer[reading]

// Now is the time by the database's clock, the only clock of all processes. It decides what is due, over or allowed,
// and is the time in everything that is written, signed and shown (rule choices 10.3): a machine whose clock is an hour
// wrong must not send a message an hour early, or expire it. Now is as exact as the quickest recent answer (ReadClock)
// and advances with this machine's monotonic clock, so that setting the wall clock changes nothing; before the first
// answer it is the wall clock. It may step back and has no monotonic part: measure durations with [time.Now].
func Now() time.Time { return Moment(time.Now()) }

// Moment returns the database's time when [time.Now] was t. The zero time stays zero.
func Moment(t time.Time) time.Time {
	h := lastReading.Load()
	if t.IsZero() || h == nil {
		return t.Round(0)
	}
	return h.theirs.Add(t.Sub(h.when))
}

// Ahead returns by how much this machine's clock is ahead of the database's; negative: behind.
func Ahead() time.Duration {
	now := time.Now()
	return now.Round(0).Sub(Moment(now))
}

// ReadClock reads the database's time, for Now. Call it at the start and every few seconds: clocks drift and are set,
// and another server may become the primary.
func ReadClock(ctx context.Context, pool *pgxpool.Pool) error {
	conn, err := pool.Acquire(ctx) // so that the round trip excludes the wait
	if err != nil {
		return fmt.Errorf("reading the database clock: %w", err)
	}
	defer conn.Release()
	var theirs time.Time
	sent := time.Now()
	if err := conn.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&theirs); err != nil {
		return fmt.Errorf("reading the database clock: %w", err)
	}
	half := time.Since(sent) / 2
	when := sent.Add(half) // wrong by at most half
	switch {
	case lastReading.Load() != nil && Moment(when).Sub(theirs).Abs() <= half: // the last reading may be right
	case when.Round(0).Sub(theirs).Abs() <= half: // this clock may be right
		lastReading.Store(&reading{when.Round(0), when})
	default:
		lastReading.Store(&reading{theirs, when})
	}
	return nil
}
