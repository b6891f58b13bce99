package main

import "testing"

// slack is what a figure may be above what it was when it was written down here.
const slack = 1.15

// TestWhatAMessageCosts keeps watch over figures that do not depend on the
// machine. Whoever makes a message cheaper writes the new figure down; whoever
// makes it dearer says why it is worth that.
//
// A message that comes alone has its transactions for itself, so all its figures
// are watched; where a slow machine has some share one, they are lower. Of a bulk
// the log is watched: how many answers, receipts and webhook results share a
// transaction depends on speed, so these have a bound that says only that they do.
//
// Five records and 380 bytes are the claim of the webhook, which has a commit of its own: no delivery is missed, and none is
// posted before the standby has it (docs/decisions.md).
func TestWhatAMessageCosts(t *testing.T) {
	ctx := t.Context()
	s, binary := measurable(t)
	w, err := shapeWorld(ctx, s, binary, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	single, err := w.alone(ctx)
	if err != nil {
		t.Fatal(err)
	}
	bulk, err := w.together(ctx)
	if err != nil {
		t.Fatal(err)
	}

	for _, c := range []struct {
		shape  string
		of     measurement
		figure string
		was    float64 // when it was written down
		log    bool    // in the log: the same on any machine, and far less means that was is out of date
	}{
		{"single", single, "WAL records", 28.9, true},
		{"single", single, "WAL", 2320, true},
		{"single", single, "commits", 5.0, false},
		{"single", single, "statements", 20.5, false},
		{"single", single, "round trips to PostgreSQL", 8.5, false},
		{"single", single, "Redis commands", 27.6, false},
		{"single", single, "round trips to Redis", 4.6, false},
		{"bulk", bulk, "WAL records", 21.5, true},
		{"bulk", bulk, "WAL", 1940, true},
		{"bulk", bulk, "commits", 0.4, false},
		{"bulk", bulk, "statements", 1.6, false},
		{"bulk", bulk, "round trips to PostgreSQL", 1.6, false},
	} {
		got := c.of.value(c.figure)
		t.Logf("%s: %s %s", c.shape, c.figure, number(got))
		switch {
		case got <= 0:
			t.Errorf("%s: %s is %s: nothing was counted", c.shape, c.figure, number(got))
		case got > c.was*slack:
			t.Errorf("%s: %s a message is %s, it was %s", c.shape, c.figure, number(got), number(c.was))
		case c.log && got < c.was/slack/slack:
			t.Errorf("%s: %s a message is %s, it was %s: write the new figure down here, so that it stays", c.shape, c.figure, number(got), number(c.was))
		}
	}
}
