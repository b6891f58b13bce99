package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// redisLog is where go-redis tells its troubles, which it would else print by
// itself: into the log of the process that serves, and nowhere in a command's,
// whose errors say the same.
var redisLog redisLines

type redisLines struct{ to atomic.Pointer[slog.Logger] }

func init() { redis.SetLogger(&redisLog) } // once, before anybody uses it

// Printf is a line of go-redis.
func (r *redisLines) Printf(ctx context.Context, format string, v ...any) {
	if log := r.to.Load(); log != nil {
		log.WarnContext(ctx, "redis: connection error", "error", fmt.Sprintf(format, v...))
	}
}
