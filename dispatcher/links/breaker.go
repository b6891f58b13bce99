package links

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"intumwa/smpp"
)

// Bounds of a link's breaker.
const (
	breakerTrips    = 5 // handsets that were refused
	breakerMost     = 5 * time.Minute
	breakerProbeFor = 30 * time.Second // how long one probe may go unanswered
	breakerSlowly   = 3                // times setup.BreakerAfter: throttled, or perhaps the numbers' fault
	breakerPasses   = 50               // refusals for one acceptance: nearly nothing is accepted
	breakerOthers   = 3 * time.Minute  // a sender that was accepted since then shows that the carrier works
	breakerLong     = 24 * time.Hour   // the same, if it was accepted while the other was blocked
	breakerSpread   = time.Minute      // over which a blocked sender's messages return, at most
)

// breaker stops a link whose carrier is bound and accepts (nearly) nothing, with whatever status:
// its SMSC is out of order, or refuses our settings. Without it, attempt after attempt fails, and
// with a permanent status the whole queue. The messages stay pending. One probe at a time tests
// whether the carrier accepts again; a probe that is refused waits too.
//
// If only one sender is refused, the messages of that sender are blocked and all others pass. The
// link is out of order all the same if no other sender was accepted lately.
type breaker struct {
	first time.Duration // the first pause
	after time.Duration // setup.BreakerAfter, shorter in tests

	mu      sync.Mutex
	link    gate
	all     streak // of all senders
	senders map[string]*standing
}

// standing is what a breaker knows of one sender.
type standing struct {
	accepted time.Time // when the carrier last accepted a message of it
	streak   streak
	gate     gate
}

// accept records an acceptance.
func (b *breaker) accept(now time.Time, sender string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.standing(sender)
	rare := s.streak.handsets != nil && !s.streak.passed() && !s.gate.probing && !b.link.probing
	s.accepted = now
	if clear(b.all.row); !rare {
		b.pass(now, s)
	}
}

// pass closes the gates that blocked a sender whose messages pass.
func (b *breaker) pass(now time.Time, s *standing) {
	s.streak, s.gate, b.all = streak{}, gate{}, streak{}
	if !b.link.open {
		return
	}
	b.link = gate{}
	for _, other := range b.senders {
		switch blocked := other.streak.handsets != nil && other.streak.aboutSenders() && other.streak.proves(now, b.after); {
		case other == s:
		case blocked: // the carrier may refuse it still
			other.gate.trip(now, b.first)
			other.gate.until = now
		default:
			other.streak, other.gate = streak{}, gate{}
		}
	}
}

// refuse records a refusal. It reports whether the message is to wait although the status is
// permanent, because it is the carrier's state that the status shows. blocked means that the
// sender's messages wait from now on.
func (b *breaker) refuse(a refusal) (waits, blocked bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.standing(a.sender)
	if probing := b.link.probing || s.gate.probing; probing && a.weight() == weak && !b.all.has(a.status) &&
		!s.streak.has(a.status) {
		b.pass(a.at, s) // the carrier judges messages again
		return false, false
	}
	b.all.add(&a)
	s.streak.add(&a)
	switch {
	case b.link.open:
		b.link.failed(a.at)
		return true, false
	case b.all.several && b.all.proves(a.at, b.after):
		b.link.trip(a.at, b.first)
		return true, false
	case s.gate.open:
		s.gate.failed(a.at)
		return true, false
	case s.streak.proves(a.at, b.after):
		s.gate.trip(a.at, b.first)
		return true, true
	}
	return false, false
}

// standing returns what is known of a sender. If there are too many, the one that was accepted
// longest ago goes, a refused one last.
func (b *breaker) standing(sender string) *standing {
	if s := b.senders[sender]; s != nil {
		return s
	}
	if b.senders == nil {
		b.senders = make(map[string]*standing)
	}
	if len(b.senders) == evidenceSenders {
		goes := ""
		for name, s := range b.senders {
			if first := b.senders[goes]; first == nil || s.before(first) {
				goes = name
			}
		}
		delete(b.senders, goes)
	}
	s := &standing{}
	b.senders[sender] = s
	return s
}

func (s *standing) before(other *standing) bool {
	if refused := s.streak.handsets != nil; refused != (other.streak.handsets != nil) {
		return !refused
	}
	return s.accepted.Before(other.accepted)
}

// ready reports whether messages, or at least a probe, may be taken.
func (b *breaker) ready(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.link.ready(now)
}

// blocks returns how long a message of the sender has to wait; 0: it may be submitted.
func (b *breaker) blocks(now time.Time, sender string) (wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.senders[sender]; !b.link.open && s != nil && !s.gate.ready(now) {
		return s.wait(now)
	}
	return 0
}

// wait spreads the returning messages, so that there is one for each probe. If a probe is out, it
// is about to end.
func (s *standing) wait(now time.Time) time.Duration {
	spread := rand.N(min(s.gate.pause, breakerSpread)) + time.Millisecond
	if s.gate.probing {
		return spread
	}
	return s.gate.until.Sub(now) + spread
}

// enter is called before each submit. It reports whether the message may be submitted, and if it
// may not, how long it has to wait; 0: until the link is ready.
func (b *breaker) enter(now time.Time, sender string) (may bool, wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.link.open {
		return b.link.enter(now), 0
	}
	s := b.senders[sender]
	if s == nil || s.gate.enter(now) {
		return true, 0
	}
	return false, s.wait(now)
}

// outage is a breaker's state, for operators.
type outage struct {
	out     bool   // the link carries nothing but probes, as far as is known
	blocked int    // senders whose messages wait
	reason  string // in words; "": nothing is stopped
}

// state returns what is stopped. If the carrier refuses one sender, the link is out too unless
// another sender shows that it is not.
func (b *breaker) state(now time.Time) outage {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.link.open {
		return outage{true, 0, "stopped: the carrier refuses everything with " + b.all.last.String()}
	}
	var blocked []string
	var status smpp.Status
	var works, since time.Time // when another sender was last accepted, and since when these are blocked
	for _, name := range slices.Sorted(maps.Keys(b.senders)) {
		s := b.senders[name]
		switch {
		case !s.gate.open:
			works = later(works, s.accepted)
		default:
			blocked, status, since = append(blocked, name), s.streak.last, later(since, s.gate.since)
		}
	}
	if len(blocked) == 0 {
		return outage{}
	}
	names := strings.Join(blocked[:min(len(blocked), 3)], ", ")
	if len(blocked) > 3 {
		names = fmt.Sprintf("%s and %d more", names, len(blocked)-3)
	}
	within := breakerOthers
	if works.After(since) {
		within = breakerLong
	}
	if now.Sub(works) > within {
		return outage{true, len(blocked), fmt.Sprintf("stopped: the carrier refuses everything with %s; only %s was sent",
			status, names)}
	}
	return outage{false, len(blocked), fmt.Sprintf("the carrier refuses every message from %s with %s; others pass", names,
		status)}
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
