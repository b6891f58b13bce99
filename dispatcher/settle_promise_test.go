package dispatcher

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"

	"intumwa/dispatcher/core"
	"intumwa/dispatcher/profile"
	"intumwa/dispatcher/recovery"
	"intumwa/dispatcher/settling"
	"intumwa/dispatcher/setup"
	"intumwa/messages"
	"intumwa/messages/rerouting"
	"intumwa/messages/submission"
	"intumwa/smpp"
	"intumwa/sms"
)

// beside returns a settler of another process, the dispatcher id, on the same database.
func (b *bench) beside(id int64) *bench {
	b.Helper()
	other := &bench{T: b.T, pool: b.pool, reg: prometheus.NewRegistry()}
	var carriers []setup.Carrier
	for _, c := range b.d.core.Running() {
		carriers = append(carriers, *c.Config())
	}
	var err error
	if other.d, err = New(b.pool, b.pool, b.d.core.Queue, b.d.core.Webhooks,
		setup.Options{Carriers: carriers, Metrics: other.reg}); err != nil {
		b.Fatal(err)
	}
	other.d.member.ID.Store(id)
	at := other.d.core.Running()[0]
	if other.worker, err = other.d.newWorker(at, &at.Config().Links[0]); err != nil {
		b.Fatal(err)
	}
	other.s = other.d.settlers[at.Name]
	return other
}

// play is one message, two processes that send it, and its carrier, which may have a second carrier. The processes
// settle what happens in batches, in any order.
type play struct {
	*rapid.T
	second    bool
	confirmed bool // the carrier sends no receipts: an acceptance is final
	processes [2]*process
	names     *int64 // the last dispatcher id
	id        int64
	number    sms.Number
	segments  int
	copies    []*writtenCopy

	cancelled, handedOver bool
}

// process is a settling process. Its lot is what it has received and not settled yet.
type process struct {
	*bench
	lot    settling.Settlement
	settle []func() // updates of copies when the lot is committed
	hand   []*attemptInHand

	prefetched *attemptInHand // claimed and not begun
}

func (at *process) policy() setup.Ambiguous { return at.s.Carrier.Config().OnAmbiguous }

// attemptInHand is a process's attempt, with its copies in flight.
type attemptInHand struct {
	m      *core.InFlight
	copies []*writtenCopy
}

// writtenCopy is the known state of a copy that was written to the first carrier.
type writtenCopy struct {
	segment  int
	of       *process
	m        *core.InFlight
	id       string // from the carrier; "": it never answers
	givenUp  bool   // the link no longer waits for its answer, which may come late
	answered bool   // its answer or end was received; it may be in a lot
	reported bool   // its receipt was received, likewise

	gone      bool // recorded: the carrier does not have it, or reported UNDELIV
	delivered bool // a receipt reported DELIVRD
	overruled bool // an operator had its segment sent again
}

// mayHave reports whether the carrier may have a copy, as far as received.
func (c *writtenCopy) mayHave() bool { return c.id != "" || !c.answered }

// What a copy waits for: its answer, its late answer, its receipt.
func (c *writtenCopy) waits() bool      { return !c.answered && !c.givenUp && c.of.has(c) }
func (c *writtenCopy) overdue() bool    { return !c.answered && c.givenUp && c.of.has(c) }
func (c *writtenCopy) unreported() bool { return c.id != "" && !c.reported }
func (c *writtenCopy) unanswered() bool { return !c.answered && !c.reported }

func (p *play) yes(label string) bool { return rapid.Bool().Draw(p.T, label) }

// one draws one of the fitting elements of all, of which there is at least one.
func one[E any](p *play, label string, all []E, fits func(E) bool) (e E) {
	return rapid.SampledFrom(slices.DeleteFunc(slices.Clone(all), func(e E) bool { return !fits(e) })).Draw(p.T, label)
}

