package messages

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/oklog/ulid/v2"

	"intumwa/internal/postgres"
	"intumwa/messages/receipts"
	"intumwa/messages/submission"
	"intumwa/sms"
)

// Final is the verdict on one message.
type Final struct {
	MessageID int64
	Status    sms.Status // Sent or Failed
	At        time.Time
	Reason    string // why it failed

	// Claimant, if not 0, makes the verdict valid only while this dispatcher has the message claimed under Epoch: it is
	// the result of that attempt.
	Claimant int64
	Epoch    int
}

// Settled is a message that left pending in this transaction.
type Settled struct {
	ID          int64
	ULID        ulid.ULID
	CompanyID   int64
	UserID      int64
	Number      sms.Number
	Segments    int
	Test        bool
	Carrier     string
	Status      sms.Status
	Reason      string
	From        time.Time // when it could be sent: its acceptance, or its send_at
	At          time.Time
	Unsubmitted bool   // no carrier accepted a segment of it
	Reference   string // the customer's own name; "": none

	textLeft bool // its company's rule removes the text
}

// Finish takes messages from pending to sent or failed, each exactly once: messages that are final already are not
// returned (rule api 3). It deletes the outbox rows of failed ones, and changes others as rows says. Emit the events and
// refunds in the same transaction. It costs at most one round trip.
func (s *Store) Finish(ctx context.Context, tx pgx.Tx, finals []Final, rows Rows) ([]Settled, error) {
	b := &pgx.Batch{}
	done := finishing{finals: finals}
	done.queue(b)
	rows.queue(b)
	doing := fmt.Sprintf("finishing %d messages, taking %d off the outbox, putting off %d", len(finals), len(rows.Leave), len(rows.Again))
	switch {
	case b.Len() == 0:
		return nil, nil
	case len(finals) == 0: // no caller needs the result
		return nil, postgres.Later(ctx, tx, doing, b)
	}
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	var blank []int64
	for i := range done.settled {
		m := &done.settled[i]
		m.Unsubmitted = m.Status == sms.Failed && !done.submitted[m.ID]
		if m.textLeft {
			blank = append(blank, m.ID)
		}
	}
	if blank != nil {
		return done.settled, blankFinal(ctx, tx, blank)
	}
	return done.settled, nil
}

// finishing brings messages to their final state, in a pipeline.
type finishing struct {
	finals    []Final
	settled   []Settled
	submitted map[int64]bool // failed ones of which a carrier has accepted a segment
}

