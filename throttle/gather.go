package throttle

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// gather asks Redis for many requests at once: whoever comes while a call is
// under way rides in the next, a user's requests as one count. A busy gateway
// would otherwise spend a sixth of its time on round trips to Redis.
type gather struct {
	t      *Throttle
	mu     sync.Mutex
	flying bool
	next   *flight
}

// flight is one call for the requests that came before it left.
type flight struct {
	users    []int64
	requests map[int64]int // how many of each
	landed   chan struct{} // closed once answers and err are there
	answers  map[int64]count
	err      error
}

// ask counts one request of a user and waits for the answer until ctx ends.
func (g *gather) ask(ctx context.Context, user int64) (count, error) {
	g.mu.Lock()
	f := g.next
	if f == nil {
		f = &flight{requests: make(map[int64]int), landed: make(chan struct{})}
		g.next = f
	}
	if f.requests[user] == 0 {
		f.users = append(f.users, user)
	}
	turn := f.requests[user] // how many of this user go before it
	f.requests[user]++
	lead := !g.flying
	g.flying = true
	g.mu.Unlock()
	if lead {
		go g.fly() //nolint:gosec // it asks for whoever comes, not for this caller alone
	}
	select {
	case <-f.landed:
	case <-ctx.Done():
		return count{}, fmt.Errorf("counting a request: %w", ctx.Err())
	}
	if f.err != nil {
		return count{}, f.err
	}
	answer := f.answers[user]
	if answer.requests < 0 {
		return count{}, errForeign
	}
	// The user's requests of this flight were counted together; they pass in
	// the order in which they came.
	answer.pass = turn < answer.passed
	answer.requests = answer.requests - answer.passed + min(turn+1, answer.passed)
	return answer, nil
}

// fly makes calls until nobody waits.
func (g *gather) fly() {
	for {
		g.mu.Lock()
		f := g.next
		g.next = nil
		if f == nil {
			g.flying = false
			g.mu.Unlock()
			return
		}
		g.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), g.t.options.Timeout)
		f.answers, f.err = g.t.count(ctx, f.users, f.requests)
		cancel()
		close(f.landed)
	}
}

// count runs countScript for each user, in one round trip.
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
		answers[user] = count{passed: int(values[0]), requests: int(values[1]), left: t.clamp(time.Duration(values[2]) * time.Millisecond)}
	}
	return answers, nil
}

// clamp is what is left of a window, whatever Redis says: not more than all.
func (t *Throttle) clamp(left time.Duration) time.Duration {
	return max(0, min(left, t.options.Window))
}

func (t *Throttle) pipeline(ctx context.Context, users []int64, requests map[int64]int) ([]*redis.Cmd, error) {
	pipe := t.rdb.Pipeline()
	cmds := make([]*redis.Cmd, len(users))
	for i, user := range users {
		cmds[i] = pipe.EvalSha(ctx, countScript.Hash(), []string{t.key(user)}, t.options.Limit, t.options.Window.Milliseconds(), requests[user])
	}
	_, err := pipe.Exec(ctx)
	return cmds, err
}
