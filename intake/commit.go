package intake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"intumwa/billing"
	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/queue"
)

// commit commits requests in one transaction, which waits at most patience for each lock. On an error none was committed,
// except after inDoubt, whose outcome is unknown.
//
// Requests that can probably be paid take one round trip to PostgreSQL. If PostgreSQL refuses them, this and the next
// groups take two: the first reads the balances.
func (c *committer) commit(requests []*request, patience time.Duration) error {
	if c.careful.Load() == 0 && !slices.ContainsFunc(requests, (*request).conditional) {
		err := c.attempt(requests, patience, true)
		if !postgres.Refused(err) {
			return err
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

func (c *committer) attempt(requests []*request, patience time.Duration, payable bool) error {
	for _, r := range requests {
		r.outcome = outcome{}
	}
	ctx, cancel := context.WithTimeout(context.Background(), commitTimeout)
	defer cancel()
	tx, err := postgres.Begin(ctx, c.in.pool)
	if err != nil {
		return fmt.Errorf("%w: beginning: %w", ErrUnavailable, err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // no effect after a commit

	w := written{backend: tx.Backend(), began: time.Now()}
	if err := c.write(ctx, tx, requests, patience, payable, &w); err != nil {
		if postgres.Refused(err) || postgres.GaveWay(err) || postgres.Locked(err) {
			return err
		}
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if err := tx.Commit(ctx); err != nil {
		if postgres.Refused(err) || postgres.GaveWay(err) || postgres.Locked(err) {
			return err
		}
		if postgres.RolledBack(err) {
			return fmt.Errorf("%w: committing: %w", ErrUnavailable, err)
		}
		return &inDoubt{written: w, err: err}
	}
	c.committed(requests, w)
	return nil
}

// written is what a group's transaction writes. PostgreSQL's results are filled in by the time of the commit.
type written struct {
	backend uint32    // the server process that runs the transaction
	began   time.Time // a time when that process existed
	recorded
}

// recorded are the messages of admitted requests in order, and their ids.
type recorded struct {
	requests []*request
	messages []*messages.Message
	ids      []int64

	paid     []*request // their receipts arrive with the commit
	receipts []billing.Receipt
}

// name sets the ids of the requests' first messages.
func (r recorded) name() {
	first := 0
	for _, q := range r.requests {
		q.firstID = r.ids[first]
		first += len(q.messages)
	}
}

// items returns the queue items of messages with known ids that are neither scheduled nor in the sandbox.
func (r recorded) items() []queue.Item {
	items := make([]queue.Item, 0, len(r.ids))
	for i, m := range r.messages {
		if r.ids[i] != 0 && !m.Later && !m.Sandboxed() {
			items = append(items, queue.Item{MessageID: r.ids[i], CompanyID: m.CompanyID, Carrier: m.Carrier, Lane: queue.Lane(m.Lane())})
		}
	}
	return items
}

// committed completes requests after their commit.
func (c *committer) committed(requests []*request, w written) {
	w.name()
	for i, r := range w.paid {
		r.remaining = w.receipts[i].Remaining
	}
	for _, r := range w.requests {
		if r.body == nil {
			r.body = Encode(r.response(r.remaining))
		}
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

// inDoubt is a COMMIT without an answer.
type inDoubt struct {
	written
	err error
}

// Error returns the error of the connection.
func (e *inDoubt) Error() string { return "committing: " + e.err.Error() }

// resolve finds out whether requests in doubt were committed; the error is nil if they were.
func (c *committer) resolve(ctx context.Context, requests []*request, doubt *inDoubt) error {
	patience := recheckTimeout
	for _, r := range requests {
		patience = min(patience, answerWithin-time.Since(r.came))
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(patience, recheckGrace))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(recheckGrace, cancel) })()
	committed, err := c.tookEffect(limited, requests, &doubt.written)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w; looking again: %w", ErrOutcomeUnknown, doubt, err)
	case !committed:
		return fmt.Errorf("%w: %w", ErrUnavailable, doubt)
	}
	for i, r := range doubt.paid {
		if doubt.receipts[i].Remaining, err = billing.New(c.in.pool).Remaining(limited, r.company, r.ref); err != nil {
			return fmt.Errorf("%w: %w; %w", ErrOutcomeUnknown, doubt, err)
		}
	}
	c.committed(requests, doubt.written)
	return nil
}

// write writes the requests that can be paid, and fills w. Requests that are payable are all written, without a look at
// their balances.
func (c *committer) write(ctx context.Context, tx pgx.Tx, requests []*request, patience time.Duration, payable bool, w *written) (err error) {
	if payable {
		if err := c.chargeAll(ctx, tx, requests, patience, w); err != nil {
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

// chargeAll admits all requests. PostgreSQL refuses the transaction if they cannot be paid.
func (c *committer) chargeAll(ctx context.Context, tx pgx.Tx, requests []*request, patience time.Duration, w *written) (err error) {
	debits := make([]billing.Debit, len(requests))
	for i, r := range requests {
		debits[i] = r.debit()
		r.admitted = true
	}
	w.paid = requests
	w.receipts, err = billing.ChargeAll(ctx, tx, debits, patience)
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

// tookEffect finds out whether a COMMIT without a response took effect. It waits until the server process that ran it has
// ended (its connection is closed, but it may still read what was sent) and its writes are safe, then looks for their
// ULIDs. A process of another database, or one that began later, has the number by chance: after a failover, or a restart
// in a container.
func (c *committer) tookEffect(ctx context.Context, requests []*request, w *written) (bool, error) {
	var refs []ulid.ULID
	for _, q := range requests {
		if q.admitted {
			refs = append(refs, q.messages[0].ULID) // another part of the campaign may have written the batch
		}
	}
	if len(refs) == 0 { // nothing was written, and stored keys do not matter
		return true, nil
	}
	for {
		var runs bool
		err := c.in.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1::bigint AND datname = current_database()
			AND (backend_start > clock_timestamp() - $2::interval) IS NOT TRUE)`, w.backend, time.Since(w.began)-time.Second).Scan(&runs)
		if err == nil && !runs {
			err = postgres.Confirm(ctx, c.in.pool)
			var known map[ulid.ULID]int64
			if err == nil {
				known, err = c.in.messages.Known(ctx, refs)
			}
			if err == nil {
				w.find(known)
				return len(known) > 0, nil
			}
		}
		select {
		case <-ctx.Done():
			return false, fmt.Errorf("the outcome of %d requests is unknown: %w", len(refs), errors.Join(err, ctx.Err()))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// find sets the ids that were lost with the response, those of single messages. The dispatcher finds batches.
func (r recorded) find(known map[ulid.ULID]int64) {
	for i, m := range r.messages {
		if r.ids[i] == 0 {
			r.ids[i] = known[m.ULID]
		}
	}
}

func (c *committer) count(requests []*request) {
	m := c.in.metrics
	for _, r := range requests {
		if !r.admitted {
			continue
		}
		m.accepted.WithLabelValues(r.kind.String()).Add(float64(len(r.messages)))
		if r.kind == kindSandbox { // nothing was debited, and no carrier gets it
			c.logAccepted(r)
			continue
		}
		if r.kind != kindTest && r.kind != kindCode {
			m.debited.Add(float64(r.segments))
		}
		for _, msg := range r.messages {
			m.segments.WithLabelValues(msg.Encoding.String()).Add(float64(msg.Segments))
		}
		c.logAccepted(r)
	}
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

// logAccepted logs a committed request's messages at debug level. At other levels it costs nothing.
func (c *committer) logAccepted(r *request) {
	log := c.in.opts.Log
	if !log.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	for _, m := range r.messages {
		fields := []any{"id", m.ULID, "kind", r.kind.String(), "company_id", m.CompanyID, "carrier", m.Carrier,
			"number", m.Number.Masked(), "segments", m.Segments}
		if r.requestID != "" {
			fields = append(fields, "request_id", r.requestID)
		}
		if m.Batch != nil {
			fields = append(fields, "batch_id", r.ref)
		}
		log.Debug("message accepted", fields...)
	}
}
