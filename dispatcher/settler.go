package dispatcher

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/smpp"
	"intumwa/submission"
)

// ambiguousDelay is how long a segment whose answer was lost waits before it
// is sent again: its receipt may come and settle it.
const ambiguousDelay = 5 * time.Second

// settleTimeout bounds one settling transaction.
const settleTimeout = 10 * time.Second

// settler writes, for one carrier, what its links answered (results) and
// reported (receipts). It takes whatever came while its last transaction ran
// and commits it as one: accepted segments, receipts, verdicts, webhooks,
// refunds. Only after that commit are slots given back, entries taken off the
// queue, and receipts acknowledged to the carrier.
//
// With the database away, results are kept and tried again until they are
// written; their slots stay taken, so the link stops by itself.
// Receipts are refused with ESME_RMSGQFUL: the carrier is their queue.
type settler struct {
	d       *Dispatcher
	carrier *carrier
	parked  time.Time // when a receipt last went into the inbox whose link's format of ids was unknown; run's

	throttled, unwritable smpp.Seldom

	mu        sync.Mutex
	lingering lingering
	results   []result
	receipts  []arrival
	late      []lateAnswer
	returned  []messages.Claim // to be given back
	wake      chan struct{}
}

// lateAnswer is an answer to a segment that had been given up as unanswered.
type lateAnswer struct {
	link      string
	messageID int64
	segment   int // from 1
	total     int
	smpp.Result
	at time.Time
}

// arrival is what a carrier delivered, a receipt or a handset's message, with
// the PDU that waits for its answer.
type arrival struct {
	messages.Receipt
	inbound *messages.Inbound // nil: a receipt
	pdu     *smpp.Delivery
	guess   bool // the format of the link's ids was not known
}

func newSettler(d *Dispatcher, c *carrier) *settler {
	return &settler{d: d, carrier: c, wake: make(chan struct{}, 1)}
}

// take accepts the fate of a segment. It never blocks.
func (s *settler) take(r result) {
	s.mu.Lock()
	s.results = append(s.results, r)
	s.mu.Unlock()
	signal(s.wake)
}

// receive accepts a receipt. It never blocks: the link bounds what is
// unanswered.
func (s *settler) receive(a arrival) {
	s.mu.Lock()
	s.receipts = append(s.receipts, a)
	s.mu.Unlock()
	signal(s.wake)
}

// takeLate accepts an answer that came after all. It never blocks.
func (s *settler) takeLate(a lateAnswer) {
	s.mu.Lock()
	s.late = append(s.late, a)
	s.mu.Unlock()
	signal(s.wake)
}

// putBack gives claims back that could not be given back directly.
func (s *settler) putBack(claims []messages.Claim) {
	s.mu.Lock()
	s.returned = append(s.returned, claims...)
	s.mu.Unlock()
	signal(s.wake)
}

// settlement is what one transaction settles.
type settlement struct {
	results  []result
	receipts []arrival
	late     []lateAnswer
	returned []messages.Claim
}

func (w *settlement) size() int {
	return len(w.results) + len(w.receipts) + len(w.late) + len(w.returned)
}

// halves cuts a settlement in two, in the order in which commit goes through it.
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
	w := settlement{s.results, s.receipts, s.late, s.returned}
	s.results, s.receipts, s.late, s.returned = nil, nil, nil, nil
	return w
}

func (s *settler) grabReceipts() []arrival {
	s.mu.Lock()
	defer s.mu.Unlock()
	receipts := s.receipts
	s.receipts = nil
	return receipts
}

// run settles until ctx ends and nothing is left, or the database stays away.
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

// settle writes a settlement, for as long as that takes.
func (s *settler) settle(ctx context.Context, w settlement) {
	for failures := 0; ; failures++ {
		start := time.Now()
		err := s.commit(w)
		s.d.metrics.settleTime.WithLabelValues(s.carrier.name).Observe(time.Since(start).Seconds())
		if err == nil {
			return
		}
		if postgres.Refused(err) {
			s.settleApart(ctx, w, err)
			return
		}
		// The carrier delivers its receipts again; they need not wait here, nor
		// those that came meanwhile.
		for _, a := range append(w.receipts, s.grabReceipts()...) {
			a.pdu.Respond(smpp.StatusMsgQueueFull)
			s.d.metrics.refusedReceipts.WithLabelValues(s.carrier.name).Inc()
		}
		w.receipts = nil
		if failures == 0 {
			s.d.log.Error("storing carrier answers fails; retrying", "carrier", s.carrier.name, "results", len(w.results), "error", err)
		}
		if w.size() == 0 {
			return
		}
		if ctx.Err() != nil && failures > 3 {
			// This process ends. Its claims are freed by the others, the
			// segments count as unanswered.
			s.release(w)
			return
		}
		time.Sleep(min(time.Duration(failures+1)*50*time.Millisecond, time.Second))
	}
}

