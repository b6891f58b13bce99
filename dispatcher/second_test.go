package dispatcher

import (
	"errors"
	"testing"
	"time"

	"intumwa/dispatcher/core"
	"intumwa/dispatcher/links"
	"intumwa/dispatcher/profile"
	"intumwa/dispatcher/settling"
	"intumwa/dispatcher/setup"
	"intumwa/messages"
	"intumwa/messages/lookup"
	"intumwa/messages/submission"
	"intumwa/smpp"
	"intumwa/sms"
)

// newSecondBench returns a bench whose carrier has a serving second carrier, leo, and
// leo's worker.
func newSecondBench(t *testing.T, change ...func(*setup.Carrier)) (*bench, *links.Worker) {
	t.Helper()
	first := func(c *setup.Carrier) { c.SecondCarrier, c.SecondWithin = "leo", time.Minute }
	b := newBench(t, append([]func(*setup.Carrier){first}, change...)...)
	leo := setup.Carrier{Name: "leo", Profile: profile.Profile{IDFormat: profile.IDSame},
		Links: []setup.Link{
			{Options: smpp.Options{Name: "leo-1", Account: smpp.Account{Addresses: []string{"127.0.0.1:1"}, SystemID: "x"},
				Window: 10}}}}
	if err := b.d.Reload([]setup.Carrier{*b.d.core.Running()[0].Config(), leo}); err != nil {
		t.Fatal(err)
	}
	at := b.d.core.Running()[1]
	worker, err := b.d.newWorker(at, &at.Config().Links[0])
	if err != nil {
		t.Fatal(err)
	}
	b.exec(`INSERT INTO dispatchers (id, name) VALUES (1000000, 'leo''s')`) // keeps its link bound on a slow machine
	b.exec(`INSERT INTO links (name, carrier, state, "window", bound_by) VALUES ('leo-1', 'leo', 'bound', 1, 1000000)`)
	b.exec(`INSERT INTO leases (name, holder) VALUES ('link leo-1', 1000000)`)
	return b, worker
}

var refused = ended(smpp.Rejected, smpp.StatusInvDstAddr, nil)

// by settles the results of a message's segments, one by one.
func (b *bench) by(m *core.InFlight, fates ...fate) {
	b.Helper()
	for i, f := range fates {
		b.settle(settling.Settlement{Results: []core.Result{f(m, i+1)}})
	}
}

// reported settles receipts.
func (b *bench) reported(list ...settling.Arrival) {
	b.Helper()
	b.settle(settling.Settlement{Receipts: list})
}

var unanswered = ended(smpp.NoAnswer, 0, errors.New("gone"))

// late is the late acceptance of a segment that was given up.
func late(m *core.InFlight, segment, total int, id string) settling.LateAnswer {
	return settling.LateAnswer{Link: "l1", Whose: m.Msg.ID, Segment: segment, Total: total,
		Result: smpp.Result{Outcome: smpp.Accepted, MessageID: id}, At: time.Now()}
}

// again leaves a segment's first submit record unanswered, and claims the message for a second one.
func (b *bench) again(m *core.InFlight) *core.InFlight {
	b.Helper()
	b.by(m, unanswered)
	b.exec(`UPDATE outbox SET due_at = now()`)
	return b.claim(m.Msg.ID, 1)
}

// afterDeath gives a message back, lets another process submit it and die, and reclaims it.
func (b *bench) afterDeath(m *core.InFlight) *core.InFlight {
	b.Helper()
	b.by(m, ended(smpp.NotWritten, 0, nil))
	b.claimedBy(8, m)
	if err := b.d.recovery.Free(b.Context()); err != nil {
		b.Fatal(err)
	}
	return b.claim(m.Msg.ID, 1)
}

