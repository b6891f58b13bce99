// Package intake turns a request into paid, recorded and queued messages, or
// refuses it in the words of contract 7.2.
//
// It is the front half of the gateway and never calls the back half: the two
// meet in Postgres (the truth) and in the Redis streams (the belt), and the
// belt is only a hint. A request is accepted when its transaction is committed
// and by nothing else; pushing to the belt may fail without the client
// noticing, because the dispatcher's relay finds in Postgres what the belt
// lacks.
//
// # Group commit
//
// Requests do not open transactions of their own. Each puts an order on one
// desk (batcher), which takes whatever came while its last transaction ran and
// commits it as one: one company is one hot row, and a transaction a request
// would allow some 1,500 a second of it, the desk more than 60,000
// (performance.md). A company that cannot pay is refused for itself and a row
// that the database refuses fails its own request only.
package intake

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"

	"intumwa/accounts"
	"intumwa/messages"
	"intumwa/queue"
	"intumwa/sms"
)

// Refusals without substituted values (contract 7.2; decisions.md for those it
// does not show).
var (
	refuseNoCompany       = sms.Refusal{Reason: "no_company", Text: "You must create a company before sending messages."}
	refuseNotApproved     = sms.Refusal{Reason: "company_not_approved", Text: "Your company must be approved before sending messages."}
	refuseNotVerified     = sms.Refusal{Reason: "company_not_verified", Text: "Your company must be verified before sending messages."}
	refuseSenderUnknown   = sms.Refusal{Reason: "sender_not_found", Text: "Sender not found."}
	refuseSenderUnready   = sms.Refusal{Reason: "sender_not_approved", Text: "The sender must be approved before sending messages."}
	refuseNoCarrier       = sms.Refusal{Reason: "no_carrier", Text: "No carrier serves this phone number."}
	refuseNoTestNumber    = sms.Refusal{Reason: "no_test_number", Text: "Verify a test number before sending test messages."}
	refuseOtherTestNumber = sms.Refusal{Reason: "other_test_number", Text: "Test messages can only be sent to your verified test number."}
	refuseTestQuota       = sms.Refusal{Reason: "test_quota", Text: "Test quota exceeded."}
)

const textQueued = "Message queued for delivery."

// Errors that are neither a refusal nor a fault.
var (
	// ErrUnavailable says that the database could not be asked or did not
	// answer: nothing was charged, the client may try again (503).
	ErrUnavailable = errors.New("the database is away")
	// ErrKeyInUse: the first request with this idempotency key is still being
	// worked on (409).
	ErrKeyInUse = errors.New("a request with this idempotency key is still being processed")
	// ErrKeyReused: the idempotency key came with another request before (422).
	ErrKeyReused = errors.New("the idempotency key was already used with a different request")
)

// Options configures an Intake.
type Options struct {
	Validity    time.Duration // of a message, default 24 h
	MaxSegments int           // of a message, default 255
	TestSender  string        // contract 4.4.2
	TestQuota   int           // segments an account, contract 4.4.5
	Log         *slog.Logger
	Metrics     prometheus.Registerer
}

// Intake accepts messages.
type Intake struct {
	opts     Options
	pool     *pgxpool.Pool
	accounts *accounts.Accounts
	messages *messages.Store
	belt     *queue.Belt
	routes   atomic.Pointer[sms.Routes]
	metrics  *metrics
	desk     *desk
	keys     inUse

	ulids struct {
		sync.Mutex
		entropy *ulid.MonotonicEntropy
	}
}

