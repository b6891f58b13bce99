package dispatcher

import (
	"errors"
	"testing"
	"time"

	"intumwa/smpp"
)

// TestRests: a link that is given up again and again rests twice as long each time, up to five
// minutes; shortly where it was bound last; long after the last rest it begins anew.
func TestRests(t *testing.T) {
	var g givenUp
	now := time.Now()
	for i, want := range []time.Duration{1, 2, 4, 5, 5} {
		g.again(restFirst, false, now)
		if rest := g.until.Sub(now); rest != want*time.Minute {
			t.Errorf("rest %d lasts %v, want %d minutes", i, rest, want)
		}
		now = g.until.Add(10 * time.Second)
	}
	if g.again(restFirst, true, now); g.until.Sub(now) != 20*time.Second {
		t.Errorf("who had it bound last rests for %v", g.until.Sub(now))
	}
	if g.again(restFirst, false, now.Add(time.Hour)); g.rest != restFirst {
		t.Errorf("long after the last it rests for %v", g.rest)
	}
}

// TestGoesOnWithAttempts: who takes a link that was given up goes on with the attempts of who
// had it, bind by bind; where that died instead, it begins at once.
func TestGoesOnWithAttempts(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Carrier) { c.Links[0].Binds = 3 })
	b.listedWith() // takes l1
	m := b.d.member
	at := func() []smpp.Retry {
		t.Helper()
		if m.workers["l1"] == nil {
			t.Fatal("it has no worker")
		}
		return m.workers["l1"].binds.failing().retries
	}
	if r := at()[0]; r.Failures > 1 || r.In > time.Second {
		t.Errorf("it begins with %+v", r)
	}
	m.stop()
	b.exec(`DELETE FROM leases`)
	b.exec(`UPDATE links SET retries = '[{"Failures": 4, "In": 20000000000}, {"Failures": 7, "In": 30000000000}]'`)
	if err := m.heartbeat(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, want := range []smpp.Retry{{Failures: 4, In: 20 * time.Second}, {Failures: 7, In: 30 * time.Second}, {Failures: 7, In: 30 * time.Second}} {
		bind := m.workers["l1"].binds.all[i]
		for end := time.Now().Add(time.Minute); bind.Failing().Down == 0 && time.Now().Before(end); time.Sleep(time.Millisecond) { // it is about to begin
		}
		if r := bind.Failing().Retry; r.Failures != want.Failures || r.In > want.In || r.In < want.In-15*time.Second {
			t.Errorf("bind %d goes on with %+v, not with %+v", i+1, r, want)
		}
	}
	if err := m.heartbeat(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := b.count(`SELECT count(*) FROM links JOIN leases ON leases.name = 'link l1' WHERE retries::text = '[]' AND holder = $1`, m.id.Load()); n != 1 {
		t.Error("what it goes on with is there for the next, however long it has the link")
	}
}

// TestGivesUp: a link is given up when its worker has ended, with where its attempts have come
// to; it is left to a dispatcher that would take it, and taken again where there is none.
func TestGivesUp(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	other, _ := b.listedWith()
	m := b.d.member
	b.d.opts.GiveUpAfter, b.d.opts.RestFirst = time.Millisecond, time.Hour
	beat := func() {
		t.Helper()
		if err := errors.Join(m.renew(t.Context()), m.heartbeat(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	failed := func() {
		t.Helper()
		for end := time.Now().Add(time.Minute); !m.workers["l1"].binds.failing().resting; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("no attempt has failed")
			}
		}
	}
	failed()
	if beat(); m.workers["l1"].parts.Load() {
		t.Fatal("it is given up although nobody would take it")
	}
	b.exec(`UPDATE dispatchers SET links = '{l1}', rests = '{l1}' WHERE id = $1`, other)
	if beat(); m.workers["l1"].parts.Load() {
		t.Fatal("it is given up to one that has given it up")
	}
	b.exec(`UPDATE dispatchers SET rests = '{}' WHERE id = $1`, other)
	for beat(); !m.workers["l1"].parts.Load(); beat() { // an attempt may be under way
		failed()
	}
	worker := m.workers["l1"]
	worker.wait()
	if n := b.count(`SELECT count(*) FROM leases WHERE name = 'link l1' AND holder = $1`, m.id.Load()); n != 1 {
		t.Error("it was given up before its worker had ended")
	}
	beat()
	if n := b.count(`SELECT count(*) FROM links WHERE (retries -> 0 ->> 'Failures')::int > 0 AND json_array_length(retries) = 1 AND NOT EXISTS (SELECT FROM leases WHERE leases.name = 'link l1')`); n != 1 {
		t.Error("it is not given up, or without what its attempts have come to")
	}
	if n := b.count(`SELECT count(*) FROM dispatchers WHERE id = $1 AND links = '{l1}' AND rests = '{l1}'`, m.id.Load()); n != 1 {
		t.Error("the others do not know that it is left to them")
	}
	if beat(); m.workers["l1"] != nil {
		t.Error("it is taken again at once")
	}
	b.exec(`UPDATE dispatchers SET rests = '{l1}' WHERE id = $1`, other)
	if beat(); m.workers["l1"] == nil {
		t.Error("nobody takes it, and nor does this one")
	}
	if n := b.metric("intumwa_link_given_up_total"); n != 1 {
		t.Errorf("%v times given up", n)
	}
}

// TestMovedLink: a link that leaves one dispatcher's configuration and is in another's goes
// over to that one; one that is in nobody's leaves the list.
func TestMovedLink(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	other, _ := b.listedWith()
	m := b.d.member
	b.exec(`UPDATE dispatchers SET links = '{moved}' WHERE id = $1`, other)
	b.exec(`INSERT INTO links (name, carrier) VALUES ('moved', 'leo'), ('gone', 'leo')`)
	b.exec(`INSERT INTO leases (name, holder) VALUES ('link moved', $1), ('link gone', $1)`, m.id.Load())
	left := func() string {
		t.Helper()
		if err := m.heartbeat(t.Context()); err != nil {
			t.Fatal(err)
		}
		var s string
		if err := b.pool.QueryRow(t.Context(), `SELECT coalesce(string_agg(name || ' ' || (NOT EXISTS (SELECT FROM leases WHERE leases.name = 'link ' || links.name))::text, ' ' ORDER BY name), '') FROM links WHERE carrier = 'leo'`).Scan(&s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	m.since = time.Now()
	if s := left(); s != "gone false moved false" {
		t.Errorf("at the moment of the change: %s", s)
	}
	m.since = time.Now().Add(-time.Minute)
	if s := left(); s != "moved true" {
		t.Errorf("after it: %s", s)
	}
}
