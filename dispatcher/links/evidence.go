package links

import (
	"time"

	"intumwa/smpp"
)

// Bounds of what a breaker keeps.
const (
	evidenceHandsets = 20  // of a streak
	evidenceStatuses = 8   // of a streak
	evidenceSenders  = 256 // of a link
)

// refusal is a submit_sm_resp with an error, as evidence.
type refusal struct {
	at             time.Time
	sender, number string
	status         smpp.Status
	class          smpp.Class
	first          bool // the message's first attempt
}

// weight is how much a refusal says about the carrier.
type weight uint8

const (
	weak   weight = iota // it may be this message's fault: a number that does not exist
	slow                 // we may be too fast, and slow down first
	strong               // the carrier's state, or our settings
)

func (r *refusal) weight() weight {
	switch r.class {
	case smpp.ClassUnroutable:
		return weak
	case smpp.ClassPermanent:
		if aboutSender(r.status) {
			return strong
		}
		return weak
	case smpp.ClassThrottled:
		return slow
	}
	return strong
}

// aboutSender reports whether a status says that the source address is wrong.
func aboutSender(s smpp.Status) bool {
	return s == smpp.StatusInvSrcAddr || s == smpp.StatusInvSrcTON || s == smpp.StatusInvSrcNPI
}

// streak is the refusals since the carrier last accepted anything, except for one acceptance in
// breakerPasses.
type streak struct {
	since    time.Time
	handsets map[string]weight // at most evidenceHandsets, with their strongest refusal
	counts   [strong + 1]int   // of handsets
	row      map[string]bool   // handsets refused in a row for our settings
	statuses map[smpp.Status]string
	last     smpp.Status
	several  bool // one status came for two senders

	// Repetitions count once: one message that is refused every minute is little evidence.
	refused, accepted int
}

func (r *streak) add(a *refusal) {
	if r.handsets == nil {
		*r = streak{since: a.at, handsets: map[string]weight{}, row: map[string]bool{}, statuses: map[smpp.Status]string{}}
	}
	if r.weigh(a.number, a.weight()) || a.first {
		r.refused++
	}
	if a.class != smpp.ClassConfiguration {
		clear(r.row)
	} else if len(r.row) < breakerTrips {
		r.row[a.number] = true
	}
	r.last = a.status
	if sender, known := r.statuses[a.status]; known {
		r.several = r.several || sender != a.sender
	} else if len(r.statuses) < evidenceStatuses {
		r.statuses[a.status] = a.sender
	}
}

// weigh records a handset with its strongest refusal, and reports whether it is new. If there
// are too many, it takes the place of a weaker one.
func (r *streak) weigh(number string, now weight) (isNew bool) {
	before, known := r.handsets[number]
	switch {
	case known && now <= before:
		return false
	case known:
		r.counts[before]--
	case len(r.handsets) == evidenceHandsets:
		weaker := ""
		for other, its := range r.handsets {
			if its < now {
				weaker = other
				break
			}
		}
		if weaker == "" {
			return false
		}
		r.counts[r.handsets[weaker]]--
		delete(r.handsets, weaker)
	}
	r.handsets[number] = now
	r.counts[now]++
	return !known
}

// has reports whether a status is part of the evidence.
func (r *streak) has(s smpp.Status) bool {
	_, has := r.statuses[s]
	return has
}

// passed counts an acceptance, and reports whether the carrier accepts more than a stray message.
func (r *streak) passed() bool {
	clear(r.row)
	r.accepted++
	return r.accepted*breakerPasses > r.refused
}

// proves reports whether the streak is an outage: our settings are refused for several handsets in
// a row, or (nearly) nothing was accepted for a while. It takes longer if the carrier throttles,
// because the link slows down first, and if the numbers may be at fault.
func (r *streak) proves(now time.Time, after time.Duration) bool {
	switch age := now.Sub(r.since); {
	case len(r.row) >= breakerTrips:
		return true
	case age >= breakerSlowly*after:
		return r.counts[strong]+r.counts[slow] >= breakerTrips || len(r.handsets) >= evidenceHandsets
	case age >= after:
		return r.counts[strong] >= breakerTrips
	}
	return false
}

// aboutSenders reports whether all refusals were about source addresses.
func (r *streak) aboutSenders() bool {
	for s := range r.statuses {
		if !aboutSender(s) {
			return false
		}
	}
	return true
}

// gate lets nothing pass while it is open, except one probe at a time.
type gate struct {
	open    bool
	since   time.Time
	until   time.Time // when the next probe may go
	pause   time.Duration
	probing bool // a probe is out; other answers are to segments sent before the gate opened
}

func (g *gate) trip(now time.Time, pause time.Duration) {
	*g = gate{open: true, since: now, until: now.Add(pause), pause: pause}
}

// failed records a refusal while the gate is open.
func (g *gate) failed(now time.Time) {
	if g.probing {
		g.pause = min(2*g.pause, breakerMost)
		g.until, g.probing = now.Add(g.pause), false
	}
}

// ready reports whether messages, or at least a probe, may pass.
func (g *gate) ready(now time.Time) bool { return !g.open || !now.Before(g.until) }

// enter is called for each message. An open gate passes only a probe.
func (g *gate) enter(now time.Time) bool {
	if !g.ready(now) {
		return false
	}
	if g.open {
		g.until, g.probing = now.Add(breakerProbeFor), true
	}
	return true
}
