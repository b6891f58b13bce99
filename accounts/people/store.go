// Package people has the users: [Store] has their accounts, roles and invitations, [SignIn] their passwords, second
// factors and mailed links, and [Sessions] the browsers where they are signed in.
package people

import (
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/internal/postgres"
	"intumwa/internal/vault"
)

// Store reads and changes users and the people of companies. It is safe for concurrent use.
type Store struct{ pool postgres.DB }

// New returns a Store.
func New(pool *pgxpool.Pool) *Store { return &Store{pool} }

// In returns a copy that works in the caller's transaction.
func (a *Store) In(tx pgx.Tx) *Store { return &Store{tx} }

// SignIn checks who somebody is. It is safe for concurrent use.
type SignIn struct {
	pool  postgres.DB
	vault vault.Vault
}

// NewSignIn returns a SignIn. key encrypts the secrets of second factors at rest; nil: they are stored in plain.
func NewSignIn(pool *pgxpool.Pool, key *[32]byte) *SignIn {
	return &SignIn{pool, vault.New(key, "user")}
}

// Sessions has the sessions of browsers. It is safe for concurrent use.
type Sessions struct{ pool postgres.DB }

// NewSessions returns Sessions.
func NewSessions(pool *pgxpool.Pool) *Sessions { return &Sessions{pool} }

// In returns a copy that works in the caller's transaction.
func (a *Sessions) In(tx pgx.Tx) *Sessions { return &Sessions{tx} }
