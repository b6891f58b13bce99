package submission

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"intumwa/sms"
)

const (
	retry = 3 * time.Second
	wait  = 5 * time.Second
)

// events are all kinds of events, by the names that the table has for them.
var events = map[string]Event{
	"writing":          Writing{},
	"writing, second":  Writing{Second: true},
	"not written":      NotWritten{},
	"unsendable":       Unsendable{"smpp: x"},
	"opted out":        OptedOut{},
	"answered":         Answered{},
	"answered for all": Answered{Confirms: true},
	"refused for good": Rejected{Permanent: true, Reason: "ESME_X"},
	"refused for now":  Rejected{Delay: retry},
	"refused: no way":  Rejected{Permanent: true, Unroutable: true, Reason: "ESME_Y"},
	"no answer":        NoAnswer{wait},
	"echoed":           Echoed{},
	"receipt: sent":    Receipt{Status: sms.Sent},
	"receipt: failed":  Receipt{Status: sms.Failed, Reason: "UNDELIV"},
	"receipt: no way":  Receipt{Status: sms.Failed, Reason: "UNDELIV", Soon: true},
	"owner died":       OwnerDied{},
	"expired":          Expired{},
	"overdue: sent":    ReceiptOverdue{sms.Sent},
	"overdue: failed":  ReceiptOverdue{sms.Failed},
}

// table has a row for each state and event. The third column says for which
// policies it holds: r resend, h hold, f fail. An empty next state: it cannot
// happen.
const table = `
waiting     | writing          | r   | in flight   |
waiting     | writing          | hf  | in flight   | mark
waiting     | writing, second  | rhf | in flight   | mark
waiting     | not written      | rhf | waiting     | again stop
waiting     | unsendable       | rhf | refused     | fail=smpp: x stop
waiting     | opted out        | rhf | refused     | fail=opted_out stop
waiting     | answered         | rhf |             |
waiting     | answered for all | rhf |             |
waiting     | refused for good | rhf |             |
waiting     | refused for now  | rhf |             |
waiting     | refused: no way  | rhf |             |
waiting     | no answer        | rhf |             |
waiting     | echoed           | rhf |             |
waiting     | receipt: sent    | rhf | waiting     | park
waiting     | receipt: failed  | rhf | waiting     | park
waiting     | receipt: no way  | rhf | waiting     | park
waiting     | owner died       | rhf | waiting     | again
waiting     | expired          | rhf | refused     | fail=expired
waiting     | overdue: sent    | rhf |             |
waiting     | overdue: failed  | rhf |             |
in flight   | writing          | rhf |             |
in flight   | writing, second  | rhf |             |
in flight   | not written      | rhf | waiting     | again stop
in flight   | unsendable       | rhf | refused     | fail=smpp: x stop
in flight   | opted out        | rhf | refused     | fail=opted_out stop
in flight   | answered         | rhf | accepted    | accepted
in flight   | answered for all | rhf | delivered   | accepted
in flight   | refused for good | rhf | refused     | fail=ESME_X stop
in flight   | refused for now  | rhf | waiting     | again in 3s counts stop
in flight   | refused: no way  | rhf | refused     | fail=ESME_Y elsewhere stop
in flight   | no answer        | r   | unanswered  | unanswered again in 5s counts
in flight   | no answer        | h   | unanswered  | unanswered hold counts
in flight   | no answer        | f   | unanswered  | unanswered fail=no_answer
in flight   | echoed           | rhf | unanswered  | unanswered
in flight   | receipt: sent    | rhf | in flight   | park
in flight   | receipt: failed  | rhf | in flight   | park
in flight   | receipt: no way  | rhf | in flight   | park
in flight   | owner died       | r   | waiting     | again
in flight   | owner died       | h   | unanswered  | unanswered hold counts
in flight   | owner died       | f   | unanswered  | unanswered fail=no_answer
in flight   | expired          | rhf | in flight   |
in flight   | overdue: sent    | rhf |             |
in flight   | overdue: failed  | rhf |             |
unanswered  | writing          | r   | in flight   |
unanswered  | writing          | f   | in flight   | mark
unanswered  | writing          | h   |             |
unanswered  | writing, second  | rf  | in flight   | mark
unanswered  | writing, second  | h   |             |
unanswered  | not written      | rhf |             |
unanswered  | unsendable       | rhf |             |
unanswered  | opted out        | rhf |             |
unanswered  | answered         | rhf | accepted    | in its place done
unanswered  | answered for all | rhf | delivered   | in its place done
unanswered  | refused for good | rf  | unanswered  |
unanswered  | refused for good | h   | refused     | fail=ESME_X
unanswered  | refused for now  | rf  | unanswered  |
unanswered  | refused for now  | h   | waiting     | forget again in 3s counts
unanswered  | refused: no way  | rf  | unanswered  |
unanswered  | refused: no way  | h   | refused     | fail=ESME_Y
unanswered  | no answer        | rhf |             |
unanswered  | echoed           | rhf |             |
unanswered  | receipt: sent    | rhf | delivered   | outcome done
unanswered  | receipt: failed  | rhf | undelivered | outcome done fail=UNDELIV
unanswered  | receipt: no way  | rhf | undelivered | outcome done fail=UNDELIV
unanswered  | owner died       | rhf | unanswered  |
unanswered  | expired          | r   | refused     | fail=expired
unanswered  | expired          | hf  | unanswered  |
unanswered  | overdue: sent    | rhf | delivered   |
unanswered  | overdue: failed  | rhf | undelivered | fail=no_receipt
accepted    | writing          | rhf |             |
accepted    | writing, second  | rhf |             |
accepted    | not written      | rhf |             |
accepted    | unsendable       | rhf |             |
accepted    | opted out        | rhf |             |
accepted    | answered         | rhf |             |
accepted    | answered for all | rhf |             |
accepted    | refused for good | rhf |             |
accepted    | refused for now  | rhf |             |
accepted    | refused: no way  | rhf |             |
accepted    | no answer        | rhf |             |
accepted    | echoed           | rhf |             |
accepted    | receipt: sent    | rhf | delivered   | outcome
accepted    | receipt: failed  | rhf | undelivered | outcome fail=UNDELIV
accepted    | receipt: no way  | rhf | undelivered | outcome fail=UNDELIV elsewhere
accepted    | owner died       | rhf | accepted    |
accepted    | expired          | rhf | accepted    |
accepted    | overdue: sent    | rhf | delivered   |
accepted    | overdue: failed  | rhf | undelivered | fail=no_receipt
`

