package links

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"intumwa/dispatcher/setup"
	"intumwa/smpp"
)

// breakerWorld plays answers to a breaker on a clock of its own.
type breakerWorld struct {
	*testing.T
	breaker
	now  time.Time
	next int // handset
}

func newBreakerWorld(t *testing.T) *breakerWorld {
	return &breakerWorld{T: t, breaker: breaker{first: setup.BreakerPause, after: setup.BreakerAfter},
		now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
}

func (w *breakerWorld) refuses(sender, number string, s smpp.Status) (waits bool) {
	waits, _ = w.refuse(refusal{at: w.now, sender: sender, number: number, status: s, class: s.Class(), first: true})
	return waits
}

// submit plays a message to a new handset: it is submitted if it may be, and answered.
func (w *breakerWorld) submit(sender string, s smpp.Status) (submitted, waits bool) {
	if may, _ := w.enter(w.now, sender); !may {
		return false, true
	}
	if s == smpp.StatusOK {
		w.accept(w.now, sender)
		return true, false
	}
	w.next++
	return true, w.refuses(sender, fmt.Sprint(w.next), s)
}

// out reports whether the link is out.
func (w *breakerWorld) out() bool { return w.state(w.now).out }

// TestBreakerSettings: refusals for our settings, for several handsets in a row, open it at once.
// Ever rarer probes test whether it may close.
//
// Source: rule carriers 3.6.
func TestBreakerSettings(t *testing.T) {
	const wrong = smpp.Status(0x15) // ESME_RINVSERTYP
	w := newBreakerWorld(t)
	for range 50 {
		w.refuses("A", "same", wrong)
	}
	for i := range breakerTrips - 2 {
		w.refuses("A", fmt.Sprint("a", i), wrong)
	}
	if w.out() {
		t.Fatal("too few handsets opened it")
	}
	w.accept(w.now, "A") // another answer came in between
	for i := range breakerTrips {
		sender := []string{"A", "B"}[i%2]
		if w.refuses(sender, fmt.Sprint("b", i), wrong); w.out() != (i == breakerTrips-1) {
			t.Fatalf("refusal %d: %+v", i+1, w.state(w.now))
		}
	}
	if got := w.state(w.now).reason; got != "stopped: the carrier refuses everything with ESME_RINVSERTYP" {
		t.Errorf("%q", got)
	}
	for i := range 20 { // messages that were out change nothing
		w.refuses("A", fmt.Sprint("c", i), wrong)
	}
	pause := setup.BreakerPause
	for range 7 {
		if early := w.now.Add(pause - time.Millisecond); w.ready(early) {
			t.Fatalf("ready before %v", pause)
		} else if may, _ := w.enter(early, "C"); may {
			t.Fatalf("entered before %v", pause)
		}
		w.now = w.now.Add(pause)
		if may, _ := w.enter(w.now, "C"); !may {
			t.Fatalf("not ready after %v", pause)
		}
		if may, _ := w.enter(w.now, "D"); may || w.ready(w.now) {
			t.Fatal("a second probe beside the first")
		}
		w.now = w.now.Add(time.Second)
		w.refuses("C", "c", wrong)
		pause = min(2*pause, breakerMost)
	}
	// An unanswered probe is given up after a while.
	w.now = w.now.Add(pause)
	for wait, want := range map[time.Duration]bool{0: true} {
		if may, _ := w.enter(w.now.Add(wait), "A"); may != want {
			t.Error("no probe")
		}
	}
	if may, _ := w.enter(w.now.Add(breakerProbeFor-time.Millisecond), "A"); may {
		t.Error("a second probe")
	}
	if may, _ := w.enter(w.now.Add(breakerProbeFor), "A"); !may {
		t.Error("no probe after one without an answer")
	}
	w.accept(w.now, "A")
	for _, sender := range []string{"A", "B", "C", "Z"} {
		if may, _ := w.enter(w.now, sender); !may || w.out() {
			t.Errorf("closed, and %s may not pass", sender)
		}
	}
	for i := range breakerTrips - 1 {
		if w.refuses("A", fmt.Sprint("d", i), wrong); w.state(w.now).reason != "" {
			t.Error("it remembered refusals from before")
		}
	}
}

// TestBoundAndAcceptingNothing: whatever the status, a carrier that accepts nothing for a while
// is out, and a message that is refused then waits.
//
// Source: rule carriers 3.12.
func TestBoundAndAcceptingNothing(t *testing.T) {
	for status, within := range map[smpp.Status]time.Duration{
		0x5A: 2 * time.Minute, 0x45: 2 * time.Minute, 0x08: 2 * time.Minute, 0xFF: 2 * time.Minute, 0x0E: 2 * time.Minute,
		0x64: 2 * time.Minute, 0x400: 2 * time.Minute, 0x0A: 2 * time.Minute, 0x04: 2 * time.Minute, 0xFE: 2 * time.Minute,
		0x62: 5 * time.Second, 0x61: 5 * time.Second, 0x48: 5 * time.Second, 0x15: 5 * time.Second, 0x03: 5 * time.Second,
		0x58: 4 * time.Minute, 0x14: 4 * time.Minute, // the link slows down first
		0x0B: 4 * time.Minute, 0x65: 4 * time.Minute, 0x01: 4 * time.Minute, // perhaps the numbers' fault
	} {
		for _, senders := range [][]string{{"A"}, {"A", "B"}, {"A", "B", "C", "D", "E", "F", "G", "H"}} {
			t.Run(fmt.Sprintf("%s, %d senders", status, len(senders)), func(t *testing.T) {
				w := newBreakerWorld(t)
				for _, sender := range senders { // it worked once
					w.submit(sender, smpp.StatusOK)
				}
				w.now = w.now.Add(time.Hour)
				start := w.now
				for i := 0; !w.out(); i++ {
					if w.submit(senders[i%len(senders)], status); w.now.Sub(start) > within {
						t.Fatalf("not out: %+v", w.state(w.now))
					}
					w.now = w.now.Add(500 * time.Millisecond)
				}
				if reason := w.state(w.now).reason; !strings.Contains(reason, status.String()) {
					t.Errorf("%q", reason)
				}
				probes := 0
				for end := w.now.Add(10 * time.Minute); w.now.Before(end); w.now = w.now.Add(100 * time.Millisecond) {
					for _, sender := range senders {
						submitted, waits := w.submit(sender, status)
						if !waits {
							t.Fatal("a message failed")
						}
						if submitted {
							probes++
						}
					}
				}
				if probes == 0 || probes > 8 {
					t.Errorf("%d probes", probes)
				}
				end := w.now.Add(breakerMost + time.Second)
				for ; w.out(); w.now = w.now.Add(100 * time.Millisecond) {
					if w.submit(senders[0], smpp.StatusOK); w.now.After(end) {
						t.Fatal("it stays out")
					}
				}
				for _, sender := range senders {
					if may, _ := w.enter(w.now, sender); !may {
						t.Errorf("%s may not pass", sender)
					}
				}
			})
		}
	}
}

// TestNoOutage: what a healthy carrier refuses, day and night, stops nothing.
//
// Source: rule carriers 3.12.
func TestNoOutage(t *testing.T) {
	for name, play := range map[string]func(w *breakerWorld, i int){
		"one handset's queue is full":     func(w *breakerWorld, _ int) { w.refuses("A", "one", 0x14) },
		"four handsets are off all night": func(w *breakerWorld, i int) { w.refuses("A", fmt.Sprint(i%4), 0xFE) },
		"a number that does not exist":    func(w *breakerWorld, _ int) { w.refuses("A", "one", 0x0B) },
		"an unregistered sender of two": func(w *breakerWorld, i int) {
			w.refuses("B", fmt.Sprint(i%2), 0x0A)
			w.submit("A", 0)
		},
		"a list with many numbers unknown": func(w *breakerWorld, i int) {
			w.submit("A", []smpp.Status{0x0B, 0x0B, 0x0B, 0x0B, 0}[i%5])
		},
		"a list beside single sends": func(w *breakerWorld, i int) {
			w.submit("A", []smpp.Status{0x0B, 0x0B, 0x0B, 0x0B, 0}[i%5])
			w.submit("B", 0)
		},
		"half is throttled": func(w *breakerWorld, i int) { w.submit("A", []smpp.Status{0x58, 0}[i%2]) },
		"one in twenty is passed": func(w *breakerWorld, i int) {
			w.submit("A", map[bool]smpp.Status{false: 0x58}[i%20 == 0])
		},
		"a short restart": func(w *breakerWorld, i int) {
			w.submit("A", map[bool]smpp.Status{true: 0x08}[i%600 < 50])
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newBreakerWorld(t)
			for i := range 2 * 60 * 60 {
				if play(w, i); w.state(w.now).reason != "" {
					t.Fatalf("after %d s: %+v", i, w.state(w.now))
				}
				w.now = w.now.Add(time.Second)
			}
		})
	}
}

