package accounts

import (
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// ErrUnauthenticated says that a bearer token is missing, malformed, unknown or revoked. rule api 5
var ErrUnauthenticated = errors.New("unauthenticated")

// The kinds of mistakes that a caller of the other verbs can make; test with errors.Is. The error's own text
// says what is wrong in full and may be shown to whoever made the mistake.
var (
	ErrInvalid  = errors.New("invalid")
	ErrExists   = errors.New("exists already")
	ErrNotFound = errors.New("not found")
)

// mistake is a caller's fault of one of the kinds above.
type mistake struct {
	kind error
	text string
}

// Error is for whoever made the mistake.
func (m *mistake) Error() string { return m.text }

func (m *mistake) Unwrap() error { return m.kind }

func isUnique(err error, constraint string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "23505" && pg.ConstraintName == constraint
}
