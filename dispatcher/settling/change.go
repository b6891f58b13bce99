package settling

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"intumwa/dispatcher/core"
	"intumwa/dispatcher/profile"
	"intumwa/dispatcher/setup"
	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/messages/outbox"
	"intumwa/messages/receipts"
	"intumwa/messages/rerouting"
	"intumwa/messages/submission"
	"intumwa/sms"
)

// change is what a settlement means for one message: for the attempt of which results came, or, without one, for a
// message of which only late answers or receipts came.
type change struct {
	id      int64
	m       *core.InFlight // nil: no results of an attempt
	known   submission.Known
	step    submission.Step
	verdict *messages.Final // by receipts, or by the acceptance of a carrier without receipts
}

// changes are the contents of a settling transaction.
type changes struct {
	segments []receipts.Segment // to be recorded
	list     []change
	attempts map[*core.InFlight]int // the index of each attempt's change
	others   map[int64]int          // and of the others, by message

	refused []receipts.Refusal
}

// changes applies the answers to their segments: the part of a settlement that needs nothing from the database.
func (s *Settler) changes(w *Settlement) *changes {
	n := len(w.Results)
	c := &changes{segments: make([]receipts.Segment, 0, n), list: make([]change, 0, n),
		attempts: make(map[*core.InFlight]int, n), others: map[int64]int{}}
	policy := s.Carrier.Config().OnAmbiguous
	for i := range w.Late {
		s.applyLate(c, &w.Late[i], policy)
	}
	results := make([]submission.Result, n)
	for i := range w.Results {
		results[i] = s.apply(c, &w.Results[i], policy)
		c.add(w.Results[i].Message, results[i:i+1:i+1], policy)
	}
	for i := range c.list {
		k := &c.list[i].known
		k.Ended = c.list[i].m != nil && k.Open == 0
	}
	return c
}

// apply records what a result leaves at the carrier, and returns it as the result of its segment.
func (s *Settler) apply(c *changes, r *core.Result, policy submission.Policy) submission.Result {
	m := r.Message
	state, effect := submission.Next(submission.InFlight, r.Heard(), policy)
	segment := receipts.Segment{MessageID: m.Msg.ID, Segment: r.Segment, Total: m.Total, Number: m.Msg.Number,
		Link: m.Link, At: r.At}
	switch {
	case r.Segment == 0: // nothing was to be sent
	case state == submission.Accepted || state == submission.Delivered:
		c.segments = append(c.segments, s.accepted(segment, r.MessageID))
	case state == submission.Unanswered:
		segment.Unanswered, segment.Reference = true, profile.Reference(m.Msg.ID, r.Segment)
		c.segments = append(c.segments, segment)
	}
	return submission.Result{Segment: r.Segment, State: state, Effect: effect, At: r.At}
}

// applyLate does the same with an answer to a segment that was given up as unanswered.
func (s *Settler) applyLate(c *changes, a *LateAnswer, policy submission.Policy) {
	state, effect := submission.Next(submission.Unanswered, s.Carrier.Config().Event(a.Result, 1), policy)
	switch state {
	case submission.Accepted, submission.Delivered:
		c.segments = append(c.segments, s.accepted(receipts.Segment{
			MessageID: a.Whose, Segment: a.Segment, Total: a.Total, Link: a.Link, At: a.At, Late: true,
		}, a.MessageID))
	case submission.Waiting:
		c.refused = append(c.refused, receipts.Refusal{MessageID: a.Whose, Segment: a.Segment, At: a.At})
	case submission.Failed:
	default:
		return
	}
	one := c.other(a.Whose, a.Total, policy)
	one.known.Results = append(one.known.Results, submission.Result{Segment: a.Segment, State: state, Effect: effect,
		At: a.At})
}

// accepted completes the record of a segment that the carrier accepted under an id.
func (s *Settler) accepted(segment receipts.Segment, carrierID string) receipts.Segment {
	config := s.Carrier.Config()
	segment.CarrierID, segment.Confirmed = carrierID, config.Confirm == setup.ConfirmBySubmit
	if !config.NoReference {
		segment.Reference = profile.Reference(segment.MessageID, segment.Segment)
	}
	return segment
}

