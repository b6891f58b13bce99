// Package verifications lets companies verify phone numbers by one-time codes: each verification with its code, its
// limits and its end. It sends nothing: intake does.
//
// No code is stored ([otp.Secret]). A verification is pending until the right code comes, its company cancels it, too
// many wrong codes came, or its time is over.
package verifications

import (
	"cmp"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/oklog/ulid/v2"

	"intumwa/internal/otp"
	"intumwa/internal/postgres"
	"intumwa/sms"
)

// Limits of a verification.
const (
	MostChecks = 5 // wrong codes
	MostSends  = 5

	LeastLife   = time.Minute
	MostLife    = time.Hour
	DefaultLife = 10 * time.Minute
)

// doubleClick is how soon a request comes again when a person clicks twice. The second is told what the first was.
const doubleClick = time.Second

// State is a verification's state.
type State int16

// The states, as stored.
const (
	Pending State = iota
	Approved
	Cancelled
	Expired     // its time is over
	Failed      // its time is over, and its last message was not delivered
	MaxAttempts // the last of MostChecks wrong codes came
)

var states = [...]string{"pending", "approved", "cancelled", "expired", "failed", "max_attempts_reached"}

// String is the state's name in the API.
func (s State) String() string { return states[s] }

// Verification is one verification.
type Verification struct {
	ID         int64
	ULID       ulid.ULID
	Company    sms.CompanyID
	Number     sms.Number
	Sender     string
	Locale     string
	Secret     otp.Secret
	CreatedAt  time.Time
	SentAt     time.Time // the last message
	ExpiresAt  time.Time
	State      State // Expired if it is pending and its time is over
	FinishedAt *time.Time
	Sends      int
	Wrong      int       // codes
	Message    ulid.ULID // the last one
	Carrier    string    // of that message, when it was accepted
	Reference  string    // the customer's own name; "": none
	Amount     string    // of a payment, which the check must repeat; "": none
	Payee      string
	AppHash    string // of an Android app; "": none
	WebDomain  string
	Test       bool  // by the test sender
	Repeated   bool  // of a check: it repeats the one that approved it, within a second
	Event      int64 // of a call that ended it: the event's number, from the sequence of messages
}

// columns are those of a Verification, in the order of scan.
const columns = `v.id, v.ulid, v.company_id, v.phone_number, v.sender, v.locale, v.secret, v.created_at,
	v.sent_at, v.expires_at, CASE WHEN v.state = 0 AND v.expires_at <= now() THEN 3::smallint ELSE v.state END,
	v.finished_at, v.sends, v.wrong, v.message, v.carrier,
	coalesce(v.client_reference, ''), coalesce(v.amount, ''), coalesce(v.payee, ''), coalesce(v.app_hash, ''),
	coalesce(v.web_domain, ''), v.test`

// fields are the places for columns. read must be called after the scan.
func (v *Verification) fields() (places []any, read func()) {
	var id, message pgtype.UUID
	return []any{&v.ID, &id, &v.Company, &v.Number, &v.Sender, &v.Locale, &v.Secret, &v.CreatedAt, &v.SentAt, &v.ExpiresAt,
			&v.State, &v.FinishedAt,
			&v.Sends, &v.Wrong, &message, &v.Carrier, &v.Reference, &v.Amount, &v.Payee, &v.AppHash, &v.WebDomain, &v.Test},
		func() { v.ULID, v.Message = id.Bytes, message.Bytes }
}

// ErrNotFound means that the company has no such verification.
var ErrNotFound = errors.New("there is no such verification")

// Verdicts on a check or a cancellation.
var (
	ErrWrong    = errors.New("the code is not right")
	ErrFinished = errors.New("the verification is finished")
	ErrChecks   = errors.New("too many wrong codes came")
	ErrExpired  = errors.New("the verification has expired")
	ErrPayment  = errors.New("the entry lacks the payment")
)

// LimitError means that a limit of sends is reached.
type LimitError struct {
	Limit string        // "checks", "sends", "number", "end_user" or "company"
	After time.Duration // until another one is possible; at least a second
}

// Error names the limit.
func (e *LimitError) Error() string {
	return "the limit of verifications by " + e.Limit + " is reached"
}

// Store has the verifications of one database.
type Store struct {
	db  postgres.DB
	key []byte
}

// New returns the store of pool's database. key is the installation's key of one-time codes.
func New(pool *pgxpool.Pool, key []byte) *Store { return &Store{pool, key} }

// In returns the store with another connection to its database.
func (s *Store) In(db postgres.DB) *Store { return &Store{db, s.key} }

// after rounds up to whole seconds, at least one.
func after(d time.Duration) time.Duration {
	return max(time.Second, cmp.Or((d+time.Second-1).Truncate(time.Second), time.Second))
}
