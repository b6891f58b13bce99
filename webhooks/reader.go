package webhooks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

const (
	readyPatience = time.Second // for transactions that began before a company's first request
	readyPause    = 20 * time.Millisecond
)

// startReader starts the recording of a company's events.
func (w *Webhooks) startReader(ctx context.Context, company sms.CompanyID) error {
	if _, err := w.lookups.Exec(ctx, `
		INSERT INTO event_readers AS r (company_id, since) VALUES ($1, now())
		ON CONFLICT (company_id) DO UPDATE SET since = now(), ready = false, history = 0, history_to = 0, pulled_at = now()
		WHERE r.since IS NULL`, int64(company)); err != nil {
		return fmt.Errorf("starting to record the events of company %d: %w", company, err)
	}
	return nil
}

// readyReader ends the start of a recording: it waits for the transactions that may have looked for readers before the
// company was one. They hold a lock of the table until they end, and have written before (Enqueue). A backup holds the
// same lock, but writes nothing. Then every event is recorded, or its message is final
// and will be part of the history. ready is false if they take longer than readyPatience; the next call tries again.
func (w *Webhooks) readyReader(ctx context.Context, company sms.CompanyID) (ready bool, err error) {
	fail := func(err error) (bool, error) {
		return false, fmt.Errorf("waiting for transactions that may have an event of company %d: %w", company, err)
	}
	const locks = `SELECT coalesce(array_agg(virtualtransaction), '{}') FROM pg_locks l
		WHERE relation = 'event_readers'::regclass AND mode = 'AccessShareLock'
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND pid IS DISTINCT
		FROM pg_backend_pid()
		AND EXISTS (SELECT FROM pg_locks x WHERE x.virtualtransaction = l.virtualtransaction AND x.locktype = 'transactionid'
		AND x.mode = 'ExclusiveLock')`
	var older, now []string
	if err := w.lookups.QueryRow(ctx, locks).Scan(&older); err != nil {
		return fail(err)
	}
	for end := time.Now().Add(readyPatience); len(older) > 0; {
		if time.Now().After(end) || !wait(ctx, readyPause) {
			return false, ctx.Err()
		}
		if err := w.lookups.QueryRow(ctx, locks).Scan(&now); err != nil {
			return fail(err)
		}
		older = slices.DeleteFunc(older, func(each string) bool { return !slices.Contains(now, each) })
	}
	if _, err := w.lookups.Exec(ctx, `UPDATE event_readers SET ready = true, history_to = (SELECT last_value
		FROM messages_id_seq)
		WHERE company_id = $1 AND since IS NOT NULL AND NOT ready`, int64(company)); err != nil {
		return fail(err)
	}
	return true, nil
}

// past returns the next events from before the recording, and the number up to which they are complete: those of
// messages, and the others that the company's endpoint got.
func (w *Webhooks) past(ctx context.Context, company sms.CompanyID, r reader) (events []storedEvent, upTo int64,
	err error) {
	upTo = r.historyTo
	since := postgres.Now().Add(-w.opts.Retention)
	if w.opts.History != nil {
		finals, last, err := w.opts.History(ctx, int64(company), r.history, r.historyTo, since, pullStep)
		if err != nil {
			return nil, 0, fmt.Errorf("reading earlier events of company %d: %w", company, err)
		}
		upTo = last
		for i := range finals {
			e, err := finals[i].stored()
			if err != nil {
				return nil, 0, err
			}
			events = append(events, e)
		}
	}
	other, err := postgres.All(ctx, w.lookups, "reading earlier events",
		func(row pgx.CollectableRow) (e storedEvent, err error) {
			e.company = int64(company)
			err = row.Scan(&e.id, &e.at, &e.number, &e.data)
			return e, err
		}, `SELECT id, at, phone_number, data FROM (
			SELECT id, at, phone_number, data FROM webhook_deliveries WHERE company_id = $1 AND id >= ($2::bigint + 1) * 8
				AND id < ($3::bigint + 1) * 8 AND data IS NOT NULL
			UNION ALL SELECT id, at, phone_number, data FROM webhook_called WHERE company_id = $1 AND data IS NOT NULL
			AND id >= ($2 + 1) * 8 AND id < ($3 + 1) * 8) d
		WHERE at >= $4 ORDER BY id LIMIT $5`, int64(company), r.history, upTo, since, pullStep)
	if err != nil {
		return nil, 0, err
	}
	if len(other) == pullStep { // there may be more
		upTo = messageOf(other[pullStep-1].id) - 1
		if upTo <= r.history { // only of one number; there are no more
			upTo = r.history + 1
		}
	}
	var asked []string
	if err := w.lookups.QueryRow(ctx, `SELECT events FROM event_readers WHERE company_id = $1`, int64(company)).Scan(
		&asked); err != nil {
		return nil, 0, fmt.Errorf("reading what company %d fetches: %w", company, err)
	}
	events = slices.DeleteFunc(append(events, other...), func(e storedEvent) bool {
		name := eventName(e.id)
		return messageOf(e.id) > upTo || slices.Contains(Pullable(), name) && !slices.Contains(asked, name)
	})
	slices.SortFunc(events, func(a, b storedEvent) int { return int(min(1, max(-1, a.id-b.id))) })
	return events, upTo, nil
}

