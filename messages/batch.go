package messages

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/oklog/ulid/v2"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// insertBatches records the messages' batches in one statement and returns their keys. A further part enlarges its
// batch if it awaits exactly these recipients. Otherwise the part was added before, or the batch was cancelled: the
// number of recipients becomes NULL, and PostgreSQL refuses the messages.
func insertBatches(ctx context.Context, tx pgx.Tx, messages []*Message) (map[ulid.ULID]int64, error) {
	var (
		last               *Batch
		ulids              []pgtype.UUID
		companies, users   []int64
		names              []string
		kinds, senders     []string
		recipients, counts []int32
		awaited            []int32
		parts              []bool
		sends, expires     []*time.Time
	)
	for _, m := range messages {
		b := m.Batch
		if b == nil || b == last { // a batch's messages are consecutive
			continue
		}
		last = b
		ulids = append(ulids, uuid(b.ULID))
		companies, users = append(companies, b.CompanyID), append(users, b.UserID)
		kinds, senders = append(kinds, b.Kind), append(senders, b.Sender)
		names = append(names, b.Name)
		recipients, counts = append(recipients, int32(b.Recipients)), append(counts, int32(b.Segments))
		awaited, parts = append(awaited, int32(b.Awaited)), append(parts, b.Part)
		sends, expires = append(sends, postgres.OrNull(b.SendAt)), append(expires, postgres.OrNull(b.ExpireAt))
	}
	if ulids == nil {
		return nil, nil
	}
	ids := make(map[ulid.ULID]int64, len(ulids))
	var id int64
	var got pgtype.UUID
	if err := postgres.Each(ctx, tx, fmt.Sprintf("inserting %d batches", len(ulids)), []any{&id, &got},
		func() error { ids[got.Bytes] = id; return nil }, `
		INSERT INTO batches AS b (ulid, company_id, user_id, kind, sender, recipients_count, item_count, send_at, expire_at,
			name, awaited)
		SELECT u.id, company, user_id, kind, sender, CASE WHEN NOT part OR EXISTS (SELECT FROM batches e WHERE e.ulid = u.id)
			THEN recipients END,
			items, send, expire, name, awaited
		FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::int[], $7::int[], $8::timestamptz[],
		$9::timestamptz[], $10::text[],
			$11::int[], $12::boolean[]) u(id, company, user_id, kind, sender, recipients, items, send, expire, name, awaited,
			part) ORDER BY u.id
		ON CONFLICT (ulid) DO UPDATE SET awaited = excluded.awaited, item_count = b.item_count + excluded.item_count,
			recipients_count = CASE WHEN b.awaited = excluded.awaited + excluded.recipients_count
			THEN b.recipients_count + excluded.recipients_count END
		RETURNING id, ulid`, ulids, companies, users, kinds, senders, recipients, counts, sends, expires, names, awaited,
		parts); err != nil {
		return nil, err
	}
	return ids, nil
}

// BatchRecord is a batch with the state of its messages.
type BatchRecord struct {
	Batch
	Key       int64 // its id, for Queued
	CreatedAt time.Time
	LeftOut   map[string]int     // recipients that later parts left out, by the reason of the refusal
	Counts    map[sms.Status]int // messages; statuses without a message are absent
	Cancelled int                // of the failed ones
}

// All returns the batch's recipients, with those of later parts and those that were left out.
func (r BatchRecord) All() (all int) {
	all = r.Recipients + r.Awaited
	for _, n := range r.LeftOut {
		all += n
	}
	return all
}

// States of a batch.
const (
	BatchScheduled = "scheduled" // its time has not come
	BatchSending   = "sending"   // a message is pending, or a part is to come
	BatchFinished  = "finished"
	BatchCancelled = "cancelled" // all its messages were cancelled
)

// State returns the batch's progress.
func (r BatchRecord) State() string {
	all := r.Counts[sms.Pending] + r.Counts[sms.Sent] + r.Counts[sms.Failed]
	open := r.Counts[sms.Pending] > 0 || r.Awaited > 0
	switch {
	case open && r.SendAt.After(postgres.Now()):
		return BatchScheduled
	case open:
		return BatchSending
	case all > 0 && r.Cancelled == all:
		return BatchCancelled
	}
	return BatchFinished
}

