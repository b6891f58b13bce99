package receipts

import (
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// load adds the reading of a matching's input to a pipeline. The caller holds the carrier's lock: nothing of it changes
// until the transaction ends.
func (w *matching) load(b *pgx.Batch) {
	w.loadInbox(b)
	w.loadNamed(b)
	if len(w.late) == 0 {
		return
	}
	ids := make([]int64, len(w.late))
	for i, r := range w.late {
		ids[i] = r.MessageID
	}
	w.read(b.Queue(`SELECT `+rowColumns+` FROM segments c WHERE c.message_id = ANY($2) AND c.carrier = $1`, w.carrier,
		ids))
}

// loadInbox reads the receipts that may have come before fresh rows.
func (w *matching) loadInbox(b *pgx.Batch) {
	var keys []string
	var references []int32
	for _, r := range w.fresh {
		if r.confirmed {
			continue
		}
		if w.format == Auto {
			keys = append(keys, forms(r.key)...)
		} else {
			keys = append(keys, r.key)
		}
		if r.reference != nil {
			references = append(references, int32(*r.reference))
		}
	}
	keys = slices.DeleteFunc(distinct(keys), func(key string) bool { return key == "" })
	references = distinct(references)
	if len(keys)+len(references) == 0 {
		return
	}
	const columns = `r.id, r.link, r.key, r.reference, r.handset, r.status, r.state, r.error, r.received_at, r.checked`
	const free = ` r.carrier = $1 AND r.message_id IS NULL AND r.status IS NOT NULL AND r.received_at > 
		now() - $4::interval`
	b.Queue(`SELECT `+columns+` FROM unnest($2::text[]) u(key) JOIN receipts r ON r.key = u.key AND`+free+`
		UNION SELECT `+columns+` FROM unnest($3::int[]) u(reference) JOIN receipts r ON r.reference = u.reference AND`+free+`
		ORDER BY id`, w.carrier, keys, references, inboxReach).
		Query(func(rows pgx.Rows) (err error) {
			w.early, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (e waiting, err error) {
				var key string
				err = row.Scan(&e.id, &e.Link, &key, &e.Reference, &e.handset, &e.Status, &e.State, &e.Error, &e.At, &e.verify)
				e.verify = e.verify || w.format == Auto
				if e.keys = []string{key}; w.format == Auto && e.handset != nil {
					e.keys = forms(key)
				}
				return e, err
			})
			return err
		})
}

// loadNamed reads the segments that the receipts may name: for each key one more than there are receipts that may
// settle one, the likeliest first.
func (w *matching) loadNamed(b *pgx.Batch) {
	n := len(w.reports)
	keys, links, handsets, most := make([]string, 0, n), make([]string, 0, n), make([]*int32, 0, n), make([]int32, 0, n)
	wanted, times := map[source]bool{}, map[string]int32{}
	add := func(key string, r *reported) {
		t := source{key, r.Link, -1}
		if r.handset != nil {
			t.handset = *r.handset
		}
		if times[key]++; key == "" || wanted[t] {
			return
		}
		wanted[t] = true
		keys, links, handsets = append(keys, key), append(links, r.Link), append(handsets, r.handset)
	}
	for i := range w.reports {
		r := &w.reports[i]
		if r.Trust == Aside {
			continue
		}
		for _, key := range r.keys {
			add(key, r)
		}
		if r.Final && r.Reference != nil && r.handset != nil {
			add(referenceKey(*r.Reference), r)
			add(namelessKey(*r.Reference), r)
		}
	}
	if len(keys) == 0 {
		return
	}
	for _, key := range keys {
		most = append(most, times[key]+1)
	}
	w.read(b.Queue(`SELECT c.* FROM (SELECT unnest($2::text[]) AS key, unnest($3::text[]) AS link,
		unnest($4::int[]) AS handset, unnest($5::int[]) AS most) u
		CROSS JOIN LATERAL (
			SELECT `+rowColumns+` FROM segments c
			WHERE c.key = u.key AND c.carrier = $1 AND (u.handset IS NULL OR c.handset = u.handset OR c.link = u.link)
			ORDER BY coalesce(c.handset = u.handset, false) DESC, c.state IS NULL DESC, c.link = u.link DESC, c.submitted_at DESC
			LIMIT u.most
		) c`, w.carrier, keys, links, handsets, most))
}

