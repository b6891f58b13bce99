// Package sandbox settles messages to the sandbox's numbers (rule choices 6.5): each
// number stands for a status, sent or failed, after a fixed time. The webhooks are the
// same as for any message.
//
// No carrier, no link and no queue takes part. intake records such a message beside its
// fate instead of in the outbox; what is here takes fates whose time has come and
// makes the messages final by the same statement as the dispatcher, in one transaction
// with their events. Any number of processes may do so: each takes others.
package sandbox

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/sms"
	"intumwa/webhooks"
)

const (
	interval     = 250 * time.Millisecond // between looks for due messages
	errorPause   = 5 * time.Second        // after an error
	atOnce       = 500                    // messages of a transaction
	forgetEvery  = 10 * time.Minute
	settleWithin = 10 * time.Second
)

// Options configures a Sandbox.
type Options struct {
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Sandbox settles the sandbox's messages.
type Sandbox struct {
	pool     *pgxpool.Pool
	store    *messages.Store
	webhooks *webhooks.Webhooks
	log      *slog.Logger
	final    *prometheus.CounterVec
}

// New returns the sandbox of a database; pool must be opened with BatchUpdates. It
// starts nothing.
func New(pool *pgxpool.Pool, hooks *webhooks.Webhooks, opts Options) *Sandbox {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	s := &Sandbox{pool: pool, store: messages.New(pool), webhooks: hooks, log: opts.Log,
		final: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "intumwa_sandbox_messages_total",
			Help: "Messages to numbers of the sandbox that became final."}, []string{"status"})}
	for _, status := range []sms.Status{sms.Sent, sms.Failed} {
		s.final.WithLabelValues(status.String())
	}
	if opts.Metrics != nil {
		opts.Metrics.MustRegister(s.final)
	}
	return s
}

// Run settles messages until ctx ends. During an outage of the database it tries again.
func (s *Sandbox) Run(ctx context.Context) error {
	failing := false
	var forgotten time.Time
	for wait := interval; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		settled, err := s.settle(ctx)
		if err == nil && time.Since(forgotten) >= forgetEvery {
			forgotten = time.Now()
			_, err = s.store.ForgetSandbox(ctx)
		}
		switch wait = interval; {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			wait = errorPause
			if !failing {
				s.log.Warn("sandbox messages cannot be settled; trying again", "error", err)
			}
		case settled == atOnce: // more are due
			wait = 0
		}
		failing = err != nil
	}
}

// settle makes due messages final and returns how many it took.
func (s *Sandbox) settle(ctx context.Context) (taken int, err error) {
	// A transaction that has begun is finished even when the process shuts down.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleWithin)
	defer cancel()
	var settled []messages.Settled
	err = postgres.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		settled = nil // of an earlier try
		finals, err := s.store.SandboxDue(ctx, tx, atOnce)
		if taken = len(finals); err != nil || taken == 0 {
			return err
		}
		if settled, err = s.store.Finish(ctx, tx, finals, messages.Ends{}); err != nil {
			return err
		}
		events := make([]webhooks.Event, len(settled))
		for i := range settled {
			events[i] = event(&settled[i])
		}
		return s.webhooks.Enqueue(ctx, tx, events)
	})
	if err != nil {
		return 0, fmt.Errorf("settling messages of the sandbox: %w", err)
	}
	for i := range settled {
		m := &settled[i]
		s.final.WithLabelValues(m.Status.String()).Inc()
		s.log.Debug("message "+m.Status.String(), "id", m.ULID, "message_id", m.ID, "carrier", m.Carrier, "reason", m.Reason)
	}
	if len(settled) > 0 {
		s.webhooks.Kick()
	}
	return taken, nil
}

func event(m *messages.Settled) webhooks.Event {
	e := webhooks.Event{CompanyID: m.CompanyID, MessageID: m.ID, Name: webhooks.Failed, PhoneNumber: string(m.Number), At: m.At, Reference: m.Reference}
	if m.Status == sms.Sent {
		e.Name = webhooks.Sent
	}
	return e
}
