package submission

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"intumwa/sms"
)

// play is one message on its way: what is written of it, what its process has in
// memory, and what its carrier has. A step is one thing that happens; every
// commit may be the last that the process does.
type play struct {
	*rapid.T
	policy   Policy
	segments int
	confirms bool
	second   bool // there is a second carrier to be asked
	optedOut bool // its handset wants no more of its sender

	// Written.
	outbox, marked bool
	rows           []*row
	carrier        int  // 1: it was sent on to the second
	begun          bool // a process died after it had begun: the carrier may have what is recorded nowhere
	final          sms.Status
	finals         int

	// In memory.
	inHand  bool
	attempt Attempt
	late    *Effect
	out     []*sent // being written, or written and without a result
	lost    []*sent // given up, and an answer may still come

	// The carriers'.
	sent      []*sent
	ambiguous [2][]int // by carrier and segment: how often nobody could know
	inbox     []*sent
}

// row is a copy that is recorded.
type row struct {
	of       *sent
	answered bool
	status   sms.Status
	passed   bool // the message was sent on since
}

// sent is a copy that was written, and what its carrier made of it.
type sent struct {
	segment  int
	carrier  int
	arrived  bool
	verdict  string // of the carrier: "", "accepted", "refused", "no way", "later"
	receipt  sms.Status
	reported bool
}

func (p *play) crashes() bool { return rapid.IntRange(0, 9).Draw(p.T, "crash") == 0 }

// crash is the end of the process: what is in memory is gone, and whoever comes
// next decides of what it had in hand.
func (p *play) crash() {
	for _, c := range p.out {
		if c.arrived {
			p.ambiguous[c.carrier][c.segment]++
		}
	}
	inHand, begun := p.inHand, p.marked
	p.inHand, p.out, p.lost, p.late, p.attempt, p.marked = false, nil, nil, nil, Attempt{}, false
	if !inHand || !p.outbox || p.final != sms.Pending {
		return
	}
	if (p.policy != Resend || p.second) && !begun {
		return // nothing was submitted: it waits as before
	}
	p.begun = true
	fail := ""
	for n := range p.segments {
		if p.rowOf(n, true) != nil || p.rowOf(n, false) != nil {
			continue
		}
		_, f := p.next(InFlight, OwnerDied{})
		if f.Again {
			return // it waits as before
		}
		p.rows = append(p.rows, &row{of: &sent{segment: n, carrier: p.carrier}})
		fail = f.Fail
	}
	p.outbox = false
	p.claimInbox()
	if fail != "" && p.final == sms.Pending {
		p.end(sms.Failed)
	}
	p.judge(false)
}

func (p *play) next(s State, e Event) (State, Effect) {
	next, f, possible := Next(s, e, p.policy)
	if !possible {
		p.Fatalf("%T in %v is impossible", e, s)
	}
	return next, f
}

// rowOf is a row of a segment that was answered, or that was not.
func (p *play) rowOf(segment int, answered bool) *row {
	for _, r := range p.rows {
		if r.of.segment == segment && r.answered == answered && !r.passed {
			return r
		}
	}
	return nil
}

func (p *play) end(status sms.Status) {
	if p.final != sms.Pending {
		return
	}
	p.final, p.finals = status, p.finals+1
	p.outbox = p.outbox && status != sms.Failed
}

func (p *play) copies() (copies []Copy) {
	for _, r := range p.rows {
		copies = append(copies, Copy{Segment: r.of.segment + 1, Answered: r.answered, Status: r.status, At: time.Unix(1, 0), Reason: "x", Passed: r.passed})
	}
	return copies
}

// judge makes the message final if its rows say so. With elsewhere, a second
// carrier is asked before it fails, if that may be.
func (p *play) judge(elsewhere bool) {
	status, _, _ := Verdict(p.segments, p.copies())
	if status == sms.Failed && elsewhere && !p.outbox && !p.inHand && p.sendOn() {
		return
	}
	if status != sms.Pending {
		p.end(status)
	}
}

// sendOn has the second carrier take the message, once.
func (p *play) sendOn() bool {
	if !p.second || p.begun || p.carrier != 0 || p.final != sms.Pending || !MayGoElsewhere(p.copies()) {
		return false
	}
	for _, c := range p.sent {
		if !c.reported || c.receipt != sms.Failed {
			p.Fatalf("it is sent on, and the first carrier has segment %d", c.segment)
		}
	}
	for _, r := range p.rows {
		r.passed = true
	}
	p.carrier, p.outbox = 1, true
	return true
}

