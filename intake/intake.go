// Package intake turns a request into paid, recorded and queued messages, or
// refuses it in the words of rule api 7.2.
//
// It is the front half of the gateway and never calls the back half: the two
// meet in Postgres (the truth) and in the Redis streams (the queue), and the
// queue is only a hint. A request is accepted when its transaction is committed
// and by nothing else; pushing to the queue may fail without the client
// noticing, because the dispatcher finds in Postgres what the queue
// lacks.
//
// # Group commit
//
// Requests do not open transactions of their own. They are handed to one
// committer, which takes whatever came while its last transaction ran and commits
// it as one: a company's balance is one hot row, and a transaction for each
// request would allow some 1,500 a second of it, the committer more than 60,000.
// A company that cannot pay is refused for itself and a row that the database
// refuses fails its own request only.
package intake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	// ErrUnavailable: the database could not be asked or did not answer. The request is not
	// accepted and nothing was charged for it, unless the error is ErrOutcomeUnknown too; the
	// client may try again (503).
	ErrUnavailable = errors.New("the database is away")
	// ErrOutcomeUnknown is an ErrUnavailable of a request that may have been accepted, and
	// charged: its COMMIT was not answered, and what became of it cannot be found out now.
	ErrOutcomeUnknown = fmt.Errorf("%w: whether the request is accepted is not known", ErrUnavailable)
	// ErrKeyInUse: the first request with this idempotency key is still being
	// worked on (409).
	ErrKeyInUse = errors.New("a request with this idempotency key is still being processed")
	// ErrKeyReused: the idempotency key came with another request before (422).
	ErrKeyReused = errors.New("the idempotency key was already used with a different request")
)

// Options configures an Intake.
type Options struct {
	Validity    time.Duration     // of a message, default 24 h
	MaxSegments int               // of a message, default 255
	TestSender  string            // rule api 4.4.2
	TestQuota   int               // segments an account, rule api 4.4.5
	SandboxADay int               // messages to numbers of the sandbox a user and day, default 1,000
	Repeats     *throttle.Repeats // counts for the limits of companies; nil: those on repeats are not in force
	QuietHours  sms.QuietHours    // of companies that have none of their own
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

// New returns an Intake; nothing is accepted before Run.
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

// SetRoutes puts another routing table in force.
func (in *Intake) SetRoutes(routes *sms.Routes) { in.routes.Store(routes) }

// Route returns which carrier takes a number now.
func (in *Intake) Route(n sms.Number) (carrier string, ok bool) { return in.routes.Load().Carrier(n) }

// Run commits what requests bring until ctx ends and everything taken by then
// is answered. End it after the listeners: a request that comes later gets
// ErrUnavailable.
func (in *Intake) Run(ctx context.Context) error {
	var keeper sync.WaitGroup
	keeper.Go(func() { in.keepKeys(ctx) })
	defer keeper.Wait()
	return in.committer.run(ctx)
}

// Answer is what an accepted request gets: the body of the first answer, byte
// for byte, also when the request is a repetition.
type Answer struct {
	Body      []byte
	Replayed  bool
	MessageID int64 // of a single message that was recorded just now: the number of its webhooks; else 0
}

// accept is what every request goes through: a repetition gets its first answer;
// otherwise the caller must pass check, and prepare makes the order.
func (in *Intake) accept(ctx context.Context, p *accounts.Principal, key *Key,
	check func(*accounts.Principal) error, prepare func(*accounts.Principal) (*request, error)) (Answer, error) {
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
	r.key, r.requestID = key, requestOf(ctx)
	release, err := in.count(ctx, p.Company, r)
	if err != nil {
		return Answer{}, in.refused(err)
	}
	err = in.committer.submit(ctx, r)
	if errors.Is(err, errAnswered) {
		answer, done, err := in.replay(ctx, p.UserID, key)
		if err == nil && !done { // the key's life ended between the two looks
			err = ErrKeyInUse
		}
		return answer, err
	}
	if err != nil {
		// Else it may be on its way, perhaps by another process, which did not count it again: it counts.
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

// refused is why a request was not admitted.
func (r *request) refused() error {
	switch {
	case r.barred != nil:
		return r.barred
	case r.overCap:
		return r.capped()
	}
	return r.refusal
}

// size is what a company's message is on the wire and what it costs.
func size(smart bool, text string) (body string, encoding sms.Encoding, segments int) {
	body = text
	if smart {
		body = sms.Transliterate(text)
	}
	encoding, segments = sms.Count(body)
	if segments == 0 && body != text { // nothing would be left of it
		body = text
		encoding, segments = sms.Count(body)
	}
	return body, encoding, segments
}