func (f Effect) String() string {
	var words []string
	add := func(is bool, word string) {
		if is {
			words = append(words, word)
		}
	}
	add(f.Record != Nothing, [...]string{"", "mark", "accepted", "unanswered", "in its place", "forget", "outcome"}[f.Record])
	add(f.Park, "park")
	add(f.Again, "again")
	add(f.Delay != 0, "in "+f.Delay.String())
	add(f.Hold, "hold")
	add(f.Counts, "counts")
	add(f.Done, "done")
	add(f.Fail != "", "fail="+f.Fail)
	add(f.Elsewhere, "elsewhere")
	add(f.Stop, "stop")
	return strings.Join(words, " ")
}

// TestNext: the table, and that it leaves nothing out.
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
			q := question{cells[0], cells[1], Policy(strings.IndexRune("rhf", p))}
			if _, twice := answers[q]; twice {
				t.Fatalf("two rows for %v", q)
			}
			answers[q] = cells[3] + " | " + cells[4]
		}
	}
	asked := 0
	for s := Waiting; s <= Refused; s++ {
		for name, e := range events {
			for _, p := range []Policy{Resend, Hold, Fail} {
				next, f, possible := Next(s, e, p)
				if s.Final() {
					if next != s || f != (Effect{}) || possible == strings.HasPrefix(name, "writing") {
						t.Errorf("%v, %s, policy %d: %v %v %v", s, name, p, next, f, possible)
					}
					continue
				}
				asked++
				got := fmt.Sprintf("%v | %v", next, f)
				if !possible {
					if got = " | "; next != s || f != (Effect{}) {
						t.Errorf("%v, %s, policy %d: impossible, and something changes", s, name, p)
					}
				}
				if want, ok := answers[question{s.String(), name, p}]; !ok {
					t.Errorf("%v, %s, policy %d: the table has no row", s, name, p)
				} else if got != want {
					t.Errorf("%v, %s, policy %d: %q, want %q", s, name, p, got, want)
				}
			}
		}
	}
	if asked != len(answers) {
		t.Errorf("%d rows, %d cases", len(answers), asked)
	}
}

