package webhooks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

const (
	pullStep   = 1000    // events that get their positions in one transaction
	pullOctets = 1 << 20 // of the events' data on a page; the first event is on it however large
	pullNoted  = 5 * time.Minute
	pullWithin = 5 * time.Second // of a transaction and its look
	pullSteps  = 100             // of a request that found nothing to return yet

	// Most looks for events without a position read those recorded within freshFor. Every lookThroughEvery one reads all:
	// a transaction may commit late. Deleted index entries stay while a snapshot is open, such as a backup's, and each
	// look has to pass those in its range.
	freshFor         = 10 * time.Second
	lookThroughEvery = 5 * time.Second
)

// Place is where a consumer is among a company's events. The zero value is before the first one.
type Place struct {
	Position int64 // of the last event that it got
	Lost     int64 // it knows that events up to this position were deleted before it got them
}

// Pulled is an event as a consumer fetches it.
type Pulled struct {
	WebhookID string // the webhook-id header of the same event's deliveries
	Body      []byte // of these deliveries, byte for byte
}

// PlaceExpired is the error for a place behind which events were deleted, after Options.Retention, or lost with a
// database that was restored from a backup.
type PlaceExpired struct{ Continue Place } // with the events that are left

func (e *PlaceExpired) Error() string { return "events after this place are gone" }

// Pull returns up to limit of a company's events after a place, and the place after them. The company's first call
// starts the recording of its events; earlier ones are made of its messages (Options.History).
//
// Positions are given to committed events only, one transaction of a company after the other, so no event ever appears
// before a place that was returned. An event is returned after a commit that wrote something (postgres.ConfirmWith).
// Without events Pull writes nothing, except the time of the call at most every five minutes.
func (w *Webhooks) Pull(ctx context.Context, company sms.CompanyID, after Place, limit int) (page []Pulled, next Place,
	err error) {
	ctx, cancel := context.WithTimeout(ctx, pullWithin)
	defer cancel()
	for n := 0; ; n++ {
		r, err := w.reader(ctx, company)
		switch {
		case err != nil:
			return nil, after, err
		case r.open && r.moved:
			err = w.moveReader(ctx, company)
		case after.Position > r.last || after.Lost > r.purged:
			return nil, after, &PlaceExpired{Place{Lost: r.purged}} // of events that a backup does not have
		case r.purged > max(after.Position, after.Lost):
			return nil, after, &PlaceExpired{Place{after.Position, r.purged}}
		case !r.open:
			err = w.startReader(ctx, company)
		case !r.ready:
			if r.ready, err = w.readyReader(ctx, company); err == nil && !r.ready {
				return nil, after, nil // a transaction may still commit an event that is recorded nowhere
			}
		case r.history >= r.historyTo && !r.fresh && r.numbered <= after.Position && !r.stale:
			return nil, after, nil
		default:
			var alone bool
			page, next, alone, err = w.step(ctx, company, after, limit, r)
			if err == nil && (len(page) > 0 || r.history >= r.historyTo || !alone) || n >= pullSteps {
				return page, next, err
			}
		}
		if err != nil {
			return nil, after, err
		}
	}
}

// reader is what there is for a company's consumers.
type reader struct {
	open, ready        bool
	moved              bool // positions were last given by another server, or before a promotion
	history, historyTo int64
	last               int64 // no position is higher
	numbered           int64 // the highest position of an event; not more than last
	purged             int64
	since              int64 // positions below it were looked at for fresh ones
	fresh              bool  // an event has no position yet
	stale              bool  // the time of the last call is to be written
}

// origin is where positions are given, in two parts. The first part differs in every database that was restored from a
// dump, the second after every promotion and every restore to a point in time. A hosted server may not tell all of it.
func (c *core) origin() string {
	if c.waiters.hosted.Load() {
		return `'event_readers'::regclass::oid::text, ''`
	}
	return `format('%s/%s/%s', (SELECT system_identifier FROM pg_control_system()), 
		(SELECT oid FROM pg_database WHERE datname = current_database()),
		'event_readers'::regclass::oid), left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)`
}

// hosted reports whether an error is a server's refusal to tell its origin. Then no later statement asks.
func (c *core) hosted(ctx context.Context, err error) bool {
	if c.waiters.hosted.Load() || !postgres.Withheld(err) {
		return false
	}
	var home, line string // the error may be about something else that the statement needs
	if !postgres.Withheld(c.lookups.QueryRow(ctx, `SELECT `+c.origin()).Scan(&home, &line)) {
		return false
	}
	c.waiters.hosted.Store(true)
	return true
}

// reader reads a company's state; the zero state if it has never asked.
func (w *Webhooks) reader(ctx context.Context, company sms.CompanyID) (r reader, err error) {
	r.since = w.waiters.since(int64(company))
	err = w.lookups.QueryRow(ctx, `
		SELECT since IS NOT NULL, ready, (home, timeline) <> (`+w.origin()+
		`), history, history_to, last, purged, pulled_at < now() - $3::interval,
			EXISTS (SELECT FROM events e WHERE e.company_id = r.company_id AND e.position < $2),
			coalesce((SELECT position FROM events e WHERE e.company_id = r.company_id AND position > 0
			ORDER BY position DESC LIMIT 1), 0)
		FROM event_readers r WHERE company_id = $1`, int64(company), r.since, pullNoted).
		Scan(&r.open, &r.ready, &r.moved, &r.history, &r.historyTo, &r.last, &r.purged, &r.stale, &r.fresh, &r.numbered)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return reader{}, nil
	case err != nil && w.hosted(ctx, err):
		return w.reader(ctx, company)
	case err != nil:
		return r, fmt.Errorf("looking for events of company %d: %w", company, err)
	case !r.fresh:
		w.waiters.looked(int64(company), r.since)
	}
	return r, nil
}

