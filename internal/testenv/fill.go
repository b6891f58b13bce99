package testenv

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Filled is a database that a test fills with users and companies, for packages whose tests must not import the
// packages that own them.
type Filled struct{ Pool *pgxpool.Pool }

// Exec runs a statement.
func (f Filled) Exec(t testing.TB, statement string, args ...any) {
	t.Helper()
	Exec(t, f.Pool, statement, args...)
}

// Exec runs a statement, also during a test's cleanup.
func Exec(t testing.TB, pool *pgxpool.Pool, statement string, args ...any) {
	t.Helper()
	ctx, cancel := within()
	defer cancel()
	if _, err := pool.Exec(ctx, statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// User is a user, who cannot sign in.
type User struct {
	ID    int64
	Email string
}

// User stores a user.
func (f Filled) User(t testing.TB, email string) User {
	t.Helper()
	return User{f.insert(t, `INSERT INTO users (email, name, password_hash, language)
		VALUES ($1, 'A Person', 'none', 'fr') RETURNING id`, email), email}
}

// Company is a company without credits.
type Company struct {
	ID   int64
	Name string
}

// Company stores a company of a user.
func (f Filled) Company(t testing.TB, owner string) Company {
	t.Helper()
	c := Company{Name: "Company"}
	c.ID = f.insert(t, `WITH c AS (
			INSERT INTO companies (owner_id, name) SELECT id, $2 FROM users WHERE email = $1 RETURNING id, owner_id
		)
		UPDATE users u SET company_id = c.id, role = 'owner' FROM c WHERE u.id = c.owner_id RETURNING c.id`, owner, c.Name)
	return c
}

func (f Filled) insert(t testing.TB, statement string, args ...any) (id int64) {
	t.Helper()
	if err := f.Pool.QueryRow(t.Context(), statement, args...).Scan(&id); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return id
}

// Wants fails a test unless an error is of a kind and has a text.
func Wants(t testing.TB, what string, err, kind error, text string) {
	t.Helper()
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: got %v, want %v with %q", what, err, kind, text)
	}
}
