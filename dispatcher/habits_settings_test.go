package dispatcher_test

import (
	"testing"
	"time"

	"intumwa/dispatcher"
	"intumwa/tools/carriersim"
)

// TestHabitOfCongestedCarrier: congestion_state in an answer slows the link.
//
// Source: rule carriers 4.2.
func TestHabitOfCongestedCarrier(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mno := w.carrier(carriersim.Options{NoFates: true, Faults: carriersim.Faults{Congestion: 95}})
	w.start(mno.mno(func(c *dispatcher.Carrier) { c.Links[0].TPS = 200 }))
	ids := w.sendMany(100, "00")
	w.until("the link slows", func() bool { return w.metric("intumwa_smpp_pace_limit_per_second") <= 100 })
	mno.Faults(func(f *carriersim.Faults) { f.Congestion = 0 })
	w.await("sent", 20*time.Second, ids...)
	if n := mno.Stats().Refused; len(n) > 0 {
		t.Errorf("it was refused all the same: %v", n)
	}
	w.clean(mno)
}