// recordPast records earlier events at the positions after last.
func recordPast(ctx context.Context, tx pgx.Tx, company sms.CompanyID, last int64, events []storedEvent,
	upTo int64) error {
	var c columns
	for i := range events {
		c.addDelivery(&events[i])
	}
	b := &pgx.Batch{}
	if len(events) > 0 {
		b.Queue(`
			INSERT INTO events (company_id, id, at, position, phone_number, labels, data)
			SELECT $1, id, at, $2::bigint + place, phone_number, labels, data FROM (
				SELECT unnest($3::bigint[]) AS id, unnest($4::timestamptz[]) AS at, unnest($5::text[]) AS phone_number,
					unnest($6::text[]) AS labels,
					unnest($7::text[]) AS data, generate_subscripts($3::bigint[], 1) AS place) n
			ON CONFLICT DO NOTHING`, int64(company), last, c.ids, c.at, c.numbers, c.labels, c.data)
	}
	b.Queue(`UPDATE event_readers SET history = $2, last = greatest(last, CASE WHEN $4::bigint > 0
		THEN $3::bigint + $4 END), pulled_at = now() WHERE company_id = $1`,
		int64(company), upTo, last, len(events))
	return postgres.Pipeline(ctx, tx, "recording earlier events", b)
}

// Pulling is the state of a company's events for consumers.
type Pulling struct {
	Since    *time.Time // its events are recorded since then; nil: nobody fetches them
	PulledAt *time.Time // the last request, within five minutes; nil: none
	Events   []string   // the requested ones of Pullable
	Kept     int64      // events that can be fetched, keptMost at most
}

const keptMost = 10_000

// Most reports whether there may be more than Kept.
func (p Pulling) Most() bool { return p.Kept == keptMost }

// PullingOf returns the state of a company's events for consumers.
func (w *Webhooks) PullingOf(ctx context.Context, company sms.CompanyID) (p Pulling, err error) {
	err = w.lookups.QueryRow(ctx, `SELECT since, CASE WHEN since IS NOT NULL THEN pulled_at END, events,
		(SELECT count(*) FROM (SELECT FROM events e WHERE e.company_id = r.company_id LIMIT $2) k) FROM event_readers r
		WHERE company_id = $1`,
		int64(company), keptMost).Scan(&p.Since, &p.PulledAt, &p.Events, &p.Kept)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return Pulling{Events: []string{}}, nil
	case err != nil:
		return p, fmt.Errorf("looking up who fetches events of company %d: %w", company, err)
	}
	return p, nil
}

// SetPulled sets which events of Pullable a company fetches besides all others. Another event is an sms.Refusal.
func (w *Webhooks) SetPulled(ctx context.Context, company sms.CompanyID, events []string) error {
	events, err := checkEvents(events, Pullable())
	if err != nil {
		return err
	}
	if _, err := w.pool.Exec(ctx, `INSERT INTO event_readers (company_id, events) VALUES ($1, $2)
		ON CONFLICT (company_id) DO UPDATE SET events = excluded.events`, int64(company), events); err != nil {
		return fmt.Errorf("setting the events that company %d fetches: %w", company, err)
	}
	return nil
}

// Asking returns the companies that requested an event of Askable for their endpoint or their consumers.
func (w *Webhooks) Asking(ctx context.Context, event string) ([]int64, error) {
	return postgres.All(ctx, w.pool, "looking for companies that ask for "+event, pgx.RowTo[int64], `
		SELECT company_id FROM webhook_endpoints WHERE active AND $1 = ANY(events)
		UNION SELECT company_id FROM event_readers WHERE since IS NOT NULL AND $1 = ANY(events) ORDER BY 1`, event)
}

// skipped is where positions go on after last in a database that may lack the newest events: higher than any position
// that may have been given after its backup or on the old primary, at up to 16,384 events a second. It grows with the
// time, so that a backup that is restored twice gives no position twice.
const skipped = `last + (extract(epoch FROM now()) * 16384)::bigint`

// moveReader notes where a company's positions are given from now on. After a restored dump, consumers get
// [PlaceExpired] once: what was recorded after the dump is lost.
func (w *Webhooks) moveReader(ctx context.Context, company sms.CompanyID) error {
	if _, err := w.lookups.Exec(ctx, `
		UPDATE event_readers r SET home = o.home, timeline = o.timeline, last = `+skipped+`,
			purged = CASE WHEN r.home IN ('', o.home) THEN purged ELSE `+skipped+` END
		FROM (SELECT `+w.origin()+`) AS o (home, timeline)
		WHERE company_id = $1 AND (r.home, r.timeline) <> (o.home, o.timeline)`, int64(company)); err != nil {
		return fmt.Errorf("moving the events' positions of company %d: %w", company, err)
	}
	return nil
}

// SkipPositions makes the positions of events jump ahead in a restored database: consumers may have got events after
// the backup's moment, and their places must be before all new ones.
func SkipPositions(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, `UPDATE event_readers SET last = `+skipped); err != nil {
		return fmt.Errorf("moving the next events' positions: %w", err)
	}
	return nil
}
