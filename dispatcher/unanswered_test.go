package dispatcher

import (
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/dispatcher/core"
	"intumwa/dispatcher/profile"
	"intumwa/dispatcher/recovery"
	"intumwa/dispatcher/settling"
	"intumwa/dispatcher/setup"
	"intumwa/messages/rerouting"
	"intumwa/messages/submission"
	"intumwa/sms"
)

// unrecorded does not record a decision.
func unrecorded(pgx.Tx, []int64) error { return nil }

// toAny is a carrier where every sender works.
func toAny(name string) rerouting.To { return rerouting.To{Carrier: name} }

// TestDecideOfUnanswered: messages that waited when a backup was made are quarantined with any on_ambiguous. The
// operator has each sent again, or makes it sent, failed or cancelled, once. Messages answered or decided meanwhile are
// skipped.
func TestDecideOfUnanswered(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for range 6 {
		b.begun(1)
	}
	long := b.begun(2)
	b.exec(`UPDATE messages SET body = repeat('a', 300) WHERE id = $1`, long.Msg.ID)
	b.settle(settling.Settlement{Results: []core.Result{accepted("A")(long, 1)}})
	ctx, now := t.Context(), time.Now().Add(time.Minute)
	carriers := []setup.Carrier{*b.s.Carrier.Config()}
	for _, want := range []int64{7, 0} {
		taken, err := recovery.QuarantinePending(ctx, b.pool, b.d.core.Store.Messages, b.d.core.Webhooks, carriers,
			setup.RefundUnsubmitted, now)
		if err != nil || taken["lumitel"] != want {
			t.Fatalf("%v taken, want %d; %v", taken, want, err)
		}
	}
	if n := b.count(`SELECT count(*) FROM outbox`); n != 0 {
		t.Errorf("%d are to be sent", n)
	}
	if n := b.count(`SELECT count(*) FROM segments WHERE key LIKE '?%'`); n != 7 {
		t.Errorf("%d segments are unanswered, want 7: the carrier has taken the first of the long message", n)
	}
	send := func(want int, ids ...int64) {
		t.Helper()
		if sent, err := recovery.SendUnanswered(ctx, b.pool, b.d.core.Store.Messages, "lumitel", ids, time.Hour, toAny,
			unrecorded); err != nil || len(sent) != want {
			t.Errorf("%v of %v are sent again, want %d; %v", sent, ids, want, err)
		}
	}
	settle := func(want int, as recovery.Outcome, ids ...int64) {
		t.Helper()
		if n, err := recovery.SettleUnanswered(ctx, b.pool, b.d.core.Store.Messages, b.d.core.Webhooks, "lumitel", ids, as,
			setup.RefundNever, unrecorded); err != nil || len(n) != want {
			t.Errorf("%v of %v are settled, want %d; %v", n, ids, want, err)
		}
	}
	credits := func(want int) {
		t.Helper()
		if n := b.count(`SELECT credits FROM balances`); n != want {
			t.Errorf("%d credits, want %d", n, want)
		}
	}
	credits(92)
	settle(1, recovery.WasSent, 1)
	settle(1, recovery.WasFailed, 2)
	credits(92) // the carrier may have it
	settle(1, recovery.WasCancelled, 3, 1, 2)
	credits(93)
	if _, err := b.pool.Exec(ctx, `UPDATE messages SET expire_at = now() WHERE id = 5`); err != nil {
		t.Fatal(err)
	}
	send(1, 4, 5, 1)
	send(0, 4)
	settle(0, recovery.WasFailed, 4)    // it is being sent
	settle(1, recovery.WasFailed, 4, 5) // and still is, together with one that is not
	send(1, long.Msg.ID)
	again, err := b.d.core.Store.Outbox.Claim(ctx, 7, "lumitel", []int64{4, 5, 6, long.Msg.ID},
		b.s.Carrier.Config().Marks())
	if err != nil || len(again) != 2 || again[0].ID+again[1].ID != 4+long.Msg.ID {
		t.Errorf("%d of those sent again can be carried, %v", len(again), err)
	}
	for _, m := range again {
		if got := states(&core.InFlight{Msg: m}); m.ID == long.Msg.ID &&
			!slices.Equal(got, []submission.State{submission.Accepted, submission.Waiting}) {
			t.Errorf("the long message's segments are %v", got)
		}
	}
	echo := b.receipt("0815", "DELIVRD")
	ref := profile.Reference(6, 1)
	echo.Reference, echo.Number = &ref, "25761000006"
	b.settle(settling.Settlement{Receipts: []settling.Arrival{echo}})
	settle(0, recovery.WasFailed, 6)
	for id, want := range map[int64]string{1: "sent ", 2: "failed no_answer", 3: "failed cancelled", 4: "pending ",
		5: "failed no_answer", 6: "sent "} {
		status, reason := b.status(id)
		if got := status.String() + " " + reason; got != want {
			t.Errorf("message %d is %s, want %s", id, got, want)
		}
		final := status != sms.Pending
		if n := b.count(`SELECT count(*) FROM webhook_deliveries WHERE id / 8 = $1`, id); (n == 1) != final {
			t.Errorf("message %d: %d webhooks", id, n)
		}
	}
}

