package intake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// commit carries orders out in one transaction, which waits for no lock longer
// than patience. On an error none of them was, but for inDoubt.
func (d *desk) commit(orders []*order, patience time.Duration) error {
	for _, o := range orders {
		o.reset()
	}
	ctx, cancel := context.WithTimeout(context.Background(), commitTimeout)
	defer cancel()
	tx, err := d.in.pool.Begin(ctx)
	if err != nil {
		return fmt.Errorf("%w: beginning: %w", ErrUnavailable, err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // after a commit it does nothing

	xid, items, err := d.write(ctx, tx, orders, patience)
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
	d.carriedOut(orders, items)
	return nil
}

// carriedOut does what follows a commit.
func (d *desk) carriedOut(orders []*order, items []queue.Item) {
	d.count(orders)
	if len(items) > 0 {
		select {
		case d.push <- items:
		default:
			d.in.metrics.unpushed.Add(float64(len(items)))
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

// resolve finds out what became of orders in doubt. The error is nil when they
// were carried out.
func (d *desk) resolve(ctx context.Context, orders []*order, doubt *inDoubt) error {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), recheckTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(recheckGrace, cancel) })()
	committed, err := d.took(limited, orders, doubt.xid)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w; looking again: %w", ErrUnavailable, doubt, err)
	case !committed:
		return fmt.Errorf("%w: %w", ErrUnavailable, doubt)
	}
	d.carriedOut(orders, doubt.items)
	return nil
}

func (d *desk) write(ctx context.Context, tx pgx.Tx, orders []*order, patience time.Duration) (xid string, items []queue.Item, err error) {
	if err := tx.QueryRow(ctx, `SELECT pg_current_xact_id()::text FROM set_config('lock_timeout', $1, true)`,
		strconv.FormatInt(patience.Milliseconds(), 10)).Scan(&xid); err != nil {
		return "", nil, fmt.Errorf("reading the transaction's id: %w", err)
	}
	if err := d.reserve(ctx, tx, orders); err != nil {
		return "", nil, err
	}
	if err := d.charge(ctx, tx, orders); err != nil {
		return "", nil, err
	}
	var carried, rehearsed []*order
	for _, o := range orders {
		switch {
		case !o.admitted:
			continue
		case o.kind == kindSandbox:
			rehearsed = append(rehearsed, o)
		default:
			carried = append(carried, o)
		}
		o.body = marshal(o.answer(o.remaining))
	}
	if err := d.remember(ctx, tx, orders); err != nil {
		return "", nil, err
	}
	if _, _, err := record(ctx, tx, rehearsed, d.in.messages.InsertSandbox); err != nil {
		return "", nil, err
	}
	all, ids, err := record(ctx, tx, carried, d.in.messages.Insert)
	if err != nil || len(all) == 0 {
		return xid, nil, err
	}
	items = make([]queue.Item, len(all))
	for i, m := range all {
		items[i] = queue.Item{MessageID: ids[i], CompanyID: m.CompanyID, Carrier: m.Carrier, Lane: queue.Lane(m.Lane())}
	}
	return xid, items, nil
}

// record writes the messages of orders and notes the ids of the first of each.
func record(ctx context.Context, tx pgx.Tx, orders []*order, insert func(context.Context, pgx.Tx, []*messages.Message) ([]int64, error)) (
	all []*messages.Message, ids []int64, err error) {
	for _, o := range orders {
		all = append(all, o.messages...)
	}
	if len(all) == 0 {
		return nil, nil, nil
	}
	if ids, err = insert(ctx, tx, all); err != nil {
		return nil, nil, err
	}
	first := 0
	for _, o := range orders {
		o.firstID = ids[first]
		first += len(o.messages)
	}
	return all, ids, nil
}

// rehearse admits messages of the sandbox, each user's as far as a day's number goes.
func (d *desk) rehearse(ctx context.Context, tx pgx.Tx, orders []*order) error {
	if len(orders) == 0 {
		return nil
	}
	var users []int64
	for _, o := range orders {
		users = append(users, o.user)
	}
	used, err := d.in.messages.SandboxUsed(ctx, tx, users)
	if err != nil {
		return err
	}
	for _, o := range orders {
		o.admitted = used[o.user] < d.in.opts.SandboxADay
		used[o.user]++
	}
	return nil
}

// charge admits the orders that can be paid.
func (d *desk) charge(ctx context.Context, tx pgx.Tx, orders []*order) error {
	var debits []billing.Debit
	var spends []billing.TestSpend
	var live, tests, rehearsals []*order
	for _, o := range orders {
		switch {
		case o.replayed || o.err != nil:
		case o.kind == kindCode:
			o.admitted = true
		case o.kind == kindSandbox:
			rehearsals = append(rehearsals, o)
		case o.kind == kindTest:
			tests = append(tests, o)
			spends = append(spends, billing.TestSpend{UserID: o.user, Segments: o.segments})
		default:
			live = append(live, o)
			debits = append(debits, billing.Debit{CompanyID: o.company, Amount: int64(o.segments), Ref: o.ref})
		}
	}
	if err := d.rehearse(ctx, tx, rehearsals); err != nil {
		return err
	}
	spent, err := billing.SpendTests(ctx, tx, spends, d.in.opts.TestQuota)
	if err != nil {
		return err
	}
	for i, o := range tests {
		o.remaining, o.admitted = int64(spent[i].Remaining), spent[i].Admitted
	}
	if len(debits) == 0 {
		return nil
	}
	receipts, err := billing.Charge(ctx, tx, debits)
	if err != nil {
		return err
	}
	for i, o := range live {
		o.remaining, o.admitted = receipts[i].Remaining, receipts[i].Admitted
	}
	return nil
}

// took finds out whether a COMMIT whose answer was lost took effect: first
// until the transaction is over on the server, then by the ULIDs it wrote.
func (d *desk) took(ctx context.Context, orders []*order, xid string) (bool, error) {
	var refs []ulid.ULID
	for _, o := range orders {
		if o.admitted {
			refs = append(refs, o.ref)
		}
	}
	if len(refs) == 0 {
		return true, nil // nothing was written; what is remembered of the keys does not matter
	}
	for {
		var status *string
		err := d.in.pool.QueryRow(ctx, `SELECT pg_xact_status($1::text::xid8)`, xid).Scan(&status)
		if err == nil && (status == nil || *status != "in progress") {
			known, err := d.in.messages.Known(ctx, refs)
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

func (d *desk) count(orders []*order) {
	m := d.in.metrics
	for _, o := range orders {
		if !o.admitted {
			continue
		}
		m.accepted.WithLabelValues(o.kind.String()).Add(float64(len(o.messages)))
		if o.kind == kindSandbox { // nothing was debited and no segment is on its way
			d.tell(o)
			continue
		}
		if o.kind != kindTest && o.kind != kindCode {
			m.debited.Add(float64(o.segments))
		}
		for _, msg := range o.messages {
			m.segments.WithLabelValues(msg.Encoding.String()).Add(float64(msg.Segments))
		}
		d.tell(o)
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
