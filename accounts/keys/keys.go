// Package keys has the keys of the HTTP API and of SMPP: [Store] reads and changes them, and [Holders] tells who holds
// one.
//
// [Holders.Authenticate], on every request's path, reads a cache: entries are at most two seconds old and are dropped
// by change notices. Everything else reads and writes Postgres directly.
package keys

import (
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"intumwa/internal/postgres"
)

// Store reads and changes keys. It is safe for concurrent use.
type Store struct {
	pool   postgres.DB
	key    []byte
	forget func(id int64)
}

// New returns a Store. key is for hashing passwords of SMPP, the same in every process. A changed key is no longer in
// the cache of holders; nil: nothing is cached.
func New(pool *pgxpool.Pool, key []byte, holders *Holders) *Store {
	a := &Store{pool, key, func(int64) {}}
	if holders != nil {
		a.forget = holders.cache.forget
	}
	return a
}

// In returns a copy that works in the caller's transaction: a change and its audit entry, for example, commit together.
func (a *Store) In(tx pgx.Tx) *Store { return &Store{tx, a.key, a.forget} }

// Options of [NewHolders]. The zero value of a field means its default.
type Options struct {
	Key     []byte                // as for New
	Log     *slog.Logger          // nil: discarded
	Metrics prometheus.Registerer // nil: not registered
}

// Holders tells who holds a key. It is safe for concurrent use.
type Holders struct {
	pool *pgxpool.Pool
	opts Options

	cache   *cache
	lastUse *lastUse
}

// NewHolders does no I/O and starts nothing; [Holders.Run] does.
func NewHolders(pool *pgxpool.Pool, opts Options) *Holders {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	a := &Holders{pool: pool, opts: opts, lastUse: newLastUse()}
	a.cache = newCache(a.load, opts.Metrics)
	return a
}
