package intake

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"intumwa/internal/postgres"
	"intumwa/queue"
)

// Bounds of one group commit.
const (
	maxRequests   = 500
	maxMessages   = 4000
	commitTimeout = 10 * time.Second
	// recheckTimeout bounds the look for what a COMMIT without an answer did: a database may come back, and clients
	// wait for 503 meanwhile. recheckGrace bounds it when the process ends. answerWithin bounds a request's time
	// with intake, because a client may be gone after api.write_timeout.
	recheckTimeout = 10 * time.Second
	recheckGrace   = 2 * time.Second
	answerWithin   = 25 * time.Second
	// carefulGroups is how many groups read the balances first after one that could not be paid in full.
	carefulGroups = 100
	// pushBacklog is how many commits may wait to be put on the queue before
	// further ones are left to the dispatcher.
	pushBacklog = 64
)

// committer commits requests in groups.
type committer struct {
	in       *Intake
	requests chan *request
	push     chan []queue.Item
	closed   chan struct{}
	doubts   sync.WaitGroup // groups whose COMMIT got no answer
	aside    *aside
	careful  atomic.Int32 // groups that still have to read the balances first
}

func newCommitter(in *Intake) *committer {
	c := &committer{in: in, requests: make(chan *request, maxRequests), push: make(chan []queue.Item, pushBacklog), closed: make(chan struct{})}
	c.aside = newAside(c)
	return c
}

// submit hands a request in and waits until it is committed or refused: its
// fields say which, the error is ErrUnavailable, ErrKeyReused or a fault. Once
// taken, a request is carried out whatever becomes of the client.
func (c *committer) submit(ctx context.Context, r *request) error {
	r.done, r.came = make(chan struct{}), time.Now()
	select {
	case c.requests <- r:
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
	case <-c.closed:
		return ErrUnavailable
	}
	select {
	case <-r.done:
		return r.err
	case <-c.closed:
		select {
		case <-r.done:
			return r.err
		default:
			return ErrUnavailable // handed in as the committer closed; nobody took it
		}
	}
}

func (c *committer) run(ctx context.Context) error {
	var pusher sync.WaitGroup
	pusher.Go(c.runPusher)
	defer func() {
		c.aside.all.Wait()
		c.doubts.Wait()
		close(c.closed)
		close(c.push)
		pusher.Wait()
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case first := <-c.requests:
			if requests := c.aside.take(ctx, c.gather(first), false); len(requests) > 0 {
				c.process(ctx, requests, groupLockWait)
			}
		}
	}
}

// gather takes what has come meanwhile, without waiting for more.
func (c *committer) gather(first *request) []*request {
	requests, n := []*request{first}, len(first.messages)
	for len(requests) < maxRequests && n < maxMessages {
		select {
		case r := <-c.requests:
			requests, n = append(requests, r), n+len(r.messages)
		default:
			return requests
		}
	}
	return requests
}

// process commits requests together. Those that would have to wait longer than patience
// for a row that another transaction has locked are set aside.
func (c *committer) process(ctx context.Context, requests []*request, patience time.Duration) {
	err := c.try(ctx, requests, patience)
	if postgres.Locked(err) && !errors.Is(err, ErrKeyInUse) {
		c.setAside(ctx, requests)
		return
	}
	c.finish(ctx, requests, err)
}

// try commits requests, again when the database rolled them back in favour of
// another transaction. They wait for no lock longer than patience.
func (c *committer) try(ctx context.Context, requests []*request, patience time.Duration) error {
	start := time.Now()
	err := postgres.Retry(context.WithoutCancel(ctx), func() error { return c.commit(requests, patience) })
	c.in.metrics.commits.Observe(time.Since(start).Seconds())
	c.in.metrics.perCommit.Observe(float64(len(requests)))
	return err
}

// finish ends requests that were tried. When the database refused them together
// they are tried again in smaller groups: a bad row, or a key that another process works
// on, fails its own request only, and one that lost to other transactions too often takes
// no other along. Requests whose COMMIT got no answer do not delay the others.
func (c *committer) finish(ctx context.Context, requests []*request, err error) {
	switch n := len(requests); {
	case n > 1 && (postgres.Refused(err) || errors.Is(err, ErrKeyInUse)):
		for _, r := range requests { // the group has waited already: a client may repeat hundreds of requests whose keys are held
			c.process(ctx, []*request{r}, time.Millisecond)
		}
		return
	case n > 1 && postgres.GaveWay(err):
		c.in.opts.Log.Warn("group commit lost to other transactions repeatedly; retrying it in halves", "event", "group_commit_halved", "requests", n, "error", err)
		c.process(ctx, requests[:n/2], groupLockWait)
		c.process(ctx, requests[n/2:], groupLockWait)
		return
	case postgres.GaveWay(err):
		err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if doubt, ok := errors.AsType[*inDoubt](err); ok {
		c.doubts.Go(func() { respond(requests, c.resolve(ctx, requests, doubt)) })
		return
	}
	respond(requests, err)
}

// respond wakes those who wait for the requests.
func respond(requests []*request, err error) {
	for _, r := range requests {
		if err != nil {
			r.outcome = outcome{}
			r.err = err
		}
		close(r.done)
	}
}

// runPusher puts committed messages on the queue. The dispatcher finds what it
// cannot put there.
func (c *committer) runPusher() {
	failing := false
	for items := range c.push {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		err := c.in.queue.Push(ctx, items)
		cancel()
		if err != nil {
			c.in.metrics.unpushed.Add(float64(len(items)))
		}
		if (err != nil) != failing {
			failing = err != nil
			if failing {
				c.in.opts.Log.Warn("pushing to redis fails; messages wait in the database", "event", "queue_push_failed", "error", err)
			} else {
				c.in.opts.Log.Info("pushing to redis succeeds again", "event", "queue_push_resumed")
			}
		}
	}
}