// TestNearlyNothing: an acceptance now and then does not hide an outage, and little traffic only
// delays it.
//
// Source: rule carriers 3.12.
func TestNearlyNothing(t *testing.T) {
	t.Run("one in two hundred passes", func(t *testing.T) {
		w := newBreakerWorld(t)
		for i := 1; !w.out(); i++ {
			w.submit([]string{"A", "B"}[i%2], map[bool]smpp.Status{false: 0x45}[i%200 == 0])
			if w.now = w.now.Add(100 * time.Millisecond); i > 5000 {
				t.Fatal("it is never out")
			}
		}
	})
	t.Run("three messages an hour", func(t *testing.T) {
		w := newBreakerWorld(t)
		for i := 1; !w.out(); i++ {
			w.submit([]string{"A", "B"}[i%2], 0x45)
			if w.now = w.now.Add(20 * time.Minute); i > breakerTrips {
				t.Fatal("it is never out")
			}
		}
	})
	t.Run("the same few messages again and again, as after a restart", func(t *testing.T) {
		w := newBreakerWorld(t)
		for i := 0; !w.out(); i++ {
			w.refuse(refusal{at: w.now, sender: "A", number: fmt.Sprint(i % breakerTrips), status: 0x08,
				class: smpp.ClassTemporary})
			if w.now = w.now.Add(12 * time.Second); i > 10 {
				t.Fatal("it is never out")
			}
		}
	})
}

