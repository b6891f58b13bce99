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
	"intumwa/sms"
)

// insertBatches records the messages' batches in one round trip and returns their keys. A further part enlarges its
// batch if it awaits exactly these recipients. Otherwise the part was added before, or the batch was cancelled: the
// number of recipients becomes NULL, and PostgreSQL refuses the messages.
func insertBatches(ctx context.Context, tx pgx.Tx, messages []*Message) (map[ulid.ULID]int64, error) {
	var list []*Batch
	for _, m := range messages {
		if n := len(list); m.Batch != nil && (n == 0 || list[n-1] != m.Batch) { // a batch's messages are consecutive
			list = append(list, m.Batch)
		}
	}
	if list == nil {
		return nil, nil
	}
	slices.SortFunc(list, func(a, b *Batch) int { return a.ULID.Compare(b.ULID) }) // the order of locking
	ids := make(map[ulid.ULID]int64, len(list))
	b := &pgx.Batch{}
	for _, one := range list {
		b.Queue(`INSERT INTO batches AS b (ulid, company_id, user_id, kind, sender, recipients_count, item_count, send_at, expire_at, name, awaited)
			VALUES ($1, $2, $3, $4, $5, CASE WHEN NOT $12::boolean OR EXISTS (SELECT FROM batches e WHERE e.ulid = $1) THEN $6::int END, $7, $8, $9, $10, $11)
			ON CONFLICT (ulid) DO UPDATE SET awaited = excluded.awaited, item_count = b.item_count + excluded.item_count,
				recipients_count = CASE WHEN b.awaited = excluded.awaited + excluded.recipients_count THEN b.recipients_count + excluded.recipients_count END
			RETURNING id`, uuid(one.ULID), one.CompanyID, one.UserID, one.Kind, one.Sender, one.Recipients, one.Segments,
			orNull(one.SendAt), orNull(one.ExpireAt), one.Name, one.Awaited, one.Part).QueryRow(func(row pgx.Row) error {
			var id int64
			err := row.Scan(&id)
			ids[one.ULID] = id
			return err
		})
	}
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return nil, fmt.Errorf("inserting %d batches: %w", len(list), err)
	}
	return ids, nil
}

// BatchRecord is a batch with the state of its messages.
type BatchRecord struct {
	Batch
	Key       int64 // its id, for Queued
	CreatedAt time.Time
	Counts    map[sms.Status]int // messages; statuses without a message are absent
	Cancelled int                // of the failed ones
}

// All returns the batch's recipients, with those of later parts.
func (r BatchRecord) All() int { return r.Recipients + r.Awaited }

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
		err = row.Scan(&r.Key, &id, &r.CompanyID, &r.UserID, &r.Kind, &r.Name, &r.Sender, &r.Recipients, &r.Segments, &r.Awaited, &r.CreatedAt, &send, &expire)
		r.ULID, r.SendAt, r.ExpireAt, r.Counts = id.Bytes, orZero(send), orZero(expire), map[sms.Status]int{}
		return r, err
	}, `SELECT id, ulid, company_id, user_id, kind, name, sender, recipients_count, item_count, awaited, created_at, send_at, expire_at
		FROM batches WHERE `+condition, args...)
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
	}, `SELECT batch_id, status, count(*), count(*) FILTER (WHERE failure_reason = $2) FROM messages WHERE batch_id = ANY($1) GROUP BY 1, 2`,
		keys, ReasonCancelled)
}

// orZero returns the zero time for NULL.
func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}
