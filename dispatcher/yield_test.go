package dispatcher

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"intumwa/dispatcher/links"
	"intumwa/dispatcher/setup"
	"intumwa/smpp"
)

// TestYield: a bind is down while its process may be taken for dead, and comes up when the
// process has been fresh for a while.
func TestYield(t *testing.T) {
	t.Parallel()
	d, err := New(nil, nil, nil, nil, setup.Options{Metrics: prometheus.NewRegistry(), Carriers: []setup.Carrier{
		{Name: "lumitel",
			Links: []setup.Link{
				{Options: smpp.Options{Name: "l1", Account: smpp.Account{Addresses: []string{"127.0.0.1:1"}, SystemID: "x"},
					Window: 10}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	at := d.core.Running()[0]
	w, err := d.newWorker(at, &at.Config().Links[0])
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for _, step := range []struct {
		heard bool
		after time.Duration
		up    bool
	}{{true, 0, true}, {false, 0, false}, {true, links.YieldRest / 2, false}, {false, links.YieldRest, false},
		{true, links.YieldRest, true}} {
		beat := time.Hour // an hour before and after now, so a slow test does not matter
		if !step.heard {
			beat = -beat
		}
		d.member.Beat.Store(int64(beat))
		now = now.Add(step.after)
		if w.Yield(now); w.Bind.May != step.up {
			t.Errorf("%+v: may be up: %t", step, w.Bind.May)
		}
	}
	w.Ending.Store(true)
	d.member.Beat.Store(-int64(time.Hour))
	if w.Yield(now); w.Bind.May {
		t.Error("it is ending, and may stay bound while another binds")
	}
	d.member.Beat.Store(int64(time.Hour))
	now = now.Add(links.YieldRest)
	if w.Yield(now); w.Bind.May {
		t.Error("it binds again, and another has the link")
	}
}