// add adds a segment's result to the change of its attempt.
func (c *changes) add(m *core.InFlight, result []submission.Result, policy submission.Policy) {
	i, known := c.attempts[m]
	if !known {
		i = len(c.list)
		c.attempts[m] = i
		before := m.Results
		if late, also := c.others[m.Msg.ID]; also {
			before = slices.Concat(before, c.list[late].known.Results)
		}
		c.list = append(c.list, change{id: m.Msg.ID, m: m, known: submission.Known{Policy: policy, Segments: m.Total,
			Open: m.Open, Results: before}})
	}
	k := &c.list[i].known
	if k.Open--; k.Results == nil {
		k.Results = result
		return
	}
	k.Results = append(slices.Clip(k.Results), result...)
}

// other returns the change of a message for its late answers and receipts.
func (c *changes) other(id int64, total int, policy submission.Policy) *change {
	i, known := c.others[id]
	if !known {
		i = len(c.list)
		c.others[id] = i
		c.list = append(c.list, change{id: id, known: submission.Known{Policy: policy, Segments: total}})
	}
	return &c.list[i]
}

// leaveOut drops what would be recorded of messages that have left the carrier.
func (c *changes) leaveOut(gone secondTook) {
	c.segments = slices.DeleteFunc(c.segments, func(one receipts.Segment) bool { return gone.has(one.MessageID) })
	c.refused = slices.DeleteFunc(c.refused, func(one receipts.Refusal) bool { return gone.has(one.MessageID) })
}

// decide sets each message's step and verdict, once its submit records are written; settled are the segments that
// became final. It reads the submit records of messages whose answer does not follow from this settlement alone, in one
// statement: not for a first attempt without an unanswered segment, nor for an attempt all of whose segments were
// accepted.
func (s *Settler) decide(ctx context.Context, tx pgx.Tx, c *changes, settled []receipts.SegmentState) error {
	policy := s.Carrier.Config().OnAmbiguous
	finals := make(map[int64]*messages.Final, len(settled))
	totals := map[int64]int{}
	for i := range settled {
		st := &settled[i]
		if st.Unanswered { // it need not be sent again
			c.other(st.MessageID, st.Total, policy)
		}
		if st.Total > 1 || st.Unanswered {
			totals[st.MessageID] = st.Total
			continue
		}
		finals[st.MessageID] = core.Verdict(st.MessageID, st.Total, []submission.Record{st.Record()})
	}
	ids := make([]int64, 0, len(totals))
	for id := range totals {
		ids = append(ids, id)
	}
	for i := range c.list {
		if one := &c.list[i]; one.needsRecords() {
			ids = append(ids, one.id)
		}
	}
	var records map[int64][]submission.Record
	if len(ids) > 0 {
		var err error
		if records, err = receipts.Records(ctx, tx, s.Carrier.Name, ids); err != nil {
			return err
		}
	}
	for id, total := range totals {
		finals[id] = core.Verdict(id, total, records[id])
	}
	for i := range c.list {
		one := &c.list[i]
		if one.known.Records = records[one.id]; !one.needsRecords() {
			one.known.Records = one.ownRecords()
		}
		one.step = submission.Decide(one.known)
		one.verdict = finals[one.id]
		delete(finals, one.id)
	}
	for id, final := range finals { // only receipts came: their rows stay
		c.list = append(c.list, change{id: id, verdict: final})
	}
	return nil
}

// needsRecords reports whether the submit records decide of the row.
func (c *change) needsRecords() bool {
	if c.m == nil {
		return true
	}
	if c.allAccepted() {
		return false
	}
	return c.known.Ended && c.m.Msg.Attempt > 1 || slices.ContainsFunc(c.known.Results, func(r submission.Result) bool {
		return r.State == submission.Unanswered && (c.known.Ended || r.Fail != "")
	})
}

// allAccepted reports whether this attempt alone has brought every segment to the carrier. A late answer may have
// accepted one of them too.
func (c *change) allAccepted() bool {
	n, all := 0, c.known.Results
	for i := range all {
		if acceptance(&all[i]) && !slices.ContainsFunc(
			all[:i], func(r submission.Result) bool { return r.Segment == all[i].Segment && acceptance(&r) }) {
			n++
		}
	}
	return n >= c.known.Segments
}