func (p *play) process() *process {
	return p.processes[rapid.IntRange(0, 1).Draw(p.T, "process")]
}

// claim lets a process take the message, and submit its unsent segments now or later.
func (p *play) claim() {
	at := p.process()
	at.exec(`UPDATE outbox SET due_at = now() WHERE message_id = $1`, p.id)
	claimed, err := at.d.core.Store.Outbox.Claim(at.Context(), at.d.member.ID.Load(), "lumitel", []int64{p.id},
		at.s.Carrier.Config().Marks())
	if err != nil {
		p.Fatal(err)
	}
	if len(claimed) == 0 {
		return
	}
	m := at.worker.Attempt(claimed[0])
	at.worker.Open.Add(1)
	at.d.core.InFlight.Add(m)
	if at.prefetched != nil {
		p.Fatal("it is claimed twice")
	}
	if at.prefetched = (&attemptInHand{m: m}); p.yes("it is submitted at once") {
		p.begin(at)
	}
}

// begin lets a process submit its prefetch, if its claim is still valid.
func (p *play) begin(at *process) {
	hand := at.prefetched
	at.prefetched = nil
	begun, err := at.d.core.Store.Outbox.Begin(at.Context(), at.d.member.ID.Load(), []messages.Claim{hand.m.Msg.Claim()})
	if err != nil {
		p.Fatal(err)
	}
	if len(begun) == 0 {
		at.drop(hand)
		return
	}
	m, policy, e := hand.m, at.policy(), submission.Event(submission.NotWritten{})
	for n := 1; n <= p.segments; n++ {
		switch state := submission.StateOf(n, p.segments, m.Msg.Copies); {
		case state == submission.Unanswered && policy == setup.AmbiguousFail:
			e = submission.NoAnswer{}
		case state.MayWrite(policy):
			hand.copies = append(hand.copies, &writtenCopy{segment: n, of: at, m: m})
		}
	}
	if m.Open = len(hand.copies); m.Open == 0 || e == submission.Event(submission.NoAnswer{}) { // as links.Worker.Begin
		m.Open = 1
		at.lot.Results = append(at.lot.Results, core.Result{Message: m, Result: smpp.Result{Outcome: smpp.NotWritten},
			At: time.Now(), Event: e})
		return
	}
	for _, c := range hand.copies {
		if policy != setup.AmbiguousResend && slices.ContainsFunc(p.copies, func(before *writtenCopy) bool {
			return before.segment == c.segment && before.mayHave() && !before.overruled
		}) {
			p.Fatalf("segment %d is sent again, and the carrier may have it", c.segment)
		}
	}
	at.hand, p.copies = append(at.hand, hand), append(p.copies, hand.copies...)
}

// drop forgets an attempt without submitted segments.
func (at *process) drop(hand *attemptInHand) {
	at.d.core.InFlight.Remove(hand.m)
	at.worker.Open.Done()
}

// hears puts the end of a copy's wait into the lot of its process.
func (p *play) hears() {
	c := one(p, "copy", p.copies, (*writtenCopy).waits)
	f := unanswered
	switch rapid.SampledFrom([]string{"accepted", "accepted", "unanswered", "unanswered", "unanswered", "unanswered",
		"refused", "busy", "not written"}).Draw(p.T, "answer") {
	case "accepted":
		c.id, c.answered = fmt.Sprintf("%d-%d", p.id, slices.Index(p.copies, c)), true
		c.delivered = c.delivered || p.confirmed
		f = accepted(c.id)
	case "unanswered":
		c.givenUp = true
	case "refused":
		c.answered, f = true, refused
	case "busy":
		c.answered, f = true, ended(smpp.Rejected, smpp.StatusThrottled, nil)
	case "not written":
		c.answered, f = true, ended(smpp.NotWritten, 0, smpp.ErrNotBound)
	}
	r := f(c.m, c.segment)
	r.Slot = false
	c.of.lot.Results = append(c.of.lot.Results, r)
	if c.answered && c.id == "" {
		c.of.settle = append(c.of.settle, func() { c.gone = true })
	}
}