// take begins an attempt.
func (p *play) take() {
	if !p.outbox || p.inHand || p.final != sms.Pending {
		return
	}
	p.inHand, p.attempt, p.late = true, Attempt{MayHave: p.begun}, nil
	if p.crashes() { // before anything goes out
		p.crash()
		return
	}
	if p.optedOut && !p.begun && !slices.ContainsFunc(p.rows, func(r *row) bool { return !r.passed }) {
		if p.crashes() {
			p.crash()
			return
		}
		s, f := p.next(InFlight, OptedOut{})
		p.attempt = Attempt{Open: 1}.Result(s, f, time.Unix(1, 0))
		if f, failed := p.attempt.Failure(); !failed || f.Elsewhere {
			p.Fatalf("it opted out, and does not fail here: %+v", f)
		}
		p.end(sms.Failed)
		p.endAttempt()
		return
	}
	var go_ []int
	for n := range p.segments {
		s := Waiting
		switch {
		case p.rowOf(n, true) != nil:
			s = Accepted
		case p.rowOf(n, false) != nil:
			s = Unanswered
		}
		if _, f, mayGo := Next(s, Writing{Second: p.second}, p.policy); mayGo {
			if go_ = append(go_, n); f.Record == Mark {
				p.marked = true
			}
		}
	}
	p.attempt.Open = len(go_)
	for _, n := range go_ {
		p.out = append(p.out, &sent{segment: n, carrier: p.carrier})
	}
	if len(go_) == 0 {
		p.attempt = Attempt{Open: 1}.Result(Accepted, Effect{}, time.Time{})
		p.endAttempt()
	}
}

// write has the carrier take a copy, and make of it what it will.
func (p *play) write() {
	for _, c := range p.out {
		if c.arrived || c.verdict != "" {
			continue
		}
		switch rapid.IntRange(0, 6).Draw(p.T, "carrier") {
		case 0: // lost on the way
			c.verdict = "silent"
			return
		case 1:
			c.verdict = "refused"
		case 3:
			c.verdict = "no way"
		case 2:
			c.verdict = "later"
		default:
			c.arrived, c.verdict = true, "accepted"
			c.receipt = rapid.SampledFrom([]sms.Status{sms.Sent, sms.Sent, sms.Failed}).Draw(p.T, "receipt")
			p.sent = append(p.sent, c)
		}
		return
	}
}

func (c *sent) answer(p *play) Event {
	switch c.verdict {
	case "accepted":
		return Answered{Confirms: p.confirms}
	case "refused":
		return Rejected{Permanent: true, Reason: "ESME_X"}
	case "no way":
		return Rejected{Permanent: true, Unroutable: p.second, Reason: "ESME_Y"}
	case "later":
		return Rejected{Delay: time.Second}
	}
	return nil
}

// result is the end of one copy's wait.
func (p *play) result() {
	if len(p.out) == 0 {
		return
	}
	i := rapid.IntRange(0, len(p.out)-1).Draw(p.T, "which")
	c := p.out[i]
	e := c.answer(p)
	if c.verdict == "" {
		e = NotWritten{}
	} else if e == nil || rapid.Bool().Draw(p.T, "unanswered") {
		e = NoAnswer{}
	}
	s, f := p.next(InFlight, e)
	if p.crashes() {
		p.crash()
		return
	}
	p.out = slices.Delete(p.out, i, i+1)
	if _, no := e.(NoAnswer); no {
		p.ambiguous[c.carrier][c.segment]++
		p.lost = append(p.lost, c)
	}
	switch f.Record {
	case AsAccepted:
		p.rows = append(p.rows, &row{of: c, answered: true, status: confirmed(s)})
	case AsUnanswered:
		p.rows = append(p.rows, &row{of: c})
	}
	p.attempt = p.attempt.Result(s, f, time.Unix(1, 0))
	p.claimInbox()
	p.judge(false)
	if f, failed := p.attempt.Failure(); failed && f.Elsewhere && p.sendOn() {
		p.inHand, p.marked = false, false
	} else {
		if failed {
			p.end(sms.Failed)
		}
		p.endAttempt()
	}
	if p.crashes() {
		p.crash()
	}
}

func confirmed(s State) sms.Status {
	if s == Delivered {
		return sms.Sent
	}
	return sms.Pending
}

func (p *play) endAttempt() {
	a := p.attempt
	if p.late != nil {
		a = a.Note(*p.late, time.Time{})
	}
	switch a.End() {
	case Ongoing:
		return
	case Failed, Held, Carried:
		p.outbox = false
	}
	p.inHand, p.marked = false, false
}

// lateAnswer is an answer to what was given up.
func (p *play) lateAnswer() {
	for i, c := range p.lost {
		e := c.answer(p)
		if e == nil {
			continue
		}
		p.lost = slices.Delete(p.lost, i, i+1)
		r := slices.IndexFunc(p.rows, func(r *row) bool { return r.of == c })
		if r < 0 || p.rows[r].status != sms.Pending {
			return // a receipt was faster
		}
		s, f := p.next(Unanswered, e)
		switch f.Record {
		case ReplaceUnanswered:
			p.rows[r].answered, p.rows[r].status = true, confirmed(s)
			if f.Done && p.segments == 1 && !p.inHand {
				p.outbox = false
			}
		case Forget:
			p.rows = slices.Delete(p.rows, r, r+1)
			if p.late = nil; p.inHand {
				p.late = &f
			}
			p.outbox = p.outbox || p.final == sms.Pending
		}
		if f.Fail != "" {
			p.end(sms.Failed)
		}
		p.claimInbox()
		p.judge(false)
		return
	}
}

