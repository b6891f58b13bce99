package intake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
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

// commit carries requests out in one transaction, which waits for no lock longer
// than patience. On an error none of them was, except that of inDoubt it is not known.
func (c *committer) commit(requests []*request, patience time.Duration) error {
	for _, r := range requests {
		r.reset()
	}
	ctx, cancel := context.WithTimeout(context.Background(), commitTimeout)
	defer cancel()
	tx, err := c.in.pool.Begin(ctx)
	if err != nil {
		return fmt.Errorf("%w: beginning: %w", ErrUnavailable, err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // after a commit it does nothing

	xid, items, err := c.write(ctx, tx, requests, patience)
	if err != nil {
		if postgres.Refused(err) || postgres.GaveWay(err) || postgres.Locked(err) {
			return err
		}
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if err := tx.Commit(ctx); err != nil {
		if postgres.GaveWay(err) {
			return err
		}
		return &inDoubt{xid: xid, items: items, err: err}
	}
	c.committed(requests, items)
	return nil
}

// committed does what follows a commit.
func (c *committer) committed(requests []*request, items []queue.Item) {
	c.count(requests)
	if len(items) > 0 {
		select {
		case c.push <- items:
		default:
			c.in.metrics.unpushed.Add(float64(len(items)))
		}
	}
}

// inDoubt is a COMMIT without an answer.
type inDoubt struct {
	xid   string
	items []queue.Item
	err   error
}

// Error says what became of the connection.
func (e *inDoubt) Error() string { return "committing: " + e.err.Error() }

// resolve finds out what became of requests in doubt. The error is nil when they
// were carried out.
func (c *committer) resolve(ctx context.Context, requests []*request, doubt *inDoubt) error {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), recheckTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(recheckGrace, cancel) })()
	committed, err := c.tookEffect(limited, requests, doubt.xid)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w; looking again: %w", ErrUnavailable, doubt, err)
	case !committed:
		return fmt.Errorf("%w: %w", ErrUnavailable, doubt)
	}
	c.committed(requests, doubt.items)
	return nil
}

func (c *committer) write(ctx context.Context, tx pgx.Tx, requests []*request, patience time.Duration) (xid string, items []queue.Item, err error) {
	if err := tx.QueryRow(ctx, `SELECT pg_current_xact_id()::text FROM set_config('lock_timeout', $1, true)`,
		strconv.FormatInt(patience.Milliseconds(), 10)).Scan(&xid); err != nil {
		return "", nil, fmt.Errorf("reading the transaction's id: %w", err)
	}
	if err := c.reserve(ctx, tx, requests); err != nil {
		return "", nil, err
	}
	if err := c.charge(ctx, tx, requests); err != nil {
		return "", nil, err
	}
	var carried, sandboxed []*request
	for _, r := range requests {
		switch {
		case !r.admitted:
			continue
		case r.kind == kindSandbox:
			sandboxed = append(sandboxed, r)
		default:
			carried = append(carried, r)
		}
		r.body = marshal(r.response(r.remaining))
	}
	if err := c.remember(ctx, tx, requests); err != nil {
		return "", nil, err
	}
	if _, _, err := record(ctx, tx, sandboxed, c.in.messages.InsertSandbox); err != nil {
		return "", nil, err
	}
	all, ids, err := record(ctx, tx, carried, c.in.messages.Insert)
	if err != nil || len(all) == 0 {
		return xid, nil, err
	}
	items = make([]queue.Item, len(all))
	for i, m := range all {
		items[i] = queue.Item{MessageID: ids[i], CompanyID: m.CompanyID, Carrier: m.Carrier, Lane: queue.Lane(m.Lane())}
	}
	return xid, items, nil
}

// record writes the messages of requests and notes the ids of the first of each.
func record(ctx context.Context, tx pgx.Tx, requests []*request, insert func(context.Context, pgx.Tx, []*messages.Message) ([]int64, error)) (
	all []*messages.Message, ids []int64, err error) {
	for _, r := range requests {
		all = append(all, r.messages...)
	}
	if len(all) == 0 {
		return nil, nil, nil
	}
	if ids, err = insert(ctx, tx, all); err != nil {
		return nil, nil, err
	}
	first := 0
	for _, r := range requests {
		r.firstID = ids[first]
		first += len(r.messages)
	}
	return all, ids, nil
}

// admitSandbox admits messages to numbers of the sandbox, up to each user's daily quota.
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

// charge admits the requests that can be paid.
func (c *committer) charge(ctx context.Context, tx pgx.Tx, requests []*request) error {
	var debits []billing.Debit
	var spends []billing.TestSpend
	var live, tests, sandboxed []*request
	for _, r := range requests {
		switch {
		case r.replayed || r.err != nil:
		case r.kind == kindCode:
			r.admitted = true
		case r.kind == kindSandbox:
			sandboxed = append(sandboxed, r)
		case r.kind == kindTest:
			tests = append(tests, r)
			spends = append(spends, billing.TestSpend{UserID: r.user, Segments: r.segments})
		default:
			live = append(live, r)
			debits = append(debits, billing.Debit{CompanyID: r.company, Amount: int64(r.segments), Ref: r.ref})
		}
	}
	if err := c.admitSandbox(ctx, tx, sandboxed); err != nil {
		return err
	}
	spent, err := billing.SpendTests(ctx, tx, spends, c.in.opts.TestQuota)
	if err != nil {
		return err
	}
	for i, r := range tests {
		r.remaining, r.admitted = int64(spent[i].Remaining), spent[i].Admitted
	}
	if len(debits) == 0 {
		return nil
	}
	receipts, err := billing.Charge(ctx, tx, debits)
	if err != nil {
		return err
	}
	for i, r := range live {
		r.remaining, r.admitted = receipts[i].Remaining, receipts[i].Admitted
	}
	return nil
}

// tookEffect finds out whether a COMMIT whose answer was lost took effect: it waits
// until the transaction is over on the server, then looks for the ULIDs it wrote.
func (c *committer) tookEffect(ctx context.Context, requests []*request, xid string) (bool, error) {
	var refs []ulid.ULID
	for _, r := range requests {
		if r.admitted {
			refs = append(refs, r.ref)
		}
	}
	if len(refs) == 0 {
		return true, nil // nothing was written; what is remembered of the keys does not matter
	}
	for {
		var status *string
		err := c.in.pool.QueryRow(ctx, `SELECT pg_xact_status($1::text::xid8)`, xid).Scan(&status)
		if err == nil && (status == nil || *status != "in progress") {
			known, err := c.in.messages.Known(ctx, refs)
			if err == nil {
				return len(known) > 0, nil
			}
		}
		select {
		case <-ctx.Done():
			return false, fmt.Errorf("whether %d requests were recorded is not known: %w", len(refs), errors.Join(err, ctx.Err()))
		case <-time.After(50 * time.Millisecond):
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
		if r.kind == kindSandbox { // nothing was debited and no segment is on its way
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

func marshal(v any) []byte {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("intake: an answer does not marshal: " + err.Error())
	}
	return []byte(strings.TrimSuffix(b.String(), "\n"))
}

// logAccepted logs at debug level the messages of a request that is committed. At
// other levels it costs nothing.
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
