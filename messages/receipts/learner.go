package receipts

import "slices"

// votesToLearn is how many receipts must agree before a link's format of ids is
// taken for known.
const votesToLearn = 3

// learner knows how one link's receipts write message ids. Where the
// configuration says Auto, it is learnt, and a receipt settles a segment only when the
// handset's number agrees too: the same digits can be one message's id in
// hexadecimal and another's in decimal, and two SMSCs of one carrier may count
// alike. A configured format needs no such check: there are carriers that hide
// the handset.
type learner struct {
	fixed  bool
	format Format // Auto: not known yet
	votes  map[Format]int
}

// Hold begins to match what comes over a link: configured is the format that the
// configuration has for it, stored the word that [Matcher.Committed] once returned
// for it. It returns the word of the format that holds now; "" if none is known.
func (m *Matcher) Hold(link string, configured Format, stored string) (word string) {
	l := &learner{fixed: configured != Auto, format: configured, votes: make(map[Format]int)}
	if at := slices.Index(formatNames[:], stored); at > 0 && !l.fixed {
		l.format = Format(at)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.links[link] = l
	return formatNames[l.format]
}

// Configure takes over what the configuration says of a link, when that has changed.
func (m *Matcher) Configure(link string, configured Format) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch l := m.of(link); {
	case configured != Auto:
		l.fixed, l.format = true, configured
	case l.fixed:
		l.fixed, l.format = false, Auto
		clear(l.votes)
	}
}

// Known returns the word of a link's format, "" while it is not known.
func (m *Matcher) Known(link string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return formatNames[m.of(link).format]
}

// of is a link's learner. Of one that was never held nothing is known.
func (m *Matcher) of(link string) *learner {
	l := m.links[link]
	if l == nil {
		l = &learner{votes: make(map[Format]int)}
		m.links[link] = l
	}
	return l
}

// vote is what a match says of a link's format; Auto: that what is known fits.
type vote struct {
	link   string
	format Format
}

// Learnt is a link whose format has become known.
type Learnt struct {
	Link string
	Word string // how the configuration spells the format
}

// learn counts votes and returns what became known by them.
func (m *Matcher) learn(votes []vote) (learnt []Learnt) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, v := range votes {
		switch l := m.of(v.link); {
		case v.format == Auto || l.fixed || l.format == v.format:
			clear(l.votes) // what is known is confirmed
		case l.votes[v.format]+1 < votesToLearn:
			l.votes[v.format]++
		default:
			l.format = v.format
			clear(l.votes)
			learnt = append(learnt, Learnt{v.link, formatNames[v.format]})
		}
	}
	return learnt
}
