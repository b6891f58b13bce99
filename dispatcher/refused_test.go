package dispatcher

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/dispatcher/core"
	"intumwa/dispatcher/setup"
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
		if err := b.d.core.Finish(t.Context(), doing, find); err != nil {
			t.Fatal(err)
		}
	}
	for name, end := range map[string]func(*bench, *core.InFlight){
		"waits":    func(*bench, *core.InFlight) {},
		"accepted": func(b *bench, m *core.InFlight) { b.by(b.claim(m.Msg.ID, 1), accepted("A")) },
		"refused for good": func(b *bench, m *core.InFlight) {
			b.by(b.claim(m.Msg.ID, 1), ended(smpp.Rejected, smpp.StatusInvSrcAddr, nil))
		},
		"failed over, then accepted": func(b *bench, m *core.InFlight) {
			b.handedOver("leo", 1)
			b.exec(`UPDATE outbox SET carrier = 'lumitel'`)
			b.exec(`UPDATE messages SET carrier = 'lumitel'`)
			b.by(b.claim(m.Msg.ID, 1), accepted("A"))
		},
		"sent on": func(b *bench, m *core.InFlight) { b.by(b.claim(m.Msg.ID, 1), refused) },
		"died": func(b *bench, m *core.InFlight) {
			b.configure(func(c *setup.Carrier) { c.OnAmbiguous = setup.AmbiguousAwaitReceipt })
			b.claim(m.Msg.ID, 1)
			b.exec(`UPDATE outbox SET begun = true`)
			if err := b.d.recovery.Free(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
		"expired": func(b *bench, m *core.InFlight) {
			b.exec(`UPDATE outbox SET expires_at = now()`)
			finish(t, "expiring", func(tx pgx.Tx) ([]messages.Final, error) {
				return b.d.core.Store.Messages.Expired(t.Context(), tx, []int64{m.Msg.ID})
			})
		},
		"cancelled": func(b *bench, m *core.InFlight) {
			finish(t, "cancelling", func(tx pgx.Tx) ([]messages.Final, error) {
				return b.d.core.Store.Messages.Cancelled(t.Context(), tx, []int64{m.Msg.ID})
			})
		},
		"its carrier is retired": func(b *bench, m *core.InFlight) {
			b.exec(`INSERT INTO retired_carriers VALUES ('lumitel', NULL)`)
			if err := b.d.recovery.LeaveRetired(t.Context()); err != nil {
				t.Fatal(err)
			}
			b.exec(`DELETE FROM retired_carriers`)
		},
	} {
		b.cleared()
		b.configure(func(c *setup.Carrier) { c.OnAmbiguous = setup.AmbiguousResend })
		m := b.begun(1)
		b.by(m, ended(smpp.Rejected, smpp.Status(0x400), nil))
		b.exec(`UPDATE outbox SET due_at = now()`)
		end(b, m)
		r, err := b.d.core.Store.Lookup.ByULID(t.Context(), sms.CompanyID(1), m.Msg.ULID)
		if err != nil {
			t.Fatal(err)
		}
		h, err := b.d.core.Store.Lookup.HistoryOf(t.Context(), m.Msg.ID)
		if err != nil {
			t.Fatal(err)
		}
		var moments []lookup.Moment
		for _, moment := range lookup.Timeline(r, h) {
			if moment.Event == "refused" {
				moments = append(moments, moment)
			}
		}
		if len(moments) != 1 || moments[0].Detail != "0x00000400: a status of the carrier's own" ||
			time.Since(moments[0].At) > time.Minute {
			t.Errorf("%s: %v", name, moments)
		}
		if (h.Waiting != nil) != (name == "waits" || name == "sent on") {
			t.Errorf("%s: it waits: %t", name, h.Waiting != nil)
		}
	}
}
