// Package handsets keeps what handsets send: the messages as carriers delivered
// them, whose they are, and who wants no more of whom.
//
// # A message's way
//
//  1. A carrier's deliver_sm becomes a row of inbound in the transaction after
//     which it is acknowledged (Keep). Nothing else happens there, so that no
//     company's route, list or lock holds up what carriers report.
//  2. The room switchboard, in one process at a time, takes new rows and
//     takes them in the order in which they came (Fresh): a repetition is
//     dropped, a part waits for the others (Assembly), and a whole message goes
//     to the company of its route (Routes.Find) as a row of inbound_messages.
//  3. Rows of both tables are deleted after messages.inbound_retention (Forget).
//
// # Opt-outs
//
// A row of opt_outs means that a number wants no messages from one sender of a
// company, or from all of them. intake asks for the numbers of a group of
// requests at once (Barred), within its transaction and before it charges; only
// for companies that have, or had, an entry (accounts.Company.OptOuts).
package handsets

import (
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// ErrNotFound means that there is no such message, route or entry.
var ErrNotFound = errors.New("not found")

// Store keeps what handsets send, and the opt-outs, in one database.
type Store struct {
	pool  postgres.DB
	rooms *rooms
}

// New returns the store of pool's database.
func New(pool *pgxpool.Pool) *Store {
	return &Store{pool: pool, rooms: &rooms{most: MaxOptOuts, of: map[sms.CompanyID]int{}}}
}

// In returns a copy that works in the caller's transaction.
func (s *Store) In(tx pgx.Tx) *Store { return &Store{pool: tx, rooms: s.rooms} }