// report is a receipt of the carrier's.
func (p *play) report() {
	for _, c := range p.sent {
		if c.reported {
			continue
		}
		c.reported = true
		settled, elsewhere := p.settle(c, rapid.Bool().Draw(p.T, "soon"))
		if !settled {
			p.inbox = append(p.inbox, c)
		}
		p.judge(elsewhere)
		return
	}
}

// settle gives a copy the state that its receipt says: by its own row, or, by
// its reference, by a row of the segment that was not answered.
func (p *play) settle(c *sent, soon bool) (settled, elsewhere bool) {
	for _, byReference := range []bool{false, true} {
		for _, r := range p.rows {
			if r.passed || r.status != sms.Pending || r.of.carrier != c.carrier || r.of.segment != c.segment || (r.of == c) == byReference || (byReference && r.answered) {
				continue
			}
			s := Accepted
			if !r.answered {
				s = Unanswered
			}
			s, f := p.next(s, Receipt{c.receipt, "UNDELIV", soon && c.receipt == sms.Failed})
			if r.status = sms.Failed; s == Delivered {
				r.status = sms.Sent
			}
			if f.Done && p.segments == 1 && !p.inHand {
				p.outbox = false
			}
			return true, f.Elsewhere
		}
	}
	return false, false
}

// claimInbox settles what was recorded just now by the receipts that waited.
func (p *play) claimInbox() {
	p.inbox = slices.DeleteFunc(p.inbox, func(c *sent) bool { settled, _ := p.settle(c, false); return settled })
}

// over is the end of the validity, and behind it of the wait for receipts.
func (p *play) over() {
	if p.outbox && !p.inHand && p.final == sms.Pending {
		if _, f := p.next(Waiting, Expired{}); f.Fail != "" {
			p.outbox = false
			p.end(sms.Failed)
		}
	}
	if !p.outbox && !p.inHand && p.final == sms.Pending {
		p.end(sms.Failed) // no receipt came
	}
}

// keeps checks what holds at any moment.
func (p *play) keeps() {
	if p.finals > 1 {
		p.Fatalf("it is final %d times", p.finals)
	}
	copies := [2][]int{make([]int, p.segments), make([]int, p.segments)}
	delivered := make([]bool, p.segments)
	for _, c := range p.sent {
		copies[c.carrier][c.segment]++
		delivered[c.segment] = delivered[c.segment] || p.confirms || c.reported && c.receipt == sms.Sent
	}
	for carrier := range copies {
		for n, count := range copies[carrier] {
			if p.policy != Resend && count > 1 {
				p.Fatalf("a carrier has segment %d %d times", n, count)
			}
			if count > 1+p.ambiguous[carrier][n] {
				p.Fatalf("a carrier has segment %d %d times, and %d times nobody could know", n, count, p.ambiguous[carrier][n])
			}
		}
	}
	if p.final == sms.Sent && slices.Contains(delivered, false) {
		p.Fatalf("it is sent: %v", fmt.Sprint(delivered))
	}
	rows := 0
	for _, r := range p.rows {
		if !r.passed {
			rows++
		}
	}
	if p.final == sms.Pending && !p.outbox && !p.inHand && rows < p.segments {
		p.Fatalf("it is lost: pending, %d rows of %d segments, and nobody sends it", rows, p.segments)
	}
}

// TestPromises: whatever a carrier does, in whatever order it is heard, and
// wherever the process dies: nothing is lost, what the carrier may have is not
// sent again but where that is the policy, a second carrier is asked once, and only
// for what the first has nothing of, a message is sent only when all of it was
// delivered, and it is final once.
func TestPromises(t *testing.T) {
	for range 50 { // rapid's own number of checks is too few for what is rare
		rapid.Check(t, promises)
	}
}

func promises(t *rapid.T) {
	p := &play{T: t, policy: Policy(rapid.IntRange(0, 2).Draw(t, "policy")), segments: rapid.IntRange(1, 3).Draw(t, "segments"),
		confirms: rapid.IntRange(0, 3).Draw(t, "confirms") == 0, second: rapid.Bool().Draw(t, "second"), outbox: true}
	p.ambiguous = [2][]int{make([]int, p.segments), make([]int, p.segments)}
	stop := func() { p.optedOut = p.optedOut || rapid.IntRange(0, 9).Draw(t, "opts out") == 0 }
	steps := []func(){p.take, p.write, p.write, p.result, p.result, p.lateAnswer, p.report, stop}
	for range rapid.IntRange(1, 60).Draw(t, "steps") {
		steps[rapid.IntRange(0, len(steps)-1).Draw(t, "step")]()
		p.keeps()
	}
	if rapid.Bool().Draw(t, "crash at the end") {
		p.crash()
	}
	for range 100 { // and then to its end
		for _, step := range []func(){p.take, p.write, p.result, p.report} {
			step()
			p.keeps()
		}
	}
	for len(p.out) > 0 {
		p.result()
		p.keeps()
	}
	p.over()
	p.keeps()
	if p.final == sms.Pending {
		t.Fatal("it never ends")
	}
}