// settleApart writes a settlement that the database refused in two halves, and so
// on, so that one refused row stops nothing else and costs the others a few
// transactions. What is refused alone too is dropped, counted and logged, because
// it would be refused for ever. A delivery is acknowledged
// with it, or else the carrier would deliver it for ever.
func (s *settler) settleApart(ctx context.Context, w settlement, refusal error) {
	if w.size() > 1 {
		first, second := w.halves()
		s.settle(ctx, first)
		s.settle(ctx, second)
		return
	}
	for _, r := range w.results {
		s.d.log.Error("the database refuses a segment's result; it is dropped", "carrier", s.carrier.name, "id", r.message.msg.ULID, "error", refusal)
	}
	for _, a := range w.receipts {
		s.d.metrics.setAside.WithLabelValues(s.carrier.name).Inc()
		if n, due := s.unwritable.Due(time.Now()); due {
			s.d.log.Error("the database refuses a delivery; it is acknowledged and dropped", "carrier", s.carrier.name, "receipt", a.inbound == nil, "count", n, "error", refusal)
		}
		a.pdu.Respond(smpp.StatusOK)
	}
	for _, a := range w.late {
		s.d.log.Error("the database refuses a late answer; it is dropped", "carrier", s.carrier.name, "link", a.link, "message_id", a.messageID, "error", refusal)
	}
	s.release(w)
}

// release frees what a settlement held, without having written it. The messages
// stay claimed, and in flight, until this process ends: what happened to them is
// not written anywhere, so they must not be sent again from here.
func (s *settler) release(w settlement) {
	for _, r := range w.results {
		if r.slot {
			r.message.worker.slots.give(1)
		}
		if r.message.attempt.Open--; r.message.attempt.Open == 0 {
			r.message.worker.open.Done()
		}
	}
}

// commit writes a settlement in one transaction and, once it is committed, frees
// what it held.
func (s *settler) commit(w settlement) error {
	ctx, cancel := context.WithTimeout(context.Background(), settleTimeout)
	defer cancel()
	plan := s.plan(w)
	conf, now := s.carrier.config(), time.Now()
	var receipts []messages.Receipt
	var inbound []messages.Inbound
	room, kept := s.carrier.handsets.room(now, conf.MaxInbound), 0
	for _, a := range w.receipts {
		switch {
		case a.inbound == nil:
			receipts = append(receipts, a.Receipt)
		case kept < room:
			inbound = append(inbound, *a.inbound)
			kept += rowsOf(a.inbound)
		}
	}
	var settled []messages.Settled
	var recorded messages.Recorded
	err := postgres.InTx(ctx, s.d.hot, func(tx pgx.Tx) (err error) {
		store := s.d.carrying
		if recorded, err = store.Record(ctx, tx, s.carrier.name, plan.segments, receipts, s.carrier.unmatched.room(now, conf.MaxUnmatched)); err != nil {
			return err
		}
		if err := store.KeepInbound(ctx, tx, inbound); err != nil {
			return err
		}
		if err := store.PutBack(ctx, tx, plan.putBack, s.d.opts.Validity); err != nil {
			return err
		}
		finals, err := store.Verdicts(ctx, tx, slices.Concat(recorded.Submitted, recorded.Reported))
		if err != nil {
			return err
		}
		settled, err = s.d.conclude(ctx, tx, store, slices.Concat(finals, plan.finals), messages.Ends{
			Dispatcher: s.d.member.id.Load(),
			Carried:    slices.Concat(plan.carried, answeredLate(recorded)),
			Held:       plan.held,
			Retries:    plan.retries,
		})
		return err
	})
	if err != nil {
		return fmt.Errorf("settling %d results and %d receipts: %w", len(w.results), len(w.receipts), err)
	}
	s.carrier.handsets.take(kept)
	s.committed(w, plan, recorded.Outcomes, len(inbound))
	s.learn(w, plan.segments, recorded)
	early := receiptsIn(recorded.Submitted)
	s.carrier.unmatched.give(early)
	s.d.metrics.matchedLate.WithLabelValues(s.carrier.name).Add(float64(early))
	s.logSettled(w, recorded.Outcomes, recorded.Reported)
	s.d.report(settled)
	return nil
}

// answeredLate are messages whose segment had no answer and was settled by a
// receipt that echoed its reference: they must not be sent again.
func answeredLate(r messages.Recorded) (ids []int64) {
	for _, st := range slices.Concat(r.Submitted, r.Reported) {
		if st.Unanswered && st.Total == 1 {
			ids = append(ids, st.MessageID)
		}
	}
	return ids
}

// receiptsIn counts the segments that a receipt settled.
func receiptsIn(states []messages.SegmentState) (n int) {
	for _, st := range states {
		if st.Receipt != "" {
			n++
		}
	}
	return n
}

