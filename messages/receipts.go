package messages

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/sms"
)

// Receipt is what a carrier reported of one segment.
type Receipt struct {
	Carrier   string
	Link      string
	CarrierID string // as the receipt writes it
	Key       string // Key of the id in the form that the submit_sm_resp had
	Number    string // the handset, as the carrier writes it (source address)
	State     string // DELIVRD, UNDELIV, ...
	Status    sms.Status
	Final     bool // whether State settles anything; Status counts only then
	Error     string
	At        time.Time
}

// Outcome says what became of a receipt. A closed set: it labels a metric.
type Outcome string

// Outcomes.
const (
	Matched       Outcome = "matched"       // it settled its segment
	Unmatched     Outcome = "unmatched"     // no such segment yet: kept in the inbox
	Duplicate     Outcome = "duplicate"     // says again what is known
	Contradiction Outcome = "contradiction" // says otherwise than the first: kept, not applied
	Intermediate  Outcome = "intermediate"  // settles nothing: kept
)

// Receipts records receipts, all of one carrier, in the order given: the first
// final state of a segment wins (decisions.md, Lifecycle). It returns the
// segments settled and an Outcome a receipt. The caller holds LockCarrier.
func (s *Store) Receipts(ctx context.Context, tx pgx.Tx, receipts []Receipt) ([]SegmentState, []Outcome, error) {
	if len(receipts) == 0 {
		return nil, nil, nil
	}
	outcomes := make([]Outcome, len(receipts))
	states, err := s.settleParts(ctx, tx, receipts, outcomes)
	if err != nil {
		return nil, nil, err
	}
	if err := s.keepRest(ctx, tx, receipts, outcomes); err != nil {
		return nil, nil, err
	}
	return states, outcomes, nil
}

// settleParts gives each undecided segment its first final receipt.
func (s *Store) settleParts(ctx context.Context, tx pgx.Tx, receipts []Receipt, outcomes []Outcome) ([]SegmentState, error) {
	var (
		n             []int32
		keys, words   []string
		status        []int16
		errors        []string
		at            []time.Time
		firstOfTheKey = map[string]bool{}
	)
	for i, r := range receipts {
		if !r.Final || r.Key == "" || firstOfTheKey[r.Key] {
			continue
		}
		firstOfTheKey[r.Key] = true
		n, keys, words = append(n, int32(i)), append(keys, r.Key), append(words, clean(r.State))
		status, errors, at = append(status, int16(r.Status)), append(errors, clean(r.Error)), append(at, r.At)
	}
	if len(n) == 0 {
		return nil, nil
	}
	// A carrier that counts its ids anew has used a key before: the youngest
	// undecided segment is meant. One row a key and the carrier's lock make
	// the row's address (ctid) safe to name.
	rows, err := tx.Query(ctx, `
		UPDATE parts p SET state = u.status, receipt = u.word, error = u.error, receipt_at = u.at
		FROM unnest($2::int[], $3::text[], $4::text[], $5::smallint[], $6::text[], $7::timestamptz[]) u(n, key, word, status, error, at)
		CROSS JOIN LATERAL (
			SELECT c.ctid AS address FROM parts c WHERE c.key = u.key AND c.carrier = $1 AND c.state IS NULL
			ORDER BY c.submitted_at DESC LIMIT 1
		) youngest
		WHERE p.ctid = youngest.address
		RETURNING u.n, p.message_id, p.segment, p.total, p.state, p.receipt, p.error, p.receipt_at`,
		receipts[0].Carrier, n, keys, words, status, errors, at)
	if err != nil {
		return nil, fmt.Errorf("settling segments by %d receipts: %w", len(n), err)
	}
	states, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (st SegmentState, err error) {
		var i int32
		err = row.Scan(&i, &st.MessageID, &st.Segment, &st.Total, &st.Status, &st.Receipt, &st.Error, &st.At)
		outcomes[i] = Matched
		return st, err
	})
	if err != nil {
		return nil, fmt.Errorf("settling segments by %d receipts: %w", len(n), err)
	}
	return states, nil
}

// keepRest files the receipts that settled nothing.
func (s *Store) keepRest(ctx context.Context, tx pgx.Tx, receipts []Receipt, outcomes []Outcome) error {
	var n []int32
	var keys, words []string
	var status []*int16
	for i, r := range receipts {
		if outcomes[i] != "" {
			continue
		}
		var st *int16
		if r.Final {
			v := int16(r.Status)
			st = &v
		}
		n, keys, words, status = append(n, int32(i)), append(keys, r.Key), append(words, clean(r.State)), append(status, st)
	}
	if len(n) == 0 {
		return nil
	}
	rows, err := tx.Query(ctx, `
		SELECT u.n, p.message_id, p.state FROM unnest($2::int[], $3::text[]) u(n, key)
		CROSS JOIN LATERAL (
			SELECT message_id, state FROM parts WHERE key = u.key AND carrier = $1 ORDER BY submitted_at DESC LIMIT 1
		) p`, receipts[0].Carrier, n, keys)
	if err != nil {
		return fmt.Errorf("looking up the segments of receipts: %w", err)
	}
	type known struct {
		message int64
		state   *int16
	}
	segments := make(map[int32]known, len(n))
	var i int32
	var k known
	if _, err := pgx.ForEachRow(rows, []any{&i, &k.message, &k.state}, func() error { segments[i] = k; return nil }); err != nil {
		return fmt.Errorf("looking up the segments of receipts: %w", err)
	}

	batch := &pgx.Batch{}
	for j, i := range n {
		r := receipts[i]
		seg, found := segments[i]
		var message *int64
		switch {
		case !found:
			outcomes[i] = Unmatched
		case !r.Final:
			outcomes[i], message = Intermediate, &seg.message
		case seg.state != nil && *seg.state != int16(r.Status):
			outcomes[i], message = Contradiction, &seg.message
		default:
			outcomes[i] = Duplicate // counted, not kept: carriers send them by the dozen
			continue
		}
		batch.Queue(`INSERT INTO receipts (carrier, link, key, carrier_id, number, state, status, error, message_id, outcome)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
			ON CONFLICT (key, carrier, state) WHERE message_id IS NULL DO NOTHING`,
			r.Carrier, r.Link, r.Key, clean(r.CarrierID), clean(r.Number), words[j], status[j], clean(r.Error), message, string(outcomes[i]))
	}
	if batch.Len() == 0 {
		return nil
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("keeping %d receipts: %w", batch.Len(), err)
	}
	return nil
}
