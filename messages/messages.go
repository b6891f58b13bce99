// Package messages keeps each message's life. It alone changes a status.
//
// A message starts as pending and ends, exactly once, as sent or failed
// (rule api 3). Around that row stand these tables:
//
//   - outbox: what still has to reach a carrier. A row is written with its
//     message and deleted in the transaction that records its last segment's
//     carrier id or its failure. Redis can be rebuilt from it at any moment.
//   - batches: the bulk and template requests.
//   - scheduled: what was accepted for later, in place of an outbox row until it is due.
//   - deadlines: messages whose time is not that of all others.
//   - sandbox: what becomes of messages to the numbers of the sandbox, in place of
//     an outbox row.
//
// What carriers have of a message, and said of it, is kept by the room receipts.
//
// # Who may carry a message
//
// A dispatcher claims outbox rows (Claim) before it writes a single byte to a
// carrier, and every later change of such a row names the claim. A row that
// another dispatcher has taken over meanwhile is left alone, so a process that
// was asleep for minutes does no harm when it wakes.
//
// # Crash
//
// What a dead dispatcher had begun may or may not have reached its carrier: SMPP 3.4
// has no way to ask. Free gives it out again: nothing is lost, and at most a window of
// messages can arrive twice.
package messages

import (
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/oklog/ulid/v2"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// ErrNotFound says that the caller has no such message or batch.
var ErrNotFound = errors.New("not found")

// Lanes of the outbox, as stored. They equal queue.Single and queue.Batch.
const (
	LaneSingle = 0
	LaneBatch  = 1
)

// Store keeps messages in one database.
type Store struct {
	pool *pgxpool.Pool
}

// New returns the store of pool's database.
func New(pool *pgxpool.Pool) *Store { return &Store{pool: pool} }

// Batch is a bulk or template request (rule api 2.2).
type Batch struct {
	ULID       ulid.ULID
	CompanyID  int64
	UserID     int64
	Kind       string // "bulk" or "template"
	Name       string // the customer's own, of a campaign of the dashboard; "": none
	Sender     string
	Recipients int
	Segments   int // credits consumed

	Part    bool // it is a further part of a batch that exists
	Awaited int  // recipients of the parts that are still to come

	SendAt   time.Time // when its messages are to be sent; zero: at once
	ExpireAt time.Time // when they are to be given up; zero: as all others
}

// Message is a new message, ready to be recorded.
type Message struct {
	ULID      ulid.ULID
	CompanyID int64
	UserID    int64
	Batch     *Batch // nil: a single send
	Number    sms.Number
	Sender    string
	Body      string
	Encoding  sms.Encoding
	Segments  int
	Carrier   string
	Test      bool
	Validity  time.Duration // after which it is not tried any more

	Reference string    // the customer's own name for it; "": none
	SendAt    time.Time // when it is to be sent; zero: at once
	ExpireAt  time.Time // when it is to be given up; zero: when its validity is over, which begins when it is to be sent
	Later     bool      // it waits for SendAt, off the outbox (Scheduled)
}

// Lane tells in which lane of its carrier a message waits.
func (m *Message) Lane() int {
	if m.Batch != nil {
		return LaneBatch
	}
	return LaneSingle
}

// clean leaves out what no text column takes.
func clean(s string) string { return postgres.Text(s) }

// timed reports whether its time is not that of all others.
func (m *Message) timed() bool { return !m.SendAt.IsZero() || !m.ExpireAt.IsZero() }

// Sandboxed reports whether it is to a number of the sandbox, whose fate it gets: no carrier gets it.
func (m *Message) Sandboxed() bool {
	_, ok := sms.SandboxFateOf(m.Number)
	return ok
}

// concatenated reports whether a handset must put it together.
func (m *Message) concatenated() bool { return m.Segments > 1 && !m.Sandboxed() }

func uuid(id ulid.ULID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: true} }
