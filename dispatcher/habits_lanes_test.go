package dispatcher_test

import (
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"intumwa/dispatcher/setup"
	"intumwa/messages"
	"intumwa/tools/carriersim"
)

// campaign sends n messages of a company, in batches of at most 5,000.
func (w *world) campaign(company int64, n int, text string) []int64 {
	w.Helper()
	var ids []int64
	for n > 0 {
		notes := make([]note, min(n, 5000))
		batch := &messages.Batch{ULID: ulid.Make(), CompanyID: company, UserID: 1, Kind: "bulk", Sender: "DEMO",
			Recipients: len(notes), Segments: len(notes)}
		for i := range notes {
			notes[i] = note{to: w.number("00"), text: text, company: company, batch: batch}
		}
		ids = append(ids, w.send(notes...)...)
		n -= len(notes)
	}
	return ids
}

// TestSinglesPassLongMessages: on a slow link a campaign's message of ten
// segments takes two seconds. A single send goes out between two segments, and
// the segments still arrive in order.
//
// Source: rule choices 7.9.
func TestSinglesPassLongMessages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mno := w.carrier(carriersim.Options{NoFates: true})
	w.start(mno.mno(func(c *setup.Carrier) { c.Links[0].TPS, c.Links[0].Window = 10, 20 }))
	long := w.campaign(1, 12, strings.Repeat("a", 1500)) // twelve seconds
	w.until("the campaign runs", func() bool { return mno.Stats().Accepted >= 2 })
	singles := map[string]bool{}
	ids := long
	for range 4 {
		to := w.number("00")
		singles[to.Digits()] = true
		ids = append(ids, w.send(note{to: to, company: 2})...)
		w.until("the single is out", func() bool { return len(mno.submitsTo(to)) == 1 })
	}
	w.await("sent", 30*time.Second, ids...)
	last := map[string]uint8{}
	open, within := "", 0 // the message with segments in progress
	for _, m := range mno.Submits() {
		if singles[m.Destination.Addr] && open != "" {
			within++
		}
		if m.Concat != nil {
			if m.Concat.Seq != last[m.Destination.Addr]+1 {
				t.Errorf("segment %d came after segment %d", m.Concat.Seq, last[m.Destination.Addr])
			}
			last[m.Destination.Addr] = m.Concat.Seq
			if open = m.Destination.Addr; m.Concat.Seq == m.Concat.Total {
				open = ""
			}
		}
	}
	if within == 0 { // by chance one in ten goes between two messages
		t.Error("no single send went out before a long message was through")
	}
	w.clean(mno)
}
