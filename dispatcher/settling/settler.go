package settling

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/dispatcher/core"
	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/messages/receipts"
	"intumwa/messages/submission"
	"intumwa/smpp"
)

// Run settles until ctx ends and nothing is left, or the database stays down.
func (s *Settler) Run(ctx context.Context) {
	for {
		select {
		case <-s.wake:
			s.gather(ctx)
		case <-ctx.Done():
			if w := s.Grab(); w.Size() > 0 {
				s.Settle(ctx, w)
			}
			return
		}
		if w := s.Grab(); w.Size() > 0 {
			s.Settle(ctx, w)
		}
	}
}

// Settle writes a settlement, retrying until it succeeds.
func (s *Settler) Settle(ctx context.Context, w Settlement) {
	for failures := 0; ; failures++ {
		start := time.Now()
		err := s.Commit(w)
		s.Metrics.SettleTime.WithLabelValues(s.Carrier.Name).Observe(time.Since(start).Seconds())
		if err == nil {
			return
		}
		if postgres.Refused(err) {
			s.settleApart(ctx, w, err)
			return
		}
		// Refuse the receipts, also those that came meanwhile: the carrier delivers
		// them again.
		for _, a := range append(w.Receipts, s.grabReceipts()...) {
			a.PDU.Respond(cmp.Or(s.Carrier.Config().DeliveryRefusal, smpp.StatusMsgQueueFull))
			s.Metrics.RefusedReceipts.WithLabelValues(s.Carrier.Name).Inc()
		}
		w.Receipts, w.Again = nil, true
		if failures == 0 {
			s.Log.Error("storing carrier answers fails; retrying", "event", "results_not_stored", "carrier", s.Carrier.Name,
				"results", len(w.Results), "error", err)
		}
		if w.Size() == 0 {
			return
		}
		if ctx.Err() != nil && failures > 3 {
			// This process ends. Others free its claims; the segments are unanswered.
			s.release(w)
			return
		}
		time.Sleep(min(time.Duration(failures+1)*50*time.Millisecond, time.Second))
	}
}

// settleApart halves a settlement that the database refused, again and again, so that a
// refused row costs the others only a few transactions. An acceptance that is refused on its
// own is recorded without the carrier's id, so that the segment is not sent again; its receipt
// may echo the reference. Any other row that is refused on its own is dropped and logged: it
// would be refused every time. A delivery is also counted and acknowledged, else the carrier
// would deliver it again and again.
func (s *Settler) settleApart(ctx context.Context, w Settlement, refusal error) {
	if w.Size() > 1 {
		first, second := w.halves()
		first.Again, second.Again = w.Again, w.Again
		s.Settle(ctx, first)
		s.Settle(ctx, second)
		return
	}
	if s.withoutID(&w) {
		s.Log.Error("the database refuses a carrier's message id; the segment is recorded without it", "event",
			"carrier_id_refused", "carrier", s.Carrier.Name, "error", refusal)
		s.Settle(ctx, w)
		return
	}
	for _, r := range w.Results {
		s.Log.Error("the database refuses a segment's result; it is dropped", "event", "result_refused", "carrier",
			s.Carrier.Name, "id", r.Message.Msg.ULID, "error", refusal)
	}
	for _, a := range w.Receipts {
		s.Metrics.SetAside.WithLabelValues(s.Carrier.Name).Inc()
		if n, due := s.unwritable.Due(time.Now()); due {
			s.Log.Error("the database refuses a delivery; it is acknowledged and dropped", "event", "delivery_refused",
				"carrier", s.Carrier.Name, "receipt", a.Inbound == nil, "count", n, "error", refusal)
		}
		a.PDU.Respond(smpp.StatusOK)
	}
	for _, a := range w.Late {
		s.Log.Error("the database refuses a late answer; it is dropped", "event", "late_answer_refused", "carrier",
			s.Carrier.Name, "link", a.Link, "message_id", a.Whose, "error", refusal)
	}
	s.release(w)
}

// withoutID removes the carrier's id from the only acceptance of a settlement, and reports whether it had one.
func (s *Settler) withoutID(w *Settlement) bool {
	for i := range w.Results {
		if r := &w.Results[i]; r.Outcome == smpp.Accepted && r.MessageID != "" {
			r.MessageID = ""
			return true
		}
	}
	for i := range w.Late {
		if a := &w.Late[i]; a.Outcome == smpp.Accepted && a.MessageID != "" {
			a.MessageID = ""
			return true
		}
	}
	return false
}

