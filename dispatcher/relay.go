package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/queue"
	"intumwa/sms"
	"intumwa/submission"
)

const (
	// relaySlack is how long ago a message must have been pushed before the
	// relay asks whether the belt still has it.
	relaySlack = 5 * time.Second
	relayLimit = 20_000 // messages pushed again in one round
	// reclaimIdle exceeds the time for which an entry is rightly held: a full
	// shelf before an unanswering carrier.
	reclaimIdle  = 10 * time.Minute
	overdueLimit = 5_000
	relayLock    = 0x696e7475 // advisory lock: one relay a database at a time
	// relayPatience is how long a round may take before another process may
	// begin one as well.
	relayPatience = "10s"
)

// runRelay keeps the belt in step with Postgres until ctx ends. One process
// does it at a time. Its rounds are paced by what they cost, so that a backlog
// of millions does not make it sweep without pause; one round that was held up
// (a database that stood still) does not hold up the next for long.
func (d *Dispatcher) runRelay(ctx context.Context) {
	failing := false
	lastSlow := time.Time{}
	for {
		start := time.Now()
		slow := start.Sub(lastSlow) >= 10*d.opts.SweepInterval
		err := d.relay(ctx, slow)
		if slow {
			lastSlow = time.Now()
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			failing = true
			d.log.Warn("the relay cannot work; trying on", "error", err)
		case err == nil && failing:
			failing = false
			d.log.Info("the relay works again")
		}
		timer := time.NewTimer(min(max(d.opts.SweepInterval, 5*time.Since(start)), 10*d.opts.SweepInterval))
		select {
		case <-timer.C:
		case <-d.relayWake:
		case <-ctx.Done():
		}
		if timer.Stop(); ctx.Err() != nil {
			return
		}
	}
}

// hurry has the next round of the relay begin now.
func (d *Dispatcher) hurry() { ring(d.relayWake) }

