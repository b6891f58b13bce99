package stories

import (
	"testing"

	"intumwa/smpp/carriersim"
)

// A carrier floods us with receipts of nobody's messages, with texts of 60,000
// octets and with addresses of 60,000 digits, over four binds. Our messages are
// carried and settled by their receipts; what is kept of the flood is bounded,
// and so is the memory.
func TestAttackCarrierFloods(t *testing.T) {
	t.Parallel()
	busy(t)
	const most = 300 // in an hour
	w := play(t, scene{brokenProtocol: true, carriers: []carrier{{
		sim:    carriersim.Options{NoFates: true},
		config: tree{"max_unmatched_per_hour": most, "max_inbound_per_hour": most},
		link:   tree{"binds": 4},
	}}})
	shop := w.silentCompany("Isoko", 1000)
	for _, flood := range []carriersim.Faults{
		{FloodPerSec: 300, FloodReceipts: true},
		{FloodPerSec: 100, FloodOctets: 60_000},
		{FloodPerSec: 50, FloodOctets: 10, FloodSource: 60_000},
	} {
		before := w.lumitel.Stats().Flooded
		w.lumitel.Faults(func(f *carriersim.Faults) { *f = flood })
		w.eventually(finalWithin, "the flood comes", func() bool { return w.lumitel.Stats().Flooded > before+200 })
		for range 10 {
			w.becomes(shop.sends(w.number(), "Amahoro mwese").ID, "sent")
		}
	}
	w.lumitel.Faults(func(f *carriersim.Faults) { *f = carriersim.Faults{} })
	for _, table := range []string{"receipts", "inbound"} {
		if n := ask[int](w, `SELECT count(*) FROM `+table); n > most {
			t.Errorf("%d rows of %s are kept, want at most %d", n, table, most)
		}
	}
	if n := w.gateway.metric("intumwa_deliveries_throttled_total"); n == 0 {
		t.Error("nothing is counted as throttled")
	}
	if octets := w.gateway.resident(); octets > 900<<20 { // with the race detector's own
		t.Errorf("the process takes %d MiB", octets>>20)
	}
}
