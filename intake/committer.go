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
	// recheckTimeout bounds the search for the outcome of a COMMIT without a response: a database may come back, and
	// clients wait for 503 meanwhile. recheckGrace bounds it when the process ends. answerWithin bounds a request's time
	// in intake, because a client may be gone after api.write_timeout.
	recheckTimeout = 10 * time.Second
	recheckGrace   = 2 * time.Second
	answerWithin   = 25 * time.Second
	// carefulGroups is how many groups read the balances first after one that could not be paid in full.
	carefulGroups = 100
	// pushBacklog is how many commits may wait for the push to the queue; the dispatcher finds the messages of others.
	pushBacklog = 64
)

// committer commits requests in groups, one group at a time. A request that finds no commit in progress makes its own, in
// its caller's goroutine; run commits those that arrive meanwhile.
type committer struct {
	in       *Intake
	requests chan *request
	turn     chan struct{}   // full while a group is committed, before run and after it
	life     context.Context // of run; groups are committed under it
	push     chan []queue.Item
	closed   chan struct{}
	doubts   sync.WaitGroup // groups whose COMMIT got no response
	aside    *aside
	careful  atomic.Int32 // groups that still have to read the balances first
}

func newCommitter(in *Intake) *committer {
	c := &committer{in: in, requests: make(chan *request, maxRequests), turn: make(chan struct{}, 1), push: make(chan []queue.Item, pushBacklog), closed: make(chan struct{})}
	c.turn <- struct{}{}
	c.aside = newAside(c)
	return c
}

// submit commits a request, or passes it to run. It returns when the request is committed or refused, as its fields then
// show. The error is ErrUnavailable, ErrKeyReused or a fault. Once taken, a request continues when the client disconnects.
func (c *committer) submit(ctx context.Context, r *request) error {
	r.done, r.came = make(chan struct{}), time.Now()
	select {
	case c.turn <- struct{}{}:
		c.group(r)
	default:
		select {
		case c.requests <- r:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
		case <-c.closed:
			return ErrUnavailable
		}
	}
	select {
	case <-r.done:
		return r.err
	case <-c.closed:
		select {
		case <-r.done:
			return r.err
		default:
			return ErrUnavailable // passed in as the committer closed, and not taken
		}
	}
}

func (c *committer) run(ctx context.Context) error {
	var pusher sync.WaitGroup
	pusher.Go(c.runPusher)
	c.life = ctx
	<-c.turn
	defer func() {
		c.turn <- struct{}{}
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
			c.turn <- struct{}{}
			c.group(first)
		}
	}
}

// group commits a request together with those that have arrived, and gives back the turn.
func (c *committer) group(first *request) {
	defer func() { <-c.turn }()
	if requests := c.aside.take(c.life, c.gather(first), false); len(requests) > 0 {
		c.process(c.life, requests, groupLockWait)
	}
}

// gather takes the requests that have arrived, without waiting for more.
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

// process commits requests together. It sets those aside that would wait longer than patience for a locked row.
func (c *committer) process(ctx context.Context, requests []*request, patience time.Duration) {
	err := c.try(ctx, requests, patience)
	if postgres.Locked(err) && !errors.Is(err, ErrKeyInUse) {
		c.setAside(ctx, requests)
		return
	}
	c.finish(ctx, requests, err)
}

// try commits requests, and tries again when the database rolled them back in favour of another transaction. They wait at
// most patience for each lock.
func (c *committer) try(ctx context.Context, requests []*request, patience time.Duration) error {
	start := time.Now()
	err := postgres.Retry(context.WithoutCancel(ctx), func() error { return c.commit(requests, patience) })
	c.in.metrics.commits.Observe(time.Since(start).Seconds())
	c.in.metrics.perCommit.Observe(float64(len(requests)))
	return err
}

// finish completes requests after an attempt. When the database refused the group, it tries smaller groups: a bad row, or
// a key that another process works on, fails its own request only, and a request that loses to other transactions too
// often takes no others along. Requests whose COMMIT got no response do not delay the others.
func (c *committer) finish(ctx context.Context, requests []*request, err error) {
	switch n := len(requests); {
	case n > 1 && (postgres.Refused(err) || errors.Is(err, ErrKeyInUse)):
		for _, r := range requests { // the group has waited already: a client may repeat hundreds of requests whose keys are in use
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

// respond wakes the requests' callers.
func respond(requests []*request, err error) {
	for _, r := range requests {
		if err != nil {
			r.outcome = outcome{}
			r.err = err
		}
		close(r.done)
	}
}

// runPusher puts committed messages on the queue. The dispatcher finds those that it cannot put there.
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
