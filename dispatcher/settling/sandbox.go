package settling

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"intumwa/dispatcher/core"
	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/sms"
	"intumwa/webhooks"
)

const (
	sandboxInterval    = 250 * time.Millisecond // between queries for due messages
	sandboxPause       = 5 * time.Second        // after an error
	sandboxAtOnce      = 500                    // messages per transaction
	sandboxForgetEvery = 10 * time.Minute
)

// Sandbox settles messages to the sandbox's numbers (rule choices 6.5). Each number means a
// status after a fixed time. No carrier, link or queue is involved: intake records the
// message with its outcome, and when that is due the first process makes the message final
// and enqueues its event.
type Sandbox struct {
	pool     *pgxpool.Pool
	store    *messages.Store
	webhooks *webhooks.Webhooks
	log      *slog.Logger
	final    *prometheus.CounterVec
}

// NewSandbox returns the sandbox of a database. pool must be opened with BatchUpdates. log
// and metrics may be nil. Run starts it.
func NewSandbox(pool *pgxpool.Pool, hooks *webhooks.Webhooks, log *slog.Logger,
	metrics prometheus.Registerer) *Sandbox {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Sandbox{pool: pool, store: messages.New(pool), webhooks: hooks, log: log,
		final: promauto.With(metrics).NewCounterVec(prometheus.CounterOpts{Name: "intumwa_sandbox_messages_total",
			Help: "Final messages of the sandbox."}, []string{"status"})}
	for _, status := range []sms.Status{sms.Sent, sms.Failed} {
		s.final.WithLabelValues(status.String())
	}
	return s
}

// Run settles messages until ctx ends. It retries after errors.
func (s *Sandbox) Run(ctx context.Context) error {
	failing := false
	var forgotten time.Time
	for wait := sandboxInterval; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		settled, err := s.Settle(ctx)
		if err == nil && time.Since(forgotten) >= sandboxForgetEvery {
			forgotten = time.Now()
			_, err = s.store.ForgetSandbox(ctx)
		}
		switch wait = sandboxInterval; {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			wait = sandboxPause
			if !failing {
				s.log.Warn("sandbox messages cannot be settled; trying again", "event", "sandbox_not_settled", "error", err)
			}
		case settled == sandboxAtOnce: // more are due
			wait = 0
		}
		failing = err != nil
	}
}

// Settle makes due messages final and returns how many were due, at most sandboxAtOnce.
func (s *Sandbox) Settle(ctx context.Context) (taken int, err error) {
	// A started transaction finishes even when the process shuts down.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	var settled []messages.Settled
	err = postgres.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		settled = nil // after a retry
		finals, err := s.store.SandboxDue(ctx, tx, sandboxAtOnce)
		if taken = len(finals); err != nil || taken == 0 {
			return err
		}
		settled, _, err = core.Conclude(ctx, tx, s.store, s.webhooks, nil, finals, messages.Rows{})
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("settling messages of the sandbox: %w", err)
	}
	for i := range settled {
		m := &settled[i]
		s.final.WithLabelValues(m.Status.String()).Inc()
		s.log.Debug("message "+m.Status.String(), "id", m.ULID, "message_id", m.ID, "carrier", m.Carrier, "reason", m.Reason)
	}
	return taken, nil
}