// TestAttempt: how an attempt ends by the results of its segments, in any order.
func TestAttempt(t *testing.T) {
	results := map[string]Event{"a": Answered{}, "p": Rejected{Permanent: true, Reason: "ESME_X"}, "n": Rejected{Delay: retry},
		"u": NoAnswer{wait}, "w": NotWritten{}, "e": Echoed{}}
	for _, c := range []struct {
		policy  Policy
		results string
		end     End
		delay   time.Duration
		counts  bool
	}{
		{Resend, "a", Carried, 0, false}, {Resend, "aaa", Carried, 0, false}, {Resend, "e", Carried, 0, false}, {Resend, "ae", Carried, 0, false},
		{Resend, "p", Failed, 0, false}, {Resend, "apn", Failed, 0, false}, {Resend, "pu", Failed, 0, false},
		{Resend, "n", Retried, retry, true}, {Resend, "w", Retried, 0, false}, {Resend, "aw", Retried, 0, true}, {Resend, "ew", Retried, 0, true},
		{Resend, "u", Retried, wait, true}, {Resend, "un", Retried, wait, true},
		{Hold, "u", Held, 0, true}, {Hold, "au", Held, 0, true}, {Hold, "un", Retried, retry, true}, {Hold, "uw", Retried, 0, true}, {Hold, "up", Failed, 0, false},
		{Fail, "u", Failed, 0, false}, {Fail, "au", Failed, 0, false}, {Fail, "e", Carried, 0, false},
	} {
		for _, order := range permutations(c.results) {
			a := Attempt{Open: len(order)}
			for i, letter := range order {
				if a.End() != Ongoing {
					t.Fatalf("%s: it ends before the last result", order)
				}
				s, f, _ := Next(InFlight, results[string(letter)], c.policy)
				a = a.Result(s, f, time.Unix(int64(i), 0))
			}
			delay, counts := a.Retry()
			if a.End() != c.end || (c.end == Retried && (delay != c.delay || counts != c.counts)) {
				t.Errorf("policy %d, %s: ends %v, again in %v, counts %v", c.policy, order, a.End(), delay, counts)
			}
			if f, failed := a.Failure(); failed != (c.end == Failed) || failed && (f.Reason == "" || f.At.IsZero()) {
				t.Errorf("policy %d, %s: fails %v, %+v", c.policy, order, failed, f)
			}
		}
	}
}

