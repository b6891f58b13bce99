package dispatcher_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"intumwa/messages"
	"intumwa/tools/carriersim"
)

// TestScheduledGoesOut: a scheduled message goes to the carrier when it is due, not earlier, with its validity_period.
// rule choices 12.2
func TestScheduledGoesOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mno := w.carrier(carriersim.Options{})
	w.start(mno.mno())
	at := time.Now().Add(3 * time.Second)
	batch := &messages.Batch{ULID: ulid.Make(), CompanyID: 1, UserID: 1, Kind: "bulk", Sender: "DEMO", Recipients: 1,
		Segments: 1}
	notes := []note{
		{to: w.number("00"), sendAt: at},
		{to: w.number("00"), sendAt: at.Add(time.Second), batch: batch, company: 1},
		{to: w.number("00"), sendAt: at, expireAt: at.Add(2 * time.Hour)},
		{to: w.number("00"), expireAt: at.Add(30 * time.Minute)},
		{to: w.number("00"), sendAt: time.Now().Add(time.Hour)},
	}
	ids := w.send(notes...)
	w.await("sent", 10*time.Second, ids[3])
	w.await("sent", 20*time.Second, ids[:4]...)
	for i, n := range notes[:3] {
		submits := mno.submitsTo(n.to)
		if len(submits) != 1 {
			t.Fatalf("message %d was submitted %d times", i, len(submits))
		}
		if early := n.sendAt.Sub(submits[0].At); early > 50*time.Millisecond { // both use one clock
			t.Errorf("message %d went out %s before its time", i, early)
		}
	}
	for i, want := range map[int]string{0: `^00000000[0-5]\d[0-5]\d000R$`, 2: `^00000001[0-5]\d\d\d000R$`,
		3: `^0000000029|^0000000030`} {
		if got := mno.submitsTo(notes[i].to)[0].Validity; !regexp.MustCompile(want).MatchString(got) &&
			!(i == 2 && got == "000000020000000R") && !(i == 0 && got == "000000010000000R") {
			t.Errorf("message %d is good for %q, want %s", i, got, want)
		}
	}
	w.until("three are counted as released", func() bool { return w.metric("intumwa_scheduled_released_total") == 3 })
	if n := w.count(`SELECT count(*) FROM scheduled`); n != 1 {
		t.Errorf("%d wait, want the last", n)
	}
	if _, reason := w.statusOf(ids[4]); reason != "" || len(mno.submitsTo(notes[4].to)) != 0 {
		t.Error("what is for later is not left alone")
	}
	w.settledAll()
	w.stop()
	w.clean(mno)
}
