// Package companies has the customers: whether they are approved and verified, their limits, and the facts that they
// state for it.
package companies

import (
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/internal/postgres"
)

// Store reads and changes companies and their facts. It is safe for concurrent use.
type Store struct {
	pool   postgres.DB
	forget func()
}

// New returns a Store. It calls forget after a change that a cached [accounts.Principal] shows; nil: nothing is cached.
func New(pool *pgxpool.Pool, forget func()) *Store {
	if forget == nil {
		forget = func() {}
	}
	return &Store{pool, forget}
}

// In returns a copy that works in the caller's transaction.
func (a *Store) In(tx pgx.Tx) *Store { return &Store{tx, a.forget} }
