package core

import (
	"strings"
	"sync"
	"time"
	"unicode"

	"intumwa/smpp"
)

// wordsMost is how many unknown words of a carrier's receipts are counted by name.
const wordsMost = 20

// words are the states of a carrier's receipts that have no meaning.
type words struct {
	mu   sync.Mutex
	seen map[string]*smpp.Seldom
}

// otherWord stands for those beyond wordsMost, and for what may be more than a word.
const otherWord = "other"

// Note counts a receipt with an unknown state and logs the first of each minute with the key that gives it a meaning.
func (v *words) Note(c *Core, carrier, link, state string, now time.Time) {
	word := Printable(state)
	v.mu.Lock()
	if v.seen[word] == nil && len(v.seen) >= wordsMost {
		word = otherWord
	}
	seldom := v.seen[word]
	if seldom == nil {
		if v.seen == nil {
			v.seen = map[string]*smpp.Seldom{}
		}
		seldom = &smpp.Seldom{}
		v.seen[word] = seldom
	}
	v.mu.Unlock()
	c.Metrics.unknownStates.WithLabelValues(carrier, word).Inc()
	if n, due := seldom.Due(now); due {
		c.Log.Warn("receipts have an unknown state: the deadline decides, unless receipt_states has its meaning",
			"event", "receipt_state_unknown", "carrier", carrier, "link", link, "state", word, "set",
			"receipt_states: {"+word+": sent|failed|none}", "count", n)
	}
}

// Printable returns a receipt's state for metrics and logs: what is not one short word may be a part of a text or a
// number.
func Printable(state string) string {
	switch {
	case state == "":
		return "none"
	case len(state) > 24, len(state) > 3 && strings.Trim(state, "0123456789+-") == "",
		strings.ContainsFunc(state, func(r rune) bool {
			return !unicode.IsLetter(r) && (r < '0' || r > '9') && r != '_' &&
				r != '-'
		}):
		return otherWord
	}
	return state
}
