package dispatcher

import (
	"errors"
	"testing"
	"time"
)

// TestGivesUp: a link is given up after its worker has ended. It is left to a dispatcher
// that would take it, and taken again if there is none.
func TestGivesUp(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	other, _ := b.listedWith()
	m := b.d.member
	b.d.core.Opts.GiveUpAfter, b.d.core.Opts.GiveUpFor = time.Millisecond, time.Hour
	beat := func() {
		t.Helper()
		if err := errors.Join(m.Renew(t.Context()), m.Heartbeat(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	failed := func() {
		t.Helper()
		until(t, "an attempt has failed", func() bool {
			return m.Workers["l1"].Bind.Unreached() >= b.d.core.Opts.GiveUpAfter
		})
	}
	failed()
	if beat(); m.Workers["l1"].GivesUp.Load() {
		t.Fatal("it is given up although nobody would take it")
	}
	b.exec(`UPDATE dispatchers SET links = '{l1}', given_up = '{l1}' WHERE id = $1`, other)
	if beat(); m.Workers["l1"].GivesUp.Load() {
		t.Fatal("it is given up to one that has given it up")
	}
	b.exec(`UPDATE dispatchers SET given_up = '{}' WHERE id = $1`, other)
	if beat(); !m.Workers["l1"].GivesUp.Load() {
		t.Fatal("it is not given up")
	}
	worker := m.Workers["l1"]
	worker.Wait()
	if n := b.count(`SELECT count(*) FROM leases WHERE name = 'link l1' AND holder = $1`, m.ID.Load()); n != 1 {
		t.Error("it was given up before its worker had ended")
	}
	beat()
	if n := b.count(`SELECT count(*) FROM links WHERE state = 'down' AND NOT EXISTS (SELECT FROM leases
		WHERE leases.name = 'link l1')`); n != 1 {
		t.Error("it is not given up")
	}
	if n := b.count(`SELECT count(*) FROM dispatchers WHERE id = $1 AND links = '{l1}' AND given_up = '{l1}'`,
		m.ID.Load()); n != 1 {
		t.Error("the others do not know that it is left to them")
	}
	if beat(); m.Workers["l1"] != nil {
		t.Error("it is taken again at once")
	}
	b.exec(`UPDATE dispatchers SET given_up = '{l1}' WHERE id = $1`, other)
	if beat(); m.Workers["l1"] == nil {
		t.Error("nobody takes it, and nor does this one")
	}
	if n := b.metric("intumwa_link_given_up_total"); n != 1 {
		t.Errorf("%v times given up", n)
	}
}

// TestMovedLink: a link that moves to another dispatcher's configuration moves to that
// dispatcher; a link in no configuration is deleted.
func TestMovedLink(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	other, _ := b.listedWith()
	m := b.d.member
	b.exec(`UPDATE dispatchers SET links = '{moved}' WHERE id = $1`, other)
	b.exec(`INSERT INTO links (name, carrier) VALUES ('moved', 'leo'), ('gone', 'leo')`)
	b.exec(`INSERT INTO leases (name, holder) VALUES ('link moved', $1), ('link gone', $1)`, m.ID.Load())
	left := func() string {
		t.Helper()
		if err := m.Heartbeat(t.Context()); err != nil {
			t.Fatal(err)
		}
		var s string
		if err := b.pool.QueryRow(t.Context(), `SELECT coalesce(string_agg(name || ' ' || (NOT EXISTS (SELECT FROM leases
			WHERE leases.name = 'link ' || links.name))::text, ' ' ORDER BY name), '') FROM links WHERE carrier = 'leo'`).Scan(
			&s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	m.Since = time.Now()
	if s := left(); s != "gone false moved false" {
		t.Errorf("at the moment of the change: %s", s)
	}
	m.Since = time.Now().Add(-time.Minute)
	if s := left(); s != "moved true" {
		t.Errorf("after it: %s", s)
	}
}
