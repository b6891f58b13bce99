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
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/accounts"
	"intumwa/accounts/testnumbers"
	"intumwa/internal/queue"
	"intumwa/messages"
	"intumwa/sms"
)

// Intake accepts messages.
type Intake struct {
	*core
	*keys
	*routing
	callers     Callers
	testNumbers *testnumbers.Store
	committer   *committer
	ulids       ulids
}

// Callers tells who calls.
type Callers interface {
	// Fresh returns a caller as the database has it now.
	Fresh(ctx context.Context, p *accounts.Principal) (*accounts.Principal, error)
}

// New returns an Intake; it accepts nothing before Run.
func New(pool *pgxpool.Pool, callers Callers, testNumbers *testnumbers.Store, store *messages.Store, q *queue.Queue,
	routes *sms.Routes, opts Options) *Intake {
	opts.Validity = cmp.Or(opts.Validity, 24*time.Hour)
	opts.MaxSegments = cmp.Or(opts.MaxSegments, sms.MaxSegments)
	opts.SandboxADay = cmp.Or(opts.SandboxADay, 1000)
	opts.KeyLife = cmp.Or(opts.KeyLife, 24*time.Hour)
	opts.Log = cmp.Or(opts.Log, slog.New(slog.DiscardHandler))
	shared := &core{opts, pool, store, newMetrics(opts.Metrics), make(chan struct{}, verificationTurns)}
	in := &Intake{core: shared, callers: callers, testNumbers: testNumbers, keys: &keys{core: shared},
		routing: newRouting(routes)}
	in.committer = newCommitter(&writer{core: shared, keys: in.keys}, q)
	return in
}

// Run commits requests until ctx ends and all taken ones are answered. End it after the listeners: a later request gets
// ErrUnavailable.
func (in *Intake) Run(ctx context.Context) error {
	var keeper sync.WaitGroup
	keeper.Go(func() { in.forgetAll(ctx) })
	defer keeper.Wait()
	return in.committer.run(ctx)
}

// accept handles a request: a repetition gets its first response; otherwise the caller must pass check, and prepare
// makes the request.
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
	leave, err := in.enter(p.UserID, key)
	if err != nil {
		return Answer{}, err
	}
	defer leave()
	p, err = in.allow(ctx, p, check)
	if err != nil {
		return Answer{}, in.refused(err)
	}
	r, err := prepare(p)
	if refusal, _ := errors.AsType[sms.Refusal](err); refusal.Reason == RefuseUnregistered.Reason {
		// it depends on the cached sender too
		if p, err = in.fresh(ctx, p, check); err == nil {
			r, err = prepare(p)
		}
	}
	if err != nil {
		return Answer{}, in.refused(err)
	}
	r.key, r.came, r.client, r.callback = key, came, clientOf(ctx), callbackOf(ctx)
	if channel := channelOf(ctx); channel != messages.API {
		for _, m := range r.messages {
			m.Channel = channel
			if err := asPart(ctx, m); err != nil {
				return Answer{}, in.refused(err)
			}
		}
	}
	counted, err := in.limit(ctx, p.Company, r)
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
			counted.Undo(ctx)
		}
		return Answer{}, err
	}
	if !r.admitted {
		counted.Undo(ctx)
		return Answer{}, in.refused(cmp.Or(r.barred, error(r.refusal)))
	}
	answer := Answer{Body: r.body}
	if r.kind == kindSingle || r.kind == kindTest || r.kind == kindSandbox {
		answer.MessageID = r.firstID
	}
	return answer, nil
}

// allow checks the caller, who must have a company, as cached and, before it refuses, as the database has it now: a
// recent approval counts at once.
func (in *Intake) allow(ctx context.Context, p *accounts.Principal, check func(*accounts.Principal) error) (
	*accounts.Principal, error) {
	if p.Company != nil && check(p) == nil {
		return p, nil
	}
	return in.fresh(ctx, p, check)
}

// fresh checks the caller as the database has it now.
func (in *Intake) fresh(ctx context.Context, p *accounts.Principal, check func(*accounts.Principal) error) (
	*accounts.Principal, error) {
	fresh, err := in.callers.Fresh(ctx, p)
	switch {
	case errors.Is(err, accounts.ErrUnauthenticated):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	case fresh.Company == nil:
		return nil, RefuseNoCompany
	}
	return fresh, check(fresh)
}

// refused counts a refusal.
func (in *Intake) refused(err error) error {
	if refusal, ok := errors.AsType[sms.Refusal](err); ok {
		in.metrics.refused.WithLabelValues(refusal.Reason).Inc()
	}
	return err
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
