package dispatcher

import (
	"testing"
	"time"

	"intumwa/dispatcher/setup"
)

// TestFailoverBySender: a message goes to the first failover carrier that serves and where its sender works. One whose
// sender works at none of them stays, as do those of a carrier that requires a registration since a reload. A sender
// that works again lets it go.
func TestFailoverBySender(t *testing.T) {
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
	for _, step := range []struct {
		leo, onatel string // recorded states; "": none
		required    bool   // by leo
		want        string // the carrier that has it
	}{
		{"", "", false, "leo"},
		{"approved", "refused", true, "leo"},
		{"refused", "", false, "onatel"},
		{"", "approved", true, "onatel"},
		{"", "sent", true, "lumitel"},
		{"requested", "refused", false, "lumitel"},
		{"not_needed", "refused", true, "leo"},
	} {
		b.exec(`UPDATE outbox SET carrier = 'lumitel', original_carrier = NULL`)
		b.exec(`DELETE FROM sender_carriers`)
		b.exec(`INSERT INTO sender_carriers (sender_id, company_id, carrier, state) SELECT s.id, s.company_id, c.carrier,
			c.state FROM senders s, (VALUES ('leo', $1), ('onatel', $2)) c(carrier, state) WHERE c.state <> ''`,
			step.leo, step.onatel)
		own := *b.d.core.Running()[0].Config()
		if err := b.d.Reload([]setup.Carrier{own, {Name: "leo", Registration: step.required}, {Name: "onatel"}}); err != nil {
			t.Fatal(err)
		}
		for range 2 { // another round changes nothing
			if err := b.d.recovery.Failover(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if n := b.count(`SELECT count(*) FROM outbox WHERE message_id = $1 AND carrier = $2`, m.Msg.ID, step.want); n != 1 {
			t.Errorf("%+v: it is elsewhere", step)
		}
	}
}
