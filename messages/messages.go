// Package messages has each message's life. No other package changes a status.
//
// The folders below have the rest, each with a Store of its own: outbox (what waits), rerouting (moves between
// carriers), lookup, statistics, retention. docs/layout.md says which of them writes what.
//
// A message starts as pending and ends, exactly once, as sent or failed (rule api 3). Until then it is in one of these
// tables, or a carrier has all of it, or may have:
//
//   - outbox: a carrier is still to get some of it. The transaction that changes this (submission.Decide) deletes the
//     row. Redis can be refilled from the table at any moment.
//   - scheduled: its time has not come.
//   - sandbox: it goes to a sandbox number; the row has its fate.
//
// Its segments' submit records and receipts are in the package receipts, its request in batches. A row of deadlines
// says when to look at a message again.
//
// # Claims
//
// A dispatcher claims outbox rows (outbox.Store.Claim) before it writes a byte to a carrier, and every later change of
// such a row names the claim. It does not affect a row that another dispatcher has taken over: a process that slept for
// minutes does no harm.
//
// # Crashes
//
// What a dead dispatcher had begun may or may not have reached its carrier: SMPP 3.4 cannot query it. Who frees its
// claims records that (outbox.Store.Begun), then releases them (Free): nothing is lost, and at most a window of
// messages can arrive twice.
package messages

import (
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/oklog/ulid/v2"

	"intumwa/internal/otp"
	"intumwa/sms"
)

// ErrNotFound means that the caller has no such message or batch.
var ErrNotFound = errors.New("not found")

// Lanes of the outbox, as stored. They equal queue.Single and queue.Batch.
const (
	LaneSingle = 0
	LaneBatch  = 1
)

// Store has the messages of one database.
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
	Name       string // the customer's own name of a campaign; "": none
	Sender     string
	Recipients int
	Segments   int // credits consumed

	Part    bool // a further part of an existing batch
	Awaited int  // recipients of later parts

	SendAt   time.Time // when its messages are sent; zero: at once
	ExpireAt time.Time // when they expire; zero: as configured
}

// Message is a new message for Insert.
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

	Channel    Channel
	Reference  string    // the customer's own name; "": none
	CostCenter string    // the customer's own label; "": none
	SendAt     time.Time // when it is sent; zero: at once
	ExpireAt   time.Time // when it expires; zero: at the end of its validity, which begins when it is to be sent
	Scheduled  bool      // it waits for SendAt

	Secret otp.Secret // of the one-time code whose mask the text has; nil: none

	Origin *Origin // of a message that was submitted over SMPP; nil: of any other
}

// Channel is how a message came.
type Channel int16

// The channels, as stored; the API's is NULL.
const (
	API     Channel = iota // also the gateway's own messages
	Page                   // a page of the dashboard: one message or a campaign
	SMPP                   // a customer's program over SMPP
	Kannel                 // Kannel's interface
	Keyword                // the answer of a route to a keyword
)

// Channels are the channels' names in commands and filters.
var Channels = []string{"api", "page", "smpp", "kannel", "keyword"}

// String is the channel's name.
func (c Channel) String() string { return Channels[c] }

// Origin is where and how a message was submitted over SMPP.
type Origin struct {
	Account    int64 // the API key's id
	Bind       int64
	Registered uint8  // receipts that it asked for: 0 none, 1 success and failure, 2 failure, 3 success
	Urgent     bool   // its priority_flag is not 0
	Echo       []byte // optional parameters that its receipt repeats, as on the wire
	Form
}

// Form is what a submit_sm says about its text besides the text. The zero Form says nothing.
type Form struct {
	Class *uint8    // message class, 0 to 3 (3GPP TS 23.038, section 4)
	Part  *sms.Part // set: the text is one part of a long message, which goes out as it came
}

// Lane returns the lane of its carrier.
func (m *Message) Lane() int {
	if m.Batch != nil || m.Origin != nil && !m.Origin.Urgent {
		return LaneBatch
	}
	return LaneSingle
}

// timed reports whether it has a deadline of its own.
func (m *Message) timed() bool { return !m.SendAt.IsZero() || !m.ExpireAt.IsZero() }

// Sandboxed reports whether it goes to a sandbox number, whose fate it gets, and to no carrier.
func (m *Message) Sandboxed() bool {
	_, ok := sms.SandboxFateOf(m.Number)
	return ok
}

// concatenated reports whether a handset must join its segments.
func (m *Message) concatenated() bool { return m.Segments > 1 && !m.Sandboxed() }

func uuid(id ulid.ULID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: true} }
