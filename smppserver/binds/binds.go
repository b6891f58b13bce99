// Package binds has the binds of customers' programs in all processes, and what waits for them: receipts and messages
// from handsets.
//
// A receipt is stored in the transaction that makes its message final, and deleted when the customer has answered it.
// Any process that serves a receiving bind of its key delivers it, the process of the bind that submitted the message
// first.
package binds

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/internal/postgres"
)

// Lease is how long a bind counts as open that its process has not renewed.
const Lease = 10 * time.Second

// Modes of binds, as stored.
const (
	Transceiver = "transceiver"
	Transmitter = "transmitter"
	Receiver    = "receiver"
)

// ErrTooMany means that a key has all its binds.
var ErrTooMany = errors.New("the key has as many binds as it may have")

// Bind is one bind of a customer's program.
type Bind struct {
	ID      int64
	Account int64 // the API key's id
	Process string
	Peer    string // address and port
	Mode    string
	BoundAt time.Time
	SeenAt  time.Time
	Counts
}

// Counts are what a bind's process reports of it.
type Counts struct {
	Submitted  int64            // accepted submit_sm
	Refused    map[string]int64 // refused ones, by status
	InFlight   int              // unanswered submit_sm
	Unanswered int              // unanswered deliver_sm
}

// Store has the binds of one database.
type Store struct{ pool *pgxpool.Pool }

// New returns the store of pool's database.
func New(pool *pgxpool.Pool) *Store { return &Store{pool: pool} }

// live is the condition on a bind b that its process renews it.
const live = `b.seen_at > now() - interval '10 seconds'`

