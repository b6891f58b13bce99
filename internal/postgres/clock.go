package postgres

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// ahead is by how much this machine's clock is ahead of the database's, in nanoseconds, as
// far as this process has heard.
var ahead atomic.Int64

// Now is what the database's clock says: the one clock of all processes, by which it is
// decided what is due, over or allowed, and which stands in what is written, signed and
// shown (rule choices 10.3). Each machine has its own idea of the time, and one that is an hour wrong must not
// send a message an hour early or take one for expired. It is as exact as the quickest
// answer of late (ReadClock); before the first it is this machine's. It may step back, has
// no monotonic part and measures no duration: for that there is [time.Now].
func Now() time.Time { return Moment(time.Now()) }

// Moment is what the database's clock said when this machine's said t. The zero time stays
// what it is.
func Moment(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Round(0).Add(-Ahead())
}

// Ahead is by how much this machine's clock is ahead of the database's; negative: behind.
func Ahead() time.Duration { return time.Duration(ahead.Load()) }

// ReadClock asks the database for the time, for Now. A process does so when it starts and
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
	seen := asked.Add(half).Sub(theirs) // wrong by half at the most
	switch {
	case (seen - Ahead()).Abs() <= half: // what is known may be so
	case seen.Abs() <= half: // this clock may be right
		ahead.Store(0)
	default:
		ahead.Store(int64(seen))
	}
	return nil
}
