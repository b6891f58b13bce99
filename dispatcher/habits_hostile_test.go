package dispatcher_test

import (
	"testing"
	"time"

	"intumwa/dispatcher/setup"
	"intumwa/tools/carriersim"
)

// TestHabitOfFlood: receipts with unknown ids flood a link. Our messages are still
// carried, and settled by their receipts, over the same session. Above the hourly limit
// the carrier gets ESME_RTHROTTLED.
//
// Source: rule carriers 7.4.
func TestHabitOfFlood(t *testing.T) {
	t.Parallel()
	const most = 200 // per hour
	w := newWorld(t)
	mno := w.carrier(carriersim.Options{NoFates: true, RedeliverDelay: 200 * time.Millisecond,
		Faults: carriersim.Faults{FloodPerSec: 300, FloodReceipts: true}})
	w.start(mno.mno(func(c *setup.Carrier) { c.MaxUnmatched = most }))
	w.until("the flood is refused", func() bool { return mno.Stats().FloodThrottled > 100 })
	w.await("sent", 30*time.Second, w.sendMany(40, "00")...)
	if n := w.count(`SELECT count(*) FROM receipts`); n > most || mno.Stats().Connections != 1 {
		t.Errorf("%d rows are kept, %d connections", n, mno.Stats().Connections)
	}
	mno.Faults(func(f *carriersim.Faults) { f.FloodPerSec = 0 })
	w.settledAll()
	w.clean(mno)
}
