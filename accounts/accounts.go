// Package accounts has what the packages below it share: the caller of a request, roles and their rights, and the kinds
// of errors. It reads nothing. None of them imports another:
//
//   - people: users, their roles and invitations, signing in
//   - companies: companies, and the facts that they state
//   - keys: keys of the API and of SMPP, and who holds them
//   - senders: sender names, and their registrations at carriers
//   - testnumbers: the number of an account's test messages
//   - letter: mails that are written in the transaction of their event
//
// [Principal], on every request's path, comes from the cache of keys. Everything else is read and written directly.
// Balances belong to billing.
package accounts

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"intumwa/internal/postgres"
)

// ErrUnauthenticated means that a bearer token is missing, malformed, unknown, revoked or expired. rule api 5
var ErrUnauthenticated = errors.New("unauthenticated")

// Kinds of caller errors, for errors.Is. The error's own text is for the user.
var (
	ErrInvalid  = errors.New("invalid")
	ErrExists   = errors.New("exists already")
	ErrNotFound = errors.New("not found")
	ErrTooMany  = errors.New("too many") // the limit is reached
)

// callerError is an error of one of the kinds above.
type callerError struct {
	kind error
	text string
}

// Errorf returns an error of one of the kinds above, or of none, with a text for the user.
func Errorf(kind error, format string, args ...any) error {
	return &callerError{kind, fmt.Sprintf(format, args...)}
}

// Error returns the text for the user.
func (m *callerError) Error() string { return m.text }

func (m *callerError) Unwrap() error { return m.kind }

// ForUser marks the errors whose text is for the user.
func (m *callerError) ForUser() {}

// ForUser reports whether an error is a refusal with a text for the user.
func ForUser(err error) bool {
	var user interface{ ForUser() }
	return errors.As(err, &user)
}

// Wrap wraps errors of Postgres with doing; errors for the user stay as they are.
func Wrap(doing string, err error) error {
	if ForUser(err) {
		return err
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// NoUser says that there is no user with an email.
func NoUser(email string) string { return "there is no user with the email " + email }

// NoCompany is the error that there is no company with an id.
func NoCompany(id int64) error { return Errorf(ErrNotFound, "there is no company with id %d", id) }

// IsUnique reports whether an error is a conflict with a unique constraint.
func IsUnique(err error, constraint string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "23505" && pg.ConstraintName == constraint
}

// One reads the row of a query; without one, the error is ErrNotFound with the text missing.
func One[T any](ctx context.Context, db postgres.DB, doing, missing string, scan pgx.RowToFunc[T], query string,
	args ...any) (T, error) {
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

// Exec runs a statement and returns how many rows it changed. doing names the work in errors.
func Exec(ctx context.Context, db postgres.DB, doing, statement string, args ...any) (int64, error) {
	tag, err := db.Exec(ctx, statement, args...)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", doing, err)
	}
	return tag.RowsAffected(), nil
}