// release frees the slots of a settlement that was not written. The messages stay
// claimed, and in flight, until this process ends: their outcome is recorded
// nowhere, so this process must not send them again.
func (s *Settler) release(w Settlement) {
	for _, r := range w.Results {
		if r.Slot {
			r.Message.Slots.Give(1)
		}
		if r.Message.Open--; r.Message.Open == 0 {
			r.Message.Unsettled.Done()
		}
	}
}

// Commit writes a settlement in one transaction. After the commit it answers the
// deliveries and frees slots and messages.
func (s *Settler) Commit(w Settlement) error {
	ctx, cancel := context.WithTimeout(context.Background(), settleTimeout)
	defer cancel()
	conf, now := s.Carrier.Config(), time.Now()
	reports, inbound, kept := sorted(w.Receipts, s.Carrier.Handsets.Room(now, conf.MaxInbound))
	var (
		c        *changes
		settled  []messages.Settled
		recorded receipts.Recorded
		taken    secondTook
	)
	if len(inbound) > 0 { // what the carrier knows to be taken is not repeated by these
		_ = s.Answers.store(ctx, s.Handsets)
	}
	err := postgres.InTx(ctx, s.Hot, func(tx pgx.Tx) (err error) {
		c, settled, recorded, taken = s.changes(&w), nil, receipts.Recorded{}, secondTook{} // perhaps after a retry
		if w.Again {
			var written bool
			if taken, written, err = s.before(ctx, tx, c); err != nil || written {
				return err
			}
			c.leaveOut(taken)
		}
		if recorded, err = s.Carrier.Matcher().Record(ctx, tx, c.segments, reports,
			s.Carrier.Unmatched.Room(now, conf.MaxUnmatched)); err != nil {
			return err
		}
		// A receipt that settled nothing may repeat one that a COMMIT without an answer wrote.
		if len(reports) > 0 && !slices.Contains(recorded.Outcomes, receipts.Matched) {
			if err := postgres.ConfirmWith(ctx, tx); err != nil {
				return err
			}
		}
		if err := s.Handsets.Keep(ctx, tx, inbound); err != nil {
			return err
		}
		if err := receipts.Refuse(ctx, tx, s.Carrier.Name, c.refused); err != nil {
			return err
		}
		if err := s.decide(ctx, tx, c, recorded.Settled); err != nil {
			return err
		}
		offered, err := s.offerToSecond(ctx, tx, c)
		if err != nil {
			return err
		}
		maps.Copy(taken, offered)
		finals, rows := c.outcome(s.Leases.ID.Load(), taken)
		for _, claim := range w.returned {
			rows.Again = append(rows.Again, messages.Retry{Claim: claim})
		}
		rows.Carrier, rows.Validity = s.Carrier.Name, s.Opts.Validity
		settled, err = s.Conclude(ctx, tx, s.Carrying.Messages, finals, rows)
		return err
	})
	if err != nil {
		return fmt.Errorf("settling %d results and %d receipts: %w", len(w.Results), len(w.Receipts), err)
	}
	s.Carrier.Handsets.Take(kept)
	s.answer(w.Receipts, recorded.Outcomes, inbound)
	if len(inbound) > 0 && s.Opts.Inbound != nil {
		s.Opts.Inbound()
	}
	s.committed(w, c)
	s.Carrier.Unmatched.Give(recorded.Early)
	s.Metrics.MatchedLate.WithLabelValues(s.Carrier.Name).Add(float64(recorded.Early))
	s.logSettled(w, recorded)
	s.countSecond(taken)
	s.Report(settled)
	return nil
}

// committed frees a settlement's slots and finished messages after the commit.
func (s *Settler) committed(w Settlement, c *changes) {
	used := map[*core.Slots]int{}
	for _, r := range w.Results {
		if r.Slot {
			used[r.Message.Slots]++
		}
	}
	for i := range c.list {
		one := &c.list[i]
		switch m := one.m; {
		case m == nil:
			s.hearLate(one)
		case one.known.Ended:
			s.InFlight.Remove(m)
			m.Unsettled.Done()
		default:
			m.Open, m.Results = one.known.Open, one.known.Results
		}
	}
	for window, n := range used {
		window.Give(n)
	}
}

// hearLate tells a message's attempt under way here of its late answers: no further segments
// go out if none need to, and the delay of a refusal counts for the next attempt.
func (s *Settler) hearLate(one *change) {
	m := s.InFlight.Get(one.id)
	if m == nil || m.Carrier != s.Carrier {
		return
	}
	if one.step.Row == submission.Leaves {
		m.Stopped.Store(true)
	}
	m.Results = append(m.Results, one.known.Results...)
}