// has reports whether a copy is in flight in a process.
func (at *process) has(c *writtenCopy) bool {
	return slices.ContainsFunc(at.hand, func(h *attemptInHand) bool { return slices.Contains(h.copies, c) })
}

// hearsLate puts the answer to a copy that was given up into the lot of its process.
func (p *play) hearsLate() {
	c := one(p, "late", p.copies, (*writtenCopy).overdue)
	c.answered = true
	if rapid.IntRange(0, 4).Draw(p.T, "late answer") == 0 {
		c.of.lot.Late = append(c.of.lot.Late, throttledLate(c.m, c.segment, p.segments))
		c.of.settle = append(c.of.settle, func() { c.gone = true })
		return
	}
	c.id = fmt.Sprintf("%d-%d", p.id, slices.Index(p.copies, c))
	c.delivered = c.delivered || p.confirmed
	c.of.lot.Late = append(c.of.lot.Late, late(c.m, c.segment, p.segments, c.id))
}

// hearsReceipt puts the receipt of an accepted copy into either lot.
func (p *play) hearsReceipt() {
	c := one(p, "receipt", p.copies, (*writtenCopy).unreported)
	c.reported = true
	at := p.process()
	if often := rapid.IntRange(0, 9).Draw(p.T, "state"); often == 0 || !p.second && often < 7 {
		c.delivered = true
		at.lot.Receipts = append(at.lot.Receipts, at.receipt(c.id, "DELIVRD"))
		return
	}
	at.lot.Receipts = append(at.lot.Receipts, at.receipt(c.id, submission.Undeliv))
	at.settle = append(at.settle, func() { c.gone = true })
}

// hearsEcho puts the receipt of a copy without an answer, which echoes its reference, into either lot.
func (p *play) hearsEcho() {
	c := one(p, "echo", p.copies, (*writtenCopy).unanswered)
	c.reported = true
	at, state := p.process(), "DELIVRD"
	if rapid.IntRange(0, 3).Draw(p.T, "echoed state") == 0 {
		state = submission.Undeliv
	} else {
		c.delivered = true
	}
	a, ref := at.receipt(fmt.Sprintf("echo-%d-%d", p.id, slices.Index(p.copies, c)), state),
		profile.Reference(p.id, c.segment)
	a.Reference, a.Number = &ref, string(p.number)
	at.lot.Receipts = append(at.lot.Receipts, a)
}

// settles lets a process commit its lot, perhaps without an answer, and then again.
func (p *play) settles(at *process) {
	if at.lot.Size() == 0 {
		return
	}
	lot, known := at.lot, at.settle
	at.lot, at.settle = settling.Settlement{}, nil
	before := p.isSentOn()
	if rapid.IntRange(0, 9).Draw(p.T, "COMMIT unanswered") == 0 {
		p.commitsUnheard(at, lot)
		lot.Receipts, lot.Again = nil, true
	}
	if lot.Size() > 0 {
		if err := at.s.Commit(lot); err != nil {
			p.Fatal(err)
		}
	}
	for _, note := range known {
		note()
	}
	if p.isSentOn() && !before {
		for n, c := range p.copies {
			if !c.gone {
				p.Fatalf("it is sent on, and the first carrier may have copy %d, of segment %d: %+v", n+1, c.segment, *c)
			}
		}
	}
}

