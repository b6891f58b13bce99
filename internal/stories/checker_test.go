package stories

import (
	"strings"
	"time"

	"intumwa/tools/carriersim"
)

// onTheWayWithin is the limit of rule choices 7.7 for waiting messages after a crash or a
// lost Redis. settledWithin adds time for their delivery.
const (
	onTheWayWithin = 30 * time.Second
	settledWithin  = onTheWayWithin + 15*time.Second
)

// drains waits until every message has reached its carrier, and settles until none is
// pending. A backlog may take any time, but must make progress within onTheWayWithin.
func (w *world) drains() {
	w.t.Helper()
	w.dwindles("on their way to a carrier", `SELECT count(*) FROM outbox`, onTheWayWithin)
}

func (w *world) settles(within time.Duration) {
	w.t.Helper()
	w.dwindles("pending", `SELECT count(*) FROM messages WHERE status = 0`, within)
}

func (w *world) dwindles(what, query string, within time.Duration) {
	w.t.Helper()
	w.shrinks(what, within, func() int { return scalar[int](w, query) })
}

// shrinks waits until no message is left, which may take any time, but must make progress within one.
func (w *world) shrinks(what string, within time.Duration, left func() int) {
	w.t.Helper()
	last := left()
	for last > 0 {
		now := last
		if !w.comesTrue(within, func() bool { now = left(); return now < last }) {
			w.t.Errorf("%d messages are still %s and none has moved for %v", now, what, within)
			return
		}
		last = now
	}
}

// adds compares the four records of a finished load: the API's responses, the carriers,
// the webhooks and the database. At most this many messages may have reached the carriers
// twice.
func (l *load) adds(duplicates int) {
	w := l.from.w
	w.t.Helper()
	l.finishes()
	w.drains()
	w.settles(settledWithin)
	w.drains() // another segment of a failed message may be in flight
	c := checker{load: l, t: w, records: map[string]record{}, arrived: map[string]int{}}
	for _, r := range l.from.records() {
		c.spent += r.Segments
		if !strings.HasPrefix(r.Body, l.word) {
			c.others = append(c.others, r.MessageID)
			continue
		}
		if _, twice := c.records[r.Body]; twice {
			w.t.Errorf("message %s is recorded twice", r.ID)
		}
		c.records[r.Body] = r
	}
	for _, carrier := range w.carriers {
		for _, m := range carrier.Messages() {
			if strings.HasPrefix(m.Text, l.word) {
				c.arrive(m)
			}
		}
	}
	c.customer()
	c.carriers(duplicates)
	c.ledger()
	c.webhooks()
	w.audited()
	w.t.Logf("%d messages: answers %v, slowest %v, %d arrived twice; %s", l.messages, l.answered(),
		l.slowest.Round(time.Millisecond), c.twice, w.lumitel)
}

// checker compares the four records of a load.
type checker struct {
	load    *load
	t       *world
	records map[string]record // by text: PostgreSQL
	others  []int64           // messages of the company's other loads
	spent   int64             // segments of all of them
	arrived map[string]int    // by text: the carriers
	twice   int
	wrong   int
}

// complain names the first few of many.
func (c *checker) complain(format string, args ...any) {
	c.t.t.Helper()
	if c.wrong++; c.wrong <= 10 {
		c.t.t.Errorf(format, args...)
	}
}

// arrive counts a message that reached a handset.
func (c *checker) arrive(m carriersim.Message) {
	c.arrived[m.Text] += 1 + m.Duplicates
	r, ok := c.records[m.Text]
	if ok && (r.Number != "+"+m.Destination || r.Segments != int64(m.Segments)) {
		c.complain("message %s of %d segments for one number came as %d segments to %s", r.ID, r.Segments, m.Segments,
			m.Destination)
	}
}

// customer checks that every 200 is a message, and nothing else is.
func (c *checker) customer() {
	known := map[string]bool{}
	for i, o := range c.load.outcomes {
		text := c.load.text(i)
		r, recorded := c.records[text]
		known[text] = recorded
		switch {
		case o.accepted && !recorded:
			c.complain("LOST: message %d was answered with 200 and is not in the database", i)
		case o.accepted && (o.id != r.ID || int64(o.segments) != r.Segments):
			c.complain("message %d was answered as %s with %d segments and is recorded as %s with %d", i, o.id, o.segments, r.ID,
				r.Segments)
		case !o.accepted && recorded && !o.doubt:
			c.complain("CHARGED: message %d was refused and is in the database", i)
		}
		if want := c.load.status(i); o.accepted && r.Status != want {
			c.complain("message %d was answered with 200 and is %s (%s), want %s", i, r.Status, r.Reason, want)
		}
	}
	for text, r := range c.records {
		if _, sent := known[text]; !sent {
			c.complain("message %s is in the database, but was not sent", r.ID)
		}
	}
}

// carriers checks that every message arrived, and which arrived twice.
func (c *checker) carriers(duplicates int) {
	for text, r := range c.records {
		n := c.arrived[text]
		if n == 0 && r.Status != "failed" {
			c.complain("LOST: message %s (%s) never came to a carrier", r.ID, r.Status)
		}
		c.twice += max(n-1, 0)
		delete(c.arrived, text)
	}
	for text, n := range c.arrived {
		c.complain("a carrier got %d times %q, which is not in the database", n, text)
	}
	if c.twice > duplicates {
		c.complain("%d messages arrived twice, at most %d may", c.twice, duplicates)
	}
}

// ledger checks that every message was charged once.
func (c *checker) ledger() {
	if got, want := c.load.from.credits(), c.load.from.granted-c.spent; got != want {
		c.complain("the company has %d credits, want %d - %d = %d", got, c.load.from.granted, c.spent, want)
	}
}

// webhooks checks that the customer got one webhook for every message.
func (c *checker) webhooks() {
	if c.load.from.secret == "" {
		return
	}
	heard := func() map[int64]map[string]call {
		byMessage := map[int64]map[string]call{}
		for _, hook := range c.load.from.webhooks() {
			if byMessage[hook.Data.MessageID] == nil {
				byMessage[hook.Data.MessageID] = map[string]call{}
			}
			byMessage[hook.Data.MessageID][hook.header.Get("webhook-id")] = hook
		}
		return byMessage
	}
	c.t.comesTrue(settledWithin, func() bool { return len(heard()) >= len(c.records)+len(c.others) })
	calls := heard()
	for _, id := range c.others {
		delete(calls, id)
	}
	for _, r := range c.records {
		if len(calls[r.MessageID]) != 1 {
			c.complain("message %s (%s) has %d webhooks, want 1", r.ID, r.Status, len(calls[r.MessageID]))
		}
		for _, call := range calls[r.MessageID] {
			if want := "sms." + r.Status; call.Event != want || call.Data.Status != want ||
				call.header.Get("X-Webhook-Event") != want || call.Data.PhoneNumber != r.Number {
				c.complain("message %s (%s) has webhook %s", r.ID, r.Status, call.body)
			}
		}
		delete(calls, r.MessageID)
	}
	for id := range calls {
		c.complain("a webhook speaks of message %d, which the company did not send", id)
	}
}
