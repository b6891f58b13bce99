package stories

import (
	"testing"
	"time"

	"intumwa/tools/carriersim"
)

// A carrier floods us with receipts of nobody's messages, with texts that are as long as
// they may be or much longer, and with addresses of 60,000 digits, over four binds. It is
// told that it is too fast. Our messages are carried and settled by their receipts; what is kept of the flood is
// bounded, and so is the memory.
func TestAttackCarrierFloods(t *testing.T) {
	t.Parallel()
	busy(t)
	const most = 300 // in an hour
	more := chaos(5)
	w := play(t, scene{brokenProtocol: true, carriers: []carrier{{
		sim:    carriersim.Options{NoFates: true},
		config: tree{"max_unmatched_per_hour": most, "max_inbound_per_hour": most},
		link:   tree{"binds": 4},
	}}})
	shop := w.silentCompany("Isoko", 1000)
	for _, flood := range []struct {
		what      string
		faults    carriersim.Faults
		throttled bool // and the carrier is told so
	}{
		{"a flood of receipts", carriersim.Faults{FloodPerSec: 300 * more, FloodReceipts: true}, true},
		{"a flood of texts of 39,000 octets", carriersim.Faults{FloodPerSec: 100 * more, FloodOctets: 39_000}, true},
		{"a flood of texts of 60,000 octets", carriersim.Faults{FloodPerSec: 100 * more, FloodOctets: 60_000}, false},
		{"a flood of addresses of 60,000 digits", carriersim.Faults{FloodPerSec: 50 * more, FloodOctets: 10, FloodSource: 60_000}, false},
	} {
		before := w.lumitel.Stats()
		resident := w.gateway.mostResident()
		w.lumitel.Faults(func(f *carriersim.Faults) { *f = flood.faults })
		w.eventually(finalWithin, "the flood comes", func() bool { return w.lumitel.Stats().Flooded > before.Flooded+uint64(200*more) })
		if flood.throttled {
			w.eventually(finalWithin, "the carrier is told ESME_RTHROTTLED", func() bool { return w.lumitel.Stats().FloodThrottled > before.FloodThrottled })
		}
		var times []time.Duration
		for range 10 {
			begin := time.Now()
			w.becomes(shop.sends(w.number(), "Amahoro mwese").ID, "sent")
			times = append(times, time.Since(begin))
		}
		lasted(t, flood.what+", messages until their receipts are settled", times)
		w.gateway.keptBelow(flood.what, resident(), 400, 900)
	}
	w.lumitel.Faults(func(f *carriersim.Faults) { *f = carriersim.Faults{} })
	for _, table := range []string{"receipts", "inbound"} {
		n := ask[int](w, `SELECT count(*) FROM `+table)
		if n > most {
			t.Errorf("%d rows of %s are kept, want at most %d", n, table, most)
		}
		t.Logf("FIGURE floods: %d rows of %s are kept of %d deliveries", n, table, w.lumitel.Stats().Flooded)
	}
	if n := w.gateway.metric("intumwa_deliveries_throttled_total"); n == 0 {
		t.Error("nothing is counted as throttled")
	}
}
