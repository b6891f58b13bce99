package submission

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"intumwa/sms"
)

const (
	retry = 3 * time.Second
	wait  = 5 * time.Second
)

var states = [...]string{"waiting", "in flight", "unanswered", "accepted", "delivered", "failed"}

func (s State) String() string { return states[s] }

// events are all kinds of events, by their names in the table.
var events = map[string]Event{
	"not written":      NotWritten{},
	"unsendable":       Unsendable{"smpp: x"},
	"answered":         Answered{},
	"answered for all": Answered{Confirms: true},
	"refused for good": Rejected{Permanent: true, Reason: "ESME_X"},
	"refused for now":  Rejected{Delay: retry},
	"refused: no way":  Rejected{Permanent: true, Unroutable: true, Reason: "ESME_Y"},
	"no answer":        NoAnswer{wait},
}

// table is the table of ARCHITECTURE.md, "One segment's life". The third column has the policies: r resend, h hold, f
// fail.
const table = `
in flight   | not written      | rhf | waiting     |
in flight   | unsendable       | rhf | failed      | fail=smpp: x
in flight   | answered         | rhf | accepted    |
in flight   | answered for all | rhf | delivered   |
in flight   | refused for good | rhf | failed      | fail=ESME_X
in flight   | refused for now  | rhf | waiting     | in 3s counts
in flight   | refused: no way  | rhf | failed      | fail=ESME_Y elsewhere
in flight   | no answer        | rh  | unanswered  | in 5s counts
in flight   | no answer        | f   | unanswered  | fail=no_answer
unanswered  | answered         | rhf | accepted    |
unanswered  | answered for all | rhf | delivered   |
unanswered  | refused for good | h   | failed      | fail=ESME_X
unanswered  | refused for now  | h   | waiting     | in 3s counts
unanswered  | refused: no way  | h   | failed      | fail=ESME_Y
`

func (f Effect) String() string {
	var words []string
	add := func(is bool, word string) {
		if is {
			words = append(words, word)
		}
	}
	add(f.Delay != 0, "in "+f.Delay.String())
	add(f.Counts, "counts")
	add(f.Fail != "", "fail="+f.Fail)
	add(f.Elsewhere, "elsewhere")
	return strings.Join(words, " ")
}

// TestNext: Next is the table; an event without a row changes nothing.
func TestNext(t *testing.T) {
	type question struct {
		state, event string
		policy       Policy
	}
	answers := map[question]string{}
	for line := range strings.Lines(strings.TrimSpace(table)) {
		cells := strings.Split(line, "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		for _, p := range cells[2] {
			answers[question{cells[0], cells[1], Policy(strings.IndexRune("rhf", p))}] = cells[3] + " | " + cells[4]
		}
	}
	for s := range State(len(states)) {
		for name, e := range events {
			for _, p := range []Policy{Resend, AwaitReceipt, Fail} {
				next, f := Next(s, e, p)
				want, listed := answers[question{s.String(), name, p}]
				if !listed {
					want = s.String() + " | "
				}
				if got := fmt.Sprintf("%v | %v", next, f); got != want {
					t.Errorf("%v, %s, policy %d: %q, want %q", s, name, p, got, want)
				}
			}
		}
	}
}

// TestWriting: what may be submitted, and what is recorded before.
func TestWriting(t *testing.T) {
	for p, want := range map[Policy][]State{Resend: {Waiting, Unanswered}, AwaitReceipt: {Waiting}, Fail: {Waiting}} {
		var may []State
		for s := range State(len(states)) {
			if s.MayWrite(p) {
				may = append(may, s)
			}
		}
		if !slices.Equal(may, want) {
			t.Errorf("policy %d: %v, want %v", p, may, want)
		}
		if !p.Marks(true) || p.Marks(false) != (p != Resend) {
			t.Errorf("policy %d: it marks %t and %t", p, p.Marks(false), p.Marks(true))
		}
	}
}

