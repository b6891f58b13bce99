package recovery

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/dispatcher/core"
	"intumwa/dispatcher/setup"
	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/messages/rerouting"
	"intumwa/webhooks"
)

// leaveAtOnce is how many messages one transaction takes away from a retired carrier.
const leaveAtOnce = 2_000

// leaving takes messages away from a retired carrier.
type leaving struct {
	pool    *pgxpool.Pool // with BatchUpdates
	store   *messages.Store
	hooks   *webhooks.Webhooks
	refunds func(messages.Settled) bool
	// called after each commit
	did func(from string, handed map[string]int64, settled []messages.Settled, refunded int)
}

// leave works until nothing is left that may leave the carrier, or until the time is used up after a step.
func (l *leaving) leave(ctx context.Context, from string, takers rerouting.Takers, within time.Duration) error {
	scheduled := false // the outbox first: it is what goes out next
	return core.Sliced(within, func() (more bool, err error) {
		was := scheduled
		full, err := l.step(ctx, from, takers, was)
		scheduled = was || !full
		return full || !was, err
	})
}

// step takes some messages away in one transaction. full means that there may be more.
func (l *leaving) step(ctx context.Context, from string, takers rerouting.Takers, scheduled bool) (
	full bool, err error) {
	var took rerouting.Leaving
	var settled []messages.Settled
	var refunded int
	if err := postgres.InTx(ctx, l.pool, func(tx pgx.Tx) (err error) {
		settled, refunded = nil, 0 // after a retry
		if scheduled {
			took, err = rerouting.New(l.pool).LeaveScheduled(ctx, tx, from, takers, leaveAtOnce)
		} else {
			took, err = rerouting.New(l.pool).LeaveOutbox(ctx, tx, from, takers, leaveAtOnce)
		}
		if err != nil || len(took.Finals) == 0 {
			return err
		}
		settled, refunded, err = core.Conclude(ctx, tx, l.store, l.hooks, l.refunds, took.Finals, messages.Rows{})
		return err
	}); err != nil {
		return false, fmt.Errorf("taking messages away from %s: %w", from, err)
	}
	l.did(from, took.Handed, settled, refunded)
	return took.Seen == leaveAtOnce, nil
}

// LeaveRetired moves waiting messages off retired carriers, including those of requests routed before their process
// learned of the retirement. Only a process that has the successor configured does it.
func (d *Recovery) LeaveRetired(ctx context.Context) error {
	list, err := rerouting.Retirements(ctx, d.Pool)
	if err != nil {
		return err
	}
	d.retired = rerouting.Successors(list)
	takers := takersOf(d.retired, d.To)
	var names []string
	for _, c := range d.Running() {
		names = append(names, c.Name)
	}
	l := leaving{pool: d.Hot, store: d.Carrying.Messages, hooks: d.Webhooks, refunds: d.Refunds,
		did: func(from string, handed map[string]int64, settled []messages.Settled, refunded int) {
			for to, n := range handed {
				d.Metrics.Rerouted.WithLabelValues(from).Add(float64(n))
				d.Log.Info("carrier is retired; another takes its messages", "event", "carrier_retired", "carrier", from, "by", to,
					"messages", n)
			}
			d.Metrics.Refunds.Add(float64(refunded))
			d.Report(settled)
		}}
	for _, r := range list {
		if to := takers[r.Carrier].Carrier; to != "" && !slices.Contains(names, to) {
			continue
		}
		if err := l.leave(ctx, r.Carrier, takers, core.TaskSlice/time.Duration(len(list))); err != nil {
			return err
		}
	}
	return nil
}

// takersOf returns the carriers that take over.
func takersOf(successors map[string]string, to func(name string) rerouting.To) rerouting.Takers {
	takers := rerouting.Takers{}
	for carrier, next := range successors {
		if takers[carrier] = (rerouting.To{}); next != "" {
			takers[carrier] = to(next)
		}
	}
	return takers
}

// Evacuated is what [Evacuate] did.
type Evacuated struct {
	Handed  int64 // messages that another carrier has now
	Failed  int64 // messages that failed
	Credits int64 // refunded for them
}

// Evacuate takes what waits for a retired carrier away from it, as dispatchers do all the time, until nothing is left
// or the time is over. It is an error if the carrier is open again. pool has BatchUpdates; to returns a carrier of the
// configuration.
func Evacuate(ctx context.Context, pool *pgxpool.Pool, hooks *webhooks.Webhooks, refund setup.Refund, carrier string,
	to func(name string) rerouting.To, within time.Duration) (done Evacuated, err error) {
	list, err := rerouting.Retirements(ctx, pool)
	if err != nil {
		return done, err
	}
	if !slices.ContainsFunc(list, func(r rerouting.Retired) bool { return r.Carrier == carrier }) {
		return done, fmt.Errorf("%s is not retired any more", carrier)
	}
	l := leaving{pool: pool, store: messages.New(pool), hooks: hooks, refunds: refund.Pays,
		did: func(_ string, handed map[string]int64, settled []messages.Settled, _ int) {
			for _, n := range handed {
				done.Handed += n
			}
			done.Failed += int64(len(settled))
			_, debits := core.Follows(settled, refund.Pays)
			for _, back := range debits {
				if !back.Test {
					done.Credits += back.Amount
				}
			}
		}}
	return done, l.leave(ctx, carrier, takersOf(rerouting.Successors(list), to), within)
}
