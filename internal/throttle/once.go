package throttle

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// once runs scripts that must not run twice: the client does not repeat a call whose reply
// is lost. All scripts of this package count, so all run this way or in a pipeline of
// unrepeated commands.
type once struct{ redis.UniversalClient }

// Eval is EVAL.
func (c once) Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd {
	return c.run(ctx, "eval", script, keys, args)
}

// EvalSha is EVALSHA.
func (c once) EvalSha(ctx context.Context, hash string, keys []string, args ...any) *redis.Cmd {
	return c.run(ctx, "evalsha", hash, keys, args)
}

func (c once) run(ctx context.Context, name, script string, keys []string, args []any) *redis.Cmd {
	call := make([]any, 0, 3+len(keys)+len(args))
	call = append(call, name, script, len(keys))
	for _, key := range keys {
		call = append(call, key)
	}
	cmd := redis.NewCmd(ctx, append(call, args...)...)
	_ = c.Process(ctx, unrepeated{cmd}) // the command has the error
	return cmd
}

// unrepeated is a command that is sent once.
type unrepeated struct{ *redis.Cmd }

// NoRetry implements go-redis's optional interface.
func (unrepeated) NoRetry() bool { return true }
