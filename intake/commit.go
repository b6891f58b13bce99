package intake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/billing"
	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/queue"
)

// carefulGroups is how many groups read the balances first after one that could not be paid in full.
const carefulGroups = 100

// commit commits requests in one transaction, which waits at most patience for each lock. It leaves out those that are
// late and returns the others. On an error none was committed, except after inDoubt, whose outcome is unknown.
//
// Requests that can probably be paid take one round trip to PostgreSQL. If PostgreSQL refuses them, this and the next
// groups take two: the first reads the balances.
func (c *committer) commit(requests []*request, patience time.Duration) ([]*request, error) {
	if c.careful.Load() == 0 && !slices.ContainsFunc(requests, (*request).conditional) {
		tried, err := c.attempt(requests, patience, true)
		if !postgres.Refused(err) {
			return tried, err
		}
		c.careful.Store(carefulGroups)
	} else if n := c.careful.Load(); n > 0 {
		c.careful.CompareAndSwap(n, n-1)
	}
	return c.attempt(requests, patience, false)
}

// conditional reports whether a request depends on more than its company's credits.
func (r *request) conditional() bool {
	return r.kind > kindTemplate || r.segments < 1 || r.cap > 0 || r.key != nil || r.optOuts
}

func (c *committer) attempt(requests []*request, patience time.Duration, payable bool) (tried []*request, err error) {
	if tried = begin(requests); len(tried) == 0 {
		return nil, nil
	}
	err = c.transact(tried, patience, payable)
	if _, doubtful := errors.AsType[*inDoubt](err); err != nil && !doubtful {
		again(tried)
	}
	return tried, err
}

func (c *committer) transact(requests []*request, patience time.Duration, payable bool) error {
	for _, r := range requests {
		r.outcome = outcome{}
	}
	ctx, cancel := context.WithTimeout(context.Background(), min(commitTimeout, timeLeft(requests)))
	defer cancel()
	tx, err := postgres.Begin(ctx, c.in.pool)
	if err != nil {
		return fmt.Errorf("%w: beginning: %w", ErrUnavailable, err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // no effect after a commit

	w := written{backend: tx.Backend(), began: time.Now()}
	err = c.write(ctx, tx, requests, patience, payable, &w)
	committing := err == nil
	if committing {
		err = tx.Commit(ctx)
	}
	switch {
	case err == nil:
		c.committed(requests, w)
		return nil
	case postgres.Refused(err) || postgres.GaveWay(err) || postgres.Locked(err):
		return err
	case committing && !postgres.RolledBack(err):
		return &inDoubt{written: w, err: err}
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// written is what a group's transaction writes: the messages of admitted requests, in order. PostgreSQL's results are
// filled in by the time of the commit.
type written struct {
	backend  uint32    // the server process that runs the transaction
	began    time.Time // a time when that process existed
	requests []*request
	messages []*messages.Message
	ids      []int64           // of messages
	receipts []billing.Receipt // of requests; none if the balances were read first
}

// items returns the queue items of messages with known ids that are neither scheduled nor in the sandbox.
func (w *written) items() []queue.Item {
	items := make([]queue.Item, 0, len(w.ids))
	for i, m := range w.messages {
		if w.ids[i] != 0 && !m.Scheduled && !m.Sandboxed() {
			items = append(items, queue.Item{MessageID: w.ids[i], CompanyID: m.CompanyID, Carrier: m.Carrier, Lane: queue.Lane(m.Lane())})
		}
	}
	return items
}

// committed completes requests after their commit.
func (c *committer) committed(requests []*request, w written) {
	first := 0
	for i, r := range w.requests {
		if w.receipts != nil {
			r.remaining = w.receipts[i].Remaining
			r.body = Encode(r.response(r.remaining))
		}
		r.firstID = w.ids[first]
		first += len(r.messages)
	}
	c.count(requests)
	if items := w.items(); len(items) > 0 {
		select {
		case c.push <- items:
		default:
			c.in.metrics.unpushed.Add(float64(len(items)))
		}
	}
}

// write writes the requests that can be paid, and fills w. Requests that are payable are all written, without a look at
// their balances.
func (c *committer) write(ctx context.Context, tx pgx.Tx, requests []*request, patience time.Duration, payable bool, w *written) (err error) {
	if payable {
		debits := make([]billing.Debit, len(requests))
		for i, r := range requests {
			debits[i] = r.debit()
			r.admitted = true
		}
		if w.receipts, err = billing.ChargeAll(ctx, tx, debits, patience); err != nil {
			return err
		}
	} else {
		b := &pgx.Batch{}
		b.Queue(`SELECT set_config('lock_timeout', $1, true)`, strconv.FormatInt(patience.Milliseconds(), 10))
		if err := postgres.Later(ctx, tx, "limiting the wait for a lock", b); err != nil {
			return err
		}
		if err := c.reserve(ctx, tx, requests); err != nil {
			return err
		}
		if err := c.bar(ctx, tx, requests); err != nil {
			return err
		}
		if err := c.charge(ctx, tx, requests); err != nil {
			return err
		}
	}
	for _, q := range requests {
		if !q.admitted {
			continue
		}
		w.requests, w.messages = append(w.requests, q), append(w.messages, q.messages...)
		if !payable {
			q.body = Encode(q.response(q.remaining))
		}
	}
	if err := c.remember(ctx, tx, requests); err != nil {
		return err
	}
	if len(w.messages) > 0 {
		w.ids, err = c.in.messages.Insert(ctx, tx, w.messages)
	}
	return err
}

func (r *request) debit() billing.Debit {
	return billing.Debit{CompanyID: r.company, Amount: int64(r.segments), Ref: r.ref, Cap: r.cap, Test: r.kind == kindTest}
}

// admitSandbox admits messages to sandbox numbers, up to each user's daily quota.
func (c *committer) admitSandbox(ctx context.Context, tx pgx.Tx, requests []*request) error {
	if len(requests) == 0 {
		return nil
	}
	var users []int64
	for _, r := range requests {
		users = append(users, r.user)
	}
	used, err := c.in.messages.SandboxUsed(ctx, tx, users)
	if err != nil {
		return err
	}
	for _, r := range requests {
		r.admitted = used[r.user] < c.in.opts.SandboxADay
		used[r.user]++
	}
	return nil
}

// charge admits the requests that can be paid. Locking the balances also runs the statements that reserve left for later.
func (c *committer) charge(ctx context.Context, tx pgx.Tx, requests []*request) error {
	debits := make([]billing.Debit, 0, len(requests))
	for _, r := range requests {
		if r.payer() != 0 {
			debits = append(debits, r.debit())
		}
	}
	locked, err := billing.Lock(ctx, tx, debits)
	if err != nil {
		return err
	}
	debits = debits[:0]
	var paid, sandboxed []*request
	for _, r := range requests {
		switch {
		case r.err != nil || r.barred != nil:
		case r.kind == kindCode:
			r.admitted = true
		case r.kind == kindSandbox:
			sandboxed = append(sandboxed, r)
		default:
			paid, debits = append(paid, r), append(debits, r.debit())
		}
	}
	if err := c.admitSandbox(ctx, tx, sandboxed); err != nil {
		return err
	}
	receipts, err := locked.Charge(ctx, tx, debits, c.in.opts.TestQuota)
	if err != nil {
		return err
	}
	for i, r := range paid {
		r.remaining, r.admitted = receipts[i].Remaining, receipts[i].Admitted
		r.overCap, r.capLeft = receipts[i].Capped, receipts[i].Left
	}
	return nil
}
