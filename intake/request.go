package intake

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/sms"
)

// request is what one API call asks for, from its checks to its answer.
type request struct {
	user, company int64
	ref           ulid.ULID // the single message's or the batch's
	kind          kind
	segments      int
	messages      []*messages.Message
	key           *Key
	response      func(remaining int64) any
	refusal       sms.Refusal // what to say when it cannot be paid
	came          time.Time   // when it was handed in
	requestID     string      // its id, for the log
	cap           int64       // credits that its company may spend on a day; 0: no limit
	optOuts       bool        // recipients may have opted out

	done chan struct{}
	outcome
}

// outcome is what the committer sets before it closes done.
type outcome struct {
	reserved  bool // its key is
	admitted  bool
	barred    error // the refusal; nil: nobody forbids it
	remaining int64
	firstID   int64 // of its first message
	body      []byte
	err       error
	overCap   bool  // it was not admitted because of its cap
	capLeft   int64 // of its cap, then
}

// kind is what a request is, and who pays for it.
type kind uint8

const (
	kindSingle   kind = iota // a live message: the company's balance pays
	kindBulk                 // a batch: the company's balance pays
	kindTemplate             // a batch: the company's balance pays
	kindTest                 // a test message: the account's pool pays
	kindSandbox              // a test message to a number of the sandbox: nobody pays
	kindCode                 // a one-time code of the gateway's own: nobody pays
)

// kinds are their names, in metrics and (of batches) in the database.
var kinds = [...]string{"single", "bulk", "template", "test", "sandbox", "code"}

// String is the kind's name.
func (k kind) String() string { return kinds[k] }

// requestKey is of a request's id in its context.
type requestKey struct{}

// WithRequest lets what is logged of the messages of a request bear its id.
func WithRequest(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestKey{}, id)
}

func requestOf(ctx context.Context) string {
	id, _ := ctx.Value(requestKey{}).(string)
	return id
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

// all gives every message its ULID.
func (u *ulids) all(messages []messages.Message) {
	u.Lock()
	defer u.Unlock()
	for i := range messages {
		messages[i].ULID = u.next()
	}
}

func (u *ulids) next() ulid.ULID {
	id, err := ulid.New(ulid.Timestamp(postgres.Now()), u.entropy)
	if err != nil { // the monotonic part ran over within one millisecond
		u.entropy = ulid.Monotonic(rand.Reader, 0)
		id = ulid.MustNew(ulid.Timestamp(postgres.Now()), u.entropy)
	}
	return id
}