func distinct[T int32 | string](list []T) []T {
	slices.Sort(list)
	return slices.Compact(list)
}

// rowColumns are the columns of a row c of segments for read. The table has no key: a statement finds a row by its
// address (ctid). It also compares the message, because a purge, and a mark of another carrier's, change rows without
// the carrier's lock.
const rowColumns = `c.ctid::text, c.message_id, c.segment, c.total, c.handset, c.link, c.key, c.submitted_at,
	coalesce(c.state, 0), c.key LIKE '?%'`

// read adds the rows of a queued query to the known ones.
func (w *matching) read(query *pgx.QueuedQuery) {
	var r row
	postgres.EachQueued(query, []any{&r.address, &r.MessageID, &r.Segment, &r.Total, &r.handset, &r.link, &r.key,
		&r.submitted, &r.Status, &r.Unanswered}, func() error {
		if w.known[r.address] == nil {
			one := r
			w.known[r.address] = &one
			w.add(&one)
		}
		r.handset = nil // a new one for the next row
		return nil
	})
}

// write adds the storing of the decisions to a pipeline.
func (w *matching) write(b *pgx.Batch) {
	var taken []int64
	for i := range w.early {
		if w.early[i].taken {
			taken = append(taken, w.early[i].id)
		}
	}
	if len(taken) > 0 {
		b.Queue(`DELETE FROM receipts WHERE id = ANY($1)`, taken)
	}
	w.writeReplaced(b)
	w.writeFresh(b)
	w.writeSettled(b)
	for i, outcome := range w.outcomes {
		if outcome == Unmatched || outcome == Intermediate || outcome == Contradiction {
			w.reports[i].keep(b, w.carrier, w.named[i], outcome)
		}
	}
}

func (w *matching) writeReplaced(b *pgx.Batch) {
	var addresses []string
	var ids []int64
	for address, r := range w.known {
		if r.replaced {
			addresses, ids = append(addresses, address), append(ids, r.MessageID)
		}
	}
	if len(addresses) > 0 {
		b.Queue(`DELETE FROM segments s USING unnest($1::text[], $2::bigint[]) u(address, message_id)
			WHERE s.ctid = u.address::tid AND s.message_id = u.message_id AND s.state IS NULL`, addresses, ids)
	}
}

func (w *matching) writeFresh(b *pgx.Batch) {
	n := len(w.fresh)
	var (
		ids             = make([]int64, 0, n)
		numbers, totals = make([]int16, 0, n), make([]int16, 0, n)
		handsets        = make([]*int32, 0, n)
		links, keys     = make([]string, 0, n), make([]string, 0, n)
		carrierIDs      = make([]*string, 0, n)
		at              = make([]time.Time, 0, n)
		states          = make([]*int16, 0, n)
		words, errs     = make([]*string, 0, n), make([]*string, 0, n)
		reported        = make([]*time.Time, 0, n)
	)
	for _, r := range w.fresh {
		if r.replaced {
			continue
		}
		ids, numbers, totals, handsets = append(ids, r.MessageID), append(numbers, int16(r.Segment)),
			append(totals, int16(r.Total)), append(handsets, r.handset)
		links, keys, at = append(links, r.link), append(keys, r.key), append(at, r.submitted)
		var id, word, code *string
		var state *int16
		var when *time.Time
		if r.carrierID != "" && r.carrierID != r.key {
			id = &r.carrierID
		}
		if r.Status != sms.Pending {
			status := int16(r.Status)
			state = &status
		}
		if state != nil && !r.confirmed {
			word, code, when = &r.Receipt, &r.Error, &r.At
		}
		carrierIDs, states, words, errs, reported = append(carrierIDs, id), append(states, state), append(words, word),
			append(errs, code), append(reported, when)
	}
	if len(ids) == 0 {
		return
	}
	b.Queue(`INSERT INTO segments (message_id, segment, total, handset, carrier, link, key, carrier_id, submitted_at,
		state, receipt, error, receipt_at)
		SELECT unnest($2::bigint[]), unnest($3::smallint[]), unnest($4::smallint[]), unnest($5::int[]), $1,
			unnest($6::text[]), unnest($7::text[]), unnest($8::text[]),
			unnest($9::timestamptz[]), unnest($10::smallint[]), unnest($11::text[]), unnest($12::text[]),
			unnest($13::timestamptz[])`,
		w.carrier, ids, numbers, totals, handsets, links, keys, carrierIDs, at, states, words, errs, reported)
}

