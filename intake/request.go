package intake

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"intumwa/billing"
	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/sms"
	"intumwa/webhooks"
)

// request is an API call that sends, with its outcome.
type request struct {
	user, company int64
	ref           ulid.ULID // of the single message or the batch
	kind          kind
	segments      int
	messages      []*messages.Message
	key           *Key
	response      func(remaining int64) any
	refusal       sms.Refusal // returned when it cannot be paid
	came          time.Time   // when it came into intake, by the monotonic clock
	cap           int64       // credits that its company may spend on a day; 0: no limit
	optOuts       bool        // recipients may have opted out
	part          bool        // of a campaign
	code          bool        // its text gets a one-time code
	left          int64       // of a message to the sandbox: segments of the test pool

	// first is work of its transaction that makes its message; nil: none. Such a request is committed alone, so that
	// nothing remains of the work unless the message is accepted. It may be called again, after a rollback. verdict
	// refuses the request.
	first func(ctx context.Context, tx pgx.Tx) (verdict, err error)

	callback webhooks.Callback // of each message; without a mask: none

	client
	state atomic.Int32 // waiting, begun or answered
	done  chan struct{}
	outcome
}

// outcome is set by the committer before it closes done.
type outcome struct {
	reserved bool // its key is reserved
	admitted bool
	barred   error // a refusal other than that of a request that cannot be paid
	firstID  int64 // of its first message
	body     []byte
	err      error
}

// Key is a request's idempotency key, with the SHA-256 of its endpoint and body, which identify the request.
type Key struct {
	Name    string
	Request [32]byte
}

// Recipient is a recipient of a batch. A nil variable is null; an absent one is missing.
type Recipient struct {
	Number    sms.Number
	Message   string             // of a bulk send
	Variables map[string]*string // of a template send
	Reference string             // the customer's own name of the message; "": none
	Contact   int64              // its id, of a member of a group
}

// Schedule is when a request's messages are sent and when they expire. The zero Schedule: at once, and at the end of
// their validity.
type Schedule struct {
	SendAt   time.Time
	ExpireAt time.Time
}

// of sets a message's times; before its time it is scheduled.
func (s Schedule) of(m *messages.Message, now time.Time) {
	m.SendAt, m.ExpireAt, m.Scheduled = s.SendAt, s.ExpireAt, s.SendAt.After(now)
}

// Answer is the response to an accepted request: for a repetition, byte for byte the first one's body.
type Answer struct {
	Body      []byte
	Replayed  bool
	MessageID int64 // of a single message that was recorded now: the number of its webhooks; else 0
}

// Encode returns v as JSON as the API writes it: HTML characters are not escaped.
func Encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("intake: an answer does not marshal: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// admit admits a request. remaining is what its payer has after it, for the response.
func (r *request) admit(remaining int64) { r.admitted, r.body = true, Encode(r.response(remaining)) }

// kind is a request's kind, which determines what pays for it.
type kind uint8

const (
	kindSingle   kind = iota // a live message: the company's balance pays
	kindBulk                 // a batch: the company's balance pays
	kindTemplate             // a batch: the company's balance pays
	kindSMPP                 // a message, or a part of one, submitted over SMPP: the company's balance pays
	kindTest                 // a test message: the account's pool pays
	kindSandbox              // a test message to a sandbox number: free
	kindCode                 // a one-time code of the gateway: free
)

// kinds are the names, in metrics and, for batches, in the database.
var kinds = [...]string{"single", "bulk", "template", "smpp", "test", "sandbox", "code"}

// String is the kind's name.
func (k kind) String() string { return kinds[k] }

// live reports whether the company's balance pays.
func (k kind) live() bool { return k <= kindSMPP }

// alone reports whether a live request is one message, not a batch.
func (k kind) alone() bool { return k == kindSingle || k == kindSMPP }

// payer is the company whose balance a request must lock; 0: none.
func (r *request) payer() int64 {
	if r.kind == kindCode || r.kind == kindSandbox {
		return 0
	}
	return r.company
}

// conditional reports whether a request depends on more than its company's credits.
func (r *request) conditional() bool {
	return !r.kind.live() || r.segments < 1 || r.cap > 0 || r.key != nil || r.optOuts || r.part || r.first != nil
}

// debits are what the payers of requests pay.
func debits(requests []*request) []billing.Debit {
	debits := make([]billing.Debit, 0, len(requests))
	for _, r := range requests {
		if r.payer() != 0 {
			debits = append(debits, billing.Debit{CompanyID: r.company, Amount: int64(r.segments), Ref: r.ref, Cap: r.cap,
				Test: r.kind == kindTest})
		}
	}
	return debits
}

// client is what a context says about the client of a request.
type client struct {
	requestID string          // for the log
	gone      <-chan struct{} // closed when it disconnects; nil: not known
}

type clientKey struct{}

type callbackKey struct{}

// WithCallback returns a context for a request whose sender wants reports of each message.
func WithCallback(ctx context.Context, c webhooks.Callback) context.Context {
	return context.WithValue(ctx, callbackKey{}, c)
}

func callbackOf(ctx context.Context) webhooks.Callback {
	c, _ := ctx.Value(callbackKey{}).(webhooks.Callback)
	return c
}

type channelKey struct{}

// WithChannel returns a context for a request that comes by a channel. Without it the request is the API's.
func WithChannel(ctx context.Context, c messages.Channel) context.Context {
	return context.WithValue(ctx, channelKey{}, c)
}

func channelOf(ctx context.Context) messages.Channel {
	c, _ := ctx.Value(channelKey{}).(messages.Channel)
	return c
}

type partKey struct{}

// WithPart returns a context for a request whose text is one part of a long message, which its sender has cut.
func WithPart(ctx context.Context, p sms.Part) context.Context {
	return context.WithValue(ctx, partKey{}, p)
}

// asPart makes a message the part that the request's context has, if any. Its text must fit one segment.
func asPart(ctx context.Context, m *messages.Message) error {
	part, ok := ctx.Value(partKey{}).(sms.Part)
	if !ok {
		return nil
	}
	if m.Encoding == sms.UCS2 {
		part.Coding = sms.CodingUCS2
	}
	if len(part.Coding.Octets(m.Body)) > part.Coding.Most(part.Wide) {
		return RefuseTooLong
	}
	m.Origin = &messages.Origin{Urgent: m.Batch == nil, Form: messages.Form{Part: &part}}
	return nil
}

// WithClient returns a context for a client's request, where ctx ends when the client disconnects. It does not end
// then. It has the request's id, for the log lines of its messages.
func WithClient(ctx context.Context, id string) context.Context {
	return context.WithValue(context.WithoutCancel(ctx), clientKey{}, client{id, ctx.Done()})
}

func clientOf(ctx context.Context) client {
	c, _ := ctx.Value(clientKey{}).(client)
	return c
}

// ulids makes ULIDs, each greater than the one before.
type ulids struct {
	mu      sync.Mutex
	entropy *ulid.MonotonicEntropy
}

func (u *ulids) next() ulid.ULID {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := ulid.Timestamp(postgres.Now())
	if u.entropy != nil {
		if id, err := ulid.New(now, u.entropy); err == nil {
			return id
		}
	}
	u.entropy = ulid.Monotonic(rand.Reader, 0) // the first one, or the monotonic part overflowed within one millisecond
	return ulid.MustNew(now, u.entropy)
}
