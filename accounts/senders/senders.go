// Package senders has the names that companies send as: their requests, the decisions on them, and their registrations
// at carriers.
package senders

import (
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/internal/postgres"
)

// Store reads and changes senders and their registrations. It is safe for concurrent use.
type Store struct {
	pool   postgres.DB
	test   string
	forget func()
}

// New returns a Store. No company may register test, the name of the test sender. The Store calls forget after a change
// that a cached [accounts.Principal] shows; nil: nothing is cached.
func New(pool *pgxpool.Pool, test string, forget func()) *Store {
	if forget == nil {
		forget = func() {}
	}
	return &Store{pool, test, forget}
}

// In returns a copy that works in the caller's transaction.
func (a *Store) In(tx pgx.Tx) *Store { return &Store{tx, a.test, a.forget} }
