package submission

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"intumwa/sms"
)

// The letters of a segment in TestDecide. Capitals are what is recorded before the settlement, or by others:
//
//	A accepted  U unanswered  O unanswered, sent again by an operator  P passed to a second carrier  X unanswered at
//	another carrier  R unanswered and reported delivered  Y reported delivered at another carrier, which had cut the
//	message differently  Z so too, cut as here
//
// The others are the results of an attempt, of which the settlement has the last one: a accepted, u no answer, n
// refused for now, p refused for good, r refused, a second carrier may be chosen, w not written; o: the segment is
// still open.
var (
	recorded = map[rune]Record{'A': {Answered: true}, 'U': {}, 'O': {Mark: Overruled}, 'P': {Answered: true, Mark: Passed},
		'X': {Other: true}, 'R': {Status: sms.Sent},
		'Y': {Other: true, Total: -1, Status: sms.Sent}, 'Z': {Other: true, Status: sms.Sent}}
	results = map[rune]Event{'a': Answered{}, 'u': NoAnswer{wait}, 'n': Rejected{Delay: retry},
		'p': Rejected{Permanent: true, Reason: "ESME_X"},
		'r': Rejected{Permanent: true, Unroutable: true, Reason: "ESME_Y"}, 'w': NotWritten{}}
)

// known returns what is known of a message with these segments, in letters; one may have several. late are the letters
// of late answers: they end no attempt.
func known(policy Policy, segments []string, late string) Known {
	k := Known{Policy: policy, Segments: len(segments), Ended: late == ""}
	for i, letters := range segments {
		for _, letter := range letters {
			if c, is := recorded[letter]; is {
				if c.Segment = i + 1; c.Total == 0 {
					c.Total = len(segments)
				}
				k.Records = append(k.Records, c)
				continue
			}
			if letter == 'o' {
				k.Open, k.Ended = k.Open+1, false
				continue
			}
			state, effect := Next(InFlight, results[letter], policy)
			k.Results = append(k.Results, Result{Segment: i + 1, State: state, Effect: effect, At: time.Unix(int64(i+1), 0)})
			if state == Accepted || state == Unanswered {
				k.Records = append(k.Records, Record{Segment: i + 1, Answered: state == Accepted})
			}
		}
	}
	for _, letter := range late {
		state, effect := Next(Unanswered, results[letter], policy)
		k.Results = append(k.Results, Result{Segment: 1, State: state, Effect: effect})
	}
	return k
}

func (s Step) String() string {
	words := []string{[...]string{"stays", "leaves", "again", "fails"}[s.Row]}
	if s.Row == Again {
		words = append(words, fmt.Sprintf("in %v", s.Delay))
		if s.Counts {
			words = append(words, "counts")
		}
	}
	if words = append(words, s.Reason); s.Elsewhere {
		words = append(words, "elsewhere")
	}
	return strings.TrimSpace(strings.Join(words, " "))
}

// TestDecide: the rows of the table of Decide, for each policy (r resend, h hold, f fail).
func TestDecide(t *testing.T) {
	for line := range strings.Lines(strings.TrimSpace(`
a       | rhf | leaves
a a a   | rhf | leaves
w       | rhf | again in 0s
a w     | rhf | again in 0s counts
n       | rhf | again in 3s counts
n w     | rhf | again in 3s counts
a n     | rhf | again in 3s counts
p       | rhf | fails ESME_X
a p n   | rhf | fails ESME_X
p o     | rhf | fails ESME_X
r       | rhf | fails ESME_Y elsewhere
r r     | rhf | fails ESME_Y elsewhere
r o     | rhf | stays
r p     | rhf | fails ESME_Y
r w n   | rhf | fails ESME_Y elsewhere
a o     | rhf | stays
w o     | rhf | stays
u o     | rh  | stays
u       | r   | again in 5s counts
u       | h   | leaves
u       | f   | fails no_answer
a u     | r   | again in 5s counts
a u     | h   | leaves
a u     | f   | fails no_answer
u n     | rh  | again in 5s counts
u w     | rh  | again in 5s counts
U a     | r   | again in 0s counts
U a     | h   | leaves
U a     | f   | fails no_answer
U A     | h   | leaves
U A     | r   | again in 0s counts
Ua A    | rhf | leaves
u o     | f   | fails no_answer
uR a    | rhf | leaves
uR o    | rhf | stays
uR n    | r   | again in 5s counts
uR n    | f   | again in 3s counts
U n     | rh  | again in 3s counts
U w     | rh  | again in 0s counts
A a     | rhf | leaves
A w     | rhf | again in 0s counts
A A     | rhf | leaves
R a     | rhf | leaves
O w     | rhf | again in 0s counts
O A     | rhf | again in 0s counts
Ou      | h   | leaves
Oa      | rhf | leaves
P       | rhf | again in 0s counts
Pa      | rhf | leaves
X w     | rhf | again in 0s counts
Xa      | rhf | leaves
Y w     | rhf | again in 0s counts
Ya a    | rhf | leaves
Z w     | rhf | again in 0s counts
Z a     | rhf | leaves
`)) {
		cells := strings.Split(line, "|")
		want := strings.TrimSpace(cells[2])
		for _, p := range strings.TrimSpace(cells[1]) {
			policy := Policy(strings.IndexRune("rhf", p))
			if got := Decide(known(policy, strings.Fields(cells[0]), "")).String(); got != want {
				t.Errorf("%s, policy %c: %s, want %s", strings.TrimSpace(cells[0]), p, got, want)
			}
		}
	}
}

// TestDecideLate: late answers change the row of a message on which no attempt ends only if a segment has become empty,
// or if every segment is accepted.
func TestDecideLate(t *testing.T) {
	for line := range strings.Lines(strings.TrimSpace(`
A   | a | rhf | leaves
A U | a | rhf | stays
A A | a | rhf | leaves
U   | u | rhf | stays
R   | u | rhf | leaves
-   | n | h   | again in 3s counts
- A | n | h   | again in 3s counts
- U | n | h   | again in 3s counts
A   | n | h   | leaves
U   | p | h   | fails ESME_X
U A | r | h   | fails ESME_Y
`)) {
		cells := strings.Split(line, "|")
		want := strings.TrimSpace(cells[3])
		for _, p := range strings.TrimSpace(cells[2]) {
			policy := Policy(strings.IndexRune("rhf", p))
			segments := strings.Fields(strings.ReplaceAll(cells[0], "-", "P"))
			if got := Decide(known(policy, segments, strings.TrimSpace(cells[1]))).String(); got != want {
				t.Errorf("%s late %s, policy %c: %s, want %s", strings.TrimSpace(cells[0]), cells[1], p, got, want)
			}
		}
	}
}

// TestStateOf: the state of a segment from its submit records, and whether a carrier may have it.
func TestStateOf(t *testing.T) {
	for letters, want := range map[string]struct {
		state   State
		mayHave bool
	}{
		"": {Waiting, false}, "A": {Accepted, true}, "U": {Unanswered, true}, "R": {Accepted, true}, "O": {Waiting, true},
		"P": {Waiting, false},
		"X": {Waiting, true}, "Y": {Waiting, true}, "Z": {Accepted, true}, "AU": {Accepted, true}, "UO": {Unanswered, true},
		"PU": {Unanswered, true}, "PO": {Waiting, true}, "OA": {Accepted, true},
	} {
		for _, order := range permutations(letters) {
			k := known(Resend, []string{order}, "")
			if state, may := StateOf(1, 1, k.Records), MayHave(k.Records); state != want.state || may != want.mayHave {
				t.Errorf("%q: %v, may have: %v", order, state, may)
			}
		}
	}
}
