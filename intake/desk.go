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
	// commitTries is how often a group is committed that the database gave up
	// for another transaction's sake.
	commitTries = 3
	// pushBacklog is how many commits may wait to be put on the belt before
	// further ones are left to the relay.
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
	doubts sync.WaitGroup // groups whose COMMIT got no answer
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
			d.settle(ctx, d.gather(first))
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
// them together, so that a bad row fails its own request only. Orders whose
// COMMIT got no answer do not hold up the others.
func (d *desk) settle(ctx context.Context, orders []*order) {
	start := time.Now()
	err := d.commit(orders)
	for try := 1; try < commitTries && postgres.GaveWay(err); try++ {
		err = d.commit(orders)
	}
	d.in.metrics.commits.Observe(time.Since(start).Seconds())
	d.in.metrics.perCommit.Observe(float64(len(orders)))
	if len(orders) > 1 && (postgres.Refused(err) || errors.Is(err, ErrKeyInUse)) {
		for _, o := range orders {
			d.settle(ctx, []*order{o})
		}
		return
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
