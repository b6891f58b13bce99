package stories

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// load is a company that sends many messages concurrently, each with its own text and
// recipient.
type load struct {
	messages int
	senders  int           // 32 when zero
	pause    time.Duration // a sender's pause between two messages
	// keyed sends each with an idempotency key and repeats until a 200, as a careful customer does.
	// Otherwise a 503 is final, and a missing response or outcome_unknown leaves the customer in doubt.
	keyed bool
	// at chooses the gateway of sender n's next message; nil: the first.
	at func(n int) *gateway
	// mixed varies the messages: fate(i) chooses message i's recipient, tail(i) the rest
	// of its text. Without it all are short and delivered.
	mixed *mixture

	from     *company
	word     string
	outcomes []outcome
	next     atomic.Int64
	accepted atomic.Int64
	mu       sync.Mutex
	answers  map[int]int // by status; 0: no response
	slowest  time.Duration
	running  sync.WaitGroup
	stop     chan struct{}
	requests map[*gateway]int // requests under way
}

// outcome is the customer's view of a message.
type outcome struct {
	tried    bool
	accepted bool
	doubt    bool // no response, or one with an unknown outcome
	id       string
	segments int
	sender   int       // who sent it
	at       time.Time // when it was accepted
}

// patience is how long a careful customer repeats.
const patience = 90 * time.Second

// sendsMany starts a load.
func (c *company) sendsMany(l *load) *load {
	l.from, l.word, l.answers, l.stop, l.requests = c, word(), map[int]int{}, make(chan struct{}), map[*gateway]int{}
	if l.senders == 0 {
		l.senders = 32
	}
	if l.at == nil {
		l.at = func(int) *gateway { return c.w.gateway }
	}
	l.outcomes = make([]outcome, l.messages)
	c.w.secret(l.word)
	for n := range l.senders {
		l.running.Go(func() { l.work(n) })
	}
	c.w.t.Cleanup(l.ends)
	return l
}

// mixture describes message i of a load.
type mixture struct {
	fate func(i int) int    // the recipient's last two digits
	ends func(i int) string // its final status
	tail func(i int) string
}

func (l *load) text(i int) string {
	text := fmt.Sprintf("%s %06d", l.word, i)
	if l.mixed != nil {
		text += l.mixed.tail(i)
	}
	return text
}

func (l *load) number(i int) string {
	if l.mixed != nil {
		return l.from.w.subscriber(i*100 + l.mixed.fate(i))
	}
	return l.from.w.subscriber(i)
}

func (l *load) status(i int) string {
	if l.mixed != nil {
		return l.mixed.ends(i)
	}
	return "sent"
}

// work is one sender.
func (l *load) work(n int) {
	for {
		select {
		case <-l.stop:
			return
		default:
		}
		i := int(l.next.Add(1)) - 1
		if i >= l.messages {
			return
		}
		l.deliver(n, i)
		if l.pause > 0 {
			time.Sleep(l.pause)
		}
	}
}

// deliver sends message i until its fate is known.
func (l *load) deliver(n, i int) {
	o := &l.outcomes[i]
	o.tried = true
	number := l.number(i)
	for deadline := time.Now().Add(patience); ; {
		var headers []string
		if l.keyed {
			headers = []string{"Idempotency-Key", l.word + "-" + strconv.Itoa(i)}
		}
		begin, at := time.Now(), l.target(n)
		a := l.from.postsMessage(at, number, l.text(i), headers...)
		l.note(at, a, time.Since(begin))
		switch {
		case a.err == nil && a.status == http.StatusOK:
			o.accepted, o.id, o.segments, o.sender, o.at = true, a.ID, a.ItemCount, n, time.Now()
			l.accepted.Add(1)
			return
		case !l.keyed && (a.err != nil || a.header.Get("X-Error-Code") == "outcome_unknown"):
			o.doubt = true
			return
		case !l.keyed:
			return
		case time.Now().After(deadline):
			l.from.w.t.Errorf("message %d was not accepted within %v, the last answer: %d %s %v", i, patience, a.status, a.body,
				a.err)
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// target is the gateway of sender n's next request.
func (l *load) target(n int) *gateway {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.at(n)
	l.requests[at]++
	return at
}

// idle reports whether a gateway has no open request.
func (l *load) idle(g *gateway) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.requests[g] == 0
}

func (l *load) note(at *gateway, a answer, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests[at]--
	status := a.status
	if a.err != nil {
		status = 0
	}
	l.answers[status]++
	if a.err == nil {
		l.slowest = max(l.slowest, took)
	}
}

// answered counts the responses by status; 0 is no response.
func (l *load) answered() map[int]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	copied := map[int]int{}
	for status, n := range l.answers {
		copied[status] = n
	}
	return copied
}

// reaches waits until n messages are accepted.
func (l *load) reaches(n int) {
	l.from.w.t.Helper()
	l.reachesIn(n, patience)
}

func (l *load) reachesIn(n int, within time.Duration) {
	l.from.w.t.Helper()
	l.from.w.eventually(within, strconv.Itoa(n)+" messages are accepted",
		func() bool { return int(l.accepted.Load()) >= n })
}

// finishes waits until every message has its response.
func (l *load) finishes() {
	l.from.w.t.Helper()
	l.running.Wait()
}

// ends stops sending.
func (l *load) ends() {
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	l.running.Wait()
}
