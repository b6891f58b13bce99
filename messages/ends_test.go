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

// TestPutBack: a message that was refused late and temporarily is sent again: once, within its validity, with all
// segments that the carrier does not have.
func TestPutBack(t *testing.T) {
	d := newTestStore(t)
	ids := d.pending(3, segments(2))
	claimed := d.claim(1, ids...)
	d.tx(func(ctx context.Context, tx pgx.Tx) error {
		var segments []receipts.Segment
		for _, id := range ids {
			segments = append(segments, accepted(id, "A", segment(1, 2)), accepted(id, "", segment(2, 2), func(p *receipts.Segment) { p.Unanswered, p.Reference = true, 9 }))
		}
		if _, err := d.record(ctx, tx, segments); err != nil {
			return err
		}
		return d.end(ctx, tx, messages.Ends{Dispatcher: 1, Unanswered: claimsOf(claimed)})
	})
	d.finish(messages.Final{MessageID: ids[1], Status: sms.Sent, At: time.Now()})
	d.exec(`UPDATE held SET expires_at = now() WHERE message_id = $1`, ids[2])
	for range 2 {
		d.tx(func(ctx context.Context, tx pgx.Tx) error {
			var refused []messages.Refused
			for _, id := range ids {
				refused = append(refused, messages.Refused{MessageID: id, Segment: 2}, messages.Refused{MessageID: id, Segment: 2})
			}
			return d.PutBack(ctx, tx, carrier, refused)
		})
	}
	got := d.claim(2, ids...)
	if len(got) != 1 || got[0].ID != ids[0] || !slices.Equal(got[0].Accepted, []int{1}) || len(got[0].Unanswered) != 0 {
		t.Errorf("%+v", got)
	}
}

// unanswered records that a carrier left the first segments of messages unanswered.
func (d *testStore) unanswered(ids ...int64) {
	d.Helper()
	d.tx(func(ctx context.Context, tx pgx.Tx) error {
		var segments []receipts.Segment
		for _, id := range ids {
			segments = append(segments, accepted(id, "", func(p *receipts.Segment) { p.Unanswered, p.Reference = true, 9 }))
		}
		_, err := d.record(ctx, tx, segments)
		return err
	})
}

// TestPutBackKeepsItsOwn: a message that is put back keeps its own expiry, and its next claim has a new epoch, also
// when the row was taken from a dead dispatcher.
func TestPutBackKeepsItsOwn(t *testing.T) {
	d := newTestStore(t)
	ids := d.pending(2)
	d.exec(`UPDATE outbox SET epoch = 40, expires_at = now() + interval '10 minutes' WHERE message_id = ANY($1)`, ids)
	first := d.claim(1, ids...)
	if _, err := d.Begin(t.Context(), 1, []messages.Claim{{MessageID: ids[1], Epoch: 41}}); err != nil {
		t.Fatal(err)
	}
	unanswered := d.claims(ids[0])
	d.tx(func(ctx context.Context, tx pgx.Tx) error {
		if err := d.end(ctx, tx, messages.Ends{Dispatcher: 1, Unanswered: unanswered}); err != nil {
			return err
		}
		_, err := d.TakeBegun(ctx, tx, carrier, []int64{1}, 10)
		return err
	})
	d.unanswered(ids...)
	d.tx(func(ctx context.Context, tx pgx.Tx) error {
		return d.PutBack(ctx, tx, carrier, []messages.Refused{{MessageID: ids[0], Segment: 1}, {MessageID: ids[1], Segment: 1}})
	})
	again := d.claim(1, ids...)
	if len(again) != 2 {
		t.Fatalf("%d of 2 are back", len(again))
	}
	for _, c := range again {
		if c.Epoch <= first[0].Epoch {
			t.Errorf("message %d: epoch %d after epoch %d", c.ID, c.Epoch, first[0].Epoch)
		}
		if left := time.Until(c.ExpiresAt); left > 10*time.Minute+time.Second {
			t.Errorf("message %d: it has %s left of ten minutes", c.ID, left)
		}
	}
	// A late result of the first claim does not affect the second.
	if err := d.Release(t.Context(), 1, []messages.Claim{first[0].Claim()}, 0); err != nil {
		t.Fatal(err)
	}
	if n := d.count(`SELECT count(*) FROM outbox WHERE claimed_by = 1`); n != 2 {
		t.Errorf("%d of 2 are claimed", n)
	}
}

// TestForgetUnanswered: the rows of unanswered messages are deleted when they are too old to be put back.
func TestForgetUnanswered(t *testing.T) {
	d := newTestStore(t)
	d.exec(`INSERT INTO held (message_id, epoch, expires_at) VALUES (1, 1, now() - interval '1 hour'), (2, 1, now() - interval '1 minute')`)
	if n, err := d.ForgetUnanswered(t.Context(), 30*time.Minute); err != nil || n != 1 {
		t.Errorf("%d, %v", n, err)
	}
}
