// Package testnumbers has the one number of an account that gets its test messages, and the codes that verify it.
// rule api 4.4
package testnumbers

import (
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"intumwa/internal/postgres"
)

// Options of [New]. The zero value of a field means its default.
type Options struct {
	Key     []byte                // for one-time codes; the same in every process
	Forget  func()                // called after a change that a cached [accounts.Principal] shows; nil: nothing is cached
	Metrics prometheus.Registerer // nil: not registered

	// FreeCodes is how many one-time codes companies without credits may get within 24 hours, together; 0: no limit.
	FreeCodes int
}

// Store reads and changes test numbers. It is safe for concurrent use.
type Store struct {
	pool  postgres.DB
	opts  Options
	codes codeMetrics
}

// New returns a Store.
func New(pool *pgxpool.Pool, opts Options) *Store {
	if opts.Forget == nil {
		opts.Forget = func() {}
	}
	return &Store{pool, opts, newCodeMetrics(opts.FreeCodes, opts.Metrics)}
}

// In returns a copy that works in the caller's transaction.
func (a *Store) In(tx pgx.Tx) *Store { return &Store{tx, a.opts, a.codes} }
