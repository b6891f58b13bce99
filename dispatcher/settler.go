package dispatcher

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/messages/receipts"
	"intumwa/messages/submission"
	"intumwa/smpp"
)

// run settles until ctx ends and nothing is left, or the database stays down.
func (s *settler) run(ctx context.Context) {
	for {
		select {
		case <-s.wake:
			s.gather(ctx)
		case <-ctx.Done():
			if w := s.grab(); w.size() > 0 {
				s.settle(ctx, w)
			}
			return
		}
		if w := s.grab(); w.size() > 0 {
			s.settle(ctx, w)
		}
	}
}

// settle writes a settlement, retrying until it succeeds.
func (s *settler) settle(ctx context.Context, w settlement) {
	for failures := 0; ; failures++ {
		start := time.Now()
		err := s.commit(w)
		s.metrics.settleTime.WithLabelValues(s.carrier.name).Observe(time.Since(start).Seconds())
		if err == nil {
			return
		}
		if postgres.Refused(err) {
			s.settleApart(ctx, w, err)
			return
		}
		// Refuse the receipts, also those that came meanwhile: the carrier delivers
		// them again.
		for _, a := range append(w.receipts, s.grabReceipts()...) {
			a.pdu.Respond(cmp.Or(s.carrier.config().DeliveryRefusal, smpp.StatusMsgQueueFull))
			s.metrics.refusedReceipts.WithLabelValues(s.carrier.name).Inc()
		}
		w.receipts, w.again = nil, true
		if failures == 0 {
			s.log.Error("storing carrier answers fails; retrying", "event", "results_not_stored", "carrier", s.carrier.name, "results", len(w.results), "error", err)
		}
		if w.size() == 0 {
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
func (s *settler) settleApart(ctx context.Context, w settlement, refusal error) {
	if w.size() > 1 {
		first, second := w.halves()
		first.again, second.again = w.again, w.again
		s.settle(ctx, first)
		s.settle(ctx, second)
		return
	}
	if s.withoutID(&w) {
		s.log.Error("the database refuses a carrier's message id; the segment is recorded without it", "event", "carrier_id_refused", "carrier", s.carrier.name, "error", refusal)
		s.settle(ctx, w)
		return
	}
	for _, r := range w.results {
		s.log.Error("the database refuses a segment's result; it is dropped", "event", "result_refused", "carrier", s.carrier.name, "id", r.message.msg.ULID, "error", refusal)
	}
	for _, a := range w.receipts {
		s.metrics.setAside.WithLabelValues(s.carrier.name).Inc()
		if n, due := s.unwritable.Due(time.Now()); due {
			s.log.Error("the database refuses a delivery; it is acknowledged and dropped", "event", "delivery_refused", "carrier", s.carrier.name, "receipt", a.inbound == nil, "count", n, "error", refusal)
		}
		a.pdu.Respond(smpp.StatusOK)
	}
	for _, a := range w.late {
		s.log.Error("the database refuses a late answer; it is dropped", "event", "late_answer_refused", "carrier", s.carrier.name, "link", a.link, "message_id", a.messageID, "error", refusal)
	}
	s.release(w)
}

// withoutID removes the carrier's id from the only acceptance of a settlement, and reports whether it had one.
func (s *settler) withoutID(w *settlement) bool {
	for i := range w.results {
		if r := &w.results[i]; r.Outcome == smpp.Accepted && r.MessageID != "" {
			r.MessageID = ""
			return true
		}
	}
	for i := range w.late {
		if a := &w.late[i]; a.Outcome == smpp.Accepted && a.MessageID != "" {
			a.MessageID = ""
			return true
		}
	}
	return false
}

// release frees the slots of a settlement that was not written. The messages stay
// claimed, and in flight, until this process ends: their outcome is recorded
// nowhere, so this process must not send them again.
func (s *settler) release(w settlement) {
	for _, r := range w.results {
		if r.slot {
			r.message.slots.give(1)
		}
		if r.message.open--; r.message.open == 0 {
			r.message.unsettled.Done()
		}
	}
}

// commit writes a settlement in one transaction. After the commit it answers the
// deliveries and frees slots and messages.
func (s *settler) commit(w settlement) error {
	ctx, cancel := context.WithTimeout(context.Background(), settleTimeout)
	defer cancel()
	conf, now := s.carrier.config(), time.Now()
	reports, inbound, kept := sorted(w.receipts, s.carrier.handsets.room(now, conf.MaxInbound))
	var (
		c        *changes
		settled  []messages.Settled
		recorded receipts.Recorded
		taken    secondTook
	)
	if len(inbound) > 0 { // what the carrier knows to be taken is not repeated by these
		_ = s.answers.store(ctx, s.handsets)
	}
	err := postgres.InTx(ctx, s.hot, func(tx pgx.Tx) (err error) {
		c, settled, recorded, taken = s.changes(&w), nil, receipts.Recorded{}, secondTook{} // perhaps after a retry
		if w.again {
			var written bool
			if taken, written, err = s.before(ctx, tx, c); err != nil || written {
				return err
			}
			c.leaveOut(taken)
		}
		if recorded, err = s.carrier.matcher().Record(ctx, tx, c.segments, reports, s.carrier.unmatched.room(now, conf.MaxUnmatched)); err != nil {
			return err
		}
		// A receipt that settled nothing may repeat one that a COMMIT without an answer wrote.
		if len(reports) > 0 && !slices.Contains(recorded.Outcomes, receipts.Matched) {
			if err := postgres.ConfirmWith(ctx, tx); err != nil {
				return err
			}
		}
		if err := s.handsets.Keep(ctx, tx, inbound); err != nil {
			return err
		}
		if err := receipts.Refuse(ctx, tx, s.carrier.name, c.refused); err != nil {
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
		finals, rows := c.outcome(s.leases.id.Load(), taken)
		for _, claim := range w.returned {
			rows.Again = append(rows.Again, messages.Retry{Claim: claim})
		}
		rows.Carrier, rows.Validity = s.carrier.name, s.opts.Validity
		settled, err = s.conclude(ctx, tx, s.carrying.messages, finals, rows)
		return err
	})
	if err != nil {
		return fmt.Errorf("settling %d results and %d receipts: %w", len(w.results), len(w.receipts), err)
	}
	s.carrier.handsets.take(kept)
	s.answer(w.receipts, recorded.Outcomes, inbound)
	if len(inbound) > 0 && s.opts.Inbound != nil {
		s.opts.Inbound()
	}
	s.committed(w, c)
	s.carrier.unmatched.give(recorded.Early)
	s.metrics.matchedLate.WithLabelValues(s.carrier.name).Add(float64(recorded.Early))
	s.logSettled(w, recorded)
	s.countSecond(taken)
	s.report(settled)
	return nil
}

// committed frees a settlement's slots and finished messages after the commit.
func (s *settler) committed(w settlement, c *changes) {
	used := map[*slots]int{}
	for _, r := range w.results {
		if r.slot {
			used[r.message.slots]++
		}
	}
	for i := range c.list {
		one := &c.list[i]
		switch m := one.m; {
		case m == nil:
			s.hearLate(one)
		case one.known.Ended:
			s.inFlight.remove(m)
			m.unsettled.Done()
		default:
			m.open, m.results = one.known.Open, one.known.Results
		}
	}
	for window, n := range used {
		window.give(n)
	}
}

// hearLate tells a message's attempt under way here of its late answers: no further segments
// go out if none need to, and the delay of a refusal counts for the next attempt.
func (s *settler) hearLate(one *change) {
	m := s.inFlight.get(one.id)
	if m == nil || m.carrier != s.carrier {
		return
	}
	if one.step.Row == submission.Leaves {
		m.stopped.Store(true)
	}
	m.results = append(m.results, one.known.Results...)
}
