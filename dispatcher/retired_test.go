package dispatcher

import (
	"testing"
	"time"

	"intumwa/dispatcher/core"
	"intumwa/dispatcher/recovery"
	"intumwa/dispatcher/setup"
	"intumwa/messages/submission"
	"intumwa/sms"
)

// TestUnansweredOfRetired: what a retired carrier may have is listed, and can be settled. It can be sent again if
// another carrier takes over and this one has no segment of it; it then goes to the other.
func TestUnansweredOfRetired(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	carriers := []setup.Carrier{*b.d.core.Running()[0].Config(), {Name: "leo"}}
	if err := b.d.Reload(carriers); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		to    any // the carrier that takes over
		fates []fate
		sent  string // after it is sent again, its carrier; "": it is not sent
		as    recovery.Outcome
		end   string
	}{
		"sent to the next":       {to: "leo", fates: []fate{unanswered}, sent: "leo"},
		"a long one":             {to: "leo", fates: []fate{unanswered, unanswered}, sent: "leo"},
		"its carrier has a part": {to: "leo", fates: []fate{accepted("A"), unanswered}, as: recovery.WasSent, end: "sent "},
		"no other takes over":    {fates: []fate{unanswered}, as: recovery.WasCancelled, end: "failed cancelled"},
		"the carrier knows it not": {to: "leo", fates: []fate{unanswered}, sent: "-", as: recovery.WasFailed,
			end: "failed no_answer"},
	} {
		b := b.in(t)
		b.cleared()
		b.exec(`DELETE FROM retired_carriers`)
		m := b.begun(len(c.fates))
		b.by(m, c.fates...)
		b.exec(`INSERT INTO retired_carriers VALUES ('lumitel', $1)`, c.to)
		leave := func() {
			t.Helper()
			if err := b.d.recovery.LeaveRetired(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		listed := func() int {
			t.Helper()
			list, _, err := b.d.core.Store.Rerouting.Unanswered(t.Context(), "lumitel", 0, 10, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			return len(list)
		}
		leave()
		if n := listed(); n != 1 {
			t.Errorf("%s: %d are listed", name, n)
		}
		ids := []int64{m.Msg.ID}
		if c.sent != "-" {
			sent, err := recovery.SendUnanswered(t.Context(), b.pool, b.d.core.Store.Messages, "lumitel", ids, time.Hour, toAny,
				unrecorded)
			if err != nil || (len(sent) == 1) != (c.sent != "") {
				t.Errorf("%s: %v are sent again, %v", name, sent, err)
			}
			leave()
			if n := listed(); (n == 1) != (c.sent == "") {
				t.Errorf("%s: %d are listed after that", name, n)
			}
		}
		if c.end != "" {
			done, err := recovery.SettleUnanswered(t.Context(), b.pool, b.d.core.Store.Messages, b.d.core.Webhooks, "lumitel",
				ids, c.as, setup.RefundNever, unrecorded)
			status, reason := b.status(m.Msg.ID)
			if got := status.String() + " " + reason; err != nil || len(done) != 1 || got != c.end ||
				b.count(`SELECT count(*) FROM outbox`) != 0 {
				t.Errorf("%s: it is %s, %d rows of the outbox are left; %v", name, got, b.count(`SELECT count(*) FROM outbox`), err)
			}
			continue
		}
		next, err := b.d.core.Store.Outbox.Claim(t.Context(), 7, c.sent, ids, true)
		if err != nil || len(next) != 1 {
			t.Fatalf("%s: %s gets %d, %v", name, c.sent, len(next), err)
		}
		for n := range c.fates {
			if state := submission.StateOf(n+1, len(c.fates), next[0].Records); state != submission.Waiting {
				t.Errorf("%s: %s does not get segment %d, which is %d", name, c.sent, n+1, state)
			}
		}
		if status, _ := b.status(m.Msg.ID); status != sms.Pending {
			t.Errorf("%s: it is %v", name, status)
		}
	}
}

// TestReopenedMeanwhile: an operator who still takes messages away from a carrier learns that it is open again.
func TestReopenedMeanwhile(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if _, err := recovery.Evacuate(t.Context(), b.pool, b.d.core.Webhooks, setup.RefundNever, "lumitel", toAny,
		time.Second); err == nil || err.Error() != "lumitel is not retired any more" {
		t.Error(err)
	}
}

// TestFailoverAndRetired: a message fails over to no retired carrier. One of a retired carrier goes to the successor,
// not to a failover carrier, and does not come back while its first carrier is retired.
func TestFailoverAndRetired(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *setup.Carrier) { c.Failover, c.FailoverAfter = []string{"leo", "onatel"}, time.Minute })
	b.exec(`INSERT INTO dispatchers (id, name) VALUES (8, 'other')`)
	b.exec(`INSERT INTO links (name, carrier, state, "window", served_at, updated_at) VALUES
		('l1', 'lumitel', 'bound', 1, now() - interval '1 hour', now() - interval '1 hour'), ('leo-1', 'leo', 'bound', 1,
		now(), now()), ('onatel-1', 'onatel', 'bound', 1, now(), now())`)
	b.exec(`INSERT INTO leases (name, holder) VALUES ('link leo-1', 8), ('link onatel-1', 8)`)
	b.d.member.Heard.Store(-int64(time.Hour))
	m := b.begun(1)
	b.exec(`UPDATE outbox SET claimed_by = NULL`)
	own := *b.d.core.Running()[0].Config()
	if err := b.d.Reload([]setup.Carrier{own, {Name: "leo"}, {Name: "onatel"}, {Name: "econet"}}); err != nil {
		t.Fatal(err)
	}
	is := func(step, want string) {
		t.Helper()
		if n := b.count(`SELECT count(*) FROM outbox o JOIN messages m ON m.id = o.message_id WHERE o.message_id = $1
			AND o.carrier = $2 AND m.carrier = o.carrier`, m.Msg.ID, want); n != 1 {
			t.Errorf("%s: it is not at %s", step, want)
		}
	}
	round := func() {
		t.Helper()
		for _, task := range []func() error{func() error { return b.d.recovery.LeaveRetired(t.Context()) },
			func() error { return b.d.recovery.Failover(t.Context()) },
			func() error { return b.d.recovery.TakeBack(t.Context()) }} {
			if err := task(); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.exec(`INSERT INTO retired_carriers VALUES ('leo', NULL)`)
	round()
	is("leo is retired", "onatel")
	b.exec(`UPDATE links SET served_at = now(), updated_at = now() WHERE carrier = 'lumitel'`)
	b.exec(`INSERT INTO leases (name, holder) VALUES ('link l1', 8)`)
	b.exec(`INSERT INTO retired_carriers VALUES ('lumitel', 'econet')`)
	round()
	is("its first carrier is retired", "onatel")
	b.exec(`INSERT INTO retired_carriers VALUES ('onatel', NULL)`)
	round()
	is("the failover carrier is retired too", "econet")
	b.exec(`DELETE FROM leases WHERE name = 'link l1'`)
	b.exec(`UPDATE links SET served_at = now() - interval '1 hour', updated_at = now() - interval '1 hour'
		WHERE carrier = 'lumitel'`)
	b.exec(`UPDATE outbox SET carrier = 'lumitel'; UPDATE messages SET carrier = 'lumitel'; DELETE FROM retired_carriers
		WHERE carrier = 'onatel'`)
	round()
	is("what a request brings later", "econet")
	for carrier, want := range map[string]bool{"leo": false, "onatel": true, "lumitel": false} {
		if got, err := core.Serves(t.Context(), b.pool, carrier, time.Minute); err != nil || got != want {
			t.Errorf("%s serves: %t, %v", carrier, got, err)
		}
	}
}
