package messages

import (
	"cmp"
	"context"
	"errors"
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
// returned (rule api 3). It ends the attempts of failed ones, and the others as ends requires. Emit the events and
// refunds in the same transaction. It costs at most one round trip.
func (s *Store) Finish(ctx context.Context, tx pgx.Tx, finals []Final, ends Ends) ([]Settled, error) {
	b := &pgx.Batch{}
	done := finishing{finals: finals}
	done.queue(b)
	ends.queue(b)
	doing := fmt.Sprintf("finishing %d messages, ending %d attempts, putting off %d", len(finals), len(ends.Carried), len(ends.Retries))
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
	f.submitted = map[int64]bool{}
	receipts.QueueAccepted(b, failed, func(id int64) { f.submitted[id] = true })
}

// Verdicts returns the verdicts on the messages of segments that just became final (submission.Verdict), without
// messages that still wait for a segment.
func (s *Store) Verdicts(ctx context.Context, tx pgx.Tx, states []receipts.SegmentState) ([]Final, error) {
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
	copies, err := receipts.Copies(ctx, tx, open)
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
			SELECT message_id FROM outbox WHERE message_id = ANY($1) AND expires_at <= now() AND claimed_by IS NULL
			ORDER BY message_id FOR UPDATE SKIP LOCKED
		)
		DELETE FROM outbox o USING over WHERE o.message_id = over.message_id RETURNING o.message_id, now()`, ids)
}

// Overdue walks on over the messages of one carrier that were accepted longer than age ago and returns those still
// pending although a carrier has them: no receipt is expected any more. It reads up to limit messages a call; done
// means that it has come as far as possible: to a younger message, or one still to be delivered (not one that stayed in
// flight until after it expired). It visits each message once, so its cost does not grow with the history.
func (s *Store) Overdue(ctx context.Context, tx pgx.Tx, carrier string, age time.Duration, limit int) (ids []int64, done bool, err error) {
	return s.overdue(ctx, tx, "overdue "+carrier, `carrier = ANY($2)`, []string{carrier}, age, limit)
}

// OverdueElsewhere is Overdue for the messages of all carriers but these: of those not configured any more.
func (s *Store) OverdueElsewhere(ctx context.Context, tx pgx.Tx, carriers []string, age time.Duration, limit int) (ids []int64, done bool, err error) {
	return s.overdue(ctx, tx, overdueElsewhere, `carrier <> ALL($2)`, carriers, age, limit)
}

const overdueElsewhere = "overdue elsewhere"

func (s *Store) overdue(ctx context.Context, tx pgx.Tx, name, whose string, carriers []string, age time.Duration, limit int) (ids []int64, done bool, err error) {
	// A new carrier begins at the position of the sweep over all others: it has no earlier messages.
	if _, err := tx.Exec(ctx, `INSERT INTO sweeps (name, up_to)
		VALUES ($1, coalesce((SELECT up_to FROM sweeps WHERE name = $2), 0)) ON CONFLICT DO NOTHING`, name, overdueElsewhere); err != nil {
		return nil, false, fmt.Errorf("opening the sweep %q: %w", name, err)
	}
	var from int64
	if err := tx.QueryRow(ctx, `SELECT up_to FROM sweeps WHERE name = $1 FOR UPDATE`, name).Scan(&from); err != nil {
		return nil, false, fmt.Errorf("reading the sweep %q: %w", name, err)
	}
	var old bool // look at the next one first: most rounds end here
	err = tx.QueryRow(ctx, `SELECT created_at < now() - $2::interval FROM messages WHERE id > $1 ORDER BY id LIMIT 1`, from, age).Scan(&old)
	if errors.Is(err, pgx.ErrNoRows) || (err == nil && !old) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("sweeping messages: %w", err)
	}
	whose += ` AND send_at IS NULL AND expire_at IS NULL` // those are OverdueTimed's
	upTo, seen := from, 0
	var id int64
	var pending, waits bool
	if err := postgres.Each(ctx, tx, "sweeping messages", []any{&id, &pending, &old, &waits}, func() error {
		if done || !old || waits {
			done = true
			return nil
		}
		upTo, seen = id, seen+1
		if pending {
			ids = append(ids, id)
		}
		return nil
	}, `SELECT id, status = 0 AND `+whose+`, created_at < now() - $3::interval,
			status = 0 AND `+whose+` AND EXISTS (SELECT FROM outbox o WHERE o.message_id = m.id AND (o.claimed_by IS NULL OR o.expires_at > now()))
		FROM messages m WHERE id > $1 ORDER BY id LIMIT $4`, from, carriers, age, limit); err != nil {
		return nil, false, err
	}
	if upTo > from {
		if _, err := tx.Exec(ctx, `UPDATE sweeps SET up_to = $2 WHERE name = $1`, name, upTo); err != nil {
			return nil, false, fmt.Errorf("moving the sweep %q: %w", name, err)
		}
	}
	return ids, done || seen < limit, nil
}

// forgetLimit is the most rows that one call deletes.
const forgetLimit = 20_000

// ForgetUnanswered deletes the rows of unanswered messages that cannot be put back any more, whatever their validity was. It
// returns how many, up to 20,000 a call.
func (s *Store) ForgetUnanswered(ctx context.Context, validity time.Duration) (int64, error) {
	tag, err := s.pool.Exec(ctx, `DELETE FROM held WHERE message_id IN (
		SELECT message_id FROM held WHERE expires_at < now() - $1::interval LIMIT $2)`, validity, forgetLimit)
	if err != nil {
		return 0, fmt.Errorf("forgetting unanswered messages: %w", err)
	}
	return tag.RowsAffected(), nil
}
