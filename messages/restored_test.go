package messages_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/messages"
	"intumwa/messages/receipts"
	"intumwa/sms"
)

// TestTakePending: all messages of a carrier that were due by the moment are taken, claimed and scheduled ones
// included; later ones, held ones and the other carrier's stay.
func TestTakePending(t *testing.T) {
	d := newTestStore(t)
	ids := d.pending(7)
	d.claim(1, ids[0])
	if _, err := d.Begin(t.Context(), 1, []messages.Claim{d.claimOf(ids[0])}); err != nil {
		t.Fatal(err)
	}
	d.exec(`UPDATE outbox SET due_at = now() + interval '1 hour' WHERE message_id = $1`, ids[1])
	d.exec(`UPDATE outbox SET due_at = '9999-12-31T00:00:00Z' WHERE message_id = $1`, ids[2])
	d.exec(`UPDATE outbox SET carrier = 'leo' WHERE message_id = $1`, ids[3])
	d.exec(`WITH gone AS (DELETE FROM outbox WHERE message_id = ANY($1) RETURNING message_id, company_id, carrier, lane,
		expires_at)
		INSERT INTO scheduled (message_id, company_id, carrier, lane, expires_at, due_at)
		SELECT message_id, company_id, carrier, lane, expires_at, now() + CASE WHEN message_id = $2 THEN '1 hour'::interval
			ELSE '-1 minute' END FROM gone`, ids[4:6], ids[5])
	carriers, err := d.PendingCarriers(t.Context())
	if err != nil || !slices.Equal(carriers, []string{"leo", carrier}) {
		t.Errorf("something waits for %v, %v", carriers, err)
	}
	take := func(limit int) (taken []int64) {
		d.tx(func(ctx context.Context, tx pgx.Tx) error {
			list, err := d.TakePending(ctx, tx, carrier, time.Now(), limit)
			taken = idsOf(list)
			return err
		})
		return taken
	}
	var taken []int64
	for range 3 {
		taken = append(taken, take(2)...)
	}
	slices.Sort(taken)
	if want := []int64{ids[0], ids[4], ids[6]}; !slices.Equal(taken, want) {
		t.Errorf("taken: %v, want %v", taken, want)
	}
	if n := d.count(`SELECT (SELECT count(*) FROM outbox) + (SELECT count(*) FROM scheduled)`); n != 4 {
		t.Errorf("%d stay, want 4", n)
	}
}

// TestUnanswered: only messages that wait for an operator are listed; within their validity they can be sent again.
func TestUnanswered(t *testing.T) {
	d := newTestStore(t)
	ids := d.pending(5, segments(2))
	d.tx(func(ctx context.Context, tx pgx.Tx) error {
		taken, err := d.TakePending(ctx, tx, carrier, time.Now(), 10)
		if err != nil || len(taken) != 5 {
			t.Fatalf("%d taken, %v", len(taken), err)
		}
		var open []receipts.Segment
		for i, id := range ids {
			open = append(open, accepted(id, "A"+string(rune('a'+i)), segment(1, 2)),
				accepted(id, "", segment(2, 2), func(p *receipts.Segment) { p.Unanswered, p.Reference = true, uint16(i+1) }))
		}
		_, err = d.record(ctx, tx, open)
		return err
	})
	d.finish(messages.Final{MessageID: ids[1], Status: sms.Sent, At: time.Now()}) // decided
	d.tx(func(ctx context.Context, tx pgx.Tx) error {                             // sent again
		if err := receipts.Overrule(ctx, tx, carrier, ids[2:3]); err != nil {
			return err
		}
		return d.end(ctx, tx, messages.Rows{Carrier: carrier, Validity: time.Hour,
			Reenter: []messages.Reentry{{MessageID: ids[2]}}})
	})
	d.exec(`UPDATE segments SET key = 'answered' WHERE message_id = $1 AND segment = 2`, ids[3])
	d.exec(`UPDATE messages SET expire_at = now() WHERE id = $1`, ids[4])
	// first submit records, whose second ones were answered
	d.exec(`INSERT INTO segments (message_id, segment, total, carrier, link, key, submitted_at) SELECT id, n, 2, $2, 'l',
		'?77', now()
		FROM unnest($1::bigint[]) id, generate_series(1, 2) n`, []int64{ids[3]}, carrier)
	list := func(of string, after int64, limit int) (got []int64) {
		t.Helper()
		page, _, err := d.Unanswered(t.Context(), of, after, limit, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range page {
			got = append(got, u.ID)
		}
		return got
	}
	same(t, "unanswered", list("", 0, 10), []int64{ids[0], ids[4]})
	same(t, "unanswered, after the first", list(carrier, ids[0], 10), ids[4:])
	same(t, "unanswered of another carrier", list("leo", 0, 10), nil)
	d.exec(`INSERT INTO segments (message_id, segment, total, carrier, link, key, submitted_at) SELECT 1000000 + n, 1, 1,
		$1, 'l', '?9', now() FROM generate_series(1, 10005) n`, carrier)
	calls := 0
	for after := int64(0); calls == 0 || after != 0; calls++ { // decided ones, which one call does not read
		page, next, err := d.Unanswered(t.Context(), "leo", after, 10, time.Hour)
		if err != nil || len(page) > 0 || next != 0 && next <= after {
			t.Fatal(page, next, err)
		}
		after = next
	}
	if calls != 2 {
		t.Errorf("all submit records were read in %d calls, want 2", calls)
	}
	d.tx(func(ctx context.Context, tx pgx.Tx) error {
		open, err := receipts.WithoutAnswer(ctx, tx, ids)
		if err != nil || len(open) != 3 || !slices.Equal(open[ids[0]], []int{2}) { // including the decided one's
			t.Errorf("without an answer: %v, %v", open, err)
		}
		again, err := d.Sendable(ctx, tx, ids, time.Hour, nil)
		same(t, "to be sent again", again, []int64{ids[0], ids[3]})
		return err
	})
}