// commitsUnheard commits a settlement whose answer the process never gets: its memory stays unchanged.
func (p *play) commitsUnheard(at *process, lot settling.Settlement) {
	type memory struct {
		open    int
		results []submission.Result
		listed  bool
	}
	was, settled := map[*core.InFlight]memory{}, map[*core.InFlight]int{}
	for _, r := range lot.Results {
		m := r.Message
		settled[m]++
		was[m] = memory{m.Open, m.Results, at.d.core.InFlight.Get(p.id) == m}
	}
	for m := range was {
		m.Unsettled.Add(1) // it may end here, and once more
	}
	if err := at.s.Commit(lot); err != nil {
		p.Fatal(err)
	}
	for m, before := range was {
		if settled[m] < before.open { // it goes on
			m.Unsettled.Done()
		}
		if m.Open, m.Results = before.open, before.results; before.listed {
			at.d.core.InFlight.Add(m)
		}
	}
}

// cancels lets the customer cancel the message. That stops it only if no carrier may have any of it.
func (p *play) cancels() {
	at := p.process()
	done, err := settling.Cancel(at.Context(), at.pool, at.d.core.Carrying.Messages, at.d.core.Webhooks,
		messages.Queued{Company: 1, Message: p.id}, nil)
	if err != nil {
		p.Fatal(err)
	}
	p.cancelled = done.Cancelled > 0
	for n, c := range p.copies {
		if p.cancelled && c.mayHave() {
			p.Fatalf("it is cancelled, and the carrier may have copy %d, of segment %d: %+v", n+1, c.segment, *c)
		}
	}
}

// handsOver gives the message to another carrier, if its own may not have it or resends it.
func (p *play) handsOver() {
	at := p.process()
	if p.handedOver { // under another policy, perhaps
		return
	}
	if _, _, err := at.d.core.Store.Rerouting.Reroute(at.Context(), "lumitel", rerouting.To{Carrier: "onatel"},
		messages.LaneSingle, 0, 1000, at.policy()); err != nil {
		p.Fatal(err)
	}
	p.handedOver = at.count(`SELECT count(*) FROM outbox WHERE message_id = $1 AND carrier = 'onatel'`, p.id) > 0
	for n, c := range p.copies {
		if p.handedOver && c.mayHave() && (at.policy() != setup.AmbiguousResend || c.id != "" &&
			at.count(`SELECT count(*) FROM segments WHERE message_id = $1 AND carrier_id = $2`, p.id, c.id) > 0) {
			p.Fatalf("it is handed over, and the carrier may have copy %d, of segment %d: %+v", n+1, c.segment, *c)
		}
	}
}

// overrules lets an operator send the unanswered segments again.
func (p *play) overrules() {
	at := p.process()
	sent, err := recovery.SendUnanswered(at.Context(), at.pool, at.d.core.Carrying.Messages, "lumitel", []int64{p.id},
		time.Hour, toAny, unrecorded)
	if err != nil {
		p.Fatal(err)
	}
	for _, c := range p.copies {
		c.overruled = c.overruled || len(sent) > 0
	}
}

func (p *play) isSentOn() bool {
	return p.processes[0].count(`SELECT count(*) FROM carrier_moves WHERE message_id = $1`, p.id) > 0
}

// dies makes the other process take this one for dead and free its claims. If it is not dead it goes on under another
// id, and its segments in flight are still answered.
func (p *play) dies() {
	i := rapid.IntRange(0, 1).Draw(p.T, "who dies")
	at, other := p.processes[i], p.processes[1-i]
	at.exec(`DELETE FROM dispatchers WHERE id = $1`, at.d.member.ID.Load())
	if at.prefetched != nil { // giving it back would change nothing
		at.drop(at.prefetched)
		at.prefetched = nil
	}
	if err := other.d.recovery.Free(other.Context()); err != nil {
		p.Fatal(err)
	}
	if p.yes("it is dead") {
		at.lot, at.settle, at.hand = settling.Settlement{}, nil, nil
		at.d.core.InFlight = core.NewInFlightMessages()
	}
	*p.names++
	at.d.member.ID.Store(*p.names)
	at.registered()
}

// registered inserts a process's row.
func (at *process) registered() {
	at.exec(`INSERT INTO dispatchers (id, name) VALUES ($1, 'x')`, at.d.member.ID.Load())
}

