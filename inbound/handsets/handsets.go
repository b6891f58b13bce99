// Package handsets stores MOs: as carriers delivered them, and as messages of companies. It also has the opt-outs.
//
// # A message's way
//
//  1. A carrier's deliver_sm becomes a row of inbound in the transaction after which it is acknowledged (Keep). Nothing
//     else happens there, so no company's route, list or lock delays receipts.
//  2. switchboard, in one process at a time, reads new rows in the order in which they came (Fresh): it drops a
//     repetition, keeps a part until the others come (Assembly), and gives a whole message to the company of its route
//     (Routes.Find) as a row of inbound_messages.
//  3. Rows of both tables are deleted after messages.inbound_retention (Forget).
//
// # Opt-outs
//
// A row of opt_outs means that a number gets no messages from one sender of a company, or from any. intake looks up the
// numbers of a group of requests at once (Barred), in its transaction and before it charges, for companies that have or
// had an entry (accounts.Company.OptOuts).
package handsets

import (
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// ErrNotFound means that the message, route or entry does not exist.
var ErrNotFound = errors.New("not found")

// Store has the MOs and opt-outs of one database.
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
