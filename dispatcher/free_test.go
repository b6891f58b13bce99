package dispatcher

import (
	"context"
	"errors"
	"testing"
	"time"

	"intumwa/dispatcher/core"
	"intumwa/dispatcher/settling"
	"intumwa/dispatcher/setup"
	"intumwa/messages"
	"intumwa/messages/outbox"
	"intumwa/smpp"
	"intumwa/sms"
)

// TestFreeObeysOnAmbiguous: messages that a dispatcher had begun when it died are
// sent again, kept or failed by their carrier's on_ambiguous; those that it had
// only claimed are always sent.
func TestFreeObeysOnAmbiguous(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for policy, want := range map[setup.Ambiguous]struct {
		status   sms.Status
		reason   string
		left     int // in the outbox
		segments int // unanswered ones
	}{
		setup.AmbiguousResend:       {status: sms.Pending, left: 2, segments: 2},
		setup.AmbiguousAwaitReceipt: {status: sms.Pending, left: 1, segments: 2},
		setup.AmbiguousFail:         {status: sms.Failed, reason: "no_answer", left: 1, segments: 2},
	} {
		b.cleared()
		b.configure(func(c *setup.Carrier) { c.OnAmbiguous = policy })
		begun, claimed := b.begun(3), b.begun(1)
		b.exec(`UPDATE messages SET body = repeat('a', 400) WHERE id = $1`, begun.Msg.ID)
		b.settle(settling.Settlement{Results: []core.Result{accepted("A")(begun, 2)}})
		if _, err := b.d.core.Store.Outbox.Begin(t.Context(), 7, []messages.Claim{begun.Msg.Claim()}); err != nil {
			t.Fatal(err)
		}
		if err := b.d.recovery.Free(t.Context()); err != nil { // no dispatcher 7 is registered
			t.Fatal(err)
		}
		if status, reason := b.status(begun.Msg.ID); status != want.status || reason != want.reason {
			t.Errorf("policy %d: %v %q, want %v %q", policy, status, reason, want.status, want.reason)
		}
		if status, _ := b.status(claimed.Msg.ID); status != sms.Pending {
			t.Errorf("policy %d: what was only claimed is %v", policy, status)
		}
		if n := b.count(`SELECT count(*) FROM outbox WHERE claimed_by IS NULL`); n != want.left {
			t.Errorf("policy %d: %d are to be sent, want %d", policy, n, want.left)
		}
		if n := b.count(`SELECT count(*) FROM segments WHERE message_id = $1 AND key LIKE '?%'`,
			begun.Msg.ID); n != want.segments {
			t.Errorf("policy %d: %d segments are recorded as unanswered, want %d", policy, n, want.segments)
		}
	}
}

// TestBeginAfterTheClaim: with on_ambiguous hold, messages that another dispatcher has claimed since do not go out from
// here; the rest of the group does.
func TestBeginAfterTheClaim(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *setup.Carrier) { c.OnAmbiguous = setup.AmbiguousAwaitReceipt })
	lost, mine := b.begun(0), b.begun(0)
	b.exec(`UPDATE outbox SET claimed_by = 8, epoch = epoch + 1 WHERE message_id = $1`, lost.Msg.ID)
	more := []*core.InFlight{mine}
	group := b.worker.Group(lost, func() (m *core.InFlight) {
		if len(more) > 0 {
			m, more = more[0], nil
		}
		return m
	})
	if len(group) != 1 || group[0] != mine {
		t.Errorf("%d go out", len(group))
	}
	if b.d.core.InFlight.Get(lost.Msg.ID) != nil || b.count(`SELECT count(*) FROM outbox WHERE claimed_by = 8
		AND NOT begun`) != 1 {
		t.Error("the other's claim is touched")
	}
	if b.d.core.InFlight.Get(mine.Msg.ID) != mine ||
		b.count(`SELECT count(*) FROM outbox WHERE claimed_by = 7 AND begun`) != 1 {
		t.Error("its own is not begun")
	}
}

// TestBeginWithoutDatabase: with on_ambiguous hold, a message that cannot be marked as
// begun does not go out. It is given back when the database works again.
func TestBeginWithoutDatabase(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *setup.Carrier) { c.OnAmbiguous = setup.AmbiguousAwaitReceipt })
	m := b.begun(0)
	if group := b.worker.Group(m, b.worker.Prefetch.Poll); len(group) != 1 ||
		b.count(`SELECT count(*) FROM outbox WHERE begun`) != 1 {
		t.Fatalf("group %v: it is not marked", group)
	}
	b.exec(`ALTER TABLE outbox RENAME TO away`)
	if group := b.worker.Group(m, b.worker.Prefetch.Poll); len(group) != 0 {
		t.Errorf("group %v goes out", group)
	}
	b.exec(`ALTER TABLE away RENAME TO outbox`)
	b.settle(b.s.Grab())
	if n := b.count(`SELECT count(*) FROM outbox WHERE claimed_by IS NULL AND begun`); n != 1 {
		t.Error("it is not given back")
	}
}