// Open records a bind and returns its id. [ErrTooMany] if the key has most live ones, over all processes.
func (s *Store) Open(ctx context.Context, b Bind, most int) (id int64, err error) {
	err = postgres.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		// One bind of a key at a time: counts and inserts of two processes do not overlap.
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1, ($2::bigint % 2147483647)::int)`, lockBinds,
			b.Account); err != nil {
			return fmt.Errorf("locking the binds of key %d: %w", b.Account, err)
		}
		if _, err := tx.Exec(ctx, `DELETE FROM smpp_binds b WHERE b.account = $1 AND NOT `+live, b.Account); err != nil {
			return fmt.Errorf("deleting binds that are over: %w", err)
		}
		err := tx.QueryRow(ctx, `INSERT INTO smpp_binds (account, process, peer, mode)
			SELECT $1, $2, $3, $4 WHERE (SELECT count(*) FROM smpp_binds WHERE account = $1) < $5 RETURNING id`,
			b.Account, b.Process, b.Peer, b.Mode, most).Scan(&id)
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrTooMany
		}
		return err
	})
	if err != nil && !errors.Is(err, ErrTooMany) {
		return 0, fmt.Errorf("recording a bind: %w", err)
	}
	return id, err
}

// lockBinds is the class of advisory locks on the binds of a key.
const lockBinds = 0x736d7070

// Share is a process's part of a key's binds.
type Share struct{ Own, All int }

// Renew reports the binds of a process. It returns those that must end, because a person asked for it or because they
// are not recorded any more, and for each key how many of its live binds the process has.
func (s *Store) Renew(ctx context.Context, process string, all map[int64]Counts) (end []int64, shares map[int64]Share,
	err error) {
	n := len(all)
	ids, submitted := make([]int64, 0, n), make([]int64, 0, n)
	refused, inFlight, unanswered := make([]map[string]int64, 0, n), make([]int32, 0, n), make([]int32, 0, n)
	for id, c := range all {
		if c.Refused == nil {
			c.Refused = map[string]int64{}
		}
		ids, submitted, refused = append(ids, id), append(submitted, c.Submitted), append(refused, c.Refused)
		inFlight, unanswered = append(inFlight, int32(c.InFlight)), append(unanswered, int32(c.Unanswered))
	}
	kept := make(map[int64]bool, n)
	var id, account int64
	var unbind bool
	if err := postgres.Each(ctx, s.pool, "renewing binds", []any{&id, &unbind},
		func() error { kept[id] = !unbind; return nil }, `
		UPDATE smpp_binds b SET seen_at = now(), submitted = u.submitted, refused = u.refused, in_flight = u.in_flight,
			unanswered = u.unanswered
		FROM (SELECT * FROM unnest($2::bigint[], $3::bigint[], $4::jsonb[], $5::int[], $6::int[]) u(id, submitted, refused,
		in_flight, unanswered) ORDER BY id) u
		WHERE b.id = u.id AND b.process = $1 RETURNING b.id, b.unbind`, process, ids, submitted, refused, inFlight,
		unanswered); err != nil {
		return nil, nil, err
	}
	for _, id := range ids {
		if !kept[id] {
			end = append(end, id)
		}
	}
	shares = map[int64]Share{}
	var share Share
	return end, shares, postgres.Each(ctx, s.pool, "counting binds", []any{&account, &share.Own, &share.All},
		func() error { shares[account] = share; return nil }, `
		SELECT account, count(*) FILTER (WHERE process = $1), count(*) FROM smpp_binds b
		WHERE account IN (SELECT account FROM smpp_binds WHERE process = $1) AND `+live+` GROUP BY account`, process)
}

// Close removes binds that have ended, and gives back what their process had taken for them.
func (s *Store) Close(ctx context.Context, ids []int64) error {
	if _, err := s.pool.Exec(ctx, `DELETE FROM smpp_binds WHERE id = ANY($1)`, ids); err != nil {
		return fmt.Errorf("removing %d binds: %w", len(ids), err)
	}
	return nil
}

// List returns the live binds of keys with ids above after, the oldest first, at most limit.
func (s *Store) List(ctx context.Context, keys []int64, after int64, limit int) ([]Bind, error) {
	return s.list(ctx, `account = ANY($1) AND id > $2`, keys, after, limit)
}

// All is [Store.List] for all keys.
func (s *Store) All(ctx context.Context, after int64, limit int) ([]Bind, error) {
	return s.list(ctx, `$1::bigint[] IS NULL AND id > $2`, nil, after, limit)
}

func (s *Store) list(ctx context.Context, condition string, keys []int64, after int64, limit int) ([]Bind, error) {
	return postgres.All(ctx, s.pool, "listing binds", pgx.RowToStructByPos[Bind], `
		SELECT id, account, process, peer, mode, bound_at, seen_at, submitted, refused, in_flight, unanswered
			FROM smpp_binds b
		WHERE `+condition+` AND `+live+` ORDER BY id LIMIT $3`, keys, after, limit)
}

// Count counts the live binds of each of some keys.
func (s *Store) Count(ctx context.Context, keys []int64) (map[int64]int64, error) {
	counts := map[int64]int64{}
	var of, n int64
	return counts, postgres.Each(ctx, s.pool, "counting binds", []any{&of, &n},
		func() error { counts[of] = n; return nil },
		`SELECT account, count(*) FROM smpp_binds b WHERE account = ANY($1) AND `+live+` GROUP BY account`, keys)
}

// Unbind asks the processes to end a bind of a key, or with bind 0 all its binds, and returns how many. They do within
// 200 ms while PostgreSQL answers.
func Unbind(ctx context.Context, tx pgx.Tx, account, bind int64) (int64, error) {
	tag, err := tx.Exec(ctx, `UPDATE smpp_binds SET unbind = true FROM (SELECT id FROM smpp_binds b
		WHERE account = $1 AND ($2 = 0 OR id = $2) AND `+live+
		` ORDER BY id FOR NO KEY UPDATE) found WHERE smpp_binds.id = found.id`, account, bind)
	if err != nil {
		return 0, fmt.Errorf("ending binds of key %d: %w", account, err)
	}
	return tag.RowsAffected(), nil
}
