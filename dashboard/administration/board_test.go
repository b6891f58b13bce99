package administration

import (
	"strings"
	"testing"
	"time"

	"intumwa/dispatcher"
	"intumwa/texts"
)

// TestLinkProblems: a link shows its worst problem, and the page the worst of its links.
func TestLinkProblems(t *testing.T) {
	w, err := texts.Load()
	if err != nil {
		t.Fatal(err)
	}
	l, _ := w.ByTag("en")
	now := time.Now()
	well := dispatcher.LinkState{Carrier: "lumitel", Link: "well", State: "bound", Window: 10, InFlight: 10, TPS: 50,
		Since: now.Add(-time.Hour), ServedAt: now, Accepted: 3000}
	for name, try := range map[string]struct {
		change func(*dispatcher.LinkState)
		kind   severity
		state  string
		whole  severity
	}{
		"well":     {func(*dispatcher.LinkState) {}, good, "Bound", good},
		"paused":   {func(s *dispatcher.LinkState) { s.State = "paused" }, off, "Paused", wait},
		"unheld":   {func(s *dispatcher.LinkState) { s.State, s.Unheld = "down", true }, bad, "Down", bad},
		"broken":   {func(s *dispatcher.LinkState) { s.Broken = true }, bad, "Stopped", bad},
		"held":     {func(s *dispatcher.LinkState) { s.SendersBlocked = 2 }, wait, "Bound", wait},
		"blinking": {func(s *dispatcher.LinkState) { s.State = "connecting" }, wait, "Connecting", wait},
		"never back": {func(s *dispatcher.LinkState) {
			s.State, s.Since, s.ServedAt = "connecting", now, now.Add(-3*time.Minute)
		}, bad, "Down", bad},
		"down":      {func(s *dispatcher.LinkState) { s.State, s.ServedAt = "down", now.Add(-time.Hour) }, bad, "Down", bad},
		"silent":    {func(s *dispatcher.LinkState) { s.Overdue = 5 }, bad, "Silent", bad},
		"slow":      {func(s *dispatcher.LinkState) { s.Overdue = 1 }, wait, "Bound", wait},
		"retired":   {func(s *dispatcher.LinkState) { s.RetiredTo = new("leo") }, off, "Retired", wait},
		"closed":    {func(s *dispatcher.LinkState) { s.RetiredTo = new(dispatcher.Refuse) }, off, "Retired", wait},
		"cut off":   {func(s *dispatcher.LinkState) { s.RetiredTo, s.State = new("leo"), "down" }, wait, "Retired", wait},
		"throttled": {func(s *dispatcher.LinkState) { s.Throttled = 12 }, wait, "Throttled", wait},
	} {
		link := well
		link.Link = "other"
		try.change(&link)
		both := links{At: now, Links: []dispatcher.LinkState{well, link}}
		view := both.view(l)
		row := view.Carriers[0].Links[1]
		if row.Kind != try.kind || row.Shown != try.state || view.Kind != try.whole || row.Why == "" ||
			(len(view.Sick) == 0) != (try.kind == good) {
			t.Errorf("%s: %+v of %+v", name, row, view)
		}
		if name == "never back" && row.Lasted != "3 min" {
			t.Errorf("it is down since %s", row.Lasted)
		}
	}
	for due, kind := range map[time.Duration]severity{0: good, 2 * time.Minute: wait, time.Hour: bad} {
		view := (&links{At: now, Links: []dispatcher.LinkState{well},
			Backlogs: map[string]backlog{"lumitel": {5, due}}}).view(l)
		if view.Kind != kind || view.Carriers[0].Kind != kind ||
			!strings.Contains(view.Carriers[0].Waiting, "5 messages wait") {
			t.Errorf("due for %v: %+v", due, view)
		}
	}
	view := (&links{At: now, Links: []dispatcher.LinkState{well},
		Backlogs: map[string]backlog{"gone": {1, time.Second}}}).view(l)
	if view.Kind != bad || len(view.Sick) != 1 || view.Sick[0].Name != "gone" {
		t.Errorf("messages that wait for a carrier without links: %+v", view)
	}
}
