package dispatcher_test

import (
	"testing"
	"time"

	"intumwa/dispatcher"
	"intumwa/tools/carriersim"
)

// TestHabitOfFlood: on a link that floods us with receipts for ids never given
// and, after that, with handsets' texts of any length, our own messages are
// carried and their receipts settle them; the link stays, and what is kept of
// the flood is bounded.
//
// Source: rule carriers 7.4.
func TestHabitOfFlood(t *testing.T) {
	t.Parallel()
	const most = 200 // in an hour
	w := newWorld(t)
	mno := w.carrier(carriersim.Options{NoFates: true, RedeliverDelay: 200 * time.Millisecond})
	w.start(mno.mno(func(c *dispatcher.Carrier) { c.MaxUnmatched, c.MaxInbound = most, most }))
	for _, flood := range []struct {
		name     string
		receipts bool
		octets   int
		table    string
		enough   bool // the hour's are full: the carrier is told that it is too fast
	}{
		{"receipts", true, 0, "receipts", true},
		{"short texts", false, 50, "inbound", true},
		{"long texts", false, 39_000, "inbound", false},
		{"too long texts", false, 60_000, "inbound", false},
	} {
		before := mno.Stats()
		mno.Faults(func(f *carriersim.Faults) {
			f.FloodPerSec, f.FloodReceipts, f.FloodOctets = 1000, flood.receipts, flood.octets
		})
		w.until(flood.name+" flood and are refused", func() bool { return mno.Stats().FloodRefused > before.FloodRefused+100 })
		if flood.enough {
			w.until(flood.name+" are refused by ESME_RTHROTTLED", func() bool { return mno.Stats().FloodThrottled > before.FloodThrottled+10 })
		}
		ids := w.sendMany(40, "00")
		w.await("sent", 30*time.Second, ids...)
		if st := mno.Stats(); st.Flooded == before.Flooded || st.Connections != 1 {
			t.Errorf("%s: %d came, over %d connections", flood.name, st.Flooded-before.Flooded, st.Connections)
		}
		if n := w.count(`SELECT count(*) FROM ` + flood.table); n > most {
			t.Errorf("%s: %d rows", flood.name, n)
		}
	}
	if n := w.metric("intumwa_deliveries_throttled_total", "kind", "unmatched"); n == 0 {
		t.Error("no receipt is counted as throttled")
	}
	mno.Faults(func(f *carriersim.Faults) { f.FloodPerSec = 0 })
	w.settledAll()
	w.clean(mno)
}

// TestHabitOfPoison: deliveries with an address of 60,000 digits among genuine
// receipts are refused at the door, each alone; no receipt comes twice for them.
//
// Source: rule carriers 7.5.
func TestHabitOfPoison(t *testing.T) {
	t.Parallel()
	for _, receipts := range []bool{true, false} {
		w := newWorld(t)
		mno := w.carrier(carriersim.Options{NoFates: true, Faults: carriersim.Faults{
			FloodPerSec: 50, FloodSource: 60_000, FloodReceipts: receipts}})
		w.start(mno.mno())
		w.until("poison comes", func() bool { return mno.Stats().Flooded > 10 })
		ids := w.sendMany(40, "00")
		w.await("sent", 20*time.Second, ids...)
		if n := w.metric("intumwa_receipts_refused_total"); n != 0 {
			t.Errorf("%v receipts are put back", n)
		}
		st := mno.Stats()
		if st.Redelivered != 0 || st.Connections != 1 {
			t.Errorf("%d redelivered, %d connections", st.Redelivered, st.Connections)
		}
		if receipts && w.count(`SELECT count(*) FROM receipts WHERE octet_length(number) > 64`) != 0 || !receipts && w.count(`SELECT count(*) FROM inbound`) != 0 {
			t.Error("poison is kept")
		}
		if n := w.metric("intumwa_smpp_malformed_pdus_total"); n == 0 {
			t.Error("it is not counted")
		}
		w.stop()
		w.clean(mno)
	}
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
