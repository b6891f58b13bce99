package intake

import (
	"context"
	"crypto/rand"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"

	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/sms"
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

	client
	state atomic.Int32 // waiting, begun or answered
	done  chan struct{}
	outcome
}

// outcome is set by the committer before it closes done.
type outcome struct {
	reserved  bool // its key is reserved
	admitted  bool
	barred    error // the refusal; nil: it is allowed
	remaining int64
	firstID   int64 // of its first message
	body      []byte
	err       error
	overCap   bool  // not admitted because of its cap
	capLeft   int64 // of its cap, in that case
}

// kind is a request's kind, which determines what pays for it.
type kind uint8

const (
	kindSingle   kind = iota // a live message: the company's balance pays
	kindBulk                 // a batch: the company's balance pays
	kindTemplate             // a batch: the company's balance pays
	kindTest                 // a test message: the account's pool pays
	kindSandbox              // a test message to a sandbox number: free
	kindCode                 // a one-time code of the gateway: free
)

// kinds are the names, in metrics and, for batches, in the database.
var kinds = [...]string{"single", "bulk", "template", "test", "sandbox", "code"}

// String is the kind's name.
func (k kind) String() string { return kinds[k] }

// client is what a context says about the client of a request.
type client struct {
	requestID string          // for the log
	gone      <-chan struct{} // closed when it disconnects; nil: not known
}

type clientKey struct{}

// WithClient returns a context for a client's request, where ctx ends when the client disconnects. It does not end then.
// It has the request's id, for the log lines of its messages.
func WithClient(ctx context.Context, id string) context.Context {
	return context.WithValue(context.WithoutCancel(ctx), clientKey{}, client{id, ctx.Done()})
}

func clientOf(ctx context.Context) client {
	c, _ := ctx.Value(clientKey{}).(client)
	return c
}

// ulids makes ULIDs, each greater than the one before.
type ulids struct {
	*sync.Mutex
	entropy *ulid.MonotonicEntropy
}

func newULIDs() ulids { return ulids{new(sync.Mutex), ulid.Monotonic(rand.Reader, 0)} }

func (u *ulids) one() ulid.ULID {
	u.Lock()
	defer u.Unlock()
	return u.next()
}

// all sets every message's ULID.
func (u *ulids) all(messages []messages.Message) {
	u.Lock()
	defer u.Unlock()
	for i := range messages {
		messages[i].ULID = u.next()
	}
}

func (u *ulids) next() ulid.ULID {
	id, err := ulid.New(ulid.Timestamp(postgres.Now()), u.entropy)
	if err != nil { // the monotonic part overflowed within one millisecond
		u.entropy = ulid.Monotonic(rand.Reader, 0)
		id = ulid.MustNew(ulid.Timestamp(postgres.Now()), u.entropy)
	}
	return id
}
