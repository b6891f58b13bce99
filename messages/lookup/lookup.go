// Package lookup finds and lists messages. It writes nothing.
package lookup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/oklog/ulid/v2"

	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/messages/numberfilter"
	"intumwa/messages/receipts"
	"intumwa/sms"
)

// Store has the look-ups of one database.
type Store struct {
	pool    *pgxpool.Pool
	filters *numberfilter.Store
}

// New returns the store of pool's database.
func New(pool *pgxpool.Pool) *Store { return &Store{pool, numberfilter.New(pool)} }

// Record is a message's current state.
type Record struct {
	ID            int64 // message_id of the webhooks
	ULID          ulid.ULID
	BatchULID     *ulid.ULID // nil: a single send
	CompanyID     int64
	Number        sms.Number
	Sender        string
	Body          string
	Encoding      sms.Encoding
	Segments      int
	Test          bool
	Carrier       string
	Status        sms.Status
	FailureReason string
	CreatedAt     time.Time
	SentAt        *time.Time
	FailedAt      *time.Time
	Channel       messages.Channel
	Reference     string     // the customer's own name; "": none
	CostCenter    string     // the customer's own label; "": none
	SendAt        *time.Time // when it is, or was, to be sent; nil: at once
	ExpireAt      *time.Time // when it expires, or expired; nil: as configured
}

const recordColumns = `m.id, m.ulid, b.ulid, m.company_id, m.phone_number, m.sender, m.body, m.encoding, m.segments,
	m.test,
	m.carrier, m.status, coalesce(m.failure_reason, ''), m.created_at, m.sent_at, m.failed_at,
	coalesce(m.channel, 0::smallint), coalesce(m.client_reference, ''), coalesce(m.cost_center, ''), m.send_at,
	m.expire_at`

// recordsOf selects the records of messages m, a table's or a subquery's.
func recordsOf(messages string) string {
	return `SELECT ` + recordColumns + ` FROM ` + messages + ` m LEFT JOIN batches b ON b.id = m.batch_id`
}

func scanRecord(row pgx.CollectableRow) (r Record, err error) {
	var id, batch pgtype.UUID
	err = row.Scan(&r.ID, &id, &batch, &r.CompanyID, &r.Number, &r.Sender, &r.Body, &r.Encoding, &r.Segments, &r.Test,
		&r.Carrier, &r.Status, &r.FailureReason, &r.CreatedAt, &r.SentAt, &r.FailedAt,
		&r.Channel, &r.Reference, &r.CostCenter, &r.SendAt, &r.ExpireAt)
	r.ULID = id.Bytes
	if batch.Valid {
		b := ulid.ULID(batch.Bytes)
		r.BatchULID = &b
	}
	return r, err
}

// ByULID returns a company's message. The gateway's own messages are ErrNotFound too.
func (s *Store) ByULID(ctx context.Context, company sms.CompanyID, id ulid.ULID) (Record, error) {
	if !company.Valid() {
		return Record{}, messages.ErrNotFound
	}
	return s.one(ctx, id, `m.ulid = $1 AND m.company_id = $2`, [16]byte(id), int64(company))
}

// OperatorsByULID returns a message of any company: for operators only.
func (s *Store) OperatorsByULID(ctx context.Context, id ulid.ULID) (Record, error) {
	return s.one(ctx, id, `m.ulid = $1`, [16]byte(id))
}

// OperatorsByID returns a message of any company by its number in webhooks: for operators only.
func (s *Store) OperatorsByID(ctx context.Context, id int64) (Record, error) {
	return s.one(ctx, id, `m.id = $1`, id)
}

// ByID returns a company's message by its number in webhooks. The gateway's own messages are ErrNotFound too.
func (s *Store) ByID(ctx context.Context, company sms.CompanyID, id int64) (Record, error) {
	if !company.Valid() {
		return Record{}, messages.ErrNotFound
	}
	return s.one(ctx, id, `m.id = $1 AND m.company_id = $2`, id, int64(company))
}

// ByCarrierID returns a company's messages with a segment to which a carrier gave that id, the newest first.
func (s *Store) ByCarrierID(ctx context.Context, company sms.CompanyID, carrierID string) ([]Record, error) {
	if !company.Valid() {
		return nil, nil
	}
	return s.byCarrierID(ctx, carrierID, `m.company_id = $3`, int64(company))
}

// OperatorsByCarrierID is [Store.ByCarrierID] for all companies: for operators only.
func (s *Store) OperatorsByCarrierID(ctx context.Context, carrierID string) ([]Record, error) {
	return s.byCarrierID(ctx, carrierID, `$3`, true)
}