func acceptance(r *submission.Result) bool {
	return r.Segment > 0 && (r.State == submission.Accepted || r.State == submission.Delivered)
}

// ownRecords returns the submit records that the attempt's own results have left.
func (c *change) ownRecords() (records []submission.Record) {
	for i := range c.known.Results {
		if r := &c.known.Results[i]; acceptance(r) {
			records = append(records, submission.Record{Segment: r.Segment, Answered: true})
		}
	}
	return records
}

// failing returns the messages that fail unless a second carrier takes them, and why it may.
func (c *changes) failing(secondWithin bool) (list []rerouting.Failing, why secondTook) {
	why = secondTook{}
	add := func(one *change, reason, because string) {
		if !why.has(one.id) {
			why[one.id] = because
			list = append(list, rerouting.Failing{MessageID: one.id, Reason: reason, Epoch: c.endedEpoch(one.id)})
		}
	}
	for i := range c.list {
		if one := &c.list[i]; one.step.Row == submission.Fails && one.step.Elsewhere {
			add(one, one.step.Reason, unroutable)
		}
	}
	for i := range c.list {
		if one := &c.list[i]; secondWithin && one.verdict != nil && one.verdict.Status == sms.Failed &&
			strings.HasPrefix(one.verdict.Reason, submission.Undeliv) {
			add(one, one.verdict.Reason, undelivered)
		}
	}
	return list, why
}

// endedEpoch returns the epoch of a message's attempt that ends here; 0: none ends.
func (c *changes) endedEpoch(id int64) int {
	for i := range c.list {
		if one := &c.list[i]; one.id == id && one.known.Ended {
			return one.m.Msg.Epoch
		}
	}
	return 0
}

// outcome returns the verdicts and the rows of the messages that no second carrier took.
func (c *changes) outcome(dispatcher int64, taken secondTook) (finals []messages.Final, rows messages.Rows) {
	rows = messages.Rows{Dispatcher: dispatcher, Leave: make([]messages.Claim, 0, len(c.list))}
	for i := range c.list { // a receipt's verdict stands before an attempt's failure
		if one := &c.list[i]; one.verdict != nil && !taken.has(one.id) {
			finals = append(finals, *one.verdict)
		}
	}
	for i := range c.list {
		one := &c.list[i]
		if taken.has(one.id) {
			continue
		}
		claim := messages.Claim{MessageID: one.id}
		final := messages.Final{MessageID: one.id, Status: sms.Failed, At: one.step.At, Reason: one.step.Reason}
		if one.m != nil {
			claim = one.m.Msg.Claim()
			final.Claimant, final.Epoch = dispatcher, claim.Epoch
		}
		switch one.step.Row {
		case submission.Fails: // its row goes with the verdict
			finals = append(finals, final)
		case submission.Leaves:
			if rows.Leave = append(rows.Leave, claim); one.m == nil || one.m.Msg.Attempt > 1 {
				rows.Tried = append(rows.Tried, one.id)
			}
			if one.m == nil || one.m.Msg.Channel == messages.Kannel {
				rows.Told = append(rows.Told, one.id)
			}
		case submission.Again:
			if one.m != nil {
				rows.Again = append(rows.Again, messages.Retry{Claim: claim, Delay: one.step.Delay, Counts: one.step.Counts,
					Refused: one.step.Refused})
			} else {
				rows.Reenter = append(rows.Reenter, messages.Reentry{MessageID: one.id, Delay: one.step.Delay})
			}
		}
	}
	return finals, rows
}

// AfterDeath returns the verdicts and the rows of messages that a dead dispatcher had begun, as after an attempt
// without answers. records are all that their carrier may have.
func AfterDeath(begun []*outbox.Claimed, records map[int64][]submission.Record, policy submission.Policy,
	dispatcher int64) ([]messages.Final, messages.Rows) {
	ended := changes{}
	for _, m := range begun {
		one := change{id: m.ID, m: &core.InFlight{Msg: m},
			known: submission.Known{Policy: policy, Segments: submission.TotalOf(records[m.ID]),
				Records: records[m.ID], Ended: true, Results: []submission.Result{{At: postgres.Now()}}}}
		one.step = submission.Decide(one.known)
		ended.list = append(ended.list, one)
	}
	return ended.outcome(dispatcher, nil)
}
