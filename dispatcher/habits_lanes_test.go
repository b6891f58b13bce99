package dispatcher_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"intumwa/dispatcher"
	"intumwa/messages"
	"intumwa/tools/carriersim"
)

// campaign is n messages of a company, in batches of at most 5,000.
func (w *world) campaign(company int64, n int, text string) []int64 {
	w.Helper()
	var ids []int64
	for n > 0 {
		notes := make([]note, min(n, 5000))
		batch := &messages.Batch{ULID: ulid.Make(), CompanyID: company, UserID: 1, Kind: "bulk", Sender: "DEMO", Recipients: len(notes), Segments: len(notes)}
		for i := range notes {
			notes[i] = note{to: w.number("00"), text: text, company: company, batch: batch}
		}
		ids = append(ids, w.send(notes...)...)
		n -= len(notes)
	}
	return ids
}

// TestHabitOfThrottlingLink: a carrier that takes fewer a second than are
// configured gets 90 % of what it takes, with 2 % refused at most, once the pace
// has been found: over TCP, from the queue on. TestPaceFindsTheRate says how soon.
//
// Source: rule carriers 4.1.
func TestHabitOfThrottlingLink(t *testing.T) {
	t.Parallel()
	limit, configured := 35, 50 // little to compute: a busy machine carries it, too
	measured, within := 6*time.Second, time.Minute
	if chaos {
		limit, configured, measured, within = 140, 200, time.Minute, 2*time.Minute
	}
	w := newWorld(t)
	mno := w.carrier(carriersim.Options{NoFates: true, TPS: limit})
	w.start(mno.mno(func(c *dispatcher.Carrier) { c.Links[0].TPS, c.Links[0].Window = float64(configured), 50 }))
	w.campaign(0, int((within*slack).Seconds())*limit, "")
	type reading struct {
		at                time.Time
		accepted, refused uint64
	}
	var readings []reading // of the last time that is measured
	var rate, share float64
	start := time.Now()
	w.eventually(within, func() bool {
		stats := mno.Stats()
		readings = append(readings, reading{time.Now(), stats.Accepted, stats.Refused[carriersim.Throttled]})
		last := readings[len(readings)-1]
		for len(readings) > 1 && last.at.Sub(readings[1].at) >= measured {
			readings = readings[1:]
		}
		first := readings[0]
		took := last.at.Sub(first.at)
		accepted, refused := float64(last.accepted-first.accepted), float64(last.refused-first.refused)
		rate, share = accepted/took.Seconds()/float64(limit), refused/(accepted+refused)
		return took >= measured && rate >= 0.9 && share <= 0.02
	}, func() string {
		return fmt.Sprintf("%.1f %% of the carrier's rate, %.2f %% refused", 100*rate, 100*share)
	})
	t.Logf("a carrier that takes %d of %d a second: %.1f %% of its rate, %.2f %% refused, after %s", limit, configured, 100*rate, 100*share, elapsed(start))
	if n := w.count(`SELECT count(*) FROM messages WHERE status = 2`); n > 0 {
		t.Errorf("%d messages failed", n)
	}
	w.stop()
	w.clean(mno)
}

// TestHabitOfFullQueue: a carrier whose queue is full for a while: nothing
// fails, and it drains.
//
// Source: rule carriers 3.12.
func TestHabitOfFullQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mno := w.carrier(carriersim.Options{NoFates: true, Faults: carriersim.Faults{SubmitStatus: carriersim.QueueFull}})
	w.start(mno.mno(func(c *dispatcher.Carrier) { c.Links[0].TPS = 100 }))
	ids := w.sendMany(100, "00")
	w.until("it slows down", func() bool { return w.metric("intumwa_smpp_pace_limit_per_second") < 20 })
	mno.Faults(func(f *carriersim.Faults) { f.SubmitStatus = 0 })
	w.await("sent", 30*time.Second, ids...)
	w.settledAll()
	w.clean(mno)
}

// TestSinglesPassLongMessages: on a slow link a campaign's message of ten
// segments takes two seconds; a single send goes out between two of them, and
// the segments still arrive in order.
//
// Source: rule choices 7.9.
func TestSinglesPassLongMessages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mno := w.carrier(carriersim.Options{NoFates: true})
	w.start(mno.mno(func(c *dispatcher.Carrier) { c.Links[0].TPS, c.Links[0].Window = 5, 20 }))
	long := w.campaign(1, 3, strings.Repeat("a", 1500))
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
	open, within := "", 0 // the message whose segments are on their way
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