// TestElsewhere: another carrier may be asked when every segment of the attempt
// has its result, each failure allows it, and this carrier neither has nor may
// have any of them.
func TestElsewhere(t *testing.T) {
	results := map[string]Event{"a": Answered{}, "r": Rejected{Permanent: true, Unroutable: true, Reason: "ESME_Y"}, "p": Rejected{Permanent: true, Reason: "ESME_X"},
		"n": Rejected{Delay: retry}, "u": NoAnswer{wait}, "w": NotWritten{}, "e": Echoed{}}
	for letters, want := range map[string]bool{"r": true, "rr": true, "rw": true, "rn": true, "rwn": true,
		"p": false, "rp": false, "ra": false, "ru": false, "re": false, "rrra": false} {
		for _, order := range permutations(letters) {
			a := Attempt{Open: len(order)}
			for i, letter := range order {
				s, f, _ := Next(InFlight, results[string(letter)], Resend)
				a = a.Result(s, f, time.Unix(int64(i), 0))
				failure, failed := a.Failure()
				if failed && failure.Elsewhere && a.Open > 0 {
					t.Errorf("%s: it goes elsewhere after %d results", order, i+1)
				}
			}
			failure, failed := a.Failure()
			if a.End() != Failed || !failed || failure.Elsewhere != want {
				t.Errorf("%s: ends %v, %+v, want elsewhere %v", order, a.End(), failure, want)
			}
		}
	}
	copied := func(answered bool, status sms.Status, passed bool) Copy {
		return Copy{Segment: 1, Answered: answered, Status: status, At: time.Unix(1, 0), Reason: "x", Passed: passed}
	}
	for _, answered := range []bool{true, false} {
		for _, status := range []sms.Status{sms.Pending, sms.Sent, sms.Failed} {
			one := copied(answered, status, false)
			if may, want := MayGoElsewhere([]Copy{copied(true, sms.Failed, false), one}), answered && status == sms.Failed; may != want {
				t.Errorf("%+v: %v, want %v", one, may, want)
			}
			gone := copied(answered, status, true)
			if !MayGoElsewhere([]Copy{gone}) {
				t.Errorf("%+v speaks against it", gone)
			}
			if got, _, _ := Verdict(1, []Copy{gone}); got != sms.Pending {
				t.Errorf("%+v decides: %v", gone, got)
			}
			if got, _, _ := Verdict(1, []Copy{gone, copied(true, sms.Sent, false)}); got != sms.Sent {
				t.Errorf("beside %+v what arrived is %v", gone, got)
			}
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

// TestVerdict: the truth table of one segment by its copies, and of a message by
// its segments, whatever the order of the copies.
func TestVerdict(t *testing.T) {
	// p, s, f: a copy that was answered is pending, sent, failed; upper case: one
	// that was not answered.
	segments := map[string]sms.Status{
		"": sms.Pending, "p": sms.Pending, "s": sms.Sent, "f": sms.Failed, "P": sms.Pending, "S": sms.Sent, "F": sms.Failed,
		"pp": sms.Pending, "ps": sms.Sent, "pf": sms.Failed, "ss": sms.Sent, "sf": sms.Sent, "ff": sms.Failed,
		"Pp": sms.Pending, "Ps": sms.Sent, "Pf": sms.Failed, "Sp": sms.Sent, "Ss": sms.Sent, "Sf": sms.Sent,
		"Fp": sms.Pending, "Fs": sms.Sent, "Ff": sms.Failed,
		"PP": sms.Pending, "PS": sms.Sent, "PF": sms.Failed, "SS": sms.Sent, "SF": sms.Sent, "FF": sms.Failed,
	}
	status := map[rune]sms.Status{'p': sms.Pending, 's': sms.Sent, 'f': sms.Failed}
	copies := func(segment int, letters string) (all []Copy) {
		for i, letter := range letters {
			lower := []rune(strings.ToLower(string(letter)))[0]
			all = append(all, Copy{Segment: segment, Answered: letter == lower, Status: status[lower], At: time.Unix(int64(10*segment+i), 0), Reason: string(letter)})
		}
		return all
	}
	for first, one := range segments {
		for _, order := range permutations(first) {
			got, at, reason := Verdict(1, copies(1, order))
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
			if got, _, _ := Verdict(2, append(copies(2, second), copies(1, first)...)); got != want {
				t.Errorf("%q and %q are %v, want %v", first, second, got, want)
			}
		}
	}
	if _, at, reason := Verdict(2, append(copies(2, "f"), copies(1, "pf")...)); reason != "f" || at != time.Unix(11, 0) {
		t.Errorf("it failed at %v for %q, not with its first segment", at, reason)
	}
	if _, at, _ := Verdict(2, append(copies(2, "s"), copies(1, "s")...)); at != time.Unix(20, 0) {
		t.Errorf("it is sent at %v, not with its last segment", at)
	}
}
