package intake

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/queue"
	"intumwa/sms"
)

// Bounds of one group commit.
const (
	maxOrders     = 500
	maxMessages   = 4000
	commitTimeout = 10 * time.Second
	// recheckTimeout bounds the question whether a COMMIT without an answer
	// took effect: long enough for a database to come back, short enough for
	// its requests to be still there (api.write_timeout). recheckGrace bounds
	// it when the process ends.
	recheckTimeout = 20 * time.Second
	recheckGrace   = 2 * time.Second
	// pushBacklog is how many commits may wait to be put on the queue before
	// further ones are left to the dispatcher.
	pushBacklog = 64
)

// order is one request on the desk.
type order struct {
	user, company int64
	ref           ulid.ULID // the single message's or the batch's
	kind          kind
	segments      int
	messages      []*messages.Message
	key           *Key
	answer        func(remaining int64) any
	refusal       sms.Refusal // what to say when it cannot be paid
	until         time.Time   // how long it waits aside
	request       string      // its id, for the log

	// Set by the desk before done is closed.
	done      chan struct{}
	reserved  bool // its key is
	admitted  bool
	replayed  bool
	remaining int64
	firstID   int64 // of its first message
	body      []byte
	err       error
}

// reset forgets what an attempt that was rolled back had found.
func (o *order) reset() {
	o.reserved, o.admitted, o.replayed, o.remaining, o.firstID, o.body, o.err = false, false, false, 0, 0, nil, nil
}

// desk commits orders in groups.
type desk struct {
	in     *Intake
	orders chan *order
	push   chan []queue.Item
	closed chan struct{}
	doubts sync.WaitGroup // groups whose COMMIT got no answer
	aside  *aside
}

func newDesk(in *Intake) *desk {
	d := &desk{in: in, orders: make(chan *order, maxOrders), push: make(chan []queue.Item, pushBacklog), closed: make(chan struct{})}
	d.aside = newAside(d)
	return d
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
		d.aside.all.Wait()
		d.doubts.Wait()
		close(d.closed)
		close(d.push)
		pusher.Wait()
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case first := <-d.orders:
			if orders := d.aside.divert(ctx, d.gather(first)); len(orders) > 0 {
				d.settle(ctx, orders)
			}
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

// settle commits orders together. Those that would have to wait for a row that
// somebody else holds are set aside.
func (d *desk) settle(ctx context.Context, orders []*order) {
	err := d.try(ctx, orders, deskPatience)
	if postgres.Locked(err) {
		d.setAside(ctx, orders)
		return
	}
	d.finish(ctx, orders, err, d.settle)
}

// try commits orders, again when the database rolled them back for another
// transaction's sake. They wait for no lock longer than patience.
func (d *desk) try(ctx context.Context, orders []*order, patience time.Duration) error {
	start := time.Now()
	err := postgres.Retry(context.WithoutCancel(ctx), func() error { return d.commit(orders, patience) })
	d.in.metrics.commits.Observe(time.Since(start).Seconds())
	d.in.metrics.perCommit.Observe(float64(len(orders)))
	return err
}

// finish answers orders that were tried, in parts when the database refused
// them together: a bad row fails its own request only, and whoever gave way to
// another transaction too often takes nobody along. A part is settled by
// settle. Orders whose COMMIT got no answer do not hold up the others.
func (d *desk) finish(ctx context.Context, orders []*order, err error, settle func(context.Context, []*order)) {
	switch n := len(orders); {
	case n > 1 && (postgres.Refused(err) || errors.Is(err, ErrKeyInUse)):
		for _, o := range orders {
			settle(ctx, []*order{o})
		}
		return
	case n > 1 && postgres.GaveWay(err):
		d.in.opts.Log.Warn("a group gave way to other transactions too often; it is tried in halves", "requests", n, "error", err)
		settle(ctx, orders[:n/2])
		settle(ctx, orders[n/2:])
		return
	case postgres.GaveWay(err):
		err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if doubt, ok := errors.AsType[*inDoubt](err); ok {
		d.doubts.Go(func() { answer(orders, d.resolve(ctx, orders, doubt)) })
		return
	}
	answer(orders, err)
}

// answer lets the requests go on.
func answer(orders []*order, err error) {
	for _, o := range orders {
		if err != nil {
			o.reset()
			o.err = err
		}
		close(o.done)
	}
}

// runPusher puts committed messages on the queue. What it cannot put there, the
// dispatcher finds.
func (d *desk) runPusher() {
	failing := false
	for items := range d.push {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		err := d.in.queue.Push(ctx, items)
		cancel()
		if err != nil {
			d.in.metrics.unpushed.Add(float64(len(items)))
		}
		if (err != nil) != failing {
			failing = err != nil
			if failing {
				d.in.opts.Log.Warn("pushing to redis fails; messages wait in the database", "error", err)
			} else {
				d.in.opts.Log.Info("pushing to redis succeeds again")
			}
		}
	}
}
