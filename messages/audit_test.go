package messages_test

import (
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"intumwa/messages"
	"intumwa/messages/receipts"
	"intumwa/messages/statistics"
	"intumwa/sms"
)

// paid writes the ledger row of a request.
func (d *testStore) paid(ref ulid.ULID, company, amount int64) {
	d.Helper()
	d.exec(`INSERT INTO ledger (company_id, kind, amount, balance_after, ref) VALUES ($1, 'send', $2, 0, $3)`, company,
		-amount, [16]byte(ref))
}

// TestAudit: no fault at first; then each fault is counted.
func TestAudit(t *testing.T) {
	type fault struct {
		name string
		make func(d *testStore, paidFor *messages.Message, id int64)
		want statistics.Audit
	}
	faults := []fault{
		{"nothing", func(*testStore, *messages.Message, int64) {}, statistics.Audit{}},
		{"an unpaid message", func(d *testStore, _ *messages.Message, _ int64) { d.pending(2) }, statistics.Audit{Unpaid: 2}},
		{"a message paid by another", func(d *testStore, _ *messages.Message, _ int64) {
			m := d.compose()
			d.insert(m)
			d.paid(m.ULID, 2, 1)
		}, statistics.Audit{Unpaid: 1, Unrecorded: 1}},
		{"a wrong amount", func(d *testStore, _ *messages.Message, _ int64) {
			m := d.compose(segments(2))
			d.insert(m)
			d.paid(m.ULID, 1, 1)
		}, statistics.Audit{Unpaid: 1}},
		{"a debit for nothing", func(d *testStore, _ *messages.Message, _ int64) { d.paid(ulid.Make(), 1, 1) },
			statistics.Audit{Unrecorded: 1}},
		{"a batch that lost a message", func(d *testStore, _ *messages.Message, _ int64) {
			d.exec(`DELETE FROM outbox WHERE message_id = (SELECT max(id) FROM messages)`)
			d.exec(`DELETE FROM messages WHERE id = (SELECT max(id) FROM messages)`)
		}, statistics.Audit{Unpaid: 1}},
		{"pending without a task", func(d *testStore, _ *messages.Message, id int64) {
			d.exec(`DELETE FROM outbox WHERE message_id = $1`, id)
		}, statistics.Audit{StuckPending: 1}},
		{"with a carrier for too long", func(d *testStore, _ *messages.Message, id int64) {
			d.settle([]receipts.Segment{accepted(id, "x")})
			d.exec(`DELETE FROM outbox WHERE message_id = $1`, id)
			d.exec(`UPDATE messages SET created_at = now() - interval '3 hours' WHERE id = $1`, id)
		}, statistics.Audit{StuckPending: 1}},
		{"final and in the outbox", func(d *testStore, _ *messages.Message, id int64) {
			d.finish(messages.Final{MessageID: id, Status: sms.Sent, At: time.Now()})
		}, statistics.Audit{OrphanQueue: 1}},
		{"in the outbox and nowhere else", func(d *testStore, _ *messages.Message, _ int64) {
			d.exec(`INSERT INTO outbox (message_id, company_id, carrier, lane, expires_at) VALUES (999, 1, 'x', 0, now())`)
		}, statistics.Audit{OrphanQueue: 1}},
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			d := newHotStore(t)
			single := d.compose(segments(3))
			id := d.insert(single)[0]
			d.paid(single.ULID, 1, 3)
			test := d.compose(func(m *messages.Message) { m.Test = true })
			code := d.compose(func(m *messages.Message) { m.CompanyID = 0 })
			carried := d.compose()
			atCarrier := d.insert(test, code, carried)[2]
			d.paid(carried.ULID, 1, 1)
			d.settle([]receipts.Segment{accepted(atCarrier, "c")})
			d.exec(`DELETE FROM outbox WHERE message_id = $1`, atCarrier)
			b := &messages.Batch{ULID: ulid.Make(), CompanyID: 1, UserID: 1, Kind: "bulk", Sender: "DEMO", Recipients: 2,
				Segments: 3}
			in := func(m *messages.Message) { m.Batch = b }
			d.insert(d.compose(in, segments(2)), d.compose(in))
			d.paid(b.ULID, 1, 3)

			f.make(d, single, id)
			got, err := d.Audit(t.Context(), 2*time.Hour)
			if err != nil || got != f.want {
				t.Errorf("%+v, %v; want %+v", got, err, f.want)
			}
		})
	}
}
