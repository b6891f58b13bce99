// Package statistics counts messages: in the background for reports, for carriers' invoices, and for the audit. It
// writes only its counts.
package statistics

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/messages/numberfilter"
)

// Store keeps the counts of one database.
type Store struct {
	pool *pgxpool.Pool
}

// New returns the store of pool's database.
func New(pool *pgxpool.Pool) *Store { return &Store{pool: pool} }

const (
	talliesEvery = 5 * time.Second

	// tallyRest is the pause after a count, in multiples of its duration: every count includes all pending messages,
	// possibly millions. tallyRestMost bounds that pause: a count may also have waited for the database.
	tallyRest     = 50
	tallyRestMost = 5 * time.Minute
)

// RunTallies calls Tally for the charts and numberfilter's FilterNumbers for searches, until ctx ends.
func (s *Store) RunTallies(ctx context.Context, log *slog.Logger) error {
	all := func(task string, do func(context.Context) (bool, error), rest int) {
		for more := true; more && ctx.Err() == nil; {
			start := time.Now()
			var err error
			if more, err = do(ctx); err != nil && ctx.Err() == nil {
				log.Warn("searches and charts fall behind; trying again", "event", "tally_failed", "task", task, "error", err)
			}
			if !more && err == nil { // it found nothing to do, even if that took long
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(min(time.Duration(rest)*time.Since(start), tallyRestMost)):
			}
		}
	}
	for {
		all("count messages for the charts", s.Tally, tallyRest)
		all("index messages by number", numberfilter.New(s.pool).FilterNumbers, 0)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(talliesEvery):
		}
	}
}
