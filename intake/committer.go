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

const (
	// maxRequests and maxMessages limit a group; a single request may have more messages.
	maxRequests = 500
	maxMessages = 4000
	// maxWaiting is how many requests may wait for a group. A database that commits takes them in a second.
	maxWaiting    = 10 * maxRequests
	commitTimeout = 10 * time.Second
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
	hanging  atomic.Bool  // a COMMIT got no response, and awaitCommits has not seen one succeed since
}

func newCommitter(in *Intake) *committer {
	c := &committer{in: in, requests: make(chan *request, maxWaiting), turn: make(chan struct{}, 1), push: make(chan []queue.Item, pushBacklog), closed: make(chan struct{})}
	c.turn <- struct{}{}
	c.aside = newAside(c)
	return c
}

// submit commits a request, or passes it to run. It returns when the request is committed or refused, as its fields then
// show, or when its time or ctx ends before an attempt to commit it begins. The error is ErrUnavailable, ErrKeyReused or a
// fault.
func (c *committer) submit(ctx context.Context, r *request) error {
	r.done = make(chan struct{})
	select {
	case c.turn <- struct{}{}:
		c.group(r)
	default:
		select {
		case c.requests <- r:
		default:
			return errQueueFull
		}
	}
	late := time.NewTimer(beginWithin - time.Since(r.came))
	defer late.Stop()
	select {
	case <-r.done:
		return r.err
	case <-late.C:
	case <-c.closed:
	case <-ctx.Done():
	}
	if r.state.CompareAndSwap(waiting, answered) {
		return errWaitedTooLong
	}
	<-r.done // an attempt is under way, or the answer
	return r.err
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

// group commits a request together with those that have arrived, and ends the turn.
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
			if r.state.Load() == waiting {
				requests, n = append(requests, r), n+len(r.messages)
			}
		default:
			return requests
		}
	}
	return requests
}

// process commits requests together. It sets those aside that would wait longer than patience for a locked row.
func (c *committer) process(ctx context.Context, requests []*request, patience time.Duration) {
	requests, err := c.try(ctx, requests, patience)
	if postgres.Locked(err) && !errors.Is(err, ErrKeyInUse) {
		c.setAside(ctx, requests)
		return
	}
	c.finish(ctx, requests, err)
}

// try commits requests, and tries again when the database rolled them back in favour of another transaction. They wait at
// most patience for each lock. It returns the requests that the last attempt was made for: no attempt begins for one that
// has waited too long.
func (c *committer) try(ctx context.Context, requests []*request, patience time.Duration) (tried []*request, err error) {
	if c.hanging.Load() {
		if requests = inTime(requests); len(requests) == 0 {
			return nil, nil
		}
		if err := c.awaitCommits(requests); err != nil {
			return requests, err
		}
	}
	start := time.Now()
	err = postgres.Retry(context.WithoutCancel(ctx), func() (err error) {
		tried, err = c.commit(requests, patience)
		return err
	})
	if len(tried) > 0 {
		c.in.metrics.commits.Observe(time.Since(start).Seconds())
		c.in.metrics.perCommit.Observe(float64(len(tried)))
	}
	return tried, err
}

// awaitCommits waits until the database commits, if the last COMMIT got no response. Without its synchronous standby a
// COMMIT hangs, and takes effect in the end; requests that wait here are not in doubt.
func (c *committer) awaitCommits(requests []*request) error {
	ctx, cancel := context.WithTimeout(context.Background(), min(commitTimeout, timeLeft(requests)))
	defer cancel()
	if err := postgres.Confirm(ctx, c.in.pool); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	c.hanging.Store(false)
	return nil
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
		c.hanging.Store(true)
		c.doubts.Go(func() { respond(requests, c.resolve(ctx, requests, doubt)) })
		return
	}
	respond(requests, err)
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
