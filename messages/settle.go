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
	CostCenter  string // the customer's own label; "": none
	Channel     Channel

	Sender      string
	CreatedAt   time.Time
	SMPPAccount int64 // of a message submitted over SMPP: the API key's id; else 0
	SMPPBind    int64
	Registered  uint8  // receipts that it asked for (Origin)
	Echo        []byte // that they repeat (Origin)

	textLeft bool // its company's rule removes the text
	coded    bool // it had a one-time code
}

// Finish takes messages from pending to sent or failed, each exactly once: messages that are final already are not
// returned (rule api 3). It deletes the outbox rows of failed ones, and changes others as rows says. Emit the events
// and refunds in the same transaction. It costs at most one round trip.
func (s *Store) Finish(ctx context.Context, tx pgx.Tx, finals []Final, rows Rows) ([]Settled, error) {
	b := &pgx.Batch{}
	var settled []Settled
	submitted := queueVerdicts(b, finals, &settled)
	rows.Queue(b)
	doing := fmt.Sprintf("finishing %d messages, taking %d off the outbox, putting off %d", len(finals), len(rows.Leave),
		len(rows.Again))
	switch {
	case b.Len() == 0:
		return nil, nil
	case len(finals) == 0: // no caller needs the result
		return nil, postgres.Pipeline(ctx, tx, doing, b)
	}
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	var blank, coded []int64
	for i := range settled {
		m := &settled[i]
		m.Unsubmitted = m.Status == sms.Failed && !submitted[m.ID]
		if m.textLeft {
			blank = append(blank, m.ID)
		}
		if m.coded {
			coded = append(coded, m.ID)
		}
	}
	if blank != nil {
		if err := blankFinal(ctx, tx, blank); err != nil {
			return settled, err
		}
	}
	if coded != nil {
		return settled, forgetCodes(ctx, tx, coded)
	}
	return settled, nil
}

// queueVerdicts adds verdicts to a pipeline. When its results are read, settled has the messages that left pending, and
// submitted the failed ones of which a carrier has accepted a segment.
func queueVerdicts(b *pgx.Batch, finals []Final, settled *[]Settled) (submitted map[int64]bool) {
	if len(finals) == 0 {
		return nil
	}
	n := len(finals)
	finals = slices.Clone(finals) // in the order of locking; a message's first verdict stays first
	slices.SortStableFunc(finals, func(a, b Final) int { return cmp.Compare(a.MessageID, b.MessageID) })
	var (
		ids, claimants = make([]int64, 0, n), make([]int64, 0, n)
		status, epochs = make([]int16, 0, n), make([]int32, 0, n)
		at             = make([]time.Time, 0, n)
		reasons        = make([]*string, 0, n)
		failed         []int64 // their rows are deleted, whatever the first verdict was
	)
	for i, final := range finals {
		var reason *string
		if final.Status == sms.Failed {
			r := postgres.Text(final.Reason)
			reason, failed = &r, append(failed, final.MessageID)
		}
		if i > 0 && finals[i-1].MessageID == final.MessageID {
			continue
		}
		ids, status, at = append(ids, final.MessageID), append(status, int16(final.Status)), append(at, final.At)
		reasons, claimants, epochs = append(reasons, reason), append(claimants, final.Claimant),
			append(epochs, int32(final.Epoch))
	}
	b.Queue(`
		UPDATE messages m SET status = u.status, failure_reason = u.reason,
			sent_at = CASE WHEN u.status = 1 THEN u.at END, failed_at = CASE WHEN u.status = 2 THEN u.at END, body = `+bodyThen+`
		FROM (SELECT unnest($1::bigint[]) AS id, unnest($2::smallint[]) AS status, unnest($3::timestamptz[]) AS at,
		unnest($4::text[]) AS reason,
			unnest($5::bigint[]) AS claimant, unnest($6::int[]) AS epoch) u
		WHERE m.id = u.id AND m.status = 0
			AND (u.claimant = 0 OR EXISTS (SELECT FROM outbox o WHERE o.message_id = u.id AND o.claimed_by = u.claimant
			AND o.epoch = u.epoch))
		RETURNING m.id, m.ulid, m.company_id, m.user_id, m.phone_number, m.segments, m.test, m.carrier, m.status,
			coalesce(m.failure_reason, ''), coalesce(m.send_at, m.created_at), u.at, coalesce(m.client_reference, ''),
			coalesce(m.cost_center, ''), m.body <> '' AND `+untilFinal+`, m.secret IS NOT NULL,
			m.sender, m.created_at, coalesce(m.smpp_key, 0), coalesce(m.smpp_bind, 0), coalesce(m.registered, 0::smallint),
			m.echo, coalesce(m.channel, 0::smallint)`, ids, status, at, reasons, claimants, epochs).
		Query(func(rows pgx.Rows) error {
			var st Settled // of each row: it and its targets are allocated once
			var id pgtype.UUID
			*settled = make([]Settled, 0, len(ids))
			_, err := pgx.ForEachRow(rows, []any{&st.ID, &id, &st.CompanyID, &st.UserID, &st.Number, &st.Segments, &st.Test,
				&st.Carrier, &st.Status, &st.Reason, &st.From, &st.At, &st.Reference, &st.CostCenter, &st.textLeft, &st.coded,
				&st.Sender, &st.CreatedAt, &st.SMPPAccount, &st.SMPPBind, &st.Registered, &st.Echo, &st.Channel}, func() error {
				st.ULID = id.Bytes
				*settled = append(*settled, st)
				return nil
			})
			return err
		})
	if len(failed) > 0 {
		b.Queue(`WITH `+KeptRefusals+` DELETE FROM outbox o USING messages m WHERE o.message_id = ANY($1)
			AND m.id = o.message_id AND m.status <> 0`, failed)
		submitted = receipts.QueueAccepted(b, failed)
	}
	return submitted
}