// TestOneSender: refusals of one sender's messages block only these, whatever the status. What the
// others send passes at once, and the link is not out.
//
// Source: rule carriers 3.13.
func TestOneSender(t *testing.T) {
	for _, status := range []smpp.Status{0x48, 0x49, 0x0A, 0x45, 0x08, 0x400, 0x66, 0x58} {
		t.Run(status.String(), func(t *testing.T) {
			w := newBreakerWorld(t)
			refused, blocked := 0, false
			for i := range 4 * 60 * 60 {
				submitted, waits := w.submit("SHOP", status)
				if submitted {
					refused++
				}
				if blocked = blocked || w.state(w.now).blocked > 0; blocked && !waits {
					t.Fatal("a message of the sender failed")
				}
				if i%20 == 0 { // the bank's passwords
					if may, _ := w.submit("BANK", smpp.StatusOK); !may {
						t.Fatal("another sender does not pass")
					}
				}
				if s := w.state(w.now); s.out || s.reason != "" && !strings.Contains(s.reason, "SHOP") {
					t.Fatalf("%+v", s)
				}
				w.now = w.now.Add(time.Second)
			}
			if refused > 4*60+60 || !blocked {
				t.Errorf("%d were refused, blocked: %v", refused, blocked)
			}
			for range 6 * 60 { // the sender is registered
				w.submit("SHOP", smpp.StatusOK)
				w.now = w.now.Add(time.Second)
			}
			if s := w.state(w.now); s != (outage{}) {
				t.Errorf("it stays blocked: %+v", s)
			}
		})
	}
}

// TestOneSenderThenAll: a sender was blocked, and then the carrier refuses the others too.
func TestOneSenderThenAll(t *testing.T) {
	w := newBreakerWorld(t)
	play := func(d time.Duration, bank smpp.Status) {
		for end := w.now.Add(d); w.now.Before(end); w.now = w.now.Add(time.Second) {
			w.submit("SHOP", 0x0A)
			w.submit("BANK", bank)
		}
	}
	play(10*time.Minute, 0)
	if s := w.state(w.now); s.out || s.blocked != 1 {
		t.Fatalf("%+v", s)
	}
	play(10*time.Minute, 0x08)
	if s := w.state(w.now); !s.out {
		t.Fatalf("%+v", s)
	}
	play(10*time.Minute, 0)
	if s := w.state(w.now); s.out || s.blocked != 1 {
		t.Fatalf("%+v", s)
	}
	w.now = w.now.Add(12 * time.Hour)
	if s := w.state(w.now); s.out {
		t.Fatalf("the night shows nothing: %+v", s)
	}
}

// TestBreakerIsBounded: senders and handsets without end need no memory without end.
func TestBreakerIsBounded(t *testing.T) {
	w := newBreakerWorld(t)
	for i := range 5000 {
		sender := fmt.Sprint("S", i%2000)
		w.submit(sender, []smpp.Status{0, 0x0B, 0x0A, 0, 0x14, smpp.Status(0x400 + i)}[i%6])
		w.now = w.now.Add(time.Second)
	}
	if len(w.senders) > evidenceSenders {
		t.Errorf("%d senders", len(w.senders))
	}
	for _, s := range w.senders {
		if len(s.streak.handsets) > evidenceHandsets || len(s.streak.statuses) > evidenceStatuses {
			t.Errorf("%+v", s.streak)
		}
	}
	if w.out() {
		t.Errorf("%+v", w.state(w.now))
	}
}