// TestServes: a carrier serves when one of its links is bound, not paused and not broken, or
// was just taken over by another process.
func TestServes(t *testing.T) {
	t.Parallel()
	b, _ := newSecondBench(t)
	for _, c := range []struct {
		name, change string
		serves       bool
	}{
		{"bound", ``, true},
		{"it has just dropped", `UPDATE links SET state = 'connecting', since = now()`, false},
		{"another process has just taken it", `UPDATE links SET state = 'connecting', since = now(), bound_by = 8`, true},
		{"another process has taken it, and has not bound it",
			`UPDATE links SET state = 'connecting', since = now() - interval '1 minute', bound_by = 8`, false},
		{"another process has just taken it, and it is paused",
			`UPDATE links SET state = 'connecting', since = now(), bound_by = 8, paused = true`, false},
		{"paused", `UPDATE links SET paused = true`, false},
		{"it refuses everything", `UPDATE links SET broken = true`, false},
		{"its process has died", `DELETE FROM dispatchers WHERE id = 1000000`, false},
		{"another of its links is paused", `INSERT INTO links (name, carrier, state, "window", paused)
			VALUES ('leo-2', 'leo', 'bound', 1, true)`, true},
	} {
		tx, err := b.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), c.change); err != nil {
			t.Fatal(err)
		}
		if serves, err := core.Serves(t.Context(), tx, "leo", b.d.core.Opts.DeadAfter); err != nil || serves != c.serves {
			t.Errorf("%s: it serves: %t, %v", c.name, serves, err)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSecondCarrier: when the settler's results and records let a second carrier take a
// message. submission.TestMayGoElsewhere and TestDecide cover the rules,
// messages.TestGiveToSecond the state of the submit records and the claim.
func TestSecondCarrier(t *testing.T) {
	t.Parallel()
	b, _ := newSecondBench(t)
	plain := *b.s.Carrier.Config()
	for _, c := range []struct {
		name   string
		do     func(b *bench, m *core.InFlight)
		sentOn bool
		reason string // of failure, otherwise
		change func(*setup.Carrier)
	}{
		{name: "refused", sentOn: true, do: func(b *bench, m *core.InFlight) { b.by(m, refused) }},
		{name: "refused by a status of its own", sentOn: true,
			change: func(c *setup.Carrier) { c.Classes = map[smpp.Status]smpp.Class{0x401: smpp.ClassUnroutable} },
			do:     func(b *bench, m *core.InFlight) { b.by(m, ended(smpp.Rejected, 0x401, nil)) }},
		{name: "a process died when it submitted it", reason: "ESME_RINVDSTADR",
			do: func(b *bench, m *core.InFlight) { b.by(b.afterDeath(m), refused) }},
		{name: "the second does not serve", reason: "ESME_RINVDSTADR", do: func(b *bench, m *core.InFlight) {
			b.exec(`UPDATE links SET paused = true WHERE carrier = 'leo'`)
			b.by(m, refused)
		}},
		{name: "its sender is not registered with the second", reason: "ESME_RINVDSTADR",
			do: func(b *bench, m *core.InFlight) {
				b.exec(`INSERT INTO sender_carriers (sender_id, company_id, carrier, state) SELECT id, company_id, 'leo', 'sent'
				FROM senders`)
				b.by(m, refused)
				b.exec(`DELETE FROM sender_carriers`)
			}},
		{name: "its time is over", reason: "ESME_RINVDSTADR", do: func(b *bench, m *core.InFlight) {
			b.exec(`UPDATE outbox SET expires_at = now()`)
			b.by(m, refused)
		}},
		{name: "undelivered", sentOn: true, do: func(b *bench, m *core.InFlight) {
			b.by(m, accepted("a"))
			b.reported(b.receipt("a", "UNDELIV"))
		}},
		{name: "undelivered, with its answer", sentOn: true, do: func(b *bench, m *core.InFlight) {
			b.settle(settling.Settlement{Results: []core.Result{accepted("a")(m, 1)},
				Receipts: []settling.Arrival{b.receipt("a", "UNDELIV")}})
		}},
		{name: "undelivered, ahead of its answer", sentOn: true, do: func(b *bench, m *core.InFlight) {
			b.reported(b.receipt("a", "UNDELIV"))
			b.by(m, accepted("a"))
		}},
		{name: "undelivered late", reason: "UNDELIV", do: func(b *bench, m *core.InFlight) {
			b.by(m, accepted("a"))
			b.exec(`UPDATE segments SET submitted_at = now() - interval '2 minutes'`)
			b.reported(b.receipt("a", "UNDELIV"))
		}},
		{name: "only refusals count", reason: "UNDELIV", change: func(c *setup.Carrier) { c.SecondWithin = 0 },
			do: func(b *bench, m *core.InFlight) {
				b.by(m, accepted("a"))
				b.reported(b.receipt("a", "UNDELIV"))
			}},
		// The first submit record's answer is late; the second submit record is in flight and may arrive.
		{name: "undelivered, a second submit record in flight", reason: "UNDELIV", do: func(b *bench, m *core.InFlight) {
			second := b.again(m)
			b.settle(settling.Settlement{Late: []settling.LateAnswer{late(m, 1, 1, "a")},
				Receipts: []settling.Arrival{b.receipt("a", "UNDELIV")}})
			b.by(second, accepted("b"))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := b.in(t)
			b.cleared()
			b.exec(`UPDATE links SET paused = false`)
			conf := plain
			if c.change != nil {
				c.change(&conf)
			}
			b.s.Carrier.Conf.Store(&conf)
			counted := b.metric("intumwa_messages_sent_on_total")
			m := b.begun(1)
			expires := b.count(`SELECT extract(epoch FROM expires_at)::bigint FROM outbox`)
			c.do(b, m)
			b.clean()
			status, reason := b.status(m.Msg.ID)
			waits := b.count(`SELECT count(*) FROM outbox o JOIN messages m ON m.id = o.message_id AND m.carrier = o.carrier
				WHERE o.carrier = 'leo' AND claimed_by IS NULL AND pushed_at IS NULL AND attempts = 0 AND due_at <= now()`)
			if c.sentOn {
				if status != sms.Pending || waits != 1 || b.count(`SELECT count(*) FROM webhook_deliveries`) != 0 {
					t.Fatalf("it is %v %q, %d wait for the second carrier", status, reason, waits)
				}
				if got := b.metric("intumwa_messages_sent_on_total") - counted; got != 1 {
					t.Errorf("%v are counted", got)
				}
				if got := b.count(`SELECT extract(epoch FROM expires_at)::bigint FROM outbox`); got < expires-5 {
					t.Errorf("its time ends at %d, it was %d", got, expires)
				}
				return
			}
			if status != sms.Failed || reason != c.reason || waits != 0 || b.count(`SELECT count(*) FROM outbox`) != 0 {
				t.Errorf("it is %v %q, %d wait for the second carrier; want failed, %q", status, reason, waits, c.reason)
			}
		})
	}
}

// TestSecondCarrierAgain: messages that a second carrier took in a transaction whose COMMIT was not answered stay with
// it when the settlement is repeated, even if this process has claimed them for that carrier since.
func TestSecondCarrierAgain(t *testing.T) {
	t.Parallel()
	b, _ := newSecondBench(t)
	for name, of := range map[string]fate{"refused": refused, "undelivered, with its answer": accepted("a")} {
		t.Run(name, func(t *testing.T) {
			b := b.in(t)
			b.cleared()
			m := b.begun(1)
			b.worker.Open.Add(1)
			if err := b.worker.Slots.Take(t.Context()); err != nil {
				t.Fatal(err)
			}
			same := inHand(b.worker, m.Msg, 1)
			w := settling.Settlement{Results: []core.Result{of(m, 1)}}
			if name != "refused" {
				w.Receipts = []settling.Arrival{b.receipt("a", "UNDELIV")}
			}
			b.settle(w)
			if name == "refused" {
				if claimed, err := b.d.core.Store.Outbox.Claim(t.Context(), 7, "leo", []int64{m.Msg.ID}, false); err != nil ||
					len(claimed) != 1 {
					t.Fatalf("%d claimed, %v", len(claimed), err)
				}
			}
			b.settle(settling.Settlement{Results: []core.Result{of(same, 1)}, Again: true})
			if status, reason := b.status(m.Msg.ID); status != sms.Pending {
				t.Errorf("it is %v %q", status, reason)
			}
			if n := b.count(`SELECT count(*) FROM outbox WHERE carrier = 'leo'`); n != 1 {
				t.Error("it waits for the second carrier no more")
			}
			b.clean()
		})
	}
}

// TestSecondCarrierDecides: the second carrier's result decides the message. The
// first one's later receipts do not count, and no third carrier is tried.
func TestSecondCarrierDecides(t *testing.T) {
	t.Parallel()
	b, worker := newSecondBench(t)
	b.exec(`INSERT INTO links (name, carrier) VALUES ('l1', 'lumitel')`)
	for _, c := range []struct {
		name   string
		second []fate
		states []string // of the receipts
		status sms.Status
		reason string
	}{
		{"delivered", []fate{accepted("x"), accepted("y")}, []string{"DELIVRD", "DELIVRD"}, sms.Sent, ""},
		{"one to come", []fate{accepted("x"), accepted("y")}, []string{"DELIVRD"}, sms.Pending, ""},
		{"undelivered there too", []fate{accepted("x"), accepted("y")}, []string{"UNDELIV", "UNDELIV"}, sms.Failed,
			"UNDELIV"},
		{"refused there too", []fate{refused, refused}, nil, sms.Failed, "ESME_RINVDSTADR"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := b.in(t)
			b.cleared()
			m := b.begun(2)
			b.by(m, accepted("a"), accepted("b"))
			b.reported(b.receipt("a", "UNDELIV"), b.receipt("b", "UNDELIV"))
			b.clean()
			first := b.s

			// leo's own second carrier is the first one: it is not tried again.
			conf := *worker.Carrier.Config()
			conf.SecondCarrier, conf.SecondWithin = "lumitel", time.Minute
			worker.Carrier.Conf.Store(&conf)
			var next *core.InFlight
			for range 2 { // temporarily refused and claimed again: it has none of the first carrier's submit records
				claimed, err := b.d.core.Store.Outbox.Claim(t.Context(), 7, "leo", []int64{m.Msg.ID}, false)
				if err != nil || len(claimed) != 1 || submission.MayHave(claimed[0].Records) {
					t.Fatalf("%+v, %v", claimed, err)
				}
				next = inHand(worker, claimed[0], 2)
				worker.Open.Add(1)
				for range 2 {
					if err := worker.Slots.Take(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				b.d.core.InFlight.Add(next)
				if claimed[0].Attempt > 1 {
					break
				}
				b.s = worker.Settler
				b.by(next, ended(smpp.Rejected, smpp.StatusThrottled, nil), ended(smpp.NotWritten, 0, nil))
				b.exec(`UPDATE outbox SET due_at = now()`)
			}
			b.by(next, c.second...)
			for i, state := range c.states {
				r := b.receipt([]string{"x", "y"}[i], state)
				r.Link = "leo-1"
				b.reported(r)
			}
			if status, reason := b.status(m.Msg.ID); status != c.status || reason != c.reason {
				t.Errorf("it is %v %q, want %v %q", status, reason, c.status, c.reason)
			}
			b.s = first
			b.reported(b.receipt("a", "DELIVRD")) // a later receipt of the first carrier
			if status, reason := b.status(m.Msg.ID); status != c.status || reason != c.reason {
				t.Errorf("by the first one's word it is %v %q, want %v %q", status, reason, c.status, c.reason)
			}
			if n := b.count(`SELECT count(*) FROM receipts WHERE outcome = 'contradiction'`); n != 1 {
				t.Errorf("%d contradictions are kept", n)
			}
			want := 0
			if c.status.Final() {
				want = 1
			}
			if n := b.count(`SELECT count(*) FROM webhook_deliveries`); n != want {
				t.Errorf("%d webhooks, want %d", n, want)
			}
			if n := b.count(`SELECT count(*) FROM ledger WHERE kind = 'send' AND ref = (SELECT ulid FROM messages)`); n != 1 {
				t.Errorf("it was charged %d times", n)
			}
			h, err := b.d.core.Store.Lookup.HistoryOf(t.Context(), m.Msg.ID)
			if err != nil || h.Second == nil || h.Second.From != "lumitel" || h.Second.To != "leo" ||
				h.Second.Reason != "UNDELIV" {
				t.Errorf("its history: %+v, %v", h.Second, err)
			}
			told := 0
			for _, moment := range lookup.Timeline(lookup.Record{}, h) {
				if moment.Event == "sent_on" {
					told++
				}
			}
			if told != 1 {
				t.Errorf("its timeline tells of %d", told)
			}
		})
	}
}

// claimedBy lets another process claim a message and submit it.
func (b *bench) claimedBy(dispatcher int64, m *core.InFlight) {
	b.Helper()
	claimed, err := b.d.core.Store.Outbox.Claim(b.Context(), dispatcher, "lumitel", []int64{m.Msg.ID},
		b.s.Carrier.Config().Marks())
	if err != nil || len(claimed) != 1 {
		b.Fatalf("%d claimed, %v", len(claimed), err)
	}
	if begun, err := b.d.core.Store.Outbox.Begin(b.Context(), dispatcher,
		[]messages.Claim{claimed[0].Claim()}); err != nil || len(begun) != 1 {
		b.Fatalf("%v begun, %v", begun, err)
	}
}