// New returns an Intake; nothing is accepted before Run.
func New(pool *pgxpool.Pool, accounts *accounts.Accounts, store *messages.Store, belt *queue.Belt, routes *sms.Routes, opts Options) *Intake {
	if opts.Validity == 0 {
		opts.Validity = 24 * time.Hour
	}
	if opts.MaxSegments == 0 {
		opts.MaxSegments = sms.MaxSegments
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	in := &Intake{opts: opts, pool: pool, accounts: accounts, messages: store, belt: belt, metrics: newMetrics(opts.Metrics)}
	in.routes.Store(routes)
	in.ulids.entropy = ulid.Monotonic(rand.Reader, 0)
	in.desk = newDesk(in)
	return in
}

// SetRoutes puts another routing table in force.
func (in *Intake) SetRoutes(routes *sms.Routes) { in.routes.Store(routes) }

// Run commits what requests bring until ctx ends and everything taken by then
// is answered. End it after the listeners: a request that comes later gets
// ErrUnavailable.
func (in *Intake) Run(ctx context.Context) error { return in.desk.run(ctx) }

// Accepted is the answer to a single send (contract 2.1).
type Accepted struct {
	ID             ulid.ULID  `json:"id"`
	ItemCount      int        `json:"item_count"`
	RemainingItems int64      `json:"remaining_items"`
	Status         string     `json:"status"`
	To             sms.Number `json:"to"`
	Sender         string     `json:"sender"`
	Message        string     `json:"message"`
}

// Answer is what an accepted request gets: the body of the first answer, byte
// for byte, also when the request is a repetition.
type Answer struct {
	Body     []byte
	Replayed bool
}

// Single is a valid single send (contract 4.1).
type Single struct {
	Number  sms.Number
	Sender  string
	Message string
	Key     *Key
}

// Send accepts a single message, live or (by its sender) in test mode. It
// answers sms.Refusal, ErrUnavailable, ErrKeyInUse, ErrKeyReused, or a fault.
func (in *Intake) Send(ctx context.Context, p *accounts.Principal, req Single) (Answer, error) {
	if answer, done, err := in.replay(ctx, p.UserID, req.Key); done || err != nil {
		return answer, err
	}
	leave, err := in.keys.enter(p.UserID, req.Key)
	if err != nil {
		return Answer{}, err
	}
	defer leave()

	test := in.opts.TestSender != "" && req.Sender == in.opts.TestSender
	check := func(p *accounts.Principal) error { return in.maySend(p, req) }
	if test {
		check = func(p *accounts.Principal) error { return maySendTest(p, req) }
	}
	p, err = in.allow(ctx, p, check)
	if err != nil {
		return Answer{}, in.refused(err)
	}
	carrier, ok := in.routes.Load().Carrier(req.Number)
	if !ok {
		return Answer{}, in.refused(refuseNoCarrier)
	}
	body := req.Message
	if p.Company.SmartEncoding {
		body = sms.Transliterate(body)
	}
	encoding, segments := sms.Count(body)
	m := &messages.Message{
		ULID: in.ulid(), CompanyID: p.Company.ID, UserID: p.UserID, Number: req.Number, Sender: req.Sender, Body: body,
		Encoding: encoding, Segments: segments, Carrier: carrier, Test: test, Validity: in.opts.Validity,
	}
	o := &order{
		user: p.UserID, company: p.Company.ID, ref: m.ULID, segments: segments, test: test, messages: []*messages.Message{m}, key: req.Key,
		answer: func(remaining int64) any {
			return Accepted{ID: m.ULID, ItemCount: segments, RemainingItems: remaining, Status: "queued", To: m.Number, Sender: m.Sender, Message: textQueued}
		},
	}
	if err := in.desk.place(ctx, o); err != nil {
		return Answer{}, in.refused(err)
	}
	switch {
	case o.replayed, o.admitted:
		return Answer{Body: o.body, Replayed: o.replayed}, nil
	case test:
		return Answer{}, in.refused(refuseTestQuota)
	}
	return Answer{}, in.refused(insufficient("message", segments))
}

// maySend checks the rules of a live single send in the order of contract 7.2.
func (in *Intake) maySend(p *accounts.Principal, req Single) error {
	switch sender, known := senderOf(p, req.Sender); {
	case p.Company == nil:
		return refuseNoCompany
	case !p.Company.Approved:
		return refuseNotApproved
	case !known:
		return refuseSenderUnknown
	case !sender.Approved:
		return refuseSenderUnready
	}
	return nil
}

// maySendTest checks the rules of contract 4.4.
func maySendTest(p *accounts.Principal, req Single) error {
	switch {
	case p.Company == nil:
		return refuseNoCompany
	case p.TestNumber == "":
		return refuseNoTestNumber
	case p.TestNumber != req.Number:
		return refuseOtherTestNumber
	}
	return nil
}

func senderOf(p *accounts.Principal, name string) (accounts.Sender, bool) {
	if p.Company == nil {
		return accounts.Sender{}, false
	}
	sender, ok := p.Company.Senders[name]
	return sender, ok
}

// allow applies a check to the caller as cached and, before it refuses, once
// more to the caller as the database has it now: an approval given a moment
// ago counts at once.
func (in *Intake) allow(ctx context.Context, p *accounts.Principal, check func(*accounts.Principal) error) (*accounts.Principal, error) {
	if check(p) == nil {
		return p, nil
	}
	fresh, err := in.accounts.Fresh(ctx, p)
	if errors.Is(err, accounts.ErrUnauthenticated) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return fresh, check(fresh)
}

func (in *Intake) refused(err error) error {
	if refusal, ok := errors.AsType[sms.Refusal](err); ok {
		in.metrics.refused.WithLabelValues(refusal.Reason).Inc()
	}
	return err
}

// insufficient is the refusal of contract 7.2 (batch) and decisions.md
// (message), with its :credits and :unit.
func insufficient(what string, credits int) sms.Refusal {
	unit := "credits"
	if credits == 1 {
		unit = "credit"
	}
	return sms.Refusal{Reason: "insufficient_credits",
		Text: "Insufficient SMS credits. This " + what + " requires " + strconv.Itoa(credits) + " " + unit + "."}
}

func (in *Intake) ulid() ulid.ULID {
	in.ulids.Lock()
	defer in.ulids.Unlock()
	id, err := ulid.New(ulid.Now(), in.ulids.entropy)
	if err != nil { // the monotonic part ran over within one millisecond
		in.ulids.entropy = ulid.Monotonic(rand.Reader, 0)
		id = ulid.MustNew(ulid.Now(), in.ulids.entropy)
	}
	return id
}

func marshal(v any) []byte {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("intake: an answer does not marshal: " + err.Error())
	}
	return []byte(strings.TrimSuffix(b.String(), "\n"))
}
