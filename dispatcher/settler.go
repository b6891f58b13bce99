package dispatcher

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/messages/receipts"
	"intumwa/messages/submission"
	"intumwa/smpp"
)

// ambiguousDelay is the wait before a segment with a lost answer is sent again.
// Its receipt may settle it first.
const ambiguousDelay = 5 * time.Second

// settleTimeout bounds one settling transaction.
const settleTimeout = 10 * time.Second

// settler writes the answers (results) and receipts of one carrier's links. It
// commits everything that came during its last transaction as one: accepted
// segments, receipts, verdicts, webhooks, refunds. Only after that commit does it
// free slots and acknowledge receipts to the carrier. A commit that may have
// written nothing, because an earlier one wrote everything, still waits for the
// standby (postgres.ConfirmWith): the earlier one may not have reached it.
//
// While the database is down, results are kept and retried. Their slots stay
// taken, so the link stops. Receipts are refused with ESME_RMSGQFUL; the carrier
// delivers them again.
type settler struct {
	*core
	carrier *carrier

	throttled, unwritable smpp.Seldom

	mu          sync.Mutex
	lingering   lingering
	results     []result
	receipts    []arrival
	late        []lateAnswer
	returned    []messages.Claim // to give back
	came        time.Time        // when the last of these came
	cameReceipt time.Time        // when the last receipt came
	gathering   bool             // gather waits, and only what is urgent wakes it
	wake        chan struct{}
}

// lateAnswer is an answer to a segment that was given up as unanswered.
type lateAnswer struct {
	link      string
	messageID int64
	segment   int // from 1
	total     int
	smpp.Result
	at time.Time
}

func newSettler(shared *core, c *carrier) *settler {
	return &settler{core: shared, carrier: c, wake: make(chan struct{}, 1)}
}

// take accepts a segment's result. It never blocks.
func (s *settler) take(r result) {
	r.at = postgres.Moment(r.at) // only once, so that a retry writes the same
	s.mu.Lock()
	defer s.mu.Unlock()
	s.results = append(s.results, r)
	s.cameLocked(time.Now())
}

// unsettledMost is how many results may wait before turning messages away pauses.
const unsettledMost = 1_000

// behind reports whether more than unsettledMost results wait.
func (s *settler) behind() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.results) > unsettledMost
}

// receive accepts a receipt or an MO. It never blocks: the link bounds the
// unanswered ones.
func (s *settler) receive(a arrival) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.receipts = append(s.receipts, a)
	s.cameReceipt = time.Now()
	s.cameLocked(s.cameReceipt)
}

// takeLate accepts a late answer. It never blocks.
func (s *settler) takeLate(a lateAnswer) {
	a.at = postgres.Moment(a.at)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late = append(s.late, a)
	s.cameLocked(time.Now())
}

// putBack gives back claims for which giveBack failed.
func (s *settler) putBack(claims []messages.Claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.returned = append(s.returned, claims...)
	s.cameLocked(time.Now())
}

// settlement is the work of one transaction.
type settlement struct {
	results  []result
	receipts []arrival
	late     []lateAnswer
	returned []messages.Claim

	again bool // a transaction with all of it failed, or its COMMIT was not answered
}

func (w *settlement) size() int {
	return len(w.results) + len(w.receipts) + len(w.late) + len(w.returned)
}

// halves cuts a settlement in two, in commit's order.
func (w *settlement) halves() (first, second settlement) {
	n := w.size() / 2
	first.results, second.results = cut(w.results, &n)
	first.receipts, second.receipts = cut(w.receipts, &n)
	first.late, second.late = cut(w.late, &n)
	first.returned, second.returned = cut(w.returned, &n)
	return first, second
}

func cut[T any](list []T, n *int) (first, second []T) {
	at := min(*n, len(list))
	*n -= at
	return list[:at:at], list[at:]
}

func (s *settler) grab() settlement {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := settlement{results: s.results, receipts: s.receipts, late: s.late, returned: s.returned}
	s.results, s.receipts = make([]result, 0, len(w.results)), make([]arrival, 0, len(w.receipts)) // the next ones are about as many
	s.late, s.returned = nil, nil
	s.gathering = false
	return w
}

func (s *settler) grabReceipts() []arrival {
	s.mu.Lock()
	defer s.mu.Unlock()
	arrivals := s.receipts
	s.receipts = nil
	return arrivals
}

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
			a.pdu.Respond(smpp.StatusMsgQueueFull)
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
		settled, err = s.conclude(ctx, tx, s.carrying, finals, rows)
		return err
	})
	if err != nil {
		return fmt.Errorf("settling %d results and %d receipts: %w", len(w.results), len(w.receipts), err)
	}
	s.carrier.handsets.take(kept)
	s.answer(w.receipts, recorded.Outcomes, len(inbound))
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
