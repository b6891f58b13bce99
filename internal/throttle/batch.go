package throttle

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// batcher counts many requests in one call of Redis: a request makes the call in its own
// goroutine unless one is in progress. Requests that arrive during a call share the next
// one, with one count per user. One call per request would cost a busy gateway a sixth of
// its time.
type batcher struct {
	t       *Throttle
	mu      sync.Mutex
	calling bool
	next    *batch
}

// batch is one call of Redis for the requests that came before it started.
type batch struct {
	users    []int64
	requests map[int64]int // by user
	done     chan struct{} // closed when answers or err is set
	answers  map[int64]count
	err      error
}

// count counts a user's request and waits for the result: at most for Timeout, and for as long again if a call is in
// progress.
func (g *batcher) count(user int64) (count, error) {
	g.mu.Lock()
	f := g.next
	if f == nil {
		f = &batch{requests: make(map[int64]int), done: make(chan struct{})}
		g.next = f
	}
	if f.requests[user] == 0 {
		f.users = append(f.users, user)
	}
	turn := f.requests[user] // this user's earlier requests in the batch
	f.requests[user]++
	call := !g.calling
	g.calling = true
	g.mu.Unlock()
	if call {
		g.call()
	} else {
		<-f.done
	}
	if f.err != nil {
		return count{}, f.err
	}
	answer := f.answers[user]
	if answer.requests < 0 {
		return count{}, errForeign
	}
	// A user's requests in a batch are counted together and pass in their order of
	// arrival.
	answer.pass = turn < answer.passed
	answer.requests = answer.requests - answer.passed + min(turn+1, answer.passed)
	return answer, nil
}

// call makes the next call of Redis. If requests have come meanwhile, another goroutine
// makes theirs.
func (g *batcher) call() {
	g.mu.Lock()
	f := g.next
	g.next = nil
	g.mu.Unlock()
	f.err = errPanicked
	defer func() {
		close(f.done)
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.calling = g.next != nil; g.calling {
			go g.call()
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), g.t.options.Timeout)
	defer cancel()
	f.answers, f.err = g.t.count(ctx, f.users, f.requests)
}

// errPanicked is the result for the other requests of a call that panicked.
var errPanicked = errors.New("counting requests: the call panicked")

// count runs countScript for each user in one round trip. It is not repeated after a lost
// reply: requests that Redis had counted would count twice, and a user could be refused
// too early. This instance counts them instead.
func (t *Throttle) count(ctx context.Context, users []int64, requests map[int64]int) (map[int64]count, error) {
	cmds, err := t.pipeline(ctx, users, requests)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		if err := countScript.Load(ctx, t.rdb).Err(); err != nil {
			return nil, fmt.Errorf("loading the script: %w", err)
		}
		cmds, err = t.pipeline(ctx, users, requests)
	}
	if err != nil {
		return nil, fmt.Errorf("counting requests: %w", err)
	}
	answers := make(map[int64]count, len(users))
	for i, user := range users {
		values, err := cmds[i].Int64Slice()
		if err == nil && len(values) != 3 {
			err = fmt.Errorf("%d values instead of 3", len(values))
		}
		if err != nil {
			return nil, fmt.Errorf("counting requests: %w", err)
		}
		answers[user] = count{passed: int(values[0]), requests: int(values[1]),
			left: t.clamp(time.Duration(values[2]) * time.Millisecond)}
	}
	return answers, nil
}

// clamp limits the rest of a window to the window's length, whatever Redis returns.
func (t *Throttle) clamp(left time.Duration) time.Duration {
	return max(0, min(left, t.options.Window))
}

func (t *Throttle) pipeline(ctx context.Context, users []int64, requests map[int64]int) ([]*redis.Cmd, error) {
	pipe := t.rdb.Pipeline()
	cmds := make([]*redis.Cmd, len(users))
	for i, user := range users {
		cmds[i] = redis.NewCmd(ctx, "evalsha", countScript.Hash(), 1, t.key(user), t.options.Limit,
			t.options.Window.Milliseconds(), requests[user])
		_ = pipe.Process(ctx, unrepeated{cmds[i]}) // only Exec sends it
	}
	_, err := pipe.Exec(ctx)
	return cmds, err
}
