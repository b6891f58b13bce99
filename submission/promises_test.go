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

	// Written.
	outbox, marked bool
	rows           []*row
	final          sms.Status
	finals         int

	// In memory.
	inHand  bool
	attempt Attempt
	late    *Effect
	out     []*sent // being written, or written and without a result
	lost    []*sent // given up, and an answer may still come

	// The carrier's.
	sent      []*sent
	ambiguous []int // by segment: how often nobody could know
	inbox     []*sent
}

// row is a copy that is recorded.
type row struct {
	of       *sent
	answered bool
	status   sms.Status
}

// sent is a copy that was written, and what its carrier made of it.
type sent struct {
	segment  int
	arrived  bool
	verdict  string // of the carrier: "", "accepted", "refused", "later"
	receipt  sms.Status
	reported bool
}

func (p *play) crashes() bool { return rapid.IntRange(0, 9).Draw(p.T, "crash") == 0 }

// crash is the end of the process: what is in memory is gone, and whoever comes
// next decides of what it had in hand.
func (p *play) crash() {
	for _, c := range p.out {
		if c.arrived {
			p.ambiguous[c.segment]++
		}
	}
	inHand, begun := p.inHand, p.marked
	p.inHand, p.out, p.lost, p.late, p.attempt, p.marked = false, nil, nil, nil, Attempt{}, false
	if !inHand || !p.outbox || p.final != sms.Pending {
		return
	}
	if p.policy != Resend && !begun {
		return // nothing was written: it waits as before
	}
	fail := ""
	for n := range p.segments {
		if p.rowOf(n, true) != nil || p.rowOf(n, false) != nil {
			continue
		}
		_, f := p.next(InFlight, OwnerDied{})
		if f.Again {
			return // it waits as before
		}
		p.rows = append(p.rows, &row{of: &sent{segment: n}})
		fail = f.Fail
	}
	p.outbox = false
	p.claimInbox()
	if fail != "" && p.final == sms.Pending {
		p.end(sms.Failed)
	}
	p.judge()
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
		if r.of.segment == segment && r.answered == answered {
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

// judge makes the message final if its rows say so.
func (p *play) judge() {
	var copies []Copy
	for _, r := range p.rows {
		copies = append(copies, Copy{Segment: r.of.segment + 1, Answered: r.answered, Status: r.status, At: time.Unix(1, 0), Reason: "x"})
	}
	if status, _, _ := Verdict(p.segments, copies); status != sms.Pending {
		p.end(status)
	}
}

// take begins an attempt.
func (p *play) take() {
	if !p.outbox || p.inHand || p.final != sms.Pending {
		return
	}
	p.inHand, p.attempt, p.late = true, Attempt{}, nil
	var go_ []int
	for n := range p.segments {
		s := Waiting
		switch {
		case p.rowOf(n, true) != nil:
			s = Accepted
		case p.rowOf(n, false) != nil:
			s = Unanswered
		}
		if _, f, mayGo := Next(s, Writing{}, p.policy); mayGo {
			if go_ = append(go_, n); f.Record == Mark {
				p.marked = true
			}
		}
	}
	p.attempt.Open = len(go_)
	for _, n := range go_ {
		p.out = append(p.out, &sent{segment: n})
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
		switch rapid.IntRange(0, 5).Draw(p.T, "carrier") {
		case 0: // lost on the way
			c.verdict = "silent"
			return
		case 1:
			c.verdict = "refused"
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
		p.ambiguous[c.segment]++
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
	p.judge()
	if _, failed := p.attempt.Failure(); failed {
		p.end(sms.Failed)
	}
	p.endAttempt()
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
		p.judge()
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
		if !p.settle(c) {
			p.inbox = append(p.inbox, c)
		}
		p.judge()
		return
	}
}

// settle gives a copy the state that its receipt says: by its own row, or, by
// its reference, by a row of the segment that was not answered.
func (p *play) settle(c *sent) bool {
	for _, byReference := range []bool{false, true} {
		for _, r := range p.rows {
			if r.status != sms.Pending || r.of.segment != c.segment || (r.of == c) == byReference || (byReference && r.answered) {
				continue
			}
			s := Accepted
			if !r.answered {
				s = Unanswered
			}
			s, f := p.next(s, Receipt{c.receipt, "UNDELIV"})
			if r.status = sms.Failed; s == Delivered {
				r.status = sms.Sent
			}
			if f.Done && p.segments == 1 && !p.inHand {
				p.outbox = false
			}
			return true
		}
	}
	return false
}

// claimInbox settles what was recorded just now by the receipts that waited.
func (p *play) claimInbox() {
	p.inbox = slices.DeleteFunc(p.inbox, p.settle)
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
	copies := make([]int, p.segments)
	delivered := make([]bool, p.segments)
	for _, c := range p.sent {
		copies[c.segment]++
		delivered[c.segment] = delivered[c.segment] || p.confirms || c.reported && c.receipt == sms.Sent
	}
	for n, count := range copies {
		if p.policy != Resend && count > 1 {
			p.Fatalf("the carrier has segment %d %d times", n, count)
		}
		if count > 1+p.ambiguous[n] {
			p.Fatalf("the carrier has segment %d %d times, and %d times nobody could know", n, count, p.ambiguous[n])
		}
	}
	if p.final == sms.Sent && slices.Contains(delivered, false) {
		p.Fatalf("it is sent: %v", fmt.Sprint(delivered))
	}
	if p.final == sms.Pending && !p.outbox && !p.inHand && len(p.rows) < p.segments {
		p.Fatalf("it is lost: pending, %d rows of %d segments, and nobody sends it", len(p.rows), p.segments)
	}
}

// TestPromises: whatever a carrier does, in whatever order it is heard, and
// wherever the process dies: nothing is lost, what the carrier may have is not
// sent again but where that is the policy, a message is sent only when all of it
// was delivered, and it is final once.
func TestPromises(t *testing.T) {
	for range 50 { // rapid's own number of checks is too few for what is rare
		rapid.Check(t, promises)
	}
}

func promises(t *rapid.T) {
	p := &play{T: t, policy: Policy(rapid.IntRange(0, 2).Draw(t, "policy")), segments: rapid.IntRange(1, 3).Draw(t, "segments"),
		confirms: rapid.IntRange(0, 3).Draw(t, "confirms") == 0, outbox: true}
	p.ambiguous = make([]int, p.segments)
	steps := []func(){p.take, p.write, p.write, p.result, p.result, p.lateAnswer, p.report}
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
