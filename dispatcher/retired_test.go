package dispatcher

import (
	"testing"
	"time"
)

// TestFailoverAndRetired: a message fails over to no retired carrier. One of a retired carrier goes to the successor, not
// to a failover carrier, and does not come back while its first carrier is retired.
func TestFailoverAndRetired(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Carrier) { c.Failover, c.FailoverAfter = []string{"leo", "onatel"}, time.Minute })
	b.exec(`INSERT INTO dispatchers (id, name) VALUES (8, 'other')`)
	b.exec(`INSERT INTO links (name, carrier, state, "window", served_at, updated_at) VALUES
		('l1', 'lumitel', 'bound', 1, now() - interval '1 hour', now() - interval '1 hour'), ('leo-1', 'leo', 'bound', 1, now(), now()), ('onatel-1', 'onatel', 'bound', 1, now(), now())`)
	b.exec(`INSERT INTO leases (name, holder) VALUES ('link leo-1', 8), ('link onatel-1', 8)`)
	b.d.member.heard.Store(-int64(time.Hour))
	m := b.begun(1)
	b.exec(`UPDATE outbox SET claimed_by = NULL`)
	own := *b.d.running()[0].config()
	if err := b.d.Reload([]Carrier{own, {Name: "leo"}, {Name: "onatel"}, {Name: "econet"}}); err != nil {
		t.Fatal(err)
	}
	is := func(step, want string) {
		t.Helper()
		if n := b.count(`SELECT count(*) FROM outbox o JOIN messages m ON m.id = o.message_id WHERE o.message_id = $1 AND o.carrier = $2 AND m.carrier = o.carrier`, m.msg.ID, want); n != 1 {
			t.Errorf("%s: it is not at %s", step, want)
		}
	}
	round := func() {
		t.Helper()
		for _, task := range []func() error{func() error { return b.d.leaveRetired(t.Context()) }, func() error { return b.d.failover(t.Context()) }, func() error { return b.d.takeBack(t.Context()) }} {
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
	b.exec(`UPDATE links SET served_at = now() - interval '1 hour', updated_at = now() - interval '1 hour' WHERE carrier = 'lumitel'`)
	b.exec(`UPDATE outbox SET carrier = 'lumitel'; UPDATE messages SET carrier = 'lumitel'; DELETE FROM retired_carriers WHERE carrier = 'onatel'`)
	round()
	is("what a request brings later", "econet")
	for carrier, want := range map[string]bool{"leo": false, "onatel": true, "lumitel": false} {
		if got, err := serves(t.Context(), b.pool, carrier, time.Minute); err != nil || got != want {
			t.Errorf("%s serves: %t, %v", carrier, got, err)
		}
	}
}