// RuledBodies is the kind, in unpurged, of messages whose text goes by their company's rule once they will not be sent
// again.
const RuledBodies = "company bodies"

// untilFinal is a condition on messages m: the text is removed with the verdict. bodyThen is the text that the verdict
// leaves: all of it while the message has a row in the outbox.
const (
	untilFinal = `m.company_id IN (SELECT r.company_id FROM body_rules r WHERE r.keep_seconds = 0)`
	bodyThen   = `CASE WHEN ` + untilFinal + ` AND NOT EXISTS (SELECT FROM outbox o WHERE o.message_id = m.id) THEN ''
		ELSE m.body END`
)

// blankFinal removes the texts of messages that this transaction has made final and that had a row in the outbox. One
// that still has it (its receipt came before the answer) may be sent again; the walk removes its text later.
func blankFinal(ctx context.Context, tx pgx.Tx, ids []int64) error {
	slices.Sort(ids)
	b := &pgx.Batch{}
	b.Queue(`UPDATE messages m SET body = '', secret = NULL WHERE m.id = ANY($1) AND m.body <> '' AND NOT EXISTS (SELECT
		FROM outbox o WHERE o.message_id = m.id)`, ids)
	b.Queue(`INSERT INTO unpurged (kind, message_id) SELECT $2, id FROM unnest($1::bigint[]) id
		WHERE EXISTS (SELECT FROM outbox o WHERE o.message_id = id) ORDER BY id ON CONFLICT DO NOTHING`, ids, RuledBodies)
	return postgres.Pipeline(ctx, tx, fmt.Sprintf("removing the texts of %d messages", len(ids)), b)
}

// forgetCodes deletes the secrets of one-time codes of messages that this transaction has made final. One with a row in
// the outbox may be sent again; its secret goes with its text.
func forgetCodes(ctx context.Context, tx pgx.Tx, ids []int64) error {
	slices.Sort(ids)
	b := &pgx.Batch{}
	b.Queue(`UPDATE messages m SET secret = NULL WHERE m.id = ANY($1) AND NOT EXISTS (SELECT FROM outbox o
		WHERE o.message_id = m.id)`, ids)
	return postgres.Pipeline(ctx, tx, fmt.Sprintf("forgetting the codes of %d messages", len(ids)), b)
}

// FailedFor returns a scan of messages that have failed for a reason, and when.
func FailedFor(reason string) pgx.RowToFunc[Final] {
	return func(row pgx.CollectableRow) (Final, error) {
		f := Final{Status: sms.Failed, Reason: reason}
		err := row.Scan(&f.MessageID, &f.At)
		return f, err
	}
}

// Expired takes those of ids off the outbox that are unclaimed and past their validity, and returns their verdicts.
func (s *Store) Expired(ctx context.Context, tx pgx.Tx, ids []int64) ([]Final, error) {
	return postgres.All(ctx, tx, "taking expired messages", FailedFor(submission.ReasonExpired), `
		WITH over AS (
			SELECT o.message_id, o.refused, o.refused_at FROM outbox o JOIN messages m ON m.id = o.message_id
			WHERE o.message_id = ANY($1) AND o.expires_at <= now() AND o.claimed_by IS NULL
			ORDER BY o.message_id FOR UPDATE SKIP LOCKED -- both rows: a verdict takes them the other way round
		), kept AS (
			UPDATE messages m SET refused = over.refused, refused_at = over.refused_at FROM over WHERE m.id = over.message_id
				AND over.refused IS NOT NULL
		)
		DELETE FROM outbox o USING over WHERE o.message_id = over.message_id RETURNING o.message_id, now()`, ids)
}
