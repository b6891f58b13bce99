package intake

import (
	"context"
	"slices"
	"sync"
	"time"

	"intumwa/internal/queue"
)

const (
	// maxWaiting is how many requests may wait for a group. A database that commits takes them in a second.
	maxWaiting = 10 * maxRequests
	// pushBacklog is how many commits may wait for the push to the queue; the dispatcher finds the messages of others.
	pushBacklog = 64
)

// committer commits requests in groups, one group at a time. A request that finds no commit in progress makes its own,
// in its caller's goroutine; run commits those that arrive meanwhile.
type committer struct {
	*groups
	queue    *queue.Queue
	requests chan *request
	turn     chan struct{}   // full while a group is committed, before run and after it
	life     context.Context // of run; groups are committed under it
	closed   chan struct{}
}

func newCommitter(w *writer, q *queue.Queue) *committer {
	w.push = make(chan []queue.Item, pushBacklog)
	c := &committer{groups: newGroups(w), queue: q, requests: make(chan *request, maxWaiting),
		turn: make(chan struct{}, 1), closed: make(chan struct{})}
	c.turn <- struct{}{}
	return c
}

// submit commits a request, or passes it to run. It returns when the request is committed or refused, as its fields
// then show, or when its time or ctx ends before an attempt to commit it begins. The error is ErrUnavailable,
// ErrKeyReused or a fault.
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
	requests := c.aside.take(c.life, c.gather(first), false)
	requests = slices.DeleteFunc(requests, func(r *request) bool {
		if r.first != nil {
			c.aside.all.Go(func() { c.alone(c.life, r) })
		}
		return r.first != nil
	})
	if len(requests) > 0 {
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

// runPusher puts committed messages on the queue. The dispatcher finds those that it cannot put there.
func (c *committer) runPusher() {
	failing := false
	for items := range c.push {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		err := c.queue.Push(ctx, items)
		cancel()
		if err != nil {
			c.metrics.unpushed.Add(float64(len(items)))
		}
		switch {
		case err != nil && !failing:
			c.opts.Log.Warn("pushing to redis fails; messages wait in the database", "event", "queue_push_failed", "error", err)
		case err == nil && failing:
			c.opts.Log.Info("pushing to redis succeeds again", "event", "queue_push_resumed")
		}
		failing = err != nil
	}
}
