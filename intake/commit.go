package intake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/billing"
	"intumwa/internal/postgres"
	"intumwa/internal/queue"
	"intumwa/messages"
	"intumwa/webhooks"
)

const (
	// maxRequests and maxMessages limit a group; a single request may have more messages.
	maxRequests   = 500
	maxMessages   = 4000
	commitTimeout = 10 * time.Second
)

// writer commits groups of requests, each in one transaction.
type writer struct {
	*core
	keys    *keys
	push    chan []queue.Item // what is committed
	careful atomic.Int32      // groups that still have to read the balances first
}

// carefulGroups is how many groups read the balances first after one that could not be paid in full.
const carefulGroups = 100

// commit commits requests in one transaction, which waits at most patience for each lock. It leaves out those that are
// late and returns the others. On an error none was committed, except after inDoubt, whose outcome is unknown.
//
// Requests that can probably be paid take one round trip to PostgreSQL. If PostgreSQL refuses them, this and the next
// groups take two: the first reads the balances.
func (w *writer) commit(requests []*request, patience time.Duration) ([]*request, error) {
	if w.careful.Load() == 0 && !slices.ContainsFunc(requests, (*request).conditional) {
		tried, err := w.attempt(requests, patience, true)
		if !postgres.Refused(err) {
			return tried, err
		}
		w.careful.Store(carefulGroups)
	} else if n := w.careful.Load(); n > 0 {
		w.careful.CompareAndSwap(n, n-1)
	}
	return w.attempt(requests, patience, false)
}

func (w *writer) attempt(requests []*request, patience time.Duration, payable bool) (tried []*request, err error) {
	if tried = begin(requests); len(tried) == 0 {
		return nil, nil
	}
	err = w.transact(tried, patience, payable)
	if _, doubtful := errors.AsType[*inDoubt](err); err != nil && !doubtful {
		again(tried)
	}
	return tried, err
}

// written is what a group's transaction writes: the messages of admitted requests, in order. PostgreSQL's results are
// filled in by the time of the commit.
type written struct {
	backend  uint32    // the server process that runs the transaction
	began    time.Time // a time when that process existed
	requests []*request
	messages []*messages.Message
	ids      []int64           // of messages
	receipts []billing.Charged // of requests; none if the balances were read first
}

// inDoubt is a COMMIT without an answer.
type inDoubt struct {
	written
	err error
}

// Error returns the error of the connection.
func (e *inDoubt) Error() string { return "committing: " + e.err.Error() }

