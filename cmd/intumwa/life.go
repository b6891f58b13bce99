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

// shutdownGrace bounds the end of the requests under way.
const shutdownGrace = 2 * time.Second

// life starts the parts of a process and ends them: first the listeners, so
// that nothing new comes in, then all the rest side by side. The whole end has
// 10 s (rule choices 11.2), and the longest part of it, draining the carriers'
// windows, needs most of them.
type life struct {
	ctx       context.Context //nolint:containedctx // the process's own; parts get contexts of their own
	failed    chan error
	listeners []func()
	parts     []func()

	mu      sync.Mutex
	running map[string]bool // by name
	broken  chan struct{}   // closed when a part has failed
}

func newLife(ctx context.Context) *life {
	return &life{ctx: ctx, failed: make(chan error, 16), running: make(map[string]bool), broken: make(chan struct{})}
}

// endWithin is the time that the end has in all. A store that hangs (it is not
// away, it only never answers) can hold up a part or a pool for longer.
const endWithin = 9500 * time.Millisecond

// abandonLate ends the process with exit code 1 if it is still there endWithin
// after it was told to end, or had to: what is claimed then is carried on by the others,
// as after a crash. It returns what calls that off.
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
			log.Error("shutdown timed out; work in flight is freed as after a crash", "event", "shutdown_timed_out", "still_running", strings.Join(l.still(), ","))
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

var errEnded = errors.New("it was not told to")

// run starts a part. A part that returns before it is told to ends the
// process.
func (l *life) run(name string, part func(context.Context) error) {
	l.parts = append(l.parts, l.start(name, part))
}

// start starts a part and returns what ends it.
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

// listen serves HTTP until the process ends, within limits unless they are nil. At the end
// the requests under way are answered first.
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
			<-answered // Serve returns as the shutdown begins, not as it ends
		}
		if errors.Is(err, http.ErrServerClosed) {
			return nil
		}
		return err
	}))
	return nil
}

// wait returns when the process is told to end or a part has failed.
func (l *life) wait() error {
	select {
	case <-l.ctx.Done():
		return nil
	case err := <-l.failed:
		close(l.broken)
		return err
	}
}

// end ends all parts.
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
