package main

import (
	"fmt"
	"strings"
	"testing"
)

// slack is the tolerated growth of a figure.
const slack = 1.15

// TestCostOfAMessage guards figures that do not depend on the machine. If a change makes a
// message cheaper, record the new figure; if dearer, justify it.
//
// A single message has its own transactions, so all its figures are checked; on a slow
// machine some messages share a transaction and cost less. For a bulk only the WAL is
// checked strictly: the number of shared transactions depends on speed, so its bound is
// loose.
//
// Background work between two messages adds to a figure, at times too much. A message that became dearer is so each
// time, so a measurement that is too high is made again.
func TestCostOfAMessage(t *testing.T) {
	ctx := t.Context()
	s, binary := measurable(t)
	w, err := shapeWorld(ctx, s, binary, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	var wrong []string
	for range costTries {
		single, err := w.alone(ctx)
		if err != nil {
			t.Fatal(err)
		}
		bulk, err := w.together(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if wrong = judge(t, single, bulk); len(wrong) == 0 {
			return
		}
	}
	t.Error(strings.Join(wrong, "\n"))
}

// costTries is how often a cost is measured before it counts as too high.
const costTries = 3

// judge compares figures with those recorded.
func judge(t *testing.T, single, bulk measurement) (wrong []string) {
	t.Helper()
	fault := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	for _, c := range []struct {
		shape  string
		of     measurement
		figure string
		was    float64 // the recorded figure
		log    bool    // WAL: equal on all machines; far below the record means it is outdated
	}{
		{"single", single, "WAL records", 26.0, true},
		{"single", single, "WAL", 2280, true},
		{"single", single, "commits", 4.0, false},
		{"single", single, "statements", 17.0, false},
		{"single", single, "round trips to PostgreSQL", 6.7, false},
		{"single", single, "Redis commands", 19.0, false},
		{"single", single, "round trips to Redis", 3.0, false},
		{"bulk", bulk, "WAL records", 17.4, true},
		{"bulk", bulk, "WAL", 1640, true},
		{"bulk", bulk, "commits", 0.4, false},
		{"bulk", bulk, "statements", 1.6, false},
		{"bulk", bulk, "round trips to PostgreSQL", 1.6, false},
	} {
		got := c.of.value(c.figure)
		t.Logf("%s: %s %s", c.shape, c.figure, number(got))
		switch {
		case got <= 0:
			fault("%s: %s is %s: nothing was counted", c.shape, c.figure, number(got))
		case got > c.was*slack:
			fault("%s: %s a message is %s, it was %s", c.shape, c.figure, number(got), number(c.was))
		case c.log && got < c.was/slack/slack:
			fault("%s: %s a message is %s, it was %s: write the new figure down here, so that it stays", c.shape, c.figure,
				number(got), number(c.was))
		}
	}
	return wrong
}
