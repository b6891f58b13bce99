package receipts

import (
	"slices"
	"sync"
	"testing"
)

// TestLearning: three receipts make a format known; one that fits what is known takes
// back those against it; what is configured is not learnt.
func TestLearning(t *testing.T) {
	const yes = Auto // what is known fits
	for _, c := range []struct {
		name       string
		configured Format
		stored     string
		votes      []Format
		want       string
	}{
		{"nothing", Auto, "", nil, ""},
		{"two are too few", Auto, "", []Format{HexToDecimal, HexToDecimal}, ""},
		{"three", Auto, "", []Format{HexToDecimal, HexToDecimal, HexToDecimal}, "hex_to_decimal"},
		{"of three formats", Auto, "", []Format{Same, HexToDecimal, DecimalToHex, Same, DecimalToHex, DecimalToHex}, "decimal_to_hex"},
		{"known from before", Auto, "same", nil, "same"},
		{"known from before, and against it", Auto, "same", []Format{DecimalToHex, DecimalToHex, DecimalToHex}, "decimal_to_hex"},
		{"taken back", Auto, "same", []Format{DecimalToHex, DecimalToHex, yes, DecimalToHex, DecimalToHex, Same, DecimalToHex}, "same"},
		{"a word from another release", Auto, "base64", nil, ""},
		{"fixed", Same, "", []Format{DecimalToHex, DecimalToHex, DecimalToHex}, "same"},
		{"fixed against what was learnt", HexToDecimal, "same", []Format{Same, Same, Same}, "hex_to_decimal"},
	} {
		m := New("lumitel")
		before := m.Hold("l1", c.configured, c.stored)
		var votes []vote
		for _, f := range c.votes {
			votes = append(votes, vote{"l1", f}, vote{"l2", f})
		}
		learnt := m.Committed(Recorded{votes: votes})
		if got := m.Known("l1"); got != c.want {
			t.Errorf("%s: %q is known, want %q", c.name, got, c.want)
		}
		at := slices.IndexFunc(learnt, func(l Learnt) bool { return l.Link == "l1" })
		if changed := c.want != before; changed != (at >= 0) || (changed && learnt[at].Word != c.want) {
			t.Errorf("%s: learnt %+v", c.name, learnt)
		}
	}
}

// TestConfigured: what the configuration says holds from then on; when it says no more,
// the format is learnt anew.
func TestConfigured(t *testing.T) {
	m := New("lumitel")
	m.Hold("l1", Auto, "same")
	for _, c := range []struct {
		configured Format
		want       string
	}{{Auto, "same"}, {HexToDecimal, "hex_to_decimal"}, {DecimalToHex, "decimal_to_hex"}, {Auto, ""}, {Auto, ""}} {
		if m.Configure("l1", c.configured); m.Known("l1") != c.want {
			t.Errorf("configured as %v: %q, want %q", c.configured, m.Known("l1"), c.want)
		}
	}
}

// TestLearntAtOnce: a link's format is learnt, asked for and configured by several at
// the same time. The race detector is the judge.
func TestLearntAtOnce(t *testing.T) {
	m := New("lumitel")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { m.Hold("l1", Auto, "") })
		wg.Go(func() { m.Configure("l1", Auto) })
		wg.Go(func() { m.Committed(Recorded{votes: []vote{{"l1", Same}}, parked: true}) })
		wg.Go(func() {
			m.newMatching([]Segment{{Link: "l1", CarrierID: "1"}}, []Receipt{{Link: "l1", CarrierID: "1"}}, 0)
		})
		wg.Go(func() { m.Known("l1") })
	}
	wg.Wait()
}

// TestVotes: what a Record says of the format of ids. Nothing is said by an id that is
// the same in every format, by a receipt without its handset, by one that was found by
// its reference, nor where the format is fixed.
func TestVotes(t *testing.T) {
	for _, c := range []struct {
		name    string
		format  Format
		learnt  string
		segment Segment
		receipt Receipt
		early   bool
		want    []vote
	}{
		{"as it is", Auto, "", accepted(1, "12"), receipt("12", "DELIVRD", numberOf(1)), false, []vote{{"l1", Same}}},
		{"early, as it is", Auto, "", accepted(1, "12"), receipt("12", "DELIVRD", numberOf(1)), true, []vote{{"l1", Same}}},
		{"early, in decimal", Auto, "", accepted(1, "1f"), receipt("31", "DELIVRD", numberOf(1)), true, []vote{{"l1", HexToDecimal}}},
		{"early, in hexadecimal", Auto, "", accepted(1, "31"), receipt("1F", "DELIVRD", numberOf(1)), true, []vote{{"l1", DecimalToHex}}},
		{"as is known", Auto, "same", accepted(1, "12"), receipt("12", "DELIVRD", numberOf(1)), false, []vote{{"l1", Auto}}},
		{"one digit", Auto, "", accepted(1, "7"), receipt("7", "DELIVRD", numberOf(1)), false, nil},
		{"without its handset", Auto, "", accepted(1, "12"), receipt("12", "DELIVRD", ""), false, nil},
		{"by its reference", Auto, "", unanswered(1, 9), receipt("12", "DELIVRD", numberOf(1)).echoing(9), false, nil},
		{"early, by its reference", Auto, "", unanswered(1, 9), receipt("12", "DELIVRD", numberOf(1)).echoing(9), true, nil},
		{"fixed", Same, "", accepted(1, "12"), receipt("12", "DELIVRD", numberOf(1)), false, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newTest(t, c.format, c.learnt)
			var r Recorded
			if c.early {
				d.record(nil, c.receipt)
				r = d.record([]Segment{c.segment})
			} else {
				d.record([]Segment{c.segment})
				r = d.record(nil, c.receipt)
			}
			if len(r.Settled) != 1 || !slices.Equal(r.votes, c.want) {
				t.Errorf("settled %+v, votes %v; want %v", r.Settled, r.votes, c.want)
			}
		})
	}
}

// TestLearntByRematching: receipts in an unknown format, long behind their responses,
// are found one by one and then make it known; the next is found at once.
func TestLearntByRematching(t *testing.T) {
	d := newTest(t, Auto, "")
	d.record([]Segment{accepted(1, "1a"), accepted(2, "1b"), accepted(3, "1c"), accepted(4, "1d")})
	d.record(nil, receipt("26", "DELIVRD", numberOf(1)), receipt("27", "DELIVRD", numberOf(2)), receipt("28", "DELIVRD", numberOf(3)))
	settled, learnt := d.rematch()
	if len(settled) != 3 || !slices.Equal(learnt, []Learnt{{"l1", "hex_to_decimal"}}) {
		t.Errorf("settled %+v, learnt %+v", settled, learnt)
	}
	outcomes(t, d.record(nil, receipt("29", "DELIVRD", numberOf(4))), Matched)
}