// TestAlive: commands that must not run beside a dispatcher detect a running one.
func TestAlive(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	alive := func(want int) {
		t.Helper()
		if n, err := core.Alive(t.Context(), b.pool); err != nil || n != want {
			t.Errorf("%d dispatchers work, want %d; %v", n, want, err)
		}
	}
	alive(0)
	b.exec(`INSERT INTO dispatchers (id, name, seen_at) VALUES (1, 'of the backup', now() - interval '1 minute'),
		(2, 'of a clock that was ahead', now() + interval '1 minute')`)
	alive(0)
	b.d.core.Opts.DeadAfter = time.Minute
	if err := b.d.member.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer b.d.member.Leave()
	until(t, "one that renews its row works", func() bool { // within DeadAfter before
		err := b.d.member.Renew(t.Context())
		n, err2 := core.Alive(t.Context(), b.pool)
		return err == nil && err2 == nil && n == 1
	})
}

// TestSentAgainMayBeThere: a message that an operator sends again goes out although several submit records are
// unanswered. No second carrier gets it, because this one may have them.
func TestSentAgainMayBeThere(t *testing.T) {
	t.Parallel()
	b, _ := newSecondBench(t, func(c *setup.Carrier) { c.OnAmbiguous = setup.AmbiguousAwaitReceipt })
	m := b.begun(1)
	b.by(m, unanswered)
	b.exec(`INSERT INTO segments (message_id, segment, total, handset, carrier, link, key, submitted_at)
		SELECT message_id, segment, total, handset, carrier, link, key, submitted_at FROM segments`)
	if sent, err := recovery.SendUnanswered(t.Context(), b.pool, b.d.core.Store.Messages, "lumitel", []int64{m.Msg.ID},
		time.Hour, toAny, unrecorded); err != nil || len(sent) != 1 {
		t.Fatalf("%v are sent again, %v", sent, err)
	}
	again := b.claim(m.Msg.ID, 1)
	if got := states(again); got[0] != submission.Waiting {
		t.Errorf("its segment is %v", got)
	}
	b.by(again, accepted("a"))
	b.reported(b.receipt("a", "UNDELIV"))
	if status, reason := b.status(m.Msg.ID); status != sms.Failed || b.count(`SELECT count(*) FROM outbox`) != 0 {
		t.Errorf("it is %v %q", status, reason)
	}
	b.clean()
}

// TestSettlesOnlyUndecided: an operator settles no message on which a dispatcher works again, although one of its
// segments is still unanswered: it was listed before a late refusal of another one.
func TestSettlesOnlyUndecided(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *setup.Carrier) { c.OnAmbiguous = setup.AmbiguousAwaitReceipt })
	for _, as := range []recovery.Outcome{recovery.WasSent, recovery.WasFailed, recovery.WasCancelled} {
		b.cleared()
		m := b.begun(2)
		b.settle(settling.Settlement{Results: []core.Result{unanswered(m, 1), unanswered(m, 2)}})
		b.settle(settling.Settlement{Late: []settling.LateAnswer{throttledLate(m, 1, 2)}})
		b.exec(`UPDATE outbox SET due_at = now()`)
		b.claimedBy(8, m) // and it is submitted
		ids, err := recovery.SettleUnanswered(t.Context(), b.pool, b.d.core.Store.Messages, b.d.core.Webhooks, "lumitel",
			[]int64{m.Msg.ID}, as, setup.RefundFailed, unrecorded)
		if status, reason := b.status(m.Msg.ID); err != nil || len(ids) != 0 || status != sms.Pending {
			t.Errorf("outcome %d: %v settled, %v; it is %v %q while it is submitted", as, ids, err, status, reason)
		}
	}
}
