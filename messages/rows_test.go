package messages_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/messages"
	"intumwa/messages/receipts"
	"intumwa/messages/submission"
	"intumwa/sms"
)

// TestReentry: a message that a late refusal has emptied is sent again: once, within its validity, at its carrier, with
// the segments that the carrier does not have.
func TestReentry(t *testing.T) {
	d := newTestStore(t)
	ids := d.pending(4, segments(2))
	claimed := d.claim(1, ids...)
	d.tx(func(ctx context.Context, tx pgx.Tx) error {
		var segments []receipts.Segment
		for _, id := range ids {
			segments = append(segments, accepted(id, "A", segment(1, 2)),
				accepted(id, "", segment(2, 2), func(p *receipts.Segment) { p.Unanswered, p.Reference = true, 9 }))
		}
		if _, err := d.record(ctx, tx, segments); err != nil {
			return err
		}
		return d.end(ctx, tx, messages.Rows{Dispatcher: 1, Leave: claimsOf(claimed)})
	})
	d.finish(messages.Final{MessageID: ids[1], Status: sms.Sent, At: time.Now()})
	d.exec(`UPDATE messages SET expire_at = now() WHERE id = $1`, ids[2])
	d.exec(`UPDATE messages SET carrier = 'leo' WHERE id = $1`, ids[3])
	for range 2 {
		d.tx(func(ctx context.Context, tx pgx.Tx) error {
			back := messages.Rows{Dispatcher: 1, Carrier: carrier, Validity: time.Hour}
			var refusals []receipts.Refusal
			for _, id := range ids {
				refusals = append(refusals, receipts.Refusal{MessageID: id, Segment: 2, At: time.Now().Add(time.Second)})
				back.Reenter = append(back.Reenter, messages.Reentry{MessageID: id}, messages.Reentry{MessageID: id})
			}
			if err := receipts.Refuse(ctx, tx, carrier, refusals); err != nil {
				return err
			}
			return d.end(ctx, tx, back)
		})
	}
	got := d.claim(2, ids...)
	if len(got) != 1 || got[0].ID != ids[0] || !slices.Equal(statesOf(got[0]),
		[]submission.State{submission.Accepted, submission.Waiting}) {
		t.Errorf("%+v", got)
	}
}

// TestReentryBeginsAnew: a message that returns has an end of its own, if it has one, and a late result of its earlier
// claim does not affect the next.
func TestReentryBeginsAnew(t *testing.T) {
	d := newTestStore(t)
	id := d.pending(1, func(m *messages.Message) { m.ExpireAt = time.Now().Add(10 * time.Minute) })[0]
	first := d.claim(1, id)[0]
	d.tx(func(ctx context.Context, tx pgx.Tx) error {
		return d.end(ctx, tx, messages.Rows{Dispatcher: 1, Leave: []messages.Claim{first.Claim()}})
	})
	d.tx(func(ctx context.Context, tx pgx.Tx) error {
		return d.end(ctx, tx, messages.Rows{Carrier: carrier, Validity: time.Hour,
			Reenter: []messages.Reentry{{MessageID: id}}})
	})
	again := d.claim(1, id)
	if len(again) != 1 || again[0].Epoch == first.Epoch || again[0].Attempt != 2 ||
		time.Until(again[0].ExpiresAt) > 10*time.Minute {
		t.Fatalf("%+v", again)
	}
	d.tx(func(ctx context.Context, tx pgx.Tx) error {
		return d.end(ctx, tx, messages.Rows{Dispatcher: 1, Leave: []messages.Claim{first.Claim()},
			Again: []messages.Retry{{Claim: first.Claim()}}})
	})
	if n := d.count(`SELECT count(*) FROM outbox WHERE claimed_by = 1`); n != 1 {
		t.Error("the second claim has ended")
	}
}