// TestMayGoElsewhere: a second carrier is chosen only when the first has nothing of a message.
func TestMayGoElsewhere(t *testing.T) {
	undelivered := Record{Segment: 1, Answered: true, Status: sms.Failed, Receipt: Undeliv, After: time.Minute}
	with := func(change func(*Record)) []Record {
		other := undelivered
		change(&other)
		return []Record{undelivered, other}
	}
	for name, c := range map[string]struct {
		of   Failing
		want bool
	}{
		"nothing recorded":        {Failing{Pending: true}, true},
		"undelivered":             {Failing{Pending: true, Records: []Record{undelivered}}, true},
		"final, or its time over": {Failing{}, false},
		"claimed":                 {Failing{Pending: true, Claimed: true}, false},
		"sent again by an operator": {Failing{Pending: true,
			Records: with(func(c *Record) { c.Answered, c.Status, c.Mark = false, sms.Pending, Overruled })}, false},
		"its sender works not there": {Failing{Pending: true, Unregistered: true}, false},
		"sent on before":             {Failing{Pending: true, Sent: true}, false},
		"another unanswered":         {Failing{Pending: true, Records: with(func(c *Record) { c.Answered = false })}, false},
		"another pending":            {Failing{Pending: true, Records: with(func(c *Record) { c.Status = sms.Pending })}, false},
		"another delivered":          {Failing{Pending: true, Records: with(func(c *Record) { c.Status = sms.Sent })}, false},
		"another expired":            {Failing{Pending: true, Records: with(func(c *Record) { c.Receipt = "EXPIRED" })}, false},
		"another late":               {Failing{Pending: true, Records: with(func(c *Record) { c.After++ })}, false},
		"another carrier's, passed": {Failing{Pending: true,
			Records: with(func(c *Record) { c.Status, c.Mark = sms.Sent, Passed })}, true},
	} {
		if got := MayGoElsewhere(c.of, time.Minute); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func permutations(s string) []string {
	if len(s) < 2 {
		return []string{s}
	}
	var all []string
	for i := range s {
		for _, rest := range permutations(s[:i] + s[i+1:]) {
			all = append(all, s[i:i+1]+rest)
		}
	}
	return all
}

// TestVerdict: a segment's state from its submit records, and a message's from its segments, in any order of the submit
// records.
func TestVerdict(t *testing.T) {
	// p, s, f: an answered submit record is pending, sent, failed; upper case: an unanswered one. x: it arrived, and was
	// passed to a second carrier.
	segments := map[string]sms.Status{
		"": sms.Pending, "p": sms.Pending, "s": sms.Sent, "f": sms.Failed, "P": sms.Pending, "S": sms.Sent, "F": sms.Failed,
		"pp": sms.Pending, "ps": sms.Sent, "pf": sms.Failed, "ss": sms.Sent, "sf": sms.Sent, "ff": sms.Failed,
		"Pp": sms.Pending, "Ps": sms.Sent, "Pf": sms.Failed, "Sp": sms.Sent, "Ss": sms.Sent, "Sf": sms.Sent,
		"Fp": sms.Pending, "Fs": sms.Sent, "Ff": sms.Failed,
		"PP": sms.Pending, "PS": sms.Sent, "PF": sms.Failed, "SS": sms.Sent, "SF": sms.Sent, "FF": sms.Failed,
		"x": sms.Pending, "xf": sms.Failed, "xs": sms.Sent,
	}
	status := map[rune]sms.Status{'p': sms.Pending, 's': sms.Sent, 'f': sms.Failed, 'x': sms.Sent}
	records := func(segment int, letters string) (all []Record) {
		for i, letter := range letters {
			lower := []rune(strings.ToLower(string(letter)))[0]
			one := Record{Segment: segment, Answered: letter == lower, Status: status[lower],
				At: time.Unix(int64(10*segment+i), 0), Reason: string(letter)}
			if letter == 'x' {
				one.Mark = Passed
			}
			all = append(all, one)
		}
		return all
	}
	for first, one := range segments {
		for _, order := range permutations(first) {
			got, at, reason := Verdict(1, records(1, order))
			if got != one || (got == sms.Failed) != (reason != "") || at.IsZero() != (got == sms.Pending) {
				t.Errorf("%q is %v at %v for %q, want %v", order, got, at, reason, one)
			}
		}
		for second, two := range segments {
			want := sms.Pending
			switch {
			case one == sms.Failed || two == sms.Failed:
				want = sms.Failed
			case one == sms.Sent && two == sms.Sent:
				want = sms.Sent
			}
			if got, _, _ := Verdict(2, append(records(2, second), records(1, first)...)); got != want {
				t.Errorf("%q and %q are %v, want %v", first, second, got, want)
			}
		}
	}
	if _, at, reason := Verdict(2, append(records(2, "f"), records(1, "pf")...)); reason != "f" || at != time.Unix(11, 0) {
		t.Errorf("it failed at %v for %q, not with its first segment", at, reason)
	}
	for _, last := range []int64{5, 20} {
		second := Record{Segment: 2, Status: sms.Sent, At: time.Unix(last, 0)}
		if _, at, _ := Verdict(2, append(records(1, "s"), second)); at != time.Unix(max(last, 10), 0) {
			t.Errorf("it is sent at %v, not with the last segment delivered", at)
		}
	}
}
