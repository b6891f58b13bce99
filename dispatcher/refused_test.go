package dispatcher

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/messages"
	"intumwa/messages/lookup"
	"intumwa/smpp"
	"intumwa/sms"
)

// TestRefusalIsKept: the timeline of a message shows why a carrier last refused it for now, whatever became of it.
func TestRefusalIsKept(t *testing.T) {
	t.Parallel()
	b, _ := newSecondBench(t)
	finish := func(t *testing.T, doing string, find func(pgx.Tx) ([]messages.Final, error)) {
		t.Helper()
		if err := b.d.finish(t.Context(), doing, find); err != nil {
			t.Fatal(err)
		}
	}
	for name, end := range map[string]func(*bench, *inFlight){
		"waits":    func(*bench, *inFlight) {},
		"accepted": func(b *bench, m *inFlight) { b.by(b.claim(m.msg.ID, 1), accepted("A")) },
		"refused for good": func(b *bench, m *inFlight) {
			b.by(b.claim(m.msg.ID, 1), ended(smpp.Rejected, smpp.StatusInvSrcAddr, nil))
		},
		"failed over, then accepted": func(b *bench, m *inFlight) {
			b.handedOver("leo", 1)
			b.exec(`UPDATE outbox SET carrier = 'lumitel'`)
			b.exec(`UPDATE messages SET carrier = 'lumitel'`)
			b.by(b.claim(m.msg.ID, 1), accepted("A"))
		},
		"sent on": func(b *bench, m *inFlight) { b.by(b.claim(m.msg.ID, 1), refused) },
		"died": func(b *bench, m *inFlight) {
			b.configure(func(c *Carrier) { c.OnAmbiguous = AmbiguousHold })
			b.claim(m.msg.ID, 1)
			b.exec(`UPDATE outbox SET begun = true`)
			if err := b.d.free(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
		"expired": func(b *bench, m *inFlight) {
			b.exec(`UPDATE outbox SET expires_at = now()`)
			finish(t, "expiring", func(tx pgx.Tx) ([]messages.Final, error) {
				return b.d.store.messages.Expired(t.Context(), tx, []int64{m.msg.ID})
			})
		},
		"cancelled": func(b *bench, m *inFlight) {
			finish(t, "cancelling", func(tx pgx.Tx) ([]messages.Final, error) {
				return b.d.store.messages.Cancelled(t.Context(), tx, []int64{m.msg.ID})
			})
		},
		"its carrier is retired": func(b *bench, m *inFlight) {
			b.exec(`INSERT INTO retired_carriers VALUES ('lumitel', NULL)`)
			if err := b.d.leaveRetired(t.Context()); err != nil {
				t.Fatal(err)
			}
			b.exec(`DELETE FROM retired_carriers`)
		},
	} {
		b.cleared()
		b.configure(func(c *Carrier) { c.OnAmbiguous = AmbiguousResend })
		m := b.begun(1)
		b.by(m, ended(smpp.Rejected, smpp.Status(0x400), nil))
		b.exec(`UPDATE outbox SET due_at = now()`)
		end(b, m)
		r, err := b.d.store.lookup.ByULID(t.Context(), sms.CompanyID(1), m.msg.ULID)
		if err != nil {
			t.Fatal(err)
		}
		h, err := b.d.store.lookup.HistoryOf(t.Context(), m.msg.ID)
		if err != nil {
			t.Fatal(err)
		}
		var moments []lookup.Moment
		for _, moment := range lookup.Timeline(r, h) {
			if moment.Event == "refused" {
				moments = append(moments, moment)
			}
		}
		if len(moments) != 1 || moments[0].Detail != "0x00000400: a status of the carrier's own" || time.Since(moments[0].At) > time.Minute {
			t.Errorf("%s: %v", name, moments)
		}
		if (h.Waiting != nil) != (name == "waits" || name == "sent on") {
			t.Errorf("%s: it waits: %t", name, h.Waiting != nil)
		}
	}
}