// BatchByULID returns a company's batch, or ErrNotFound.
func (s *Store) BatchByULID(ctx context.Context, company sms.CompanyID, id ulid.ULID) (BatchRecord, error) {
	r, err := s.Uncounted(ctx, company, id)
	if err != nil {
		return BatchRecord{}, err
	}
	found := []BatchRecord{r}
	err = s.countBatches(ctx, found)
	return found[0], err
}

// Uncounted is [Store.BatchByULID] without Counts and Cancelled.
func (s *Store) Uncounted(ctx context.Context, company sms.CompanyID, id ulid.ULID) (BatchRecord, error) {
	found, err := s.batches(ctx, `company_id = $1 AND ulid = $2`, int64(company), uuid(id))
	if err != nil || len(found) == 0 {
		return BatchRecord{}, cmp.Or(err, ErrNotFound)
	}
	return found[0], nil
}

// Batches returns up to limit of a company's batches, the newest first.
func (s *Store) Batches(ctx context.Context, company sms.CompanyID, limit int) ([]BatchRecord, error) {
	found, err := s.batches(ctx, `company_id = $1 ORDER BY id DESC LIMIT $2`, int64(company), limit)
	if err == nil {
		err = s.countBatches(ctx, found)
	}
	return found, err
}

// batches returns the batches that match a condition.
func (s *Store) batches(ctx context.Context, condition string, args ...any) ([]BatchRecord, error) {
	return postgres.All(ctx, s.pool, "looking up batches", func(row pgx.CollectableRow) (r BatchRecord, err error) {
		var id pgtype.UUID
		var send, expire *time.Time
		err = row.Scan(&r.Key, &id, &r.CompanyID, &r.UserID, &r.Kind, &r.Name, &r.Sender, &r.Recipients, &r.Segments,
			&r.Awaited, &r.LeftOut, &r.CreatedAt, &send, &expire)
		r.ULID, r.SendAt, r.ExpireAt, r.Counts = id.Bytes, orZero(send), orZero(expire), map[sms.Status]int{}
		return r, err
	}, `SELECT id, ulid, company_id, user_id, kind, name, sender, recipients_count, item_count, awaited, left_out,
		created_at, send_at, expire_at
		FROM batches WHERE `+condition, args...)
}

// LeaveOut counts recipients of later parts, by reason, as left out of a batch that still awaits r.Awaited: it awaits
// fewer. The error is ErrNotFound if it awaits another number by now.
func (r *BatchRecord) LeaveOut(ctx context.Context, tx pgx.Tx, reasons map[string]int) error {
	out, awaited := maps.Clone(r.LeftOut), r.Awaited
	if out == nil {
		out = map[string]int{}
	}
	for reason, n := range reasons {
		out[reason] += n
		awaited -= n
	}
	tag, err := tx.Exec(ctx, `UPDATE batches SET awaited = $3, left_out = $4 WHERE id = $1 AND awaited = $2`, r.Key,
		r.Awaited, awaited, out)
	switch {
	case err != nil:
		return fmt.Errorf("leaving out recipients of a batch: %w", err)
	case tag.RowsAffected() == 0:
		return ErrNotFound
	}
	r.LeftOut, r.Awaited = out, awaited
	return nil
}

// countBatches counts the batches' messages by status.
func (s *Store) countBatches(ctx context.Context, found []BatchRecord) error {
	if len(found) == 0 {
		return nil
	}
	keys, at := []int64{}, map[int64]int{}
	for i := range found {
		keys, at[found[i].Key] = append(keys, found[i].Key), i
	}
	var key int64
	var status sms.Status
	var n, cancelled int
	return postgres.Each(ctx, s.pool, "counting batches", []any{&key, &status, &n, &cancelled}, func() error {
		r := &found[at[key]]
		r.Counts[status] = n
		r.Cancelled += cancelled
		return nil
	}, `SELECT batch_id, status, count(*), count(*) FILTER (WHERE failure_reason = $2) FROM messages
		WHERE batch_id = ANY($1) GROUP BY 1, 2`,
		keys, ReasonCancelled)
}

// orZero returns the zero time for NULL.
func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}
