package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// shutdownGrace bounds the requests under way at shutdown.
const shutdownGrace = 2 * time.Second

// life starts and ends the parts of a process. It closes the listeners first, then ends
// all other parts in parallel. The whole shutdown has 10 s (rule choices 11.2), most of
// it for draining the carriers' windows.
type life struct {
	ctx       context.Context //nolint:containedctx // the process's; each part gets its own
	failed    chan error
	listeners []func()
	parts     []func()

	mu      sync.Mutex
	running map[string]bool // by name
	broken  chan struct{}   // closed when a part fails
}

func newLife(ctx context.Context) *life {
	return &life{ctx: ctx, failed: make(chan error, 16), running: make(map[string]bool), broken: make(chan struct{})}
}

// endWithin bounds the whole shutdown. A store that hangs without an error can delay a
// part or a pool beyond it.
const endWithin = 9500 * time.Millisecond

// abandonLate exits with code 1 if the process still runs endWithin after shutdown began.
// Other processes take over its claims, as after a crash. stop cancels it.
func (l *life) abandonLate(log *slog.Logger) (stop func()) {
	over := make(chan struct{})
	go func() {
		select {
		case <-l.ctx.Done():
		case <-l.broken:
		case <-over:
			return
		}
		select {
		case <-time.After(endWithin):
			log.Error("shutdown timed out; work in flight is freed as after a crash", "event", "shutdown_timed_out",
				"still_running", strings.Join(l.still(), ","))
			os.Exit(1)
		case <-over:
		}
	}()
	return sync.OnceFunc(func() { close(over) })
}

// still names the parts that have not ended.
func (l *life) still() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.running))
}

func (l *life) note(name string, running bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if running {
		l.running[name] = true
	} else {
		delete(l.running, name)
	}
}

var errEnded = errors.New("it ended before shutdown")

// run starts a part. If it returns before shutdown, the process ends.
func (l *life) run(name string, part func(context.Context) error) {
	l.parts = append(l.parts, l.start(name, part))
}

// start starts a part and returns a function that ends it.
func (l *life) start(name string, part func(context.Context) error) (end func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(l.ctx))
	done := make(chan struct{})
	l.note(name, true)
	go func() {
		defer close(done)
		defer l.note(name, false)
		err := part(ctx)
		if ctx.Err() == nil {
			l.failed <- fmt.Errorf("%s ended: %w", name, errors.Join(err, errEnded))
		}
	}()
	return func() { cancel(); <-done }
}

// listen serves HTTP within limits (nil: none) until shutdown, which answers the requests
// under way first.
func (l *life) listen(ctx context.Context, name, address string, limits *bounds, server *http.Server) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listening for %s: %w", name, err)
	}
	if limits != nil {
		listener = limits.listen(listener)
	}
	server.ErrorLog = slog.NewLogLogger(slog.Default().Handler(), slog.LevelDebug)
	l.listeners = append(l.listeners, l.start(name, func(ctx context.Context) error {
		answered := make(chan struct{})
		stop := context.AfterFunc(ctx, func() {
			defer close(answered)
			grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
			defer cancel()
			if server.Shutdown(grace) != nil {
				_ = server.Close()
			}
		})
		err := server.Serve(listener)
		if !stop() {
			<-answered // Serve returns when the shutdown begins, not when it ends
		}
		if errors.Is(err, http.ErrServerClosed) {
			return nil
		}
		return err
	}))
	return nil
}

// wait returns when shutdown begins or a part has failed.
func (l *life) wait() error {
	select {
	case <-l.ctx.Done():
		return nil
	case err := <-l.failed:
		close(l.broken)
		return err
	}
}

func (l *life) end() {
	for _, ends := range [][]func(){l.listeners, l.parts} {
		var ending sync.WaitGroup
		for _, end := range ends {
			ending.Go(end)
		}
		ending.Wait()
	}
	l.listeners, l.parts = nil, nil
}
