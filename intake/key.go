package intake

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
)

// Key is a request's idempotency key with what makes the request the same: the
// SHA-256 of its endpoint and its body's bytes.
type Key struct {
	Name    string
	Request [32]byte
}

// inUse holds the keys whose first request is being worked on in this process.
// (In another process the second one waits for the first one's commit.)
type inUse struct {
	mu   sync.Mutex
	keys map[userKey]bool
}

type userKey struct {
	user int64
	name string
}

// enter reserves a key; leave gives it back.
func (u *inUse) enter(user int64, key *Key) (leave func(), err error) {
	if key == nil {
		return func() {}, nil
	}
	k := userKey{user, key.Name}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.keys[k] {
		return nil, ErrKeyInUse
	}
	if u.keys == nil {
		u.keys = make(map[userKey]bool)
	}
	u.keys[k] = true
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.keys, k)
	}, nil
}

// replay looks whether a key has been answered before.
func (in *Intake) replay(ctx context.Context, user int64, key *Key) (answer Answer, done bool, err error) {
	if key == nil {
		return Answer{}, false, nil
	}
	var request, body []byte
	// Twice: what the first look sees may not be safe yet, and gone with its server.
	failed := ErrUnavailable
	for _, confirmed := range []bool{false, true} {
		err = in.pool.QueryRow(ctx, `SELECT request, answer FROM idempotency_keys
			WHERE user_id = $1 AND key = $2 AND created_at > now() - $3::interval`, user, key.Name, in.opts.KeyLife).Scan(&request, &body)
		if errors.Is(err, pgx.ErrNoRows) {
			return Answer{}, false, nil
		}
		if err == nil && !confirmed {
			failed = ErrOutcomeUnknown // it has been seen
			err = postgres.Confirm(ctx, in.pool)
		}
		if err != nil {
			return Answer{}, false, fmt.Errorf("%w: looking up an idempotency key: %w", failed, err)
		}
	}
	if !bytes.Equal(request, key.Request[:]) {
		return Answer{}, true, ErrKeyReused
	}
	in.metrics.replays.Inc()
	return Answer{Body: body, Replayed: true}, true, nil
}

// Answered is what a user's request with an idempotency key was answered; known
// is false when there was none, or its key is past its life.
func (in *Intake) Answered(ctx context.Context, user int64, key string) (body []byte, known bool, err error) {
	err = in.pool.QueryRow(ctx, `SELECT answer FROM idempotency_keys
		WHERE user_id = $1 AND key = $2 AND created_at > now() - $3::interval`, user, key, in.opts.KeyLife).Scan(&body)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("%w: looking up an idempotency key: %w", ErrUnavailable, err)
	}
	return body, body != nil, nil
}

// reserve writes the keys of requests, so that whoever comes later with one of
// them waits for this transaction, and settles the requests whose key has been
// answered meanwhile. A key that another process is still working on is ErrKeyInUse.
func (c *committer) reserve(ctx context.Context, tx pgx.Tx, requests []*request) error {
	var keyed []*request
	for _, r := range requests {
		if r.key != nil {
			keyed = append(keyed, r)
		}
	}
	if keyed == nil {
		return nil
	}
	// One order everywhere, so that two processes do not wait in a ring.
	slices.SortFunc(keyed, func(a, b *request) int {
		return cmp.Or(cmp.Compare(a.user, b.user), cmp.Compare(a.key.Name, b.key.Name))
	})
	batch := &pgx.Batch{}
	for _, r := range keyed {
		batch.Queue(`INSERT INTO idempotency_keys AS k (user_id, key, request) VALUES ($1, $2, $3)
			ON CONFLICT (user_id, key) DO UPDATE SET request = excluded.request, answer = NULL, created_at = now()
				WHERE k.created_at <= now() - $4::interval
			RETURNING true`, r.user, r.key.Name, r.key.Request[:], c.in.opts.KeyLife).QueryRow(func(row pgx.Row) error {
			err := row.Scan(&r.reserved)
			if errors.Is(err, pgx.ErrNoRows) {
				return nil // answered before
			}
			return err
		})
	}
	err := tx.SendBatch(ctx, batch).Close()
	if postgres.Locked(err) {
		return fmt.Errorf("%w: %w", ErrKeyInUse, err)
	}
	if err != nil {
		return fmt.Errorf("reserving idempotency keys: %w", err)
	}
	for _, r := range keyed {
		if r.reserved {
			continue
		}
		var request, body []byte
		if err := tx.QueryRow(ctx, `SELECT request, answer FROM idempotency_keys WHERE user_id = $1 AND key = $2`,
			r.user, r.key.Name).Scan(&request, &body); err != nil {
			return fmt.Errorf("reading an idempotency key: %w", err)
		}
		if !bytes.Equal(request, r.key.Request[:]) {
			r.err = ErrKeyReused
			continue
		}
		r.body, r.replayed = body, true
	}
	return nil
}

// remember stores the answers of admitted requests under their keys and forgets
// the keys of refused ones: only what was done is remembered.
func (c *committer) remember(ctx context.Context, tx pgx.Tx, requests []*request) error {
	batch := &pgx.Batch{}
	for _, r := range requests {
		switch {
		case !r.reserved:
		case r.admitted:
			batch.Queue(`UPDATE idempotency_keys SET answer = $3 WHERE user_id = $1 AND key = $2`, r.user, r.key.Name, r.body)
		default:
			batch.Queue(`DELETE FROM idempotency_keys WHERE user_id = $1 AND key = $2`, r.user, r.key.Name)
		}
	}
	if batch.Len() == 0 {
		return nil
	}
	return postgres.Later(ctx, tx, "storing idempotency keys", batch)
}

// Keys past their life are deleted so often and so many at a time.
const (
	forgetInterval = time.Hour
	forgetBatch    = 10_000
)

// keepKeys deletes keys past their life until ctx ends.
func (in *Intake) keepKeys(ctx context.Context) {
	tick := time.NewTicker(forgetInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if _, err := in.ForgetKeys(ctx); err != nil && ctx.Err() == nil {
				in.opts.Log.Warn("old idempotency keys were not deleted", "error", err)
			}
		}
	}
}

// ForgetKeys deletes keys past their life and returns how many.
func (in *Intake) ForgetKeys(ctx context.Context) (forgotten int64, err error) {
	for {
		tag, err := in.pool.Exec(ctx, `DELETE FROM idempotency_keys k USING (
				SELECT user_id, key FROM idempotency_keys WHERE created_at <= now() - $1::interval
				ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED
			) old WHERE k.user_id = old.user_id AND k.key = old.key`, in.opts.KeyLife, forgetBatch)
		if err != nil {
			return forgotten, fmt.Errorf("forgetting idempotency keys: %w", err)
		}
		forgotten += tag.RowsAffected()
		if tag.RowsAffected() < forgetBatch {
			return forgotten, nil
		}
	}
}