// step gives positions to events that have none, and reads a page, in one transaction. While another transaction of the
// company does that, it only reads, and alone is false.
func (w *Webhooks) step(ctx context.Context, company sms.CompanyID, after Place, limit int, r reader) (
	page []Pulled, next Place, alone bool, err error) {
	var past []storedEvent
	upTo := r.history
	if r.history < r.historyTo {
		if past, upTo, err = w.past(ctx, company, r); err != nil {
			return nil, after, false, err
		}
	}
	err = postgres.InTx(ctx, w.readers(), func(tx pgx.Tx) error {
		next, alone = after, false
		var last, history int64
		err := tx.QueryRow(ctx, `SELECT last, history FROM event_readers
			WHERE company_id = $1 AND since IS NOT NULL AND ready AND (home, timeline) = (`+w.origin()+
			`) FOR UPDATE SKIP LOCKED`, int64(company)).Scan(&last, &history)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			err = postgres.ConfirmWith(ctx, tx)
		case err != nil:
		case history < r.historyTo && history != r.history: // another one recorded it meanwhile
			err = postgres.ConfirmWith(ctx, tx)
		case history < r.historyTo:
			alone, err = true, recordPast(ctx, tx, company, last, past, upTo)
		default:
			alone = true
			err = number(ctx, tx, company, last, r.since)
		}
		if err != nil {
			return fmt.Errorf("ordering the events of company %d: %w", company, err)
		}
		if page, next, err = readPage(ctx, tx, company, after, limit); err != nil {
			return err
		}
		// A purge since the look may have deleted events after the place: it has noted so in its own transaction.
		var purged int64
		if err := tx.QueryRow(ctx, `SELECT purged FROM event_readers WHERE company_id = $1`, int64(company)).Scan(
			&purged); err != nil {
			return fmt.Errorf("looking for deleted events of company %d: %w", company, err)
		}
		if purged > max(after.Position, after.Lost) {
			page, next = nil, after
			return &PlaceExpired{Place{after.Position, purged}}
		}
		return nil
	})
	if err != nil && w.hosted(ctx, err) {
		return w.step(ctx, company, after, limit, r)
	}
	return page, next, alone, err
}

// readers is the pool of consumers' requests: apart from the messages'.
func (w *Webhooks) readers() *pgxpool.Pool { return w.lookups.(*pgxpool.Pool) }

// number gives positions after last to events, in the order in which they were recorded. The caller holds the lock of
// the company's row, which it took by an earlier statement: so this one sees all that other transactions have numbered.
func number(ctx context.Context, tx pgx.Tx, company sms.CompanyID, last, since int64) error {
	b := &pgx.Batch{}
	b.Queue(`
		WITH fresh AS MATERIALIZED (
			SELECT id, row_number() OVER (ORDER BY position DESC, id) AS place FROM (
				SELECT id, position FROM events WHERE company_id = $1 AND position < $2 ORDER BY position DESC LIMIT $3) f
		), numbered AS (
			UPDATE events e SET position = $4::bigint + fresh.place FROM fresh WHERE e.company_id = $1 AND e.id = fresh.id
		)
		UPDATE event_readers SET last = greatest(last, CASE WHEN n > 0 THEN $4::bigint + n END), pulled_at = now()
		FROM (SELECT count(*) AS n FROM fresh) f WHERE company_id = $1`, int64(company), since, pullStep, last)
	return postgres.Pipeline(ctx, tx, "giving positions", b)
}

// readPage reads the events after a place.
func readPage(ctx context.Context, tx pgx.Tx, company sms.CompanyID, after Place, limit int) (page []Pulled, next Place,
	err error) {
	next = after
	var e storedEvent
	var position int64
	err = postgres.Each(ctx, tx, "reading events", []any{&e.id, &e.at, &e.number, &e.data, &e.labels, &position},
		func() error {
			page = append(page, Pulled{webhookID(e.id), appendBody(nil, &e)})
			next = Place{Position: position, Lost: after.Lost}
			return nil
		}, `
		SELECT id, at, phone_number, data, labels, position FROM (
			SELECT id, at, phone_number, coalesce(data, '') AS data, coalesce(labels, '') AS labels, position,
				sum(coalesce(octet_length(data), 0)) OVER (ORDER BY position) AS octets,
				row_number() OVER (ORDER BY position) AS place
			FROM (SELECT * FROM events WHERE company_id = $1 AND position > $2 ORDER BY position LIMIT $3) p) q
		WHERE octets <= $4 OR place = 1 ORDER BY position`, int64(company), max(0, after.Position), limit, pullOctets)
	if next.Lost <= next.Position {
		next.Lost = 0
	}
	return page, next, err
}
