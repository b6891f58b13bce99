package messages_test

import (
	"testing"
	"time"

	"intumwa/messages"
	"intumwa/messages/rerouting"
)

// TestAffected: however many messages wait, 10,000 are counted, and the result says that there are more. What the
// carrier may have was counted in the background.
func TestAffected(t *testing.T) {
	d := newTestStore(t)
	same := func(what string, got, want rerouting.Sum) {
		t.Helper()
		if got.Messages != want.Messages || got.Segments != want.Segments || got.Companies != want.Companies ||
			got.Credits != want.Credits || got.More != want.More {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	affected := func(to rerouting.To) rerouting.Affected {
		t.Helper()
		a, err := d.Affected(t.Context(), carrier, to)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	d.claim(1, d.pending(1)...)
	d.pending(1, func(m *messages.Message) { m.SendAt, m.Scheduled = time.Now().Add(time.Hour), true })
	ids := d.pending(1, segments(2))
	a := affected(rerouting.To{Carrier: "leo", Registration: true})
	same("waiting", a.Waiting, rerouting.Sum{Messages: 1, Segments: 2, Companies: 1, Credits: 2})
	same("scheduled", a.Scheduled, rerouting.Sum{Messages: 1, Segments: 1, Companies: 1, Credits: 1})
	same("in hand", a.InHand, rerouting.Sum{Messages: 1, Segments: 1, Companies: 1, Credits: 1})
	same("leaving", a.Leaving, rerouting.Sum{Messages: 2, Segments: 3, Companies: 1, Credits: 3})
	same("unregistered", a.Unregistered, a.Leaving)
	if a = affected(rerouting.To{}); a.Unregistered.Messages > 0 || a.AtCarrier.CountedAt != nil {
		t.Errorf("unregistered at no carrier, and counted: %+v", a)
	}

	d.exec(`INSERT INTO messages OVERRIDING SYSTEM VALUE SELECT r.* FROM generate_series(1000, 11999) n
		JOIN messages m ON m.id = $1
		CROSS JOIN LATERAL jsonb_populate_record(m, jsonb_build_object('id', n, 'ulid', md5(n::text)::uuid, 'test',
		n % 2 = 0)) r`, ids[0])
	d.exec(`INSERT INTO outbox (message_id, company_id, carrier, lane, expires_at) SELECT id, company_id, carrier, 1,
		now() + interval '1 hour' FROM messages WHERE id >= 1000`)
	d.exec(`INSERT INTO segments (message_id, segment, total, carrier, link, key, submitted_at) SELECT id, 1, 2, carrier,
		'l', id::text, now() FROM messages WHERE id BETWEEN 1000 AND 1999`)
	d.tallied(true)
	a = affected(rerouting.To{})
	same("the first 10,000 rows, in part at the carrier", a.Waiting,
		rerouting.Sum{Messages: 8999, Segments: 17998, Companies: 1, Credits: 9000, More: true})
	same("leaving", a.Leaving, rerouting.Sum{Messages: 9000, Segments: 17999, Companies: 1, Credits: 9001, More: true})
	same("at the carrier", a.AtCarrier, rerouting.Sum{Messages: 1000, Segments: 2000, Companies: 1, Credits: 1000})
	if a.AtCarrier.CountedAt == nil {
		t.Error("nothing says when the messages at the carrier were counted")
	}
}