// carriersMost is how many messages a look-up by a carrier's id returns.
const carriersMost = 50

func (s *Store) byCarrierID(ctx context.Context, carrierID, where string, arg any) ([]Record, error) {
	ids, err := receipts.Named(ctx, s.pool, carrierID)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	return postgres.All(ctx, s.pool, "reading the messages of a carrier's id", scanRecord,
		recordsOf(`messages`)+` WHERE m.id = ANY($1) AND `+where+` ORDER BY m.id DESC LIMIT $2`, ids, carriersMost, arg)
}

// codesScanned is how many of the gateway's own messages LastCode reads: some minutes' at least.
const codesScanned = 1000

// LastCode returns the status of the latest one-time code to a user's number; ErrNotFound when it is not among the
// latest messages of the gateway.
func (s *Store) LastCode(ctx context.Context, userID int64, number sms.Number) (status sms.Status, err error) {
	err = s.pool.QueryRow(ctx, `SELECT status FROM (
			SELECT id, status, user_id, phone_number FROM messages m WHERE company_id <= 0 AND (company_id, id) > (0, `+
		messages.PurgedFloor+`)`+messages.NewestFirst+` LIMIT $3
		) m WHERE user_id = $1 AND phone_number = $2 ORDER BY id DESC LIMIT 1`, userID, string(number), codesScanned).Scan(
		&status)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, messages.ErrNotFound
	}
	if err != nil {
		return 0, fmt.Errorf("looking up the latest code of user %d: %w", userID, err)
	}
	return status, nil
}

// one returns the only message that matches the condition; errors name it by name.
func (s *Store) one(ctx context.Context, name any, condition string, args ...any) (Record, error) {
	found, err := postgres.All(ctx, s.pool, fmt.Sprintf("looking up message %v", name), scanRecord, recordsOf(`messages`)+
		` WHERE `+condition, args...)
	switch {
	case err != nil:
		return Record{}, err
	case len(found) == 0:
		return Record{}, messages.ErrNotFound
	}
	return found[0], nil
}

// ULIDs returns the ULIDs of messages by id, for a log. Unknown ids are left out.
func (s *Store) ULIDs(ctx context.Context, ids []int64) (map[int64]ulid.ULID, error) {
	names := make(map[int64]ulid.ULID, len(ids))
	var id int64
	var name pgtype.UUID
	return names, postgres.Each(ctx, s.pool, fmt.Sprintf("looking up the ULIDs of %d messages", len(ids)),
		[]any{&id, &name},
		func() error { names[id] = name.Bytes; return nil }, `SELECT id, ulid FROM messages WHERE id = ANY($1)`, ids)
}

// End is what became of a message.
type End struct {
	Carrier string // that has or had it
	Failed  bool   // or it waits, and no carrier can have it
}

// EndsOf returns what became of messages, by ULID, without those that do not exist.
func EndsOf(ctx context.Context, tx pgx.Tx, ulids []ulid.ULID) (map[ulid.ULID]End, error) {
	args := make([][16]byte, len(ulids))
	for i, id := range ulids {
		args[i] = id
	}
	ends := map[ulid.ULID]End{}
	var name pgtype.UUID
	var end End
	return ends, postgres.Each(ctx, tx, "looking up the ends of messages", []any{&name, &end.Carrier, &end.Failed},
		func() error { ends[name.Bytes] = end; return nil },
		`SELECT m.ulid, m.carrier, m.status = 2 OR m.status = 0 AND EXISTS (SELECT FROM outbox o WHERE o.message_id = m.id
			AND NOT (o.claimed_by IS NOT NULL AND o.begun))
			AND NOT `+receipts.MayHave("m.id")+` FROM messages m WHERE m.ulid = ANY($1)`, args)
}

// Purged reports whether a message with this ULID would be deleted by now. Only its time is looked at: there need not
// have been one.
func (s *Store) Purged(ctx context.Context, id ulid.ULID) (purged bool, err error) {
	if err := s.pool.QueryRow(ctx, `SELECT `+messages.PurgedFloor+
		` > 0 AND $1 < coalesce((SELECT created_at FROM messages WHERE id > `+messages.PurgedFloor+
		` ORDER BY id LIMIT 1), now())`,
		ulid.Time(id.Time())).Scan(&purged); err != nil {
		return false, fmt.Errorf("reading since when messages are kept: %w", err)
	}
	return purged, nil
}
