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

// keys are the idempotency keys in the database, and those of first requests in progress in this process. In another
// process a second request waits for the first one's commit.
type keys struct {
	*core
	inUse sync.Map // by user and name
}

// enter reserves a key; leave releases it.
func (k *keys) enter(user int64, key *Key) (leave func(), err error) {
	if key == nil {
		return func() {}, nil
	}
	of := struct {
		user int64
		name string
	}{user, key.Name}
	if _, busy := k.inUse.LoadOrStore(of, nil); busy {
		return nil, ErrKeyInUse
	}
	return func() { k.inUse.Delete(of) }, nil
}

// replay returns the stored response of a key, if there is one.
func (k *keys) replay(ctx context.Context, user int64, key *Key) (answer Answer, done bool, err error) {
	if key == nil {
		return Answer{}, false, nil
	}
	request, body, known, err := k.answered(ctx, user, key.Name)
	switch {
	case err != nil || !known:
		return Answer{}, false, err
	case !bytes.Equal(request, key.Request[:]):
		return Answer{}, true, ErrKeyReused
	}
	k.metrics.replays.Inc()
	return Answer{Body: body, Replayed: true}, true, nil
}

// answered reads the request of a key and its response, when a failover cannot take it back; known is false when there
// is none, or the key's life is over. A key without a response costs no commit.
func (k *keys) answered(ctx context.Context, user int64, key string) (request, body []byte, known bool, err error) {
	read := func(db postgres.DB) error {
		err := db.QueryRow(ctx, `SELECT request, answer FROM idempotency_keys
			WHERE user_id = $1 AND key = $2 AND created_at > now() - $3::interval`, user, key, k.opts.KeyLife).Scan(
			&request, &body)
		if errors.Is(err, pgx.ErrNoRows) {
			request, body, err = nil, nil, nil
		}
		return err
	}
	doubt := ErrUnavailable
	if err = read(k.pool); err == nil && body != nil {
		doubt = ErrOutcomeUnknown
		err = postgres.Confirmed(ctx, k.pool, func(tx pgx.Tx) error { return read(tx) })
	}
	if err != nil {
		return nil, nil, false, fmt.Errorf("%w: looking up an idempotency key: %w", doubt, err)
	}
	return request, body, body != nil, nil
}

// Answered returns the response to a user's request with an idempotency key; known is false when there is none, or the
// key's life is over.
func (k *keys) Answered(ctx context.Context, user int64, key string) (body []byte, known bool, err error) {
	_, body, known, err = k.answered(ctx, user, key)
	return body, known, err
}

// errAnswered marks a request whose key got its response after replay had looked.
var errAnswered = errors.New("the idempotency key has been answered")

// reserve writes the keys of requests, so that another process with one of them waits for this transaction. A request
// whose key has a response by now gets errAnswered; one whose key is in use by another process gets ErrKeyInUse.
func (k *keys) reserve(ctx context.Context, tx pgx.Tx, requests []*request) error {
	var keyed []*request
	for _, r := range requests {
		if r.key != nil {
			keyed = append(keyed, r)
		}
	}
	if keyed == nil {
		return nil
	}
	// One order in all processes prevents deadlocks.
	slices.SortFunc(keyed, func(a, b *request) int {
		return cmp.Or(cmp.Compare(a.user, b.user), cmp.Compare(a.key.Name, b.key.Name))
	})
	batch := &pgx.Batch{}
	for _, r := range keyed {
		batch.Queue(`INSERT INTO idempotency_keys AS k (user_id, key, request) VALUES ($1, $2, $3)
			ON CONFLICT (user_id, key) DO UPDATE SET request = excluded.request, answer = NULL, created_at = now()
				WHERE k.created_at <= now() - $4::interval
			RETURNING true`, r.user, r.key.Name, r.key.Request[:], k.opts.KeyLife).QueryRow(func(row pgx.Row) error {
			err := row.Scan(&r.reserved)
			switch {
			case errors.Is(err, pgx.ErrNoRows):
				r.err = errAnswered
				return nil
			case postgres.Locked(err):
				return fmt.Errorf("%w: %w", ErrKeyInUse, err)
			}
			return err
		})
	}
	return postgres.Pipeline(ctx, tx, "reserving idempotency keys", batch)
}

// remember stores the responses of admitted requests under their keys, and deletes the keys of refused ones.
func (k *keys) remember(ctx context.Context, tx pgx.Tx, requests []*request) error {
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
	return postgres.Pipeline(ctx, tx, "storing idempotency keys", batch)
}

// How often expired keys are deleted, and how many at a time.
const (
	forgetInterval = time.Hour
	forgetBatch    = 10_000
)

// forgetAll deletes expired keys until ctx ends.
func (k *keys) forgetAll(ctx context.Context) {
	tick := time.NewTicker(forgetInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if _, err := k.ForgetKeys(ctx); err != nil && ctx.Err() == nil {
				k.opts.Log.Warn("old idempotency keys were not deleted", "event", "idempotency_keys_not_deleted", "error", err)
			}
		}
	}
}

// ForgetKeys deletes expired keys and returns how many.
func (k *keys) ForgetKeys(ctx context.Context) (forgotten int64, err error) {
	for {
		tag, err := k.pool.Exec(ctx, `DELETE FROM idempotency_keys k USING (
				SELECT user_id, key FROM idempotency_keys WHERE created_at <= now() - $1::interval
				ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED
			) old WHERE k.user_id = old.user_id AND k.key = old.key`, k.opts.KeyLife, forgetBatch)
		if err != nil {
			return forgotten, fmt.Errorf("forgetting idempotency keys: %w", err)
		}
		forgotten += tag.RowsAffected()
		if tag.RowsAffected() < forgetBatch {
			return forgotten, nil
		}
	}
}
