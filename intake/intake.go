// Package intake turns a request into paid, recorded and queued messages, or refuses it with the texts of rule api 7.2.
//
// It is the front half of the gateway and never calls the back half: they meet in Postgres (the truth) and in the Redis
// streams (the queue, a hint). A request is accepted when its transaction is committed. The push to the queue may fail
// without consequence for the client: the dispatcher finds in Postgres what the queue lacks.
//
// # Group commit
//
// Requests have no transactions of their own. One committer takes the requests that arrived during its last transaction
// and commits them together: a company's balance is one hot row, which allows some 1,500 transactions a second; the
// committer commits more than 60,000 requests. A company that cannot pay, or a row that the database refuses, fails its
// own request only.
package intake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"intumwa/accounts"
	"intumwa/internal/throttle"
	"intumwa/messages"
	"intumwa/queue"
	"intumwa/sms"
)

// Errors that are neither a refusal nor a fault.
var (
	// ErrUnavailable: the database is unreachable or did not respond. The request is not accepted and nothing was
	// charged, unless the error is also ErrOutcomeUnknown; the client may try again (503).
	ErrUnavailable = errors.New("the database is unreachable")
	// ErrOutcomeUnknown is an ErrUnavailable of a request that may have been accepted and charged: its COMMIT got no
	// response, and its outcome cannot be found now.
	ErrOutcomeUnknown = fmt.Errorf("%w: the outcome of the request is unknown", ErrUnavailable)
	// ErrKeyInUse: the first request with this idempotency key is in progress (409).
	ErrKeyInUse = errors.New("a request with this idempotency key is still being processed")
	// ErrKeyReused: the idempotency key belongs to another request (422).
	ErrKeyReused = errors.New("the idempotency key was already used with a different request")
)

// Options configures an Intake.
type Options struct {
	Validity    time.Duration     // of a message, default 24 h
	MaxSegments int               // of a message, default 255
	TestSender  string            // rule api 4.4.2
	TestQuota   int               // segments an account, rule api 4.4.5
	SandboxADay int               // messages to sandbox numbers a user and day, default 1,000
	Repeats     *throttle.Repeats // counters for companies' limits on repeats; nil: these limits do not apply
	QuietHours  sms.QuietHours    // of companies without their own
	KeyLife     time.Duration     // how long an idempotency key is remembered (rule choices 1.10), default 24 h
	Log         *slog.Logger
	Metrics     prometheus.Registerer
}

// Intake accepts messages.
type Intake struct {
	opts      Options
	pool      *pgxpool.Pool
	accounts  *accounts.Accounts
	messages  *messages.Store
	queue     *queue.Queue
	routes    atomic.Pointer[sms.Routes]
	metrics   *metrics
	committer *committer
	keys      inUse
	ulids     ulids
}

// New returns an Intake; it accepts nothing before Run.
func New(pool *pgxpool.Pool, accounts *accounts.Accounts, store *messages.Store, q *queue.Queue, routes *sms.Routes, opts Options) *Intake {
	if opts.Validity == 0 {
		opts.Validity = 24 * time.Hour
	}
	if opts.MaxSegments == 0 {
		opts.MaxSegments = sms.MaxSegments
	}
	if opts.SandboxADay == 0 {
		opts.SandboxADay = 1000
	}
	if opts.KeyLife == 0 {
		opts.KeyLife = 24 * time.Hour
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	in := &Intake{opts: opts, pool: pool, accounts: accounts, messages: store, queue: q, metrics: newMetrics(opts.Metrics), ulids: newULIDs()}
	in.routes.Store(routes)
	in.committer = newCommitter(in)
	return in
}

// SetRoutes replaces the routing table.
func (in *Intake) SetRoutes(routes *sms.Routes) { in.routes.Store(routes) }

// Route returns the carrier of a number now.
func (in *Intake) Route(n sms.Number) (carrier string, ok bool) { return in.routes.Load().Carrier(n) }

// Run commits requests until ctx ends and all taken ones are answered. End it after the listeners: a later request gets
// ErrUnavailable.
func (in *Intake) Run(ctx context.Context) error {
	var keeper sync.WaitGroup
	keeper.Go(func() { in.keepKeys(ctx) })
	defer keeper.Wait()
	return in.committer.run(ctx)
}

// Answer is the response to an accepted request: for a repetition, byte for byte the first one's body.
type Answer struct {
	Body      []byte
	Replayed  bool
	MessageID int64 // of a single message that was recorded now: the number of its webhooks; else 0
}

// Encode returns v as JSON as the API writes it: HTML characters are not escaped.
func Encode(v any) []byte {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("intake: an answer does not marshal: " + err.Error())
	}
	return []byte(strings.TrimSuffix(b.String(), "\n"))
}

// accept handles a request: a repetition gets its first response; otherwise the caller must pass check, and prepare makes
// the request.
func (in *Intake) accept(ctx context.Context, p *accounts.Principal, key *Key,
	check func(*accounts.Principal) error, prepare func(*accounts.Principal) (*request, error)) (Answer, error) {
	came := time.Now()
	if key != nil { // confirming its answer may hang
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, came.Add(beginWithin))
		defer cancel()
	}
	if answer, done, err := in.replay(ctx, p.UserID, key); done || err != nil {
		return answer, err
	}
	leave, err := in.keys.enter(p.UserID, key)
	if err != nil {
		return Answer{}, err
	}
	defer leave()
	p, err = in.allow(ctx, p, check)
	if err != nil {
		return Answer{}, in.refused(err)
	}
	r, err := prepare(p)
	if err != nil {
		return Answer{}, in.refused(err)
	}
	r.key, r.came, r.client = key, came, clientOf(ctx)
	release, err := in.count(ctx, p.Company, r)
	if err != nil {
		return Answer{}, in.refused(err)
	}
	err = in.committer.submit(ctx, r)
	if errors.Is(err, errAnswered) {
		answer, done, err := in.replay(ctx, p.UserID, key)
		if err == nil && !done { // the key's life ended between the two look-ups
			err = ErrKeyInUse
		}
		return answer, err
	}
	if err != nil {
		// Otherwise the first request may be in progress, perhaps in another process, which did not count this one: it
		// stays counted.
		if !errors.Is(err, ErrOutcomeUnknown) && !errors.Is(err, ErrKeyInUse) {
			release()
		}
		return Answer{}, err
	}
	if !r.admitted {
		release()
		return Answer{}, in.refused(r.refused())
	}
	answer := Answer{Body: r.body}
	if r.kind == kindSingle || r.kind == kindTest || r.kind == kindSandbox {
		answer.MessageID = r.firstID
	}
	return answer, nil
}

// refused returns why a request was not admitted.
func (r *request) refused() error {
	switch {
	case r.barred != nil:
		return r.barred
	case r.overCap:
		return r.capped()
	}
	return r.refusal
}

// size returns a company's text as it is sent, its encoding and its segments.
func size(smart bool, text string) (body string, encoding sms.Encoding, segments int) {
	body = text
	if smart {
		body = sms.Transliterate(text)
	}
	encoding, segments = sms.Count(body)
	if segments == 0 && body != text { // the replaced text would be empty
		body = text
		encoding, segments = sms.Count(body)
	}
	return body, encoding, segments
}