func (f *finishing) queue(b *pgx.Batch) {
	if len(f.finals) == 0 {
		return
	}
	finals := slices.Clone(f.finals) // in the order of locking; a message's first verdict stays first
	slices.SortStableFunc(finals, func(a, b Final) int { return cmp.Compare(a.MessageID, b.MessageID) })
	var (
		ids       = make([]int64, 0, len(finals))
		status    = make([]int16, 0, len(finals))
		at        = make([]time.Time, 0, len(finals))
		reasons   = make([]*string, 0, len(finals))
		claimants = make([]int64, 0, len(finals))
		epochs    = make([]int32, 0, len(finals))
		failed    []int64
		seen      = make(map[int64]bool, len(finals))
	)
	for _, final := range finals {
		if seen[final.MessageID] {
			if final.Status == sms.Failed { // its row is deleted, whatever the first verdict was
				failed = append(failed, final.MessageID)
			}
			continue
		}
		seen[final.MessageID] = true
		var reason *string
		if final.Status == sms.Failed {
			r := clean(final.Reason)
			reason, failed = &r, append(failed, final.MessageID)
		}
		ids, status = append(ids, final.MessageID), append(status, int16(final.Status))
		at, reasons, claimants = append(at, final.At), append(reasons, reason), append(claimants, final.Claimant)
		epochs = append(epochs, int32(final.Epoch))
	}
	b.Queue(`
		UPDATE messages m SET status = u.status, failure_reason = u.reason,
			sent_at = CASE WHEN u.status = 1 THEN u.at END, failed_at = CASE WHEN u.status = 2 THEN u.at END, body = `+bodyThen+`
		FROM (SELECT unnest($1::bigint[]) AS id, unnest($2::smallint[]) AS status, unnest($3::timestamptz[]) AS at, unnest($4::text[]) AS reason,
			unnest($5::bigint[]) AS claimant, unnest($6::int[]) AS epoch) u
		WHERE m.id = u.id AND m.status = 0
			AND (u.claimant = 0 OR EXISTS (SELECT FROM outbox o WHERE o.message_id = u.id AND o.claimed_by = u.claimant AND o.epoch = u.epoch))
		RETURNING m.id, m.ulid, m.company_id, m.user_id, m.phone_number, m.segments, m.test, m.carrier, m.status,
			coalesce(m.failure_reason, ''), coalesce(m.send_at, m.created_at), u.at, coalesce(m.client_reference, ''), m.body <> '' AND `+untilFinal, ids, status, at, reasons, claimants, epochs).
		Query(func(rows pgx.Rows) (err error) {
			f.settled, err = pgx.AppendRows(make([]Settled, 0, len(ids)), rows, func(row pgx.CollectableRow) (st Settled, err error) {
				var id pgtype.UUID
				err = row.Scan(&st.ID, &id, &st.CompanyID, &st.UserID, &st.Number, &st.Segments, &st.Test, &st.Carrier, &st.Status,
					&st.Reason, &st.From, &st.At, &st.Reference, &st.textLeft)
				st.ULID = id.Bytes
				return st, err
			})
			return err
		})
	if len(failed) == 0 {
		return
	}
	b.Queue(`DELETE FROM outbox o USING messages m WHERE o.message_id = ANY($1) AND m.id = o.message_id AND m.status <> 0`, failed)
	f.submitted = receipts.QueueAccepted(b, failed)
}

// Verdicts returns the verdicts on the messages of segments that just became final (submission.Verdict), without
// messages that still wait for a segment.
func (s *Store) Verdicts(ctx context.Context, tx pgx.Tx, carrier string, states []receipts.SegmentState) ([]Final, error) {
	var finals []Final
	var open []int64 // messages whose other segments must be read
	totals := map[int64]int{}
	for _, st := range states {
		if st.Total > 1 || (st.Unanswered && st.Status == sms.Failed) {
			if totals[st.MessageID] == 0 {
				open = append(open, st.MessageID)
			}
			totals[st.MessageID] = st.Total
			continue
		}
		finals = appendVerdict(finals, st.MessageID, st.Total, []submission.Copy{st.Copy()})
	}
	if len(open) == 0 {
		return finals, nil
	}
	copies, err := receipts.Copies(ctx, tx, carrier, open)
	if err != nil {
		return nil, err
	}
	for _, id := range open {
		finals = appendVerdict(finals, id, totals[id], copies[id])
	}
	return finals, nil
}

func appendVerdict(finals []Final, id int64, segments int, copies []submission.Copy) []Final {
	status, at, reason := submission.Verdict(segments, copies)
	if status == sms.Pending {
		return finals
	}
	return append(finals, Final{MessageID: id, Status: status, At: at, Reason: reason})
}

// Expired takes those of ids off the outbox that are unclaimed and past their validity, and returns their verdicts.
func (s *Store) Expired(ctx context.Context, tx pgx.Tx, ids []int64) ([]Final, error) {
	return postgres.All(ctx, tx, "taking expired messages", func(row pgx.CollectableRow) (Final, error) {
		f := Final{Status: sms.Failed, Reason: submission.ReasonExpired}
		err := row.Scan(&f.MessageID, &f.At)
		return f, err
	}, `
		WITH over AS (
			SELECT o.message_id FROM outbox o JOIN messages m ON m.id = o.message_id
			WHERE o.message_id = ANY($1) AND o.expires_at <= now() AND o.claimed_by IS NULL
			ORDER BY o.message_id FOR UPDATE SKIP LOCKED -- both rows: a verdict takes them the other way round
		)
		DELETE FROM outbox o USING over WHERE o.message_id = over.message_id RETURNING o.message_id, now()`, ids)
}
