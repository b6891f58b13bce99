package stories

import (
	"strings"
	"time"

	"intumwa/tools/carriersim"
)

// onTheWayWithin is what rule choices 7.7 promises of everything that waits
// after a crash or a lost Redis; settledWithin leaves time for the way.
const (
	onTheWayWithin = 30 * time.Second
	settledWithin  = onTheWayWithin + 15*time.Second
)

// drains waits until every message has come to its carrier, and settles until
// none is pending. A backlog may take as long as it takes, but it never stands
// still for as long as everything should be on its way again.
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
	last := ask[int](w, query)
	for last > 0 {
		now := last
		if !w.comesTrue(within, func() bool { now = ask[int](w, query); return now < last }) {
			w.t.Errorf("%d messages are still %s and none has moved for %v", now, what, within)
			return
		}
		last = now
	}
}

// adds up a load when it is over: what the customer was told, what the carriers
// got, what the webhooks said and what the database says must be one story. Of
// the messages that the carriers got, so many may be there twice.
func (l *load) adds(duplicates int) {
	w := l.from.w
	w.t.Helper()
	l.finishes()
	w.drains()
	w.settles(settledWithin)
	w.drains() // of a message that has failed another segment may be on its way
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
	w.t.Logf("%d messages: answers %v, slowest %v, %d arrived twice; %s", l.messages, l.answered(), l.slowest.Round(time.Millisecond), c.twice, w.lumitel)
}

// checker compares the four books of a load.
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

// arrive notes what came to a handset.
func (c *checker) arrive(m carriersim.Message) {
	c.arrived[m.Text] += 1 + m.Duplicates
	r, ok := c.records[m.Text]
	if ok && (r.Number != "+"+m.Destination || r.Segments != int64(m.Segments)) {
		c.complain("message %s of %d segments for one number came as %d segments to %s", r.ID, r.Segments, m.Segments, m.Destination)
	}
}

// customer checks that every 200 is a message and nothing else is.
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
			c.complain("message %d was answered as %s with %d segments and is recorded as %s with %d", i, o.id, o.segments, r.ID, r.Segments)
		case !o.accepted && recorded && !o.doubt:
			c.complain("CHARGED: message %d was refused and is in the database", i)
		}
		if want := c.load.status(i); o.accepted && r.Status != want {
			c.complain("message %d was answered with 200 and is %s (%s), want %s", i, r.Status, r.Reason, want)
		}
	}
	for text, r := range c.records {
		if _, sent := known[text]; !sent {
			c.complain("message %s is in the database and nobody sent it", r.ID)
		}
	}
}

// carriers checks that every message arrived, and which twice.
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

// ledger checks that every message was paid once.
func (c *checker) ledger() {
	if got, want := c.load.from.credits(), c.load.from.granted-c.spent; got != want {
		c.complain("the company has %d credits, want %d - %d = %d", got, c.load.from.granted, c.spent, want)
	}
}

// webhooks checks that the customer heard of every message, once.
func (c *checker) webhooks() {
	if c.load.from.secret == "" {
		return
	}
	heard := func() map[int64]map[string]call {
		byMessage := map[int64]map[string]call{}
		for _, told := range c.load.from.webhooks() {
			if byMessage[told.Data.MessageID] == nil {
				byMessage[told.Data.MessageID] = map[string]call{}
			}
			byMessage[told.Data.MessageID][told.header.Get("webhook-id")] = told
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
			if want := "sms." + r.Status; call.Event != want || call.Data.Status != want || call.header.Get("X-Webhook-Event") != want || call.Data.PhoneNumber != r.Number {
				c.complain("message %s (%s) has webhook %s", r.ID, r.Status, call.body)
			}
		}
		delete(calls, r.MessageID)
	}
	for id := range calls {
		c.complain("a webhook speaks of message %d, which the company did not send", id)
	}
}
