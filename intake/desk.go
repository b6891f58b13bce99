package intake

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/oklog/ulid/v2"

	"intumwa/billing"
	"intumwa/messages"
	"intumwa/queue"
)

// Bounds of one group commit.
const (
	maxOrders     = 500
	maxMessages   = 4000
	commitTimeout = 10 * time.Second
	// recheckTimeout bounds the question whether a COMMIT without an answer
	// took effect.
	recheckTimeout = 5 * time.Second
	// pushBacklog is how many commits may wait to be put on the belt before
	// further ones are left to the relay.
	pushBacklog = 64
)

// order is one request on the desk.
type order struct {
	user, company int64
	ref           ulid.ULID // the single message's or the batch's
	segments      int
	test          bool // paid from the test pool
	messages      []*messages.Message
	key           *Key
	answer        func(remaining int64) any

	// Set by the desk before done is closed.
	done      chan struct{}
	reserved  bool // its key is
	admitted  bool
	replayed  bool
	remaining int64
	body      []byte
	err       error
}

// reset forgets what an attempt that was rolled back had found.
func (o *order) reset() {
	o.reserved, o.admitted, o.replayed, o.remaining, o.body, o.err = false, false, false, 0, nil, nil
}

// desk commits orders in groups.
type desk struct {
	in     *Intake
	orders chan *order
	push   chan []queue.Item
	closed chan struct{}
}

func newDesk(in *Intake) *desk {
	return &desk{in: in, orders: make(chan *order, maxOrders), push: make(chan []queue.Item, pushBacklog), closed: make(chan struct{})}
}

// place hands an order in and waits until it is settled: its fields say how,
// the error is ErrUnavailable, ErrKeyReused or a fault. Once taken, an order
// is carried out whatever becomes of the client.
func (d *desk) place(ctx context.Context, o *order) error {
	o.done = make(chan struct{})
	select {
	case d.orders <- o:
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
	case <-d.closed:
		return ErrUnavailable
	}
	select {
	case <-o.done:
		return o.err
	case <-d.closed:
		select {
		case <-o.done:
			return o.err
		default:
			return ErrUnavailable // handed in as the desk closed; nobody took it
		}
	}
}

func (d *desk) run(ctx context.Context) error {
	var pusher sync.WaitGroup
	pusher.Go(d.runPusher)
	defer func() {
		close(d.closed)
		close(d.push)
		pusher.Wait()
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case first := <-d.orders:
			d.settle(d.gather(first))
		}
	}
}

// gather takes what has come meanwhile, without waiting for more.
func (d *desk) gather(first *order) []*order {
	orders, n := []*order{first}, len(first.messages)
	for len(orders) < maxOrders && n < maxMessages {
		select {
		case o := <-d.orders:
			orders, n = append(orders, o), n+len(o.messages)
		default:
			return orders
		}
	}
	return orders
}

// settle commits orders together, and one by one when the database refuses
// them together, so that a bad row fails its own request only.
func (d *desk) settle(orders []*order) {
	start := time.Now()
	err := d.commit(orders)
	d.in.metrics.commits.Observe(time.Since(start).Seconds())
	d.in.metrics.perCommit.Observe(float64(len(orders)))
	if err != nil && len(orders) > 1 && refusedByDatabase(err) {
		for _, o := range orders {
			d.settle([]*order{o})
		}
		return
	}
	for _, o := range orders {
		if err != nil {
			o.reset()
			o.err = err
		}
		close(o.done)
	}
}

