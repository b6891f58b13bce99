// Package keys has the keys of the HTTP API and of SMPP, and tells who holds one.
//
// [Store.Authenticate], on every request's path, reads a cache: entries are at most two seconds old and are dropped by
// change notices. Everything else reads and writes Postgres directly.
package keys

import (
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"intumwa/internal/postgres"
)

// Options of [New]. The zero value of a field means its default.
type Options struct {
	Key     []byte                // for hashing passwords of SMPP; the same in every process
	Log     *slog.Logger          // nil: discarded
	Metrics prometheus.Registerer // nil: not registered
}

// Store reads and changes keys. It is safe for concurrent use.
type Store struct {
	pool postgres.DB
	opts Options

	cache   *cache
	lastUse *lastUse
}

// New does no I/O and starts nothing; [Store.Run] does.
func New(pool *pgxpool.Pool, opts Options) *Store {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	a := &Store{pool: pool, opts: opts, lastUse: newLastUse()}
	a.cache = newCache(a.load, opts.Metrics)
	return a
}

// In returns a copy that works in the caller's transaction: a change and its audit entry, for example, commit together.
// The copy does not use the cache.
func (a *Store) In(tx pgx.Tx) *Store {
	in := *a
	in.pool = tx
	return &in
}
