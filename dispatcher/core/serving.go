package core

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/messages/rerouting"
)

// SinceServed is the time since a link last served. For a held link a heartbeat writes
// both times, so a step of the database's clock changes nothing.
const SinceServed = `CASE WHEN ` + Leased +
	` THEN updated_at - served_at ELSE greatest(now() - served_at, served_at - now()) END`

var (
	// mayServe selects links over which messages are to be submitted. A receiver alone has no window.
	mayServe = `NOT broken AND NOT paused AND "window" > 0 AND ` + rerouting.RetiredTo("links.carrier") + ` IS NULL`
	// Serving selects links that could carry messages at their dispatcher's last heartbeat.
	Serving = `state = 'bound' AND ` + mayServe + ` AND ` + Leased
	// takenOver selects links that their dispatcher took over less than $2 ago and has not
	// bound yet. It excludes links that it had bound and lost.
	takenOver = `state <> 'bound' AND since > now() - $2::interval AND ` + mayServe + ` AND EXISTS (SELECT FROM leases
		WHERE leases.name = '` + LinkLease + `' || links.name AND leases.holder IS DISTINCT FROM links.bound_by)`
)

// Serves reports whether a link of a carrier can carry messages now, in any process. It
// includes a link that a process took over less than binding ago and has not bound yet.
func Serves(ctx context.Context, db postgres.DB, carrier string, binding time.Duration) (serves bool, err error) {
	if err := db.QueryRow(ctx, `SELECT EXISTS (SELECT FROM links WHERE carrier = $1 AND (`+Serving+` OR `+takenOver+`))`,
		carrier, binding).Scan(&serves); err != nil {
		return false, fmt.Errorf("looking for a link of %s that is bound: %w", carrier, err)
	}
	return serves, nil
}

// Served returns the carriers of which a process has links, or had some less than StrandedAfter ago.
func (c *Core) Served(ctx context.Context) ([]string, error) {
	served, err := postgres.All(ctx, c.Pool, "reading which carriers have links", pgx.RowTo[string],
		`SELECT DISTINCT carrier FROM links l WHERE updated_at > now() - $1::interval
		OR EXISTS (SELECT FROM dispatchers d WHERE l.name = ANY(d.links))`, c.Opts.StrandedAfter)
	for _, own := range c.Running() {
		served = append(served, own.Name)
	}
	return served, err
}
