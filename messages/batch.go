package messages

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/oklog/ulid/v2"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// insertBatches records the batches that messages belong to, in one statement,
// and returns their keys.
func insertBatches(ctx context.Context, tx pgx.Tx, messages []*Message) (map[ulid.ULID]int64, error) {
	var (
		last               *Batch
		ulids              []pgtype.UUID
		companies, users   []int64
		kinds, senders     []string
		recipients, counts []int32
		sends, expires     []*time.Time
	)
	for _, m := range messages {
		b := m.Batch
		if b == nil || b == last { // a batch's messages stand together
			continue
		}
		last = b
		ulids = append(ulids, uuid(b.ULID))
		companies, users = append(companies, b.CompanyID), append(users, b.UserID)
		kinds, senders = append(kinds, b.Kind), append(senders, b.Sender)
		recipients, counts = append(recipients, int32(b.Recipients)), append(counts, int32(b.Segments))
		sends, expires = append(sends, orNull(b.SendAt)), append(expires, orNull(b.ExpireAt))
	}
	if ulids == nil {
		return nil, nil
	}
	ids := make(map[ulid.ULID]int64, len(ulids))
	var id int64
	var got pgtype.UUID
	if err := postgres.Each(ctx, tx, fmt.Sprintf("inserting %d batches", len(ulids)), []any{&id, &got}, func() error { ids[got.Bytes] = id; return nil }, `
		INSERT INTO batches (ulid, company_id, user_id, kind, sender, recipients_count, item_count, send_at, expire_at)
		SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::int[], $7::int[], $8::timestamptz[], $9::timestamptz[])
		RETURNING id, ulid`, ulids, companies, users, kinds, senders, recipients, counts, sends, expires); err != nil {
		return nil, err
	}
	return ids, nil
}

// BatchRecord is a batch with what has become of its messages.
type BatchRecord struct {
	Batch
	Key       int64 // its id: of Queued
	CreatedAt time.Time
	Counts    map[sms.Status]int // messages; a status that none has is not there
	Cancelled int                // of those that failed
}

// BatchByULID returns a company's batch; another company's is ErrNotFound.
func (s *Store) BatchByULID(ctx context.Context, company sms.CompanyID, id ulid.ULID) (BatchRecord, error) {
	r := BatchRecord{Batch: Batch{ULID: id}, Counts: map[sms.Status]int{}}
	var key int64
	var send, expire *time.Time
	err := s.pool.QueryRow(ctx, `SELECT id, company_id, user_id, kind, sender, recipients_count, item_count, created_at, send_at, expire_at
		FROM batches WHERE ulid = $1 AND company_id = $2`, uuid(id), int64(company)).
		Scan(&key, &r.CompanyID, &r.UserID, &r.Kind, &r.Sender, &r.Recipients, &r.Segments, &r.CreatedAt, &send, &expire)
	if errors.Is(err, pgx.ErrNoRows) {
		return BatchRecord{}, ErrNotFound
	}
	if err != nil {
		return BatchRecord{}, fmt.Errorf("looking up batch %s: %w", id, err)
	}
	r.Key, r.SendAt, r.ExpireAt = key, orZero(send), orZero(expire)
	var status sms.Status
	var n, cancelled int
	if err := postgres.Each(ctx, s.pool, fmt.Sprintf("counting batch %s", id), []any{&status, &n, &cancelled}, func() error {
		r.Counts[status] = n
		r.Cancelled += cancelled
		return nil
	}, `SELECT status, count(*), count(*) FILTER (WHERE failure_reason = $2) FROM messages WHERE batch_id = $1 GROUP BY status`, key, ReasonCancelled); err != nil {
		return BatchRecord{}, err
	}
	return r, nil
}

// orZero is the zero time for NULL.
func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// Batches returns up to limit of a company's batches, the newest first, without
// their counts.
func (s *Store) Batches(ctx context.Context, company sms.CompanyID, limit int) ([]BatchRecord, error) {
	return postgres.All(ctx, s.pool, "listing batches", func(row pgx.CollectableRow) (r BatchRecord, err error) {
		var id pgtype.UUID
		err = row.Scan(&id, &r.CompanyID, &r.UserID, &r.Kind, &r.Sender, &r.Recipients, &r.Segments, &r.CreatedAt)
		r.ULID = id.Bytes
		return r, err
	}, `SELECT ulid, company_id, user_id, kind, sender, recipients_count, item_count, created_at
		FROM batches WHERE company_id = $1 ORDER BY id DESC LIMIT $2`, int64(company), limit)
}
