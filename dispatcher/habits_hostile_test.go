package dispatcher_test

import (
	"testing"
	"time"

	"intumwa/dispatcher"
	"intumwa/tools/carriersim"
)

// TestHabitOfFlood: receipts of ids never given flood a link. Our own messages are carried
// and settled by their receipts over the same session; above the hourly limit the carrier
// gets ESME_RTHROTTLED.
//
// Source: rule carriers 7.4.
func TestHabitOfFlood(t *testing.T) {
	t.Parallel()
	const most = 200 // in an hour
	w := newWorld(t)
	mno := w.carrier(carriersim.Options{NoFates: true, RedeliverDelay: 200 * time.Millisecond,
		Faults: carriersim.Faults{FloodPerSec: 300, FloodReceipts: true}})
	w.start(mno.mno(func(c *dispatcher.Carrier) { c.MaxUnmatched = most }))
	w.until("the flood is refused", func() bool { return mno.Stats().FloodThrottled > 100 })
	w.await("sent", 30*time.Second, w.sendMany(40, "00")...)
	if n := w.count(`SELECT count(*) FROM receipts`); n > most || mno.Stats().Connections != 1 {
		t.Errorf("%d rows are kept, %d connections", n, mno.Stats().Connections)
	}
	mno.Faults(func(f *carriersim.Faults) { f.FloodPerSec = 0 })
	w.settledAll()
	w.clean(mno)
}

// TestHabitOfDeafCarrier: a carrier that goes on taking what we send and says
// nothing any more, not even to enquire_link: no more than one window went to
// it, and no more than that arrives twice.
//
// Source: rule carriers 6.3; rule choices 7.5.
func TestHabitOfDeafCarrier(t *testing.T) {
	t.Parallel()
	const window = 10
	w := newWorld(t)
	mno := w.carrier(carriersim.Options{NoFates: true, RespDelay: 20 * time.Millisecond})
	w.start(mno.mno(func(c *dispatcher.Carrier) {
		c.NoReference = true
		holds(c, 10*time.Second, 500*time.Millisecond)
		c.Links[0].Window, c.Links[0].TPS = window, 200
	}))
	ids := w.sendMany(50, "00")
	w.until("it is in the middle", func() bool { return mno.Stats().Accepted > 20 })
	mno.Faults(func(f *carriersim.Faults) { f.SubmitSilent, f.HoldReceipts = true, true })
	ids = append(ids, w.sendMany(50, "00")...)
	w.until("its window is out", func() bool { return mno.Stats().Silent == window })
	// The next session has to wait until the carrier hears again: one is deaf.
	deaf := func(is bool) {
		mno.Faults(func(f *carriersim.Faults) {
			f.SubmitSilent, f.EnquireSilent, f.HoldReceipts, f.RefuseConnections = is, is, is, is
		})
	}
	deaf(true)
	w.until("the session is given up", func() bool { return mno.Stats().Connections > 1 })
	deaf(false)
	w.await("sent", 40*time.Second, ids...)
	w.settledAll()
	if st := mno.Stats(); st.Duplicates == 0 || st.Duplicates > window {
		t.Errorf("%d arrived twice, with a window of %d", st.Duplicates, window)
	}
}
