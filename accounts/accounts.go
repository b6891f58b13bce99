// Package accounts has the users, API tokens, companies, senders and test numbers.
//
// [Accounts.Authenticate], on every request's path, reads a cache: entries are at most two seconds old and are dropped
// by change notices. Everything else reads and writes Postgres directly. Balances belong to billing.
package accounts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"intumwa/internal/postgres"
	"intumwa/internal/vault"
)

// Options of [New]. The zero value of a field means its default.
type Options struct {
	TestSender string                // the sender name of test messages, which no company may register
	OTPKey     []byte                // key for hashing one-time codes; the same in every process
	SecretKey  *[32]byte             // encrypts the secrets of second factors at rest; nil: they are stored in plain
	Log        *slog.Logger          // nil: discarded
	Metrics    prometheus.Registerer // nil: not registered

	// Replacements is how often an owner may replace a verified test number.
	Replacements int

	// FreeCodes is how many one-time codes companies without credits may get within 24 hours, together; 0: no limit.
	FreeCodes int
}

// Accounts reads and changes users, tokens, companies, senders and test numbers. It is safe for concurrent use.
type Accounts struct {
	pool postgres.DB
	opts Options
	log  *slog.Logger

	cache   *cache
	lastUse *lastUse
	hashing chan struct{} // one slot for each concurrent password hash
	vault   vault.Vault
	codes   codeMetrics
}

// New does no I/O and starts nothing; [Accounts.Run] does.
func New(pool *pgxpool.Pool, opts Options) *Accounts {
	log := opts.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	a := &Accounts{
		pool:    pool,
		opts:    opts,
		log:     log,
		lastUse: newLastUse(),
		hashing: make(chan struct{}, concurrentHashes),
		vault:   vault.New(opts.SecretKey, "user"),
		codes:   newCodeMetrics(opts.FreeCodes, opts.Metrics),
	}
	a.cache = newCache(a.load, opts.Metrics)
	return a
}

// ErrUnauthenticated means that a bearer token is missing, malformed, unknown, revoked or expired. rule api 5
var ErrUnauthenticated = errors.New("unauthenticated")

// Kinds of caller errors of the other methods, for errors.Is. The error's own text is for the user.
var (
	ErrInvalid  = errors.New("invalid")
	ErrExists   = errors.New("exists already")
	ErrNotFound = errors.New("not found")
)

// callerError is an error of one of the kinds above.
type callerError struct {
	kind error
	text string
}

// Error returns the text for the user.
func (m *callerError) Error() string { return m.text }

func (m *callerError) Unwrap() error { return m.kind }

// forUser marks the errors whose text is for the user.
func (m *callerError) forUser() {}

func isUnique(err error, constraint string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "23505" && pg.ConstraintName == constraint
}

// readOne reads the row of a query; without one, the error is ErrNotFound with the text missing.
func readOne[T any](ctx context.Context, db postgres.DB, doing, missing string, scan pgx.RowToFunc[T], query string, args ...any) (T, error) {
	all, err := postgres.All(ctx, db, doing, scan, query, args...)
	if err == nil && len(all) == 0 {
		err = &callerError{ErrNotFound, missing}
	}
	if err != nil {
		var none T
		return none, err
	}
	return all[0], nil
}

// exec runs a statement and returns how many rows it changed. doing names the work in errors.
func exec(ctx context.Context, db postgres.DB, doing, statement string, args ...any) (int64, error) {
	tag, err := db.Exec(ctx, statement, args...)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", doing, err)
	}
	return tag.RowsAffected(), nil
}

// In returns a copy that works in the caller's transaction: a change and its audit entry, for example, commit together.
// The copy does not use the cache.
func (a *Accounts) In(tx pgx.Tx) *Accounts {
	in := *a
	in.pool = tx
	return &in
}