// relay does one round: dead dispatchers' claims, expired messages, what the
// belt lacks; in a slow round also what need not be done often.
func (d *Dispatcher) relay(ctx context.Context, slow bool) error {
	// The lock is held by a transaction that does nothing else, so that the
	// server takes it back from a process that sleeps or whose machine is gone.
	// Two relays at once would do no harm, only the work twice.
	tx, err := d.pool.Begin(ctx)
	if err != nil {
		return fmt.Errorf("asking for the relay's lock: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // it wrote nothing
	var mine bool
	if err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock($1) FROM set_config('idle_in_transaction_session_timeout', $2, true)`,
		relayLock, relayPatience).Scan(&mine); err != nil {
		return fmt.Errorf("asking for the relay's lock: %w", err)
	}
	if !mine {
		return nil
	}

	// What one step cannot do does not keep the next from its work.
	steps := []func(context.Context) error{d.free, d.expire, d.refill, d.payOwed}
	for _, c := range d.running() {
		steps = append(steps, func(ctx context.Context) error { return d.rematch(ctx, c) })
	}
	steps = append(steps, d.failover)
	if slow {
		steps = append(steps, d.takeBack, d.readdress, d.overdue, d.forget, d.reclaim)
	}
	var failed error
	for _, step := range steps {
		if err := step(ctx); err != nil {
			failed = errors.Join(failed, err)
			if d.away(ctx) {
				break
			}
		}
	}
	if failed == nil {
		d.metrics.relayed.SetToCurrentTime()
	}
	return failed
}

// away tells whether the database is, and not only one step's trouble.
func (d *Dispatcher) away(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return d.pool.Ping(ctx) != nil
}

// forget deletes what has been kept long enough.
func (d *Dispatcher) forget(ctx context.Context) error {
	_, receipts := d.store.ForgetReceipts(ctx, d.opts.ReceiptRetention)
	_, inbound := d.store.ForgetInbound(ctx, d.opts.InboundRetention)
	_, held := d.store.ForgetHeld(ctx, d.opts.Validity)
	return errors.Join(receipts, inbound, held)
}

// free gives out again what dead dispatchers had claimed. Who claims is asked
// before who lives: a dispatcher that comes in between, however long this
// process was asleep there, is on neither list.
func (d *Dispatcher) free(ctx context.Context) error {
	claimants, err := d.store.Claimants(ctx)
	if err != nil {
		return err
	}
	living, err := d.living(ctx)
	if err != nil {
		return err
	}
	dead := slices.DeleteFunc(claimants, func(id int64) bool { return slices.Contains(living, id) })
	if len(dead) == 0 {
		return nil
	}
	var failed error // one carrier's trouble is not the others'
	var marking []string
	for _, c := range append(d.removed(), d.running()...) {
		if c.config().OnAmbiguous != AmbiguousResend {
			marking = append(marking, c.name)
			failed = errors.Join(failed, d.settleBegun(ctx, c, dead))
		}
	}
	n, err := d.store.Free(ctx, dead, marking)
	if err = errors.Join(failed, err); err != nil {
		return err
	}
	if n > 0 {
		d.log.Warn("claims of a dead dispatcher freed", "messages", n)
	}
	return nil
}

func (d *Dispatcher) living(ctx context.Context) ([]int64, error) {
	rows, err := d.pool.Query(ctx, `SELECT id FROM dispatchers`)
	if err != nil {
		return nil, fmt.Errorf("listing the dispatchers: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, fmt.Errorf("listing the dispatchers: %w", err)
	}
	return ids, nil
}

// settleBegun decides, as the carrier's on_ambiguous says, of what dispatchers
// had begun to write to it when they died; what is to be sent again is left to
// Free.
func (d *Dispatcher) settleBegun(ctx context.Context, c *carrier, dead []int64) error {
	_, effect, _ := submission.Next(submission.InFlight, submission.OwnerDied{}, c.config().OnAmbiguous)
	for n := overdueLimit; n == overdueLimit; {
		var settled []messages.Settled
		err := postgres.InTx(ctx, d.hot, func(tx pgx.Tx) error {
			if err := d.carrying.LockCarrier(ctx, tx, c.name); err != nil {
				return err
			}
			begun, err := d.carrying.TakeBegun(ctx, tx, c.name, dead, overdueLimit)
			if n = len(begun); err != nil || n == 0 {
				return err
			}
			var parts []messages.Part
			var finals []messages.Final
			for _, m := range begun {
				unanswered := c.config().unanswered(m, c.name)
				parts = append(parts, unanswered...)
				if effect.Fail != "" && len(unanswered) > 0 {
					finals = append(finals, messages.Final{MessageID: m.ID, Status: sms.Failed, At: time.Now(), Reason: effect.Fail})
				}
			}
			recorded, err := d.carrying.Record(ctx, tx, c.name, parts, nil, 0)
			if err != nil {
				return err
			}
			early, err := d.carrying.Verdicts(ctx, tx, recorded.Submitted)
			if err != nil {
				return err
			}
			settled, err = d.conclude(ctx, tx, d.carrying, append(early, finals...), messages.Ends{})
			return err
		})
		if err != nil {
			return fmt.Errorf("settling what dead dispatchers had begun for %s: %w", c.name, err)
		}
		if n > 0 {
			d.log.Warn("a dispatcher died with messages begun; their carrier may have them, they are not sent again", "carrier", c.name, "messages", n)
		}
		d.report(settled)
	}
	return nil
}

// unanswered are the segments of a message of which it is not known that the
// carrier has them, as parts to be recorded.
func (c *Carrier) unanswered(m *messages.Claimed, name string) (parts []messages.Part) {
	total := len(c.segments(m, time.Now()))
	for n := 1; n <= total; n++ {
		if !slices.Contains(m.Accepted, n) && !slices.Contains(m.Unanswered, n) {
			parts = append(parts, messages.Part{MessageID: m.ID, Segment: n, Total: total, Carrier: name,
				At: time.Now(), Unanswered: true, Reference: reference(m.ID, n)})
		}
	}
	return parts
}

// expire fails what could not be carried within its validity.
func (d *Dispatcher) expire(ctx context.Context) error {
	for n := overdueLimit; n == overdueLimit; {
		if err := d.finish(ctx, "expiring messages", func(tx pgx.Tx) ([]messages.Final, error) {
			finals, err := d.store.Expired(ctx, tx, overdueLimit)
			n = len(finals)
			return finals, err
		}); err != nil {
			return err
		}
	}
	return nil
}

// overdue decides messages whose receipts did not come.
func (d *Dispatcher) overdue(ctx context.Context) error {
	carriers := d.running()
	names := make([]string, len(carriers))
	longest := time.Hour // what a carrier that is configured no more had at least
	for i, c := range carriers {
		config := c.config()
		names[i], longest = c.name, max(longest, config.ReceiptTimeout)
		if err := d.overdueOf(ctx, func(tx pgx.Tx, age time.Duration) ([]int64, bool, error) {
			return d.store.Overdue(ctx, tx, c.name, age, overdueLimit)
		}, config.ReceiptTimeout, config.OnReceiptTimeout); err != nil {
			return err
		}
	}
	return d.overdueOf(ctx, func(tx pgx.Tx, age time.Duration) ([]int64, bool, error) {
		return d.store.OverdueElsewhere(ctx, tx, names, age, overdueLimit)
	}, longest, sms.Failed)
}

func (d *Dispatcher) overdueOf(ctx context.Context, find func(tx pgx.Tx, age time.Duration) (ids []int64, done bool, err error), timeout time.Duration, status sms.Status) error {
	_, effect, _ := submission.Next(submission.Accepted, submission.ReceiptOverdue{Status: status}, AmbiguousResend)
	for done := false; !done; {
		err := d.finish(ctx, "deciding overdue messages", func(tx pgx.Tx) ([]messages.Final, error) {
			ids, end, err := find(tx, d.opts.Validity+timeout)
			done = end
			finals := make([]messages.Final, len(ids))
			for i, id := range ids {
				finals[i] = messages.Final{MessageID: id, Status: status, At: time.Now(), Reason: effect.Fail}
			}
			return finals, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// finish concludes, in one transaction, what find brings.
func (d *Dispatcher) finish(ctx context.Context, doing string, find func(pgx.Tx) ([]messages.Final, error)) error {
	var settled []messages.Settled
	err := postgres.InTx(ctx, d.hot, func(tx pgx.Tx) error {
		finals, err := find(tx)
		if err != nil || len(finals) == 0 {
			return err
		}
		settled, err = d.conclude(ctx, tx, d.carrying, finals, messages.Ends{Dispatcher: d.member.id.Load(), Carried: sentIDs(finals)})
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	d.report(settled)
	return nil
}

// refill pushes what is due in Postgres and not on the belt.
//
// A stream hands out in the order in which it was filled, so whatever was
// pushed before the oldest entry that still waits, and is neither claimed nor
// done, is not on the belt any more. Clocks are compared, not trusted: the
// belt's marks are in Redis' time, pushed_at is in Postgres'.
//
// A lane of the belt that cannot be relied upon is left out: its messages are
// taken from Postgres.
func (d *Dispatcher) refill(ctx context.Context) error {
	lanes := d.trusted()
	if len(lanes) == 0 {
		return nil
	}
	redisNow, err := d.belt.Now(ctx)
	if err != nil {
		for _, at := range lanes {
			d.trust.failed(at.carrier, at.lane, err)
		}
		return err
	}
	var now time.Time
	if err := d.pool.QueryRow(ctx, `SELECT now()`).Scan(&now); err != nil {
		return fmt.Errorf("asking the database for the time: %w", err)
	}
	ahead := redisNow.Sub(now)
	unknown := now.Add(-relaySlack)
	var delivered []messages.Delivered
	var failed error // one lane's trouble is not the others'
	for _, at := range lanes {
		marks, err := d.belt.Marks(ctx, at.carrier, at.lane)
		if err != nil {
			d.trust.failed(at.carrier, at.lane, err)
			failed = errors.Join(failed, err)
			continue
		}
		if len(marks) == 0 {
			delivered = append(delivered, messages.Delivered{Carrier: at.carrier, Lane: int(at.lane), CompanyID: noCompany, Until: unknown})
		}
		for company, mark := range marks {
			until := unknown
			if !mark.Empty {
				until = mark.Delivered.Add(-ahead - relaySlack)
			}
			if until.After(now) { // an entry of a time to come: somebody else wrote it
				until = unknown
			}
			delivered = append(delivered, messages.Delivered{Carrier: at.carrier, Lane: int(at.lane), CompanyID: company, Until: until})
		}
	}
	waiting, err := d.store.Missing(ctx, delivered, unknown, relayLimit)
	if err != nil {
		return errors.Join(failed, err)
	}
	lots := make(map[ackKey][]messages.Waiting)
	for _, w := range waiting {
		at := ackKey{w.Carrier, queue.Lane(w.Lane)}
		lots[at] = append(lots[at], w)
	}
	for at, lot := range lots {
		failed = errors.Join(failed, d.push(ctx, at, lot))
	}
	return failed
}

// noCompany stands for a lane of which the belt knows no company.
const noCompany = -1

// trusted are the lanes of the belt that can be relied upon.
func (d *Dispatcher) trusted() (lanes []ackKey) {
	for _, c := range d.running() {
		for _, lane := range []queue.Lane{queue.Single, queue.Batch} {
			if d.trust.trusts(c.name, lane) {
				lanes = append(lanes, ackKey{c.name, lane})
			}
		}
	}
	return lanes
}

// push puts messages on one lane of the belt.
func (d *Dispatcher) push(ctx context.Context, at ackKey, lot []messages.Waiting) error {
	items, ids := make([]queue.Item, len(lot)), make([]int64, len(lot))
	for i, w := range lot {
		items[i] = queue.Item{MessageID: w.ID, CompanyID: w.CompanyID, Carrier: w.Carrier, Lane: queue.Lane(w.Lane)}
		ids[i] = w.ID
	}
	// Noted first: a lane that takes an entry at once must not find its row
	// locked.
	if err := d.store.Pushed(ctx, ids); err != nil {
		return err
	}
	if err := d.belt.Push(ctx, items); err != nil {
		d.trust.failed(at.carrier, at.lane, err)
		return errors.Join(err, d.store.NotPushed(ctx, ids))
	}
	d.metrics.redelivered.Add(float64(len(items)))
	return nil
}

// reclaim does away with entries that a dead consumer left pending. Their rows
// are the relay's business, so they are not carried from here.
func (d *Dispatcher) reclaim(ctx context.Context) error {
	for _, at := range d.trusted() {
		entries, err := d.belt.Reclaim(ctx, at.carrier, at.lane, "relay", reclaimIdle, 1000)
		if err != nil {
			d.trust.failed(at.carrier, at.lane, err) // the lanes do without it
		}
		for _, e := range entries {
			d.acker.ack(at.carrier, at.lane, e.ID)
		}
	}
	return nil
}

// sentIDs are those that a verdict takes as sent: their journeys are over.
func sentIDs(finals []messages.Final) (ids []int64) {
	for _, f := range finals {
		if f.Status == sms.Sent {
			ids = append(ids, f.MessageID)
		}
	}
	return ids
}