func (w *writer) transact(requests []*request, patience time.Duration, payable bool) error {
	for _, r := range requests {
		r.outcome = outcome{}
	}
	ctx, cancel := context.WithTimeout(context.Background(), min(commitTimeout, timeLeft(requests)))
	defer cancel()
	tx, err := postgres.Begin(ctx, w.pool)
	if err != nil {
		return fmt.Errorf("%w: beginning: %w", ErrUnavailable, err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // no effect after a commit

	group := written{backend: tx.Backend(), began: time.Now()}
	err = w.write(ctx, tx, requests, patience, payable, &group)
	if errors.Is(err, errRefused) {
		return nil
	}
	committing := err == nil
	if committing {
		err = tx.Commit(ctx)
	}
	switch {
	case err == nil:
		w.committed(&group)
		return nil
	case postgres.Refused(err) || postgres.GaveWay(err) || postgres.Locked(err):
		return err
	case committing && !postgres.RolledBack(err):
		return &inDoubt{written: group, err: err}
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// committed completes the requests of a group after its commit.
func (w *writer) committed(group *written) {
	first := 0
	for i, r := range group.requests {
		if group.receipts != nil {
			r.admit(group.receipts[i].Remaining)
		}
		r.firstID = group.ids[first]
		first += len(r.messages)
	}
	w.metrics.count(group.requests, w.opts.Log)
	if items := group.items(); len(items) > 0 {
		select {
		case w.push <- items:
		default:
			w.metrics.unpushed.Add(float64(len(items)))
		}
	}
}

// errRefused rolls back what a request that is refused did first.
var errRefused = errors.New("the request is refused")

// items returns the queue items of messages with known ids that are neither scheduled nor in the sandbox.
func (group *written) items() []queue.Item {
	items := make([]queue.Item, 0, len(group.ids))
	for i, m := range group.messages {
		if group.ids[i] != 0 && !m.Scheduled && !m.Sandboxed() {
			items = append(items, queue.Item{MessageID: group.ids[i], CompanyID: m.CompanyID, Carrier: m.Carrier,
				Lane: queue.Lane(m.Lane())})
		}
	}
	return items
}

// write writes the requests that can be paid, and fills group. Requests that are payable are all written, without a
// look at their balances.
func (w *writer) write(ctx context.Context, tx pgx.Tx, requests []*request, patience time.Duration, payable bool,
	group *written) (err error) {
	if r := requests[0]; r.first != nil { // it is alone
		if r.err, err = r.first(ctx, tx); err != nil {
			return err
		}
		if r.err != nil {
			return errRefused
		}
		defer func() {
			if err == nil && !r.admitted {
				err = errRefused
			}
		}()
	}
	if payable {
		group.receipts, err = billing.ChargeAll(ctx, tx, debits(requests), patience)
	} else {
		err = w.admit(ctx, tx, requests, patience)
	}
	if err != nil {
		return err
	}
	for _, r := range requests {
		if payable || r.admitted {
			group.requests, group.messages = append(group.requests, r), append(group.messages, r.messages...)
		}
	}
	if err := w.keys.remember(ctx, tx, requests); err != nil {
		return err
	}
	if len(group.messages) == 0 {
		return nil
	}
	if group.ids, err = w.messages.Insert(ctx, tx, group.messages); err != nil {
		return err
	}
	return group.expect(ctx, tx)
}

// expect records the callbacks of a group's messages.
func (group *written) expect(ctx context.Context, tx pgx.Tx) error {
	if !slices.ContainsFunc(group.requests, func(r *request) bool { return r.callback.Mask != 0 }) {
		return nil
	}
	if err := tx.SendBatch(ctx, &pgx.Batch{}).Close(); err != nil { // sets the ids
		return fmt.Errorf("inserting messages with callbacks: %w", err)
	}
	var all []webhooks.Expected
	first := 0
	for _, r := range group.requests {
		for i, m := range r.messages {
			if r.callback.Mask != 0 {
				all = append(all, webhooks.Expected{CompanyID: m.CompanyID, MessageID: group.ids[first+i], Number: m.Number,
					Callback: r.callback.For(m.Number, m.Sender, m.ULID.String())})
			}
		}
		first += len(r.messages)
	}
	return webhooks.Expect(ctx, tx, all)
}

// admit admits the requests whose person may send, whose key is free, whose recipients have not opted out, and that can
// be paid.
func (w *writer) admit(ctx context.Context, tx pgx.Tx, requests []*request, patience time.Duration) error {
	b := &pgx.Batch{}
	b.Queue(`SELECT set_config('lock_timeout', $1, true)`, strconv.FormatInt(patience.Milliseconds(), 10))
	if err := postgres.Pipeline(ctx, tx, "limiting the wait for a lock", b); err != nil {
		return err
	}
	if err := barPeople(ctx, tx, requests); err != nil {
		return err
	}
	if err := w.keys.reserve(ctx, tx, requests); err != nil {
		return err
	}
	if err := bar(ctx, tx, requests); err != nil {
		return err
	}
	return w.charge(ctx, tx, requests)
}

// charge admits the requests that can be paid. Locking the balances also runs the statements that reserve left for
// later.
func (w *writer) charge(ctx context.Context, tx pgx.Tx, requests []*request) error {
	locked, err := billing.Lock(ctx, tx, debits(requests))
	if err != nil {
		return err
	}
	var paid, sandboxed []*request
	for _, r := range requests {
		switch {
		case r.err != nil || r.barred != nil:
		case r.kind == kindCode:
			r.admit(0)
		case r.kind == kindSandbox:
			sandboxed = append(sandboxed, r)
		default:
			paid = append(paid, r)
		}
	}
	if err := w.admitSandbox(ctx, tx, sandboxed); err != nil {
		return err
	}
	receipts, err := locked.Charge(ctx, tx, debits(paid), w.opts.TestQuota)
	if err != nil {
		return err
	}
	for i, r := range paid {
		switch receipt := receipts[i]; {
		case receipt.Admitted:
			r.admit(receipt.Remaining)
		case receipt.Capped:
			r.barred = r.capped(receipt.Left)
		}
	}
	return nil
}

// admitSandbox admits messages to sandbox numbers, up to each user's daily quota.
func (w *writer) admitSandbox(ctx context.Context, tx pgx.Tx, requests []*request) error {
	if len(requests) == 0 {
		return nil
	}
	var users []int64
	for _, r := range requests {
		users = append(users, r.user)
	}
	used, err := w.messages.SandboxUsed(ctx, tx, users)
	if err != nil {
		return err
	}
	for _, r := range requests {
		if used[r.user] < w.opts.SandboxADay {
			r.admit(0)
		}
		used[r.user]++
	}
	return nil
}
