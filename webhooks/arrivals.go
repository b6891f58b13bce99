package webhooks

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	arrivalsBatch = 1000
	// A missing number belongs to a transaction that is under way or was rolled back.
	// Statements end after 10 s and idle transactions after 5 s (postgres.Open), so
	// after gapAge it was rolled back.
	gapAge = 2 * time.Minute
	// A gap is read at every round while it is younger than gapRetry, then once in gapRetry.
	gapRetry = time.Second
)

// arrivals tracks how far new deliveries were read, in the order of their numbers
// (webhook_deliveries.seq). Transactions draw numbers in this order but commit in any
// order: a gap is remembered and read again.
type arrivals struct {
	cursor int64 // everything up to here was read, except the gaps
	head   int64 // the last number when this lease began: the owner before may have attempted those up to it
	gaps   []gap
	open   map[int64]struct{} // read, and neither stored nor parked yet
	order  []int64            // the open numbers ascending, and some that were finished
}

// gap is a range of numbers that were missing when higher ones were read.
type gap struct {
	from, to    int64
	since, next time.Time // next: when it is read again
}

func newArrivals(read, head int64) arrivals {
	return arrivals{cursor: read, head: head, open: make(map[int64]struct{})}
}

// note records that a number was read, and whether it must be delivered. Numbers
// beyond the cursor come in ascending order.
func (a *arrivals) note(seq int64, todo bool, now time.Time) {
	if seq > a.cursor {
		if seq > a.cursor+1 {
			a.gaps = append(a.gaps, gap{from: a.cursor + 1, to: seq - 1, since: now, next: now})
		}
		a.cursor = seq
	} else if !a.fill(seq) {
		return // it was read before
	}
	if !todo {
		return
	}
	a.open[seq] = struct{}{}
	at, _ := slices.BinarySearch(a.order, seq)
	a.order = slices.Insert(a.order, at, seq)
}

// fill removes a number from its gap; false when it is in none.
func (a *arrivals) fill(seq int64) bool {
	for i, g := range a.gaps {
		if seq < g.from || seq > g.to {
			continue
		}
		var rest []gap
		if g.from < seq {
			rest = append(rest, gap{g.from, seq - 1, g.since, g.next})
		}
		if seq < g.to {
			rest = append(rest, gap{seq + 1, g.to, g.since, g.next})
		}
		a.gaps = slices.Replace(a.gaps, i, i+1, rest...)
		return true
	}
	return false
}

// finish records that a number's delivery was stored or parked.
func (a *arrivals) finish(seq int64) { delete(a.open, seq) }

// done returns the number up to which everything is finished and no gap is left.
func (a *arrivals) done() int64 {
	for len(a.order) > 0 {
		if _, open := a.open[a.order[0]]; open {
			break
		}
		a.order = a.order[1:]
	}
	done := a.cursor
	if len(a.order) > 0 {
		done = a.order[0] - 1
	}
	if len(a.gaps) > 0 {
		done = min(done, a.gaps[0].from-1)
	}
	return done
}

// dueGaps returns the gaps to read now, and forgets those older than gapAge.
func (a *arrivals) dueGaps(now time.Time) (from, to []int64) {
	a.gaps = slices.DeleteFunc(a.gaps, func(g gap) bool { return now.Sub(g.since) > gapAge })
	for i := range a.gaps {
		g := &a.gaps[i]
		if now.Before(g.next) {
			continue
		}
		if now.Sub(g.since) > gapRetry {
			g.next = now.Add(gapRetry)
		}
		from, to = append(from, g.from), append(to, g.to)
	}
	return from, to
}

// arrived is a new delivery.
type arrived struct {
	company int64
	job     job
	todo    bool // it was neither attempted nor parked
}

// readArrivals reads the new deliveries behind the cursor, at most arrivalsBatch, and
// in the gaps. full means that there may be more.
func (d *deliverer) readArrivals(ctx context.Context) (found []arrived, full bool, err error) {
	now := time.Now()
	d.mu.Lock()
	cursor, catchingUp := d.arrivals.cursor, d.arrivals.cursor < d.arrivals.head
	from, to := d.arrivals.dueGaps(now)
	d.mu.Unlock()
	const columns = `SELECT d.seq, d.company_id, d.id, d.at, d.phone_number, coalesce(d.data, ''), coalesce(d.client_reference, ''), `
	todo := `true`
	if catchingUp {
		todo = `NOT EXISTS (SELECT FROM webhook_attempts a WHERE a.seq = d.seq)
			AND NOT EXISTS (SELECT FROM webhook_undelivered u WHERE u.company_id = d.company_id AND u.id = d.id)`
	}
	if len(from) > 0 {
		rows, err := d.pool.Query(ctx, columns+`true FROM unnest($1::bigint[], $2::bigint[]) AS g(first, last)
			JOIN webhook_deliveries d ON d.seq BETWEEN g.first AND g.last`, from, to)
		if found, err = collectArrived(rows, err); err != nil {
			return nil, false, err
		}
	}
	rows, err := d.pool.Query(ctx, columns+todo+` FROM webhook_deliveries d WHERE d.seq > $1 ORDER BY d.seq LIMIT $2`, cursor, arrivalsBatch)
	behind, err := collectArrived(rows, err)
	return append(found, behind...), len(behind) == arrivalsBatch, err
}

func collectArrived(rows pgx.Rows, err error) ([]arrived, error) {
	if err != nil {
		return nil, fmt.Errorf("reading new webhook deliveries: %w", err)
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (a arrived, err error) {
		err = row.Scan(&a.job.seq, &a.company, &a.job.id, &a.job.at, &a.job.number, &a.job.data, &a.job.reference, &a.todo)
		return a, err
	})
	if err != nil {
		return nil, fmt.Errorf("reading new webhook deliveries: %w", err)
	}
	return found, nil
}
