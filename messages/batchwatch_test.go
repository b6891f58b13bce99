package messages_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"intumwa/messages"
	"intumwa/messages/lookup"
	"intumwa/sms"
)

// finished returns the batches that FinishedBatches finds for companies.
func (d *testStore) finished(companies ...int64) (found []messages.FinishedBatch) {
	d.Helper()
	d.tx(func(ctx context.Context, tx pgx.Tx) (err error) {
		found, err = messages.FinishedBatches(ctx, tx, companies)
		return err
	})
	return found
}

// TestFinishedBatches: a batch is found once, when its last message is final and no part is to come, however its
// messages ended, and only for companies that ask.
func TestFinishedBatches(t *testing.T) {
	d := newTestStore(t)
	batch := func(company int64, n, awaited int) (ulid.ULID, []int64) {
		t.Helper()
		b := &messages.Batch{ULID: ulid.Make(), CompanyID: company, UserID: 1, Kind: "bulk", Sender: "ACME", Recipients: n,
			Segments: n, Awaited: awaited}
		var list []*messages.Message
		for range n {
			list = append(list, d.compose(func(m *messages.Message) { m.CompanyID, m.Batch = company, b }))
		}
		return b.ULID, d.insert(list...)
	}
	none := func(when string, companies ...int64) {
		t.Helper()
		if got := d.finished(companies...); len(got) > 0 {
			t.Errorf("%s: %+v", when, got)
		}
	}
	_, old := batch(1, 1, 0)
	d.exec(`UPDATE batches SET created_at = now() - interval '11 minutes'`)
	d.exec(`UPDATE messages SET status = 1 WHERE id = ANY($1)`, old)
	none("a company begins to ask", 1, 2)
	one, ids := batch(1, 3, 0)
	parts, part := batch(1, 2, 2)
	_, others := batch(3, 1, 0)
	d.exec(`UPDATE messages SET status = 1 WHERE id = ANY($1)`, append(others, part...))
	none("messages are pending, and a part is to come", 1, 2)
	d.exec(`UPDATE messages SET status = 1 WHERE id = $1`, ids[2]) // the last one, which the row names
	none("others are pending", 1, 2)
	d.exec(`UPDATE messages SET status = 2, failure_reason = $2 WHERE id = $1`, ids[0], messages.ReasonCancelled)
	d.exec(`UPDATE messages SET status = 2, failure_reason = 'expired' WHERE id = $1`, ids[1])
	got := d.finished(1, 2)
	if len(got) != 1 || got[0].ULID != one || got[0].CompanyID != 1 || got[0].Recipients != 3 || got[0].Sent != 1 ||
		got[0].Failed != 2 || got[0].Cancelled != 1 || got[0].Number <= others[0] {
		t.Errorf("%+v", got)
	}
	none("it was found", 1, 2)
	d.exec(`UPDATE batches SET awaited = 0 WHERE ulid = $1`, [16]byte(parts)) // it was cancelled
	if got := d.finished(1, 2); len(got) != 1 || got[0].ULID != parts || got[0].Sent != 2 {
		t.Errorf("without its last part: %+v", got)
	}
	// The rows go when no transaction can bring an older batch any more; those of purged batches too.
	gone, _ := batch(2, 1, 0)
	none("a message is pending", 1, 2)
	d.exec(`DELETE FROM batches WHERE ulid = $1`, [16]byte(gone))
	d.exec(`UPDATE batch_watches SET created_at = now() - interval '11 minutes'`)
	none("later", 1, 2)
	none("later still", 1, 2)
	if n := d.count(`SELECT count(*) FROM batch_watches`); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	late, ids := batch(1, 1, 0)
	d.exec(`UPDATE messages SET status = 1 WHERE id = ANY($1)`, ids)
	if got := d.finished(1); len(got) != 1 || got[0].ULID != late {
		t.Errorf("a further one: %+v", got)
	}
	none("nobody asks")
	if n := d.count(`SELECT (SELECT count(*) FROM batch_watches) + (SELECT count(*) FROM batch_askers)`); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

// TestOutcomes: a company's final messages since a time, page by page.
func TestOutcomes(t *testing.T) {
	d := newTestStore(t)
	ids := d.pending(6)
	d.exec(`UPDATE messages SET status = 1, sent_at = now() WHERE id = ANY($1)`, []int64{ids[0], ids[3]})
	d.exec(`UPDATE messages SET status = 2, failed_at = now(), client_reference = 'r', cost_center = 'c' WHERE id = $1`,
		ids[4])
	d.exec(`UPDATE messages SET status = 1, sent_at = now() - interval '2 hours' WHERE id = $1`, ids[5])
	d.exec(`UPDATE messages SET company_id = 99 WHERE id = $1`, ids[3])
	var company int64
	if err := d.pool.QueryRow(t.Context(), `SELECT company_id FROM messages WHERE id = $1`, ids[0]).Scan(
		&company); err != nil {
		t.Fatal(err)
	}
	var all []lookup.Outcome
	last, pages := int64(0), 0
	for last < ids[5] {
		page, to, err := d.Outcomes(t.Context(), company, last, ids[5], time.Now().Add(-time.Hour), 2)
		if err != nil {
			t.Fatal(err)
		}
		if pages++; to <= last || len(page) > 2 {
			t.Fatalf("page %d: %v up to %d", pages, page, to)
		}
		all, last = append(all, page...), to
	}
	if len(all) != 2 || all[0].MessageID != ids[0] || all[0].Status != sms.Sent || all[1].MessageID != ids[4] ||
		all[1].Status != sms.Failed || all[1].Reference != "r" || all[1].CostCenter != "c" || all[1].At.IsZero() {
		t.Errorf("%+v", all)
	}
}