// TestSinglesDoNotWaitBehindCampaigns: one-time passwords beside a campaign of
// 100,000 recipients on a link of 100 a second. The time is from the request's
// commit to submit_sm.
//
// Source: rule choices 7.9.
func TestSinglesDoNotWaitBehindCampaigns(t *testing.T) {
	t.Parallel()
	tps, recipients, singles := 40, 1000, 40 // little to compute: a busy machine carries it, too
	if chaos {
		tps, recipients, singles = 100, 100_000, 600
	}
	w := newWorld(t)
	mno := w.carrier(carriersim.Options{NoFates: true, RespDelay: 20 * time.Millisecond})
	w.start(mno.mno(func(c *dispatcher.Carrier) { c.Links[0].TPS, c.Links[0].Window = float64(tps), tps }))
	w.campaign(1, recipients, "")
	w.until("the campaign runs", func() bool { return int(mno.Stats().Accepted) > tps })
	type reading struct {
		at       time.Time
		accepted uint64
	}
	var readings []reading
	requested, out := map[string]time.Time{}, map[string]int{} // when, and how many segments were out by then
	for range singles {
		readings = append(readings, reading{time.Now(), mno.Stats().Accepted})
		to := w.number("00")
		requested[to.Digits()] = time.Now()
		w.send(note{to: to, company: 2})
		out[to.Digits()] = int(mno.Stats().Accepted)
		next := mno.Stats().Accepted + uint64(tps)/10 // ten a second, by the link's own clock
		w.until("the campaign goes on", func() bool { return mno.Stats().Accepted >= next })
	}
	var waited []time.Duration
	var overtaken []int
	w.until("every single is out", func() bool {
		waited, overtaken = waited[:0], overtaken[:0]
		for i, m := range mno.Submits() {
			if at, ok := requested[m.Destination.Addr]; ok {
				waited, overtaken = append(waited, m.At.Sub(at)), append(overtaken, i-out[m.Destination.Addr])
			}
		}
		return len(waited) == singles
	})
	rate := 0.0 // of the best ten readings in a row: a busy machine has worse moments
	for i := 10; i < len(readings); i++ {
		took := readings[i].at.Sub(readings[i-10].at).Seconds()
		rate = max(rate, float64(readings[i].accepted-readings[i-10].accepted)/took)
	}
	slices.Sort(waited)
	slices.Sort(overtaken)
	last := (singles*99 - 1) / 100
	t.Logf("%d singles beside a campaign of %d: p50 %s, p99 %s, most %s, behind %d segments at p99; the link carried %.0f a second",
		singles, recipients, waited[singles/2], waited[last], waited[singles-1], overtaken[last], rate)
	if chaos && waited[last] > 500*time.Millisecond {
		t.Errorf("p99 of singles is %s", waited[last])
	}
	if overtaken[last] > tps/2 { // half a second of the link's rate, whatever the machine's
		t.Errorf("99 %% of the singles waited for %d segments or fewer", overtaken[last])
	}
	if rate < 0.7*float64(tps) {
		t.Errorf("the link carried %.0f a second of %d", rate, tps)
	}
	if most := mno.Stats().Peak; most > 2*tps { // a window of them may have been read late
		t.Errorf("%d segments in one second, %d are configured", most, tps)
	}
	w.stop()
	w.clean(mno)
}

// TestBatchesKeepTheirShare: a flood of singles does not stop a campaign.
//
// Source: rule choices 7.9.
func TestBatchesKeepTheirShare(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mno := w.carrier(carriersim.Options{NoFates: true})
	w.start(mno.mno(func(c *dispatcher.Carrier) { c.Links[0].TPS = 200 }))
	for range 3 {
		w.sendMany(3000, "00")
	}
	batch := w.campaign(1, 40, "campaign")
	w.await("sent", 20*time.Second, batch...)
	if n := w.count(`SELECT count(*) FROM messages WHERE status = 0 AND batch_id IS NULL`); n == 0 {
		t.Error("the singles were through before the batch: nothing was shown")
	}
	w.stop()
	w.clean(mno)
}

// TestCompaniesTakeTurns: one company's campaign does not hold up another's
// fifty recipients, and each company's own order is kept.
//
// Source: rule choices 7.9.
func TestCompaniesTakeTurns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mno := w.carrier(carriersim.Options{NoFates: true})
	w.start(mno.mno(func(c *dispatcher.Carrier) { c.Links[0].TPS = 200 }))
	big := w.campaign(1, 3000, "big")
	w.until("the campaign runs", func() bool { return mno.Stats().Accepted > 100 })
	start := time.Now()
	small := w.campaign(2, 50, "small")
	w.until("the small one is through", func() bool {
		return w.count(`SELECT count(*) FROM segments WHERE message_id = ANY($1)`, small) == len(small)
	})
	t.Logf("50 recipients beside 4,000 took %s", elapsed(start))
	if n := w.count(`SELECT count(*) FROM segments WHERE message_id = ANY($1)`, big); n > 1500 {
		t.Errorf("the big campaign got %d out before the small one was through", n)
	}
	w.stop()
	order := map[string][]string{}
	for _, m := range mno.Submits() {
		order[m.Text] = append(order[m.Text], m.Destination.Addr)
	}
	for name, numbers := range order {
		if !slices.IsSorted(numbers) { // handsets are numbered as they were accepted
			t.Errorf("company %s's order was not kept", name)
		}
	}
	w.clean(mno)
}

// TestOrderWithinAMessage: the segments of a message arrive in order, on one
// session, also over several binds.
//
// Source: rule carriers 8.3.
func TestOrderWithinAMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mno := w.carrier(carriersim.Options{NoFates: true})
	w.start(mno.mno(func(c *dispatcher.Carrier) { c.Links[0].Binds, c.Links[0].Window = 3, 12 }))
	w.until("all binds are up", func() bool { return mno.Stats().Sessions == 3 })
	notes := make([]note, 30)
	for i := range notes {
		notes[i] = note{to: w.number("00"), text: strings.Repeat("x", 500)}
	}
	ids := w.send(notes...)
	w.await("sent", 10*time.Second, ids...)
	sessions := map[int]bool{}
	for _, m := range mno.Submits() {
		sessions[m.Session] = true
	}
	for _, m := range mno.Messages() {
		if !m.Complete || !m.InOrder {
			t.Errorf("a message of %d segments: complete %v, in order %v", m.Segments, m.Complete, m.InOrder)
		}
	}
	if len(sessions) != 3 {
		t.Errorf("%d of 3 binds were used", len(sessions))
	}
	w.clean(mno)
}
