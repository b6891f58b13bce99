// Package smppserver is the door for customers' programs that speak SMPP: banks and aggregators bind to it as they bind
// to a carrier. It is off unless smpp_server.listen is set.
//
// The session and the codec are those of smpp ([smpp.Peer]), and a submit_sm goes through intake like a request of the
// API. Any number of processes serve: the database has the binds of all, and what waits for them (package binds).
//
// A key's login and its binds are in login.go, its submit_sm in submit.go with text.go and times.go, query_sm and
// cancel_sm in query.go. keeper.go renews the binds of this process, courier.go brings receipts and MOs to them.
package smppserver

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"intumwa/accounts/keys"
	"intumwa/intake"
	"intumwa/internal/throttle"
	"intumwa/messages"
	"intumwa/messages/lookup"
	"intumwa/smpp"
	"intumwa/smppserver/binds"
	"intumwa/sms"
)

// Options of [New].
type Options struct {
	SystemID string    // ours, in bind responses; "intumwa" if empty
	Plan     *sms.Plan // valid numbers

	ReceiptLife  time.Duration // how long a receipt or MO waits for its key's binds; 72 h if 0
	ReceiptsMost int64         // how many of one key wait; 100,000 if 0

	Log     *slog.Logger          // nil: discarded
	Metrics prometheus.Registerer // nil: not registered
}

// Deps are the packages that the server calls.
type Deps struct {
	Holders  *keys.Holders
	Intake   *intake.Intake
	Messages *messages.Store
	Lookup   *lookup.Store
	Binds    *binds.Store

	// Cancel cancels messages that no carrier has yet, and returns how many (settling.Cancel).
	Cancel func(ctx context.Context, of messages.Queued) (cancelled, credits int64, err error)

	Binding  *throttle.Throttle // binds of one network address; nil: no limit
	Failures *throttle.Throttle // wrong logins of one network address; nil: no limit
}

// Server serves customers' binds.
type Server struct {
	deps    Deps
	opts    Options
	log     *slog.Logger
	serving smpp.Serving
	process string // this process's name in the database
	metrics *metrics
	courier *courier

	wake       chan struct{} // wakes the keeper
	renewEvery time.Duration
	logins     [64]sync.Mutex // of addresses (check)
	orders     orders

	mu    sync.Mutex
	bound map[int64]*bind   // by id
	keys  map[int64]*bucket // of the keys with binds here, by id
}

// New returns a server. It starts nothing; Run and Serve do.
func New(deps Deps, opts Options) *Server {
	opts.SystemID = cmp.Or(opts.SystemID, "intumwa")
	opts.ReceiptLife = cmp.Or(opts.ReceiptLife, binds.Life)
	opts.ReceiptsMost = cmp.Or(opts.ReceiptsMost, binds.Most)
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	host, _ := os.Hostname()
	s := &Server{deps: deps, opts: opts, log: opts.Log,
		process: fmt.Sprintf("%s/%d/%s", host, os.Getpid(), rand.Text()[:6]),
		metrics: newMetrics(opts.Metrics), wake: make(chan struct{}, 1), renewEvery: renewEvery,
		bound: map[int64]*bind{}, keys: map[int64]*bucket{}}
	s.courier = newCourier(s)
	s.serving = smpp.Serving{SystemID: opts.SystemID, Login: s.login, DrainTimeout: drainWithin,
		UnbindTimeout: goodbyeWithin, Log: opts.Log, Metrics: smpp.NewServerMetrics(opts.Metrics)}
	return s
}

// Run keeps the binds of this process recorded and brings receipts and MOs to them, until ctx ends. End it after Serve.
func (s *Server) Run(ctx context.Context) error {
	var loops sync.WaitGroup
	loops.Go(func() { s.keep(ctx) })
	loops.Go(func() { s.courier.run(ctx) })
	loops.Go(func() { s.sweep(ctx) })
	loops.Wait()
	return nil
}

// acceptPause is the pause after a failed accept: usually there are too many open files.
const acceptPause = 100 * time.Millisecond

// Serve accepts connections until ctx ends. The listener bounds them. Then it ends the binds politely, within three
// seconds, and returns.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	var peers sync.WaitGroup
	defer peers.Wait()
	for {
		conn, err := listener.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = conn.Close()
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("accepting SMPP connections: %w", err)
		case err != nil:
			s.log.Warn("a connection of a customer's program could not be accepted", "event", "smpp_accept_failed", "error", err)
			time.Sleep(acceptPause)
			continue
		}
		peers.Go(func() { s.serve(ctx, conn) })
	}
}

// serve serves one connection until it ends.
func (s *Server) serve(ctx context.Context, conn net.Conn) {
	peer := smpp.NewPeer(conn, &s.serving)
	_ = peer.Run(ctx) // the session logs why it ended
	b := s.forget(peer)
	if b == nil {
		return
	}
	within := closeWithin
	if ctx.Err() != nil {
		within = goodbyeWithin
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	if err := s.deps.Binds.Close(closing, []int64{b.id}); err != nil { // its row is over by itself after binds.Lease
		s.log.Warn("the end of a customer's bind could not be recorded", "event", "smpp_unbind_not_recorded", "key_id",
			b.account, "error", err)
	}
}

const (
	closeWithin = 5 * time.Second
	// At the end of the process: a program that answers nothing must not take the time of the carriers' links.
	drainWithin   = 1500 * time.Millisecond
	goodbyeWithin = 500 * time.Millisecond
)
