package links

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"intumwa/dispatcher/core"
	"intumwa/internal/postgres"
	"intumwa/messages/rerouting"
	"intumwa/smpp"
)

// announce publishes the links that this process is configured with and those that it leaves to
// others, and inserts missing rows of links.
func (m *Member) announce(ctx context.Context, wishes map[string]wantedLink, now time.Time) error {
	links, givenUp, carriers := slices.Sorted(maps.Keys(wishes)), []string{}, []string{}
	for _, name := range links {
		if carriers = append(carriers, wishes[name].carrier.Name); m.gaveUp(name, now) {
			givenUp = append(givenUp, name)
		}
	}
	tag, err := m.Pool.Exec(ctx, `UPDATE dispatchers SET links = $2, given_up = $3 WHERE id = $1
		AND (links, given_up) IS DISTINCT FROM ($2::text[], $3::text[])`,
		m.ID.Load(), append([]string{}, links...), givenUp)
	if err != nil {
		return fmt.Errorf("announcing the links: %w", err)
	}
	if tag.RowsAffected() > 0 {
		m.Since = now
	}
	if _, err := m.Pool.Exec(ctx, `INSERT INTO links (name, carrier) SELECT name, carrier
		FROM unnest($1::text[], $2::text[]) u(name, carrier)
		WHERE (name, carrier) NOT IN (SELECT name, carrier FROM links) ORDER BY name
		ON CONFLICT (name) DO UPDATE SET carrier = excluded.carrier`, links, carriers); err != nil {
		return fmt.Errorf("announcing the links: %w", err)
	}
	return nil
}

// linkReport is a link's state as written to its row.
type linkReport struct {
	Name      string    `json:"name"`
	State     string    `json:"state"`
	Since     time.Time `json:"since"`
	Window    int       `json:"window"`
	InFlight  int       `json:"in_flight"`
	TPS       float64   `json:"tps"`
	LastError string    `json:"last_error"`
	Broken    bool      `json:"broken"`
	Accepted  int32     `json:"accepted"`
	Throttled int32     `json:"throttled"`
	Overdue   int       `json:"overdue"`

	Refused        map[string]int32 `json:"refused"`
	SendersBlocked int              `json:"senders_held"`
}

func (m *Member) report(name string, w wantedLink) linkReport {
	snap, stopped := smpp.Snapshot{State: smpp.Down, Since: time.Now(), Window: w.link.Window, TPS: w.link.TPS}, outage{}
	at := m.Workers[name]
	var refused map[string]uint64
	if at != nil {
		snap, stopped = at.state()
		refused = at.refusals.totals()
	}
	if !w.link.Mode.Submits() {
		snap.Window, snap.TPS = 0, 0 // it cannot serve
	}
	minute := m.minutes.of(name, snap.Totals, refused)
	return linkReport{Name: name, State: snap.State.String(), Since: postgres.Moment(snap.Since), Window: snap.Window,
		InFlight: snap.InFlight,
		TPS:      snap.TPS, LastError: snap.LastError, Broken: stopped.out, Accepted: minute.accepted,
		Throttled: minute.throttled,
		Overdue:   snap.Overdue,
		Refused:   minute.refused, SendersBlocked: stopped.blocked}
}

// lease acquires the leases of the configured links, reports the links that this process holds,
// and returns them.
func (m *Member) lease(ctx context.Context, wishes map[string]wantedLink, now time.Time) (leasedLinks, error) {
	var names []string
	reports := make([]linkReport, 0, len(wishes))
	others := *m.Wanted.Load()
	for name, w := range wishes {
		if !m.gaveUp(name, now) || !others[name] {
			names = append(names, core.LinkLease+name)
		}
		reports = append(reports, m.report(name, w))
	}
	if _, err := m.Acquire(ctx, names...); err != nil {
		return nil, err
	}
	reported, err := json.Marshal(reports)
	if err != nil {
		return nil, fmt.Errorf("reporting the links: %w", err)
	}
	held := leasedLinks{}
	var name string
	var order linkOrder
	err = postgres.Each(ctx, m.Pool, "reporting the links", []any{&name, &order.paused, &order.retired}, func() error {
		held[name] = order
		return nil
	}, `
		UPDATE links SET state = u.state, since = CASE WHEN links.state = u.state THEN links.since ELSE u.since END,
			"window" = u."window", in_flight = u.in_flight, tps = u.tps, last_error = u.last_error, broken = u.broken,
			updated_at = now(),
			accepted = u.accepted, throttled = u.throttled, overdue = u.overdue, refused = u.refused,
			senders_held = u.senders_held,
			bound_by = CASE WHEN u.state = 'bound' THEN $1 ELSE links.bound_by END,
			served_at = CASE WHEN u.state = 'bound' AND NOT u.broken AND NOT links.paused AND u."window" > 0 THEN now()
			ELSE least(links.served_at, now()) END -- the clock may have been set back
		FROM (SELECT links.name FROM links JOIN leases ON leases.name = '`+core.LinkLease+`' || links.name
				WHERE leases.holder = $1 ORDER BY name FOR UPDATE OF links) mine -- one order in all processes
			JOIN json_to_recordset($2::json) u(name text, state text, since timestamptz, "window" int, in_flight int, tps float8,
				last_error text, broken boolean,
				accepted int, throttled int, overdue int, refused jsonb, senders_held int) USING (name)
		WHERE links.name = u.name
		RETURNING links.name, links.paused, `+rerouting.RetiredTo("links.carrier")+` IS NOT NULL`, m.ID.Load(),
		string(reported))
	return held, err
}

// disown gives up the leases of links that are no longer configured, once their workers have
// ended. It deletes links that no dispatcher is configured with: its own, and those that none
// has held for StrandedAfter. It keeps paused ones among the latter, because an operator may
// want them back. A link that leaves all configurations at once gets two heartbeats to do so.
func (m *Member) disown(ctx context.Context, wishes map[string]wantedLink) error {
	keep := slices.AppendSeq(slices.AppendSeq([]string{}, maps.Keys(wishes)), maps.Keys(m.Workers))
	own := time.Since(m.Since) >= 2*m.Opts.Heartbeat
	if _, err := m.Pool.Exec(ctx, `WITH gone AS (DELETE FROM leases USING links WHERE $4 AND leases.name = '`+
		core.LinkLease+`' || links.name
			AND links.name <> ALL($2) AND holder = $1 RETURNING links.name)
		DELETE FROM links WHERE name <> ALL($2)
			AND NOT EXISTS (SELECT FROM dispatchers d WHERE d.id <> $1 AND links.name = ANY(d.links))
			AND (name IN (SELECT name FROM gone) OR (NOT paused AND updated_at < now() - $3::interval AND NOT `+core.Leased+`))`,
		m.ID.Load(), keep, m.Opts.StrandedAfter, own); err != nil {
		return fmt.Errorf("taking links off the list: %w", err)
	}
	return nil
}