// learn looks at what a settlement says of how links write ids in receipts. What was
// found by its reference says nothing of that, nor does an id that is the same
// in every format.
func (s *settler) learn(w settlement, segments []messages.Segment, recorded messages.Recorded) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	echoed := map[int]bool{}
	for _, st := range recorded.Reported {
		if st.Unanswered {
			echoed[st.From] = true
		}
	}
	n := 0 // of the receipts
	for _, a := range w.receipts {
		if a.inbound != nil {
			continue
		}
		switch {
		case recorded.Outcomes[n] != messages.Matched || !a.Verify || a.Number == "" || echoed[n]:
		case !a.guess:
			if format := s.carrier.format(a.Link); format != nil {
				format.confirm()
			}
		case otherKeys(a.CarrierID) != nil:
			s.d.learn(ctx, s.carrier, a.Link, IDSame)
		}
		n++
	}
	telling := map[int64]bool{}
	for _, p := range segments {
		telling[p.MessageID] = telling[p.MessageID] || p.Other != nil
	}
	for _, st := range recorded.Submitted {
		if st.Receipt != "" && !st.Unanswered && telling[st.MessageID] {
			s.d.learn(ctx, s.carrier, st.Link, otherFormats[st.Other])
		}
	}
}

// rowsOf is what a message from a handset counts in its carrier's quota: a long
// one as many as the segments it came in.
func rowsOf(m *messages.Inbound) int { return 1 + len(m.Octets)/140 }

// throttle puts a delivery back to a carrier that makes us keep too much.
func (s *settler) throttle(a arrival, kind string) {
	a.pdu.Respond(smpp.StatusThrottled)
	s.d.metrics.throttled.WithLabelValues(s.carrier.name, kind).Inc()
	if n, due := s.throttled.Due(time.Now()); due {
		s.d.log.Warn("a carrier delivers more than its hourly limit and is throttled", "carrier", s.carrier.name, "kind", kind, "count", n)
	}
}

// committed frees, after the commit, what a settlement held. Of the messages from
// handsets the first inbound are kept.
func (s *settler) committed(w settlement, p plan, outcomes []messages.Outcome, inbound int) {
	n := 0 // of the receipts
	for _, a := range w.receipts {
		if a.inbound != nil {
			if inbound--; inbound < 0 {
				s.throttle(a, inboundKind)
				continue
			}
			a.pdu.Respond(smpp.StatusOK)
			s.d.metrics.inbound.WithLabelValues(s.carrier.name).Inc()
			continue
		}
		outcome := outcomes[n]
		n++
		if outcome == messages.Throttled {
			s.throttle(a, unmatchedKind)
			continue
		}
		a.pdu.Respond(smpp.StatusOK)
		s.d.metrics.receipts.WithLabelValues(s.carrier.name, a.Link, string(outcome)).Inc()
		if outcome == messages.Unmatched {
			s.carrier.unmatched.take(1)
			if a.guess {
				s.parked = time.Now()
			}
		}
	}
	slots := map[*linkWorker]int{}
	for _, r := range w.results {
		if r.slot {
			slots[r.message.worker]++
		}
	}
	for m, effect := range p.late {
		m.late = effect
	}
	for _, m := range p.order {
		if m.attempt = p.attempts[m]; m.attempt.End() != submission.Ongoing {
			m.ack()
			s.d.inFlight.remove(m)
			m.worker.open.Done()
		}
	}
	for w, n := range slots {
		w.slots.give(n)
	}
}

// logSettled logs at debug level what a committed transaction said of each message,
// by its ULID, so that one message can be followed through the log. At other
// levels it costs nothing.
func (s *settler) logSettled(w settlement, outcomes []messages.Outcome, reported []messages.SegmentState) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	log := s.d.log
	if !log.Enabled(ctx, slog.LevelDebug) {
		return
	}
	for _, r := range w.results {
		log.Debug("segment answered", "id", r.message.msg.ULID, "message_id", r.message.msg.ID, "carrier", s.carrier.name,
			"link", r.message.worker.link, "segment", r.segment, "attempt", r.message.msg.Attempt, "outcome", r.Outcome.String(),
			"status", r.Status.String(), "carrier_id", r.MessageID)
	}
	whose := make(map[int]int64, len(reported)) // receipt -> message
	ids := make([]int64, len(reported))
	for i, st := range reported {
		whose[st.From], ids[i] = st.MessageID, st.MessageID
	}
	names, err := s.d.store.ULIDs(ctx, ids)
	if err != nil {
		log.Debug("looking up whose receipts these are", "error", err)
	}
	n := 0 // of the receipts
	for _, a := range w.receipts {
		if a.inbound != nil {
			continue
		}
		fields := []any{"carrier", s.carrier.name, "link", a.Link, "carrier_id", a.CarrierID, "state", a.State, "outcome", string(outcomes[n])}
		if id, known := whose[n]; known {
			fields = append([]any{"id", names[id], "message_id", id}, fields...)
		}
		log.Debug("receipt", fields...)
		n++
	}
}