// commit carries orders out in one transaction. On an error none of them was.
func (d *desk) commit(orders []*order) error {
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

	xid, items, err := d.write(ctx, tx, orders)
	if err != nil {
		if refusedByDatabase(err) {
			return err
		}
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if err := tx.Commit(ctx); err != nil {
		committed, recheck := d.took(orders, xid)
		if recheck != nil {
			return fmt.Errorf("%w: committing: %w; looking again: %w", ErrUnavailable, err, recheck)
		}
		if !committed {
			return fmt.Errorf("%w: committing: %w", ErrUnavailable, err)
		}
	}
	d.count(orders)
	if len(items) > 0 {
		select {
		case d.push <- items:
		default:
			d.in.metrics.unpushed.Add(float64(len(items)))
		}
	}
	return nil
}

func (d *desk) write(ctx context.Context, tx pgx.Tx, orders []*order) (xid string, items []queue.Item, err error) {
	if err := tx.QueryRow(ctx, `SELECT pg_current_xact_id()::text`).Scan(&xid); err != nil {
		return "", nil, fmt.Errorf("reading the transaction's id: %w", err)
	}
	if err := d.reserve(ctx, tx, orders); err != nil {
		return "", nil, err
	}
	if err := d.charge(ctx, tx, orders); err != nil {
		return "", nil, err
	}
	var all []*messages.Message
	for _, o := range orders {
		if o.admitted {
			o.body = marshal(o.answer(o.remaining))
			all = append(all, o.messages...)
		}
	}
	if err := d.remember(ctx, tx, orders); err != nil {
		return "", nil, err
	}
	if len(all) == 0 {
		return xid, nil, nil
	}
	ids, err := d.in.messages.Insert(ctx, tx, all)
	if err != nil {
		return "", nil, err
	}
	items = make([]queue.Item, len(all))
	for i, m := range all {
		items[i] = queue.Item{MessageID: ids[i], CompanyID: m.CompanyID, Carrier: m.Carrier, Lane: queue.Lane(m.Lane())}
	}
	return xid, items, nil
}

// charge admits the orders that can be paid.
func (d *desk) charge(ctx context.Context, tx pgx.Tx, orders []*order) error {
	var debits []billing.Debit
	var live []*order
	for _, o := range orders {
		switch {
		case o.replayed || o.err != nil:
		case o.test:
			remaining, admitted, err := billing.SpendTest(ctx, tx, o.user, o.segments, d.in.opts.TestQuota)
			if err != nil {
				return err
			}
			o.remaining, o.admitted = int64(remaining), admitted
		default:
			live = append(live, o)
			debits = append(debits, billing.Debit{CompanyID: o.company, Amount: int64(o.segments), Ref: o.ref})
		}
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
func (d *desk) took(orders []*order, xid string) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), recheckTimeout)
	defer cancel()
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

// refusedByDatabase tells a statement that the database understood and refused
// (bad data, a broken constraint) from a database in trouble.
func refusedByDatabase(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return false
	}
	switch pgErr.Code[:2] {
	case "22", "23": // data exception, integrity constraint violation
		return true
	}
	return false
}

func (d *desk) count(orders []*order) {
	m := d.in.metrics
	for _, o := range orders {
		if !o.admitted {
			continue
		}
		kind := "single"
		switch {
		case o.test:
			kind = "test"
		case o.messages[0].Batch != nil:
			kind = o.messages[0].Batch.Kind
		}
		m.accepted.WithLabelValues(kind).Add(float64(len(o.messages)))
		if !o.test {
			m.debited.Add(float64(o.segments))
		}
		for _, msg := range o.messages {
			m.segments.WithLabelValues(msg.Encoding.String()).Add(float64(msg.Segments))
		}
	}
}

// runPusher puts committed messages on the belt. What it cannot put there, the
// relay finds.
func (d *desk) runPusher() {
	failing := false
	for items := range d.push {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		err := d.in.belt.Push(ctx, items)
		cancel()
		if err != nil {
			d.in.metrics.unpushed.Add(float64(len(items)))
		}
		if (err != nil) != failing {
			failing = err != nil
			if failing {
				d.in.opts.Log.Warn("the belt takes nothing; messages wait in the database", "error", err)
			} else {
				d.in.opts.Log.Info("the belt takes messages again")
			}
		}
	}
}
