package dispatcher_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"intumwa/dispatcher"
	"intumwa/messages"
	"intumwa/sms"
	"intumwa/tools/carriersim"
)

// TestScheduledGoesOut: what is scheduled comes to the carrier when its time has come, and not before; the carrier is told
// until when it is good. rule choices 12.2
func TestScheduledGoesOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mno := w.carrier(carriersim.Options{})
	w.start(mno.mno())
	at := time.Now().Add(3 * time.Second)
	batch := &messages.Batch{ULID: ulid.Make(), CompanyID: 1, UserID: 1, Kind: "bulk", Sender: "DEMO", Recipients: 1, Segments: 1}
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
		if early := n.sendAt.Sub(submits[0].At); early > 50*time.Millisecond { // the clocks are one
			t.Errorf("message %d went out %s before its time", i, early)
		}
	}
	for i, want := range map[int]string{0: `^00000000[0-5]\d[0-5]\d000R$`, 2: `^00000001[0-5]\d\d\d000R$`, 3: `^0000000029|^0000000030`} {
		if got := mno.submitsTo(notes[i].to)[0].Validity; !regexp.MustCompile(want).MatchString(got) && !(i == 2 && got == "000000020000000R") && !(i == 0 && got == "000000010000000R") {
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

// TestExpireAtEndsRetries: nothing is tried after expire_at, and the message has expired as any other. rule choices 12.2
func TestExpireAtEndsRetries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mno := w.carrier(carriersim.Options{})
	w.start(mno.mno())
	expire := time.Now().Add(3 * time.Second)
	busy := note{to: w.number("43"), expireAt: expire}
	down := note{to: w.number("00"), carrier: "leo", sendAt: time.Now().Add(time.Second), expireAt: expire} // nobody serves it
	ids := w.send(busy, down)
	for _, id := range ids {
		w.await("failed", 20*time.Second, id)
		if _, reason := w.statusOf(id); reason != "expired" {
			t.Errorf("message %d failed for %q", id, reason)
		}
	}
	tried := mno.submitsTo(busy.to)
	if len(tried) == 0 {
		t.Error("it was never tried")
	}
	for _, s := range tried {
		if late := s.At.Sub(expire); late > 5*time.Second { // and not the validity of a day
			t.Errorf("it was tried %s after its end", late)
		}
	}
	w.settledAll()
}

// TestNoReceiptUntilExpireAt: a message with a time of its own is decided when that and its carrier's timeout are over, and one
// whose time is longer than all others' not before.
func TestNoReceiptUntilExpireAt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mno := w.carrier(carriersim.Options{})
	c := mno.mno(func(c *dispatcher.Carrier) { c.ReceiptTimeout, c.OnReceiptTimeout = time.Second, sms.Sent })
	w.startWith(dispatcher.Options{Validity: 2 * time.Second}, c)
	w.awaitLink("lumitel-1", "bound")
	short, long := note{to: w.number("07"), expireAt: time.Now().Add(3 * time.Second)}, note{to: w.number("07"), expireAt: time.Now().Add(time.Hour)}
	ids := w.send(short, long)
	w.await("sent", 30*time.Second, ids[0])
	if at := w.count(`SELECT extract(epoch FROM sent_at)::int FROM messages WHERE id = $1`, ids[0]); int64(at) < short.expireAt.Add(time.Second).Unix() {
		t.Errorf("it was decided at %d, before its end and the timeout", at)
	}
	if status, _ := w.statusOf(ids[1]); status != "pending" {
		t.Errorf("the other is %s before its end", status)
	}
}