// TestSettlingPromises: with any answers to two processes, in any order and lots, with either process dying or taken
// for dead, and with any number of lost answers to COMMIT:
//
//   - a message is final once, with one event, and sent only when each segment was delivered;
//   - while pending it is in the outbox, or all its segments are recorded, and it ends at its deadline;
//   - with hold and fail the carrier never gets a segment that it may have;
//   - a customer's cancellation stops it, and another carrier takes it over, only if the carrier does not have it; with
//     resend the other one may also take what was not answered;
//   - when a second carrier gets it, it is recorded that the first one does not have, or will not deliver, any copy
//     ever written to it.
func TestSettlingPromises(t *testing.T) {
	t.Parallel()
	b, _ := newSecondBench(t)
	names := int64(8)
	processes := [2]*process{{bench: b}, {bench: b.beside(8)}}
	for _, at := range processes {
		at.registered()
	}
	sent, final, ended, stopped, moved := 0, 0, 0, 0, 0
	run := func(rt *rapid.T) {
		p := &play{T: rt, processes: processes, names: &names, segments: rapid.SampledFrom([]int{1, 1, 1, 2, 2, 3}).Draw(
			rt, "segments"),
			confirmed: rapid.IntRange(0, 5).Draw(rt, "confirm: submit") == 0,
			second:    rapid.IntRange(0, 2).Draw(rt, "second") > 0}
		policies := []setup.Ambiguous{setup.AmbiguousResend, setup.AmbiguousResend, setup.AmbiguousResend,
			setup.AmbiguousHold, setup.AmbiguousFail}
		policy := rapid.SampledFrom(policies).Draw(rt, "policy")
		for _, at := range processes {
			conf := *at.s.Carrier.Config()
			conf.OnAmbiguous, conf.SecondCarrier, conf.Confirm = policy, "", setup.ConfirmByReceipt
			if p.confirmed {
				conf.Confirm = setup.ConfirmBySubmit
			}
			if p.second {
				conf.SecondCarrier = "leo"
			}
			at.s.Carrier.Conf.Store(&conf)
			at.lot, at.settle, at.hand, at.prefetched = settling.Settlement{}, nil, nil, nil
		}
		b.n++
		p.number = sms.Number(fmt.Sprintf("+25761%06d", b.n%1_000_000))
		if err := pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
			ids, err := b.d.core.Store.Messages.Insert(t.Context(), tx,
				[]*messages.Message{{ULID: ulid.Make(), CompanyID: 1, UserID: 1, Number: p.number,
					Sender: "DEMO", Body: strings.Repeat("Amahoro. ", 20*p.segments-10), Segments: p.segments, Carrier: "lumitel",
					Validity: time.Hour}})
			if err == nil {
				p.id = ids[0]
			}
			return err
		}); err != nil {
			rt.Fatal(err)
		}
		for range rapid.IntRange(4, 30).Draw(rt, "steps") {
			var steps []func() // the possible steps; rare ones get more weight, late ones most
			add := func(step func(), weight int) { steps = append(steps, slices.Repeat([]func(){step}, weight)...) }
			if b.count(`SELECT count(*) FROM outbox WHERE message_id = $1 AND carrier = 'lumitel' AND claimed_by IS NULL`,
				p.id) > 0 {
				add(p.claim, 2)
			}
			for _, next := range []struct {
				may    func(*writtenCopy) bool
				step   func()
				weight int
			}{{(*writtenCopy).waits, p.hears, 1}, {(*writtenCopy).overdue, p.hearsLate, 3},
				{(*writtenCopy).unreported, p.hearsReceipt, 3}, {(*writtenCopy).unanswered, p.hearsEcho, 1}} {
				if slices.ContainsFunc(p.copies, next.may) {
					add(next.step, next.weight)
				}
			}
			for _, at := range processes {
				if at.lot.Size() > 0 {
					add(func() { p.settles(at) }, 2)
				}
				if at.prefetched != nil {
					add(func() { p.begin(at) }, 2)
				}
			}
			switch rare := rapid.IntRange(0, 59).Draw(rt, "rare"); {
			case len(steps) == 0 || rare < 2:
				steps = []func(){p.dies}
			case rare < 4:
				steps = []func(){p.cancels}
			case rare < 6:
				steps = []func(){p.handsOver}
			case rare < 9 && slices.ContainsFunc(processes[:],
				func(at *process) bool { return at.policy() == setup.AmbiguousHold }):
				steps = []func(){p.overrules}
			case rare < 12:
				steps = []func(){func() { // another setting, at one process or both
					policy := rapid.SampledFrom(policies).Draw(rt, "another policy")
					for _, at := range processes {
						if p.yes("reload") {
							at.configure(func(c *setup.Carrier) { c.OnAmbiguous = policy })
						}
					}
				}}
			}
			if steps[rapid.IntRange(0, len(steps)-1).Draw(rt, "step")](); p.isSentOn() || p.cancelled {
				break
			}
		}
		for _, at := range processes {
			p.settles(at)
		}
		ended++
		if p.handedOver {
			moved++
		}
		if p.cancelled {
			stopped++
		}
		if p.isSentOn() {
			sent++
			p.settled(sms.Pending)
		} else if p.settled(sms.Pending, sms.Sent, sms.Failed) != sms.Pending {
			final++
		}
	}
	if rapid.Check(t, run); t.Failed() { // -rapid.checks=10000 finds rare failures
		return
	}
	if t.Logf("of %d messages %d were sent on, %d handed over, %d cancelled, and %d became final", ended, sent, moved,
		stopped, final); final == 0 || sent+moved+stopped == 0 {
		t.Error("nothing was tried")
	}

	b.exec(`DELETE FROM dispatchers WHERE id <> 1000000`)
	b.exec(`UPDATE outbox SET expires_at = now()`)
	b.exec(`UPDATE messages SET created_at = created_at - interval '30 days'`)
	for _, end := range []func(context.Context) error{b.d.recovery.Free, b.d.recovery.FindStranded,
		b.d.recovery.WalkOutbox, b.d.housekeeping.Overdue} {
		if err := end(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := b.count(`SELECT count(*) FROM messages WHERE status = 0`); n != 0 {
		t.Errorf("%d messages never end", n)
	}
	if n := b.count(`SELECT count(*) FROM webhook_deliveries`); n != ended {
		t.Errorf("%d events of %d messages", n, ended)
	}
}

// settled checks the invariants of a message, and that its status is one of states.
func (p *play) settled(states ...sms.Status) sms.Status {
	at := p.processes[0]
	status, reason := at.status(p.id)
	if !slices.Contains(states, status) {
		p.Fatalf("it is %v %q", status, reason)
	}
	events := at.count(`SELECT count(*) FROM webhook_deliveries WHERE company_id = 1 AND id IN ($1 * 8, $1 * 8 + 1)`, p.id)
	if want := map[bool]int{true: 1}[status.Final()]; events != want {
		p.Fatalf("it is %v, with %d events", status, events)
	}
	for n := 1; n <= p.segments && status == sms.Sent; n++ {
		if !slices.ContainsFunc(p.copies, func(c *writtenCopy) bool { return c.segment == n && c.delivered }) {
			p.Fatalf("it is sent, and segment %d was not delivered", n)
		}
	}
	waits := at.count(`SELECT count(*) FROM outbox WHERE message_id = $1`, p.id)
	out := at.count(`SELECT count(DISTINCT segment) FROM segments WHERE message_id = $1 AND mark IS DISTINCT FROM 1`, p.id)
	if status == sms.Pending && waits == 0 && out < p.segments {
		p.Fatalf("it is pending and not in the outbox, and %d of its %d segments are recorded", out, p.segments)
	}
	return status
}
