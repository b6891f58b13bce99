package stories

import (
	"testing"
	"time"

	"intumwa/internal/testenv"
	"intumwa/tools/carriersim"
)

// A carrier floods us with receipts of nobody's messages, with texts that are as long as
// they may be or much longer, and with addresses of 60,000 digits, over four links. Our
// messages are carried and settled by their receipts, and the memory is bounded. (What is
// kept of a flood is bounded too: TestStrangersAreThrottled of the dispatcher.)
func TestAttackCarrierFloods(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	busy(t)
	w := play(t, scene{brokenProtocol: true, carriers: []carrier{{sim: carriersim.Options{NoFates: true}, links: 4}}})
	shop := w.silentCompany("Isoko", 1000)
	for _, flood := range []struct {
		what   string
		faults carriersim.Faults
	}{
		{"a flood of receipts", carriersim.Faults{FloodPerSec: 1500, FloodReceipts: true}},
		{"a flood of texts of 39,000 octets", carriersim.Faults{FloodPerSec: 500, FloodOctets: 39_000}},
		{"a flood of texts of 60,000 octets", carriersim.Faults{FloodPerSec: 500, FloodOctets: 60_000}},
		{"a flood of addresses of 60,000 digits", carriersim.Faults{FloodPerSec: 250, FloodOctets: 10, FloodSource: 60_000}},
	} {
		before := w.lumitel.Stats()
		resident := w.gateway.mostResident()
		w.lumitel.Faults(func(f *carriersim.Faults) { *f = flood.faults })
		w.eventually(finalWithin, "the flood comes", func() bool { return w.lumitel.Stats().Flooded > before.Flooded+1000 })
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
}