// TestBegunAndLocked: with on_ambiguous hold, a begun message whose row is locked while
// the claims of the dead are freed is not sent again.
func TestBegunAndLocked(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *setup.Carrier) { c.OnAmbiguous = setup.AmbiguousAwaitReceipt })
	m := b.begun(1)
	if _, err := b.d.core.Store.Outbox.Begin(t.Context(), 7, []messages.Claim{m.Msg.Claim()}); err != nil {
		t.Fatal(err)
	}
	tx, err := b.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SELECT FROM outbox WHERE message_id = $1 FOR UPDATE`, m.Msg.ID); err != nil {
		t.Fatal(err)
	}
	if err := b.d.recovery.Free(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := b.count(`SELECT count(*) FROM outbox WHERE claimed_by IS NULL`); n != 0 {
		t.Error("it is given out to be sent again")
	}
	if err := b.d.recovery.Free(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := b.count(`SELECT count(*) FROM segments WHERE key LIKE '?%'`); n != 1 {
		t.Error("the next round does not take it")
	}
}

// TestLateRefusalForNow: a waiting message is sent again after a late temporary refusal.
func TestLateRefusalForNow(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *setup.Carrier) { c.OnAmbiguous = setup.AmbiguousAwaitReceipt })
	m := b.begun(1)
	b.settle(settling.Settlement{Results: []core.Result{ended(smpp.NoAnswer, 0, nil)(m, 1)}})
	if n := b.count(`SELECT count(*) FROM outbox`); n != 0 {
		t.Fatal("it does not wait")
	}
	b.settle(settling.Settlement{Late: []settling.LateAnswer{{Link: "l1", Whose: m.Msg.ID, Segment: 1, Total: 1,
		Result: smpp.Result{Outcome: smpp.Rejected, Status: smpp.StatusThrottled}, At: time.Now()}}})
	if n := b.count(`SELECT count(*) FROM outbox WHERE claimed_by IS NULL`); n != 1 {
		t.Error("it is not to be sent again")
	}
	if n := b.count(`SELECT count(*) FROM segments`); n != 0 {
		t.Error("it counts as unanswered still")
	}
}

// TestLateRefusalForGood: a permanent refusal, however late, fails a waiting message.
func TestLateRefusalForGood(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *setup.Carrier) { c.OnAmbiguous = setup.AmbiguousAwaitReceipt })
	m := b.begun(1)
	b.settle(settling.Settlement{Results: []core.Result{ended(smpp.NoAnswer, 0, nil)(m, 1)}})
	b.settle(settling.Settlement{Late: []settling.LateAnswer{{Link: "l1", Whose: m.Msg.ID, Segment: 1, Total: 1,
		Result: smpp.Result{Outcome: smpp.Rejected, Status: smpp.StatusInvDstAddr}, At: time.Now()}}})
	if status, reason := b.status(m.Msg.ID); status != sms.Failed || reason != "ESME_RINVDSTADR" {
		t.Errorf("it is %v %q", status, reason)
	}
}

// TestTasksGoOn: a task that the database refuses does not stop the others.
func TestTasksGoOn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	m := b.begun(1)
	b.exec(`ALTER TABLE balance_warnings RENAME TO away`)
	if err := b.tasks(); err == nil {
		t.Error("no task failed")
	}
	if n := b.count(`SELECT count(*) FROM outbox WHERE message_id = $1 AND claimed_by IS NULL AND pushed_at IS NOT NULL`,
		m.Msg.ID); n != 1 {
		t.Error("the claim of a dead dispatcher is not on the queue again")
	}
}

// TestServedAcrossAStep: two links carry, one with a heartbeat from before the database's clock
// was set, one from after. Neither carrier is down, and a link that no dispatcher holds does
// not serve forever.
func TestServedAcrossAStep(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *setup.Carrier) { c.Failover, c.FailoverAfter = []string{"leo"}, time.Minute })
	b.exec(`INSERT INTO dispatchers (id, name) VALUES (8, 'other')`)
	b.exec(`INSERT INTO links (name, carrier, state, "window", served_at, updated_at) VALUES
		('l1', 'lumitel', 'bound', 1, now() - interval '1 hour', now() - interval '1 hour'), ('leo-1', 'leo', 'bound', 1,
		now(), now()),
		('gone-1', 'gone', 'bound', 1, now() + interval '1 hour', now() + interval '1 hour')`)
	b.exec(`INSERT INTO leases (name, holder) VALUES ('link l1', 8), ('link leo-1', 8)`)
	b.d.member.Heard.Store(-int64(time.Hour))
	m := b.begun(1)
	b.exec(`UPDATE outbox SET claimed_by = NULL`)
	if err := b.d.recovery.Failover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := b.count(`SELECT count(*) FROM outbox WHERE message_id = $1 AND carrier = 'lumitel'`, m.Msg.ID); n != 1 {
		t.Error("a stand-in took what a carrier that serves has")
	}
	for carrier, want := range map[string]bool{"lumitel": true, "leo": true, "gone": false} {
		if serves, err := core.Serves(t.Context(), b.pool, carrier, time.Minute); serves != want || err != nil {
			t.Errorf("%s serves: %v, %v", carrier, serves, err)
		}
	}
	b.exec(`UPDATE links SET served_at = now() - interval '62 minutes' WHERE name = 'l1'`)
	for state, want := range map[string]int{"connecting": 0, "bound": 1} {
		// the failover carrier's link has just dropped, or is up
		b.exec(`UPDATE outbox SET carrier = 'lumitel'`)
		b.exec(`UPDATE links SET state = $1 WHERE name = 'leo-1'`, state)
		if err := b.d.recovery.Failover(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := b.count(`SELECT count(*) FROM outbox WHERE message_id = $1 AND carrier = 'leo'`, m.Msg.ID); n != want {
			t.Errorf("the stand-in's link is %s, and it takes %d messages", state, n)
		}
	}
}

// TestStaleVerdict: a process that slept cannot fail a message that another process
// carries now.
func TestStaleVerdict(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *setup.Carrier) { c.OnAmbiguous = setup.AmbiguousFail })
	m := b.begun(1)
	b.exec(`UPDATE outbox SET begun = true`) // after the claim was listed
	listed := []messages.Claim{m.Msg.Claim()}
	if n, err := b.d.core.Store.Outbox.Free(t.Context(), b.pool, 7, listed); n != 0 || err != nil {
		t.Errorf("%d claims that have begun are freed, %v", n, err)
	}
	b.exec(`UPDATE outbox SET claimed_by = NULL`)
	if got, err := b.d.core.Store.Outbox.Claim(t.Context(), 8, "lumitel", []int64{m.Msg.ID},
		b.s.Carrier.Config().Marks()); err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	b.settle(settling.Settlement{Results: []core.Result{ended(smpp.NoAnswer, 0, errors.New("gone"))(m, 1)}})
	if status, reason := b.status(m.Msg.ID); status != sms.Pending {
		t.Errorf("it is %v %q", status, reason)
	}
	if n := b.count(`SELECT count(*) FROM outbox WHERE claimed_by = 8`); n != 1 {
		t.Error("the other lost it")
	}
	b.clean()
}

// TestInFlightOfTwoWorkers: when a worker removes a message, the later claim of another
// worker stays.
func TestInFlightOfTwoWorkers(t *testing.T) {
	f := core.NewInFlightMessages()
	first := &core.InFlight{Msg: &outbox.Claimed{ID: 1, Epoch: 1}}
	second := &core.InFlight{Msg: &outbox.Claimed{ID: 1, Epoch: 2}}
	f.Add(first)
	f.Add(second)
	f.Remove(first)
	if f.Get(1) != second {
		t.Error("the second attempt is not in flight any more")
	}
}

// TestStalledSlots: a link is stalled when no slot has come free for a while, not
// while its carrier is merely slow.
func TestStalledSlots(t *testing.T) {
	s := core.NewSlots(2)
	now := time.Now()
	if s.Stalled(now.Add(time.Hour)) {
		t.Error("stalled with slots free")
	}
	for range 2 {
		if err := s.Take(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if s.Stalled(time.Now().Add(core.StallAfter / 2)) {
		t.Error("stalled at once")
	}
	if !s.Stalled(time.Now().Add(2 * core.StallAfter)) {
		t.Error("not stalled")
	}
	s.Give(1)
	if err := s.Take(context.Background()); err != nil {
		t.Fatal(err)
	}
	if s.Stalled(time.Now().Add(core.StallAfter / 2)) {
		t.Error("stalled although one came free just now")
	}
}
