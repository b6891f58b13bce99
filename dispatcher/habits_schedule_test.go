package dispatcher_test

import (
	"context"
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

// TestSinglesPassACampaignThatIsDue: single messages that are due at the same moment as many of batches come first.
func TestSinglesPassACampaignThatIsDue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mno := w.carrier(carriersim.Options{NoFates: true})
	at := time.Now().Add(time.Hour)
	batch := &messages.Batch{ULID: ulid.Make(), CompanyID: 1, UserID: 1, Kind: "bulk", Sender: "DEMO", Recipients: 5000, Segments: 5000}
	many := make([]note, 5000)
	for i := range many {
		many[i] = note{to: w.number("00"), sendAt: at, batch: batch, company: 1}
	}
	batched := w.send(many...)
	some := make([]note, 20)
	for i := range some {
		some[i] = note{to: w.number("00"), sendAt: at, company: 2}
	}
	singles := w.send(some...)
	w.start(mno.mno(func(c *dispatcher.Carrier) { c.Links[0].TPS, c.Links[0].Window = 50, 50 }))
	if _, err := w.pool.Exec(t.Context(), `UPDATE scheduled SET due_at = now()`); err != nil {
		t.Fatal(err)
	}
	w.await("sent", 10*time.Second, singles...)
	w.until("all are released", func() bool { return w.count(`SELECT count(*) FROM scheduled`) == 0 })
	if n := w.count(`SELECT count(*) FROM messages WHERE id = ANY($1) AND status = 1`, batched); n > 4000 {
		t.Errorf("%d of the campaign went before", n)
	}
	if late := w.metric("intumwa_scheduled_late_seconds"); late > 30 {
		t.Errorf("it is late by %v s", late)
	}
	w.stop()
	w.clean(mno)
}

// TestQuietHoursHoldWhatWaits: what a batch has queued when quiet hours begin waits for their end, a single message does not.
// rule choices 12.3
func TestQuietHoursHoldWhatWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mno := w.carrier(carriersim.Options{NoFates: true})
	now := time.Now().In(sms.Burundi)
	quiet, err := sms.ParseQuietHours(now.Add(-time.Hour).Format("15:04") + "-" + now.Add(2*time.Hour).Format("15:04"))
	if err != nil {
		t.Fatal(err)
	}
	w.startWith(dispatcher.Options{QuietHours: quiet}, mno.mno(func(c *dispatcher.Carrier) { c.Links[0].TPS, c.Links[0].Window = 20, 5 }))
	w.awaitLink("lumitel-1", "bound")
	w.campaign(1, 300, "")
	waiting := func() int {
		return w.count(`SELECT count(*) FROM outbox WHERE claimed_by IS NULL AND attempts = 0 AND due_at < now() + interval '1 hour'`)
	}
	w.until("all that waits is put off", func() bool { return waiting() == 0 })
	left := w.count(`SELECT count(*) FROM outbox`)
	if left < 100 {
		t.Errorf("only %d are put off", left)
	}
	w.await("sent", 10*time.Second, w.send(note{to: w.number("00"), company: 1})...)
	if end, _ := quiet.End(now); w.count(`SELECT count(*) FROM outbox WHERE due_at = $1`, end) < 100 {
		t.Error("they do not wait until the end of the quiet hours")
	}
}

// TestReleaseWaitsForNoCount: however long it takes to count what is scheduled, what is due is released.
func TestReleaseWaitsForNoCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mno := w.carrier(carriersim.Options{NoFates: true})
	for _, statement := range []string{ // who reads a row of the far future waits, longer than a statement may take
		`ALTER TABLE scheduled RENAME TO scheduled_rows`,
		`CREATE FUNCTION far(due timestamptz) RETURNS boolean LANGUAGE plpgsql AS $$
		BEGIN
			WHILE due > now() + interval '10 days' LOOP
				BEGIN
					PERFORM pg_advisory_xact_lock_shared(471100);
					EXIT;
				EXCEPTION WHEN query_canceled OR lock_not_available THEN
				END;
			END LOOP;
			RETURN true;
		END $$`,
		`CREATE VIEW scheduled AS SELECT * FROM scheduled_rows WHERE far(due_at)`,
	} {
		if _, err := w.pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	holder, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Rollback(context.WithoutCancel(t.Context())) }()
	for _, statement := range []string{`SET LOCAL idle_in_transaction_session_timeout = 0`, `SELECT pg_advisory_xact_lock(471100)`} {
		if _, err := holder.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	w.send(note{to: w.number("00"), sendAt: time.Now().Add(24 * time.Hour)}, note{to: w.number("00"), sendAt: time.Now().Add(20 * 24 * time.Hour)})
	w.start(mno.mno())
	w.until("the count waits", func() bool {
		return w.count(`SELECT count(*) FROM pg_locks WHERE objid = 471100 AND NOT granted`) > 0
	})
	w.await("sent", 20*time.Second, w.send(note{to: w.number("00"), sendAt: time.Now().Add(2 * time.Second)})...)
	if err := holder.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.until("they are counted", func() bool { return w.metric("intumwa_scheduled_messages") >= 2 })
	w.stop()
	w.clean(mno)
}
