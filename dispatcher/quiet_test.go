package dispatcher

import (
	"context"
	"testing"
	"time"

	"intumwa/messages"
	"intumwa/sms"
)

// TestQuietHoursReadTheOutboxOnce: when quiet hours begin, each row of the batches' lanes is read a bounded number of times until
// all that waits is put off, and none while they last; what comes to wait meanwhile is put off by the walk, which reads it anyway.
func TestQuietHoursReadTheOutboxOnce(t *testing.T) {
	b := newBench(t)
	now := time.Now().In(sms.Burundi)
	hours := func(from, to time.Duration) sms.QuietHours {
		t.Helper()
		q, err := sms.ParseQuietHours(now.Add(from).Format("15:04") + "-" + now.Add(to).Format("15:04"))
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	own := map[int64]sms.QuietHours{2: {}}
	b.d.opts.QuietCompanies = func(context.Context) (map[int64]sms.QuietHours, error) { return own, nil }
	const many, few = 3*messages.WalkRows + 1000, messages.WalkRows + 1000
	b.wait("lumitel", many)
	b.wait("gone", few)
	b.exec(`UPDATE outbox SET company_id = 2 WHERE carrier = 'gone'`)
	b.exec(`VACUUM ANALYZE outbox`)
	pass := func() (rows int) {
		t.Helper()
		before := b.outboxRowsRead()
		for deadline := time.Now().Add(5 * time.Minute); ; {
			if err := b.d.putOffQuiet(t.Context()); err != nil {
				t.Fatal(err)
			}
			if len(b.d.quiet.left) == 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("it does not come to the end")
			}
		}
		return b.outboxRowsRead() - before
	}
	putOff := func(company int) int {
		return b.count(`SELECT count(*) FROM outbox WHERE company_id = $1 AND due_at > now() AND pushed_at IS NULL`, company)
	}
	if rows := pass(); rows > 0 {
		t.Errorf("%d rows are read, and nobody has quiet hours", rows)
	}
	b.d.opts.QuietHours = hours(-time.Hour, 2*time.Hour)
	// A row is read to see it, and when it is locked and written.
	rows := pass()
	t.Logf("FIGURE %d rows read of %d that wait, as quiet hours begin", rows, many+few)
	if rows > 4*(many+few) {
		t.Errorf("%d rows are read of %d that wait", rows, many+few)
	}
	if n, others := putOff(1), putOff(2); n != many || others != 0 {
		t.Errorf("%d of %d are put off, and %d of a company that has none", n, many, others)
	}
	for range 10 {
		if rows := pass(); rows > 100 {
			t.Errorf("%d rows are read while quiet hours last", rows)
		}
	}
	if b.d.walk = newOutboxWalk(); b.d.putOffQuiet(t.Context()) != nil {
		t.Fatal("it does not say who has quiet hours")
	}
	b.wait("lumitel", 10)
	for range 5 { // it comes round
		b.walk()
	}
	if n := putOff(1); n != many+10 {
		t.Errorf("%d of %d are put off", n, many+10)
	}
	own[2] = hours(-time.Hour, 3*time.Hour)
	pass()
	if n := putOff(2); n != few {
		t.Errorf("%d of %d are put off when the company's own hours begin", n, few)
	}
}