// writeSettled gives recorded segments their first final state.
func (w *matching) writeSettled(b *pgx.Batch) {
	n := len(w.settled)
	addresses, words, errs := make([]string, 0, n), make([]string, 0, n), make([]string, 0, n)
	ids, status, at := make([]int64, 0, n), make([]int16, 0, n), make([]time.Time, 0, n)
	for _, r := range w.settled {
		if r.address != "" {
			addresses, ids, status = append(addresses, r.address), append(ids, r.MessageID), append(status, int16(r.Status))
			words, errs, at = append(words, r.Receipt), append(errs, r.Error), append(at, r.At)
		}
	}
	if len(addresses) == 0 {
		return
	}
	b.Queue(`UPDATE segments s SET state = u.status, receipt = u.word, error = u.error, receipt_at = u.at
		FROM (SELECT unnest($1::text[]) AS address, unnest($2::bigint[]) AS message_id, unnest($3::smallint[]) AS status,
		unnest($4::text[]) AS word,
			unnest($5::text[]) AS error, unnest($6::timestamptz[]) AS at) u
		WHERE s.ctid = u.address::tid AND s.message_id = u.message_id AND s.state IS NULL`, addresses, ids, status, words,
		errs, at)
}

// noticesKept is how many receipts that settle nothing are stored for each segment of a message. No carrier sends more.
const noticesKept = 8

// keep adds the storing of a receipt to a pipeline: for a message's segment or, without one, in the inbox.
func (r *reported) keep(b *pgx.Batch, carrier string, of *row, outcome Outcome) {
	var status *sms.Status
	if r.Final {
		status = &r.Status
	}
	key := r.keys[0]
	if key == "" && r.Reference != nil { // it has no other name
		key = referenceKey(*r.Reference)
	}
	var message *int64
	most := 0
	if of != nil {
		message, most = &of.MessageID, noticesKept*of.Total
	}
	b.Queue(`INSERT INTO receipts (carrier, link, key, carrier_id, number, handset, state, status, error, message_id,
		outcome, reference, checked)
		SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $14
		WHERE $10::bigint IS NULL OR (SELECT count(*) FROM (SELECT FROM receipts k WHERE k.message_id = $10
		LIMIT $13) kept) < $13
		ON CONFLICT (key, carrier, state, number, carrier_id) WHERE message_id IS NULL
			DO UPDATE SET received_at = now(), link = excluded.link, status = excluded.status, error = excluded.error,
			reference = excluded.reference, checked = excluded.checked`,
		carrier, r.Link, key, postgres.Text(r.CarrierID), postgres.Text(r.Number), r.handset, postgres.Text(r.State), status,
		postgres.Text(r.Error), message, string(outcome), r.Reference, most, r.Trust != Marked)
}

// doing names a matching's work in errors.
func (w *matching) doing() string {
	return fmt.Sprintf("recording %d segments and %d receipts of carrier %s", len(w.fresh), len(w.reports), w.carrier)
}
