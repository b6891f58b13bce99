// Package contacts keeps the contacts of companies and their groups: people with a number, a name and fields of the
// company's own. It imports files of them in steps, and writes such files.
//
// # Counts
//
// How many contacts a company has, and how many members a group, is exact and read from one row each
// (contact_books, contact_groups). A transaction that changes them updates these rows last, after contacts in the order
// of their numbers, members, and groups in the order of their ids. So nobody waits for long for another's import.
package contacts

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// Limits.
const (
	MaxContacts = 500_000 // of a company
	MaxGroups   = 1000    // of a company
	MaxFields   = 20      // names of fields of a company
	MaxAtOnce   = 1000    // contacts in one call of Put
	MaxPage     = 100     // contacts or groups of a list's page
)

// Errors. A [*Fault] is one too: what is wrong with a value.
var (
	ErrNotFound = errors.New("there is no such contact or group")
	ErrNoGroup  = errors.New("the company has no such group")
	ErrFull     = errors.New("the company has 500,000 contacts, the most that are kept")
	ErrGroups   = errors.New("the company has 1,000 groups, the most that are kept")
)

// Fault is what is wrong with a value that somebody entered.
type Fault struct {
	Field string // phone_number, name, language, fields.NAME, groups, consent_source, consented_at
	Key   string // of its text, with Args
	Args  []any
}

// Error implements error. It is not shown.
func (f *Fault) Error() string { return f.Field + ": " + f.Key }

// Consent is where a contact's consent came from, and when.
type Consent struct {
	Source string // "": not known
	At     time.Time
}

// Contact is a person of a company. A company has each number once.
type Contact struct {
	ID        int64
	Company   int64
	Number    sms.Number
	Name      string            // may be empty
	Language  string            // rn, fr, en, sw, or "": not known
	Fields    map[string]string // by their names, see [FieldName]
	Groups    []Membership      // in the order of their ids
	Consent   Consent
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Membership is a group that a contact belongs to.
type Membership struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

// Group is a group of contacts.
type Group struct {
	ID        int64
	Company   int64
	Name      string
	Members   int
	CreatedAt time.Time
}

// Book is what a company's contacts have in common.
type Book struct {
	Contacts int
	Fields   []string // the names that its contacts have, and some that they had, in the order of their first use
}

// Store has the contacts of one database. It is safe for concurrent use.
type Store struct {
	db   postgres.DB
	pool *pgxpool.Pool // nil within a caller's transaction
}

// New returns the store of pool's database.
func New(pool *pgxpool.Pool) *Store { return &Store{db: pool, pool: pool} }

// Changing returns the store whose transactions are pool's: those of s may have too little time for them.
func (s *Store) Changing(pool *pgxpool.Pool) *Store { return &Store{db: s.db, pool: pool} }

// In returns a store that works in the caller's transaction.
func (s *Store) In(tx pgx.Tx) *Store { return &Store{db: tx} }

// tx runs do in the caller's transaction or, without one, in one of its own.
func (s *Store) tx(ctx context.Context, do func(tx pgx.Tx) error) error {
	if s.pool == nil {
		return do(s.db.(pgx.Tx))
	}
	return postgres.InTx(ctx, s.pool, do)
}

// Book returns what a company's contacts have in common.
func (s *Store) Book(ctx context.Context, company int64) (b Book, err error) {
	books, err := postgres.All(ctx, s.db, "reading a company's contacts", pgx.RowToStructByPos[Book],
		`SELECT contacts, fields FROM contact_books WHERE company_id = $1`, company)
	if err == nil && len(books) > 0 {
		b = books[0]
	}
	return b, err
}
