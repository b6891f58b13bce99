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

func (d *testStore) finish(finals ...messages.Final) (settled []messages.Settled) {
	d.Helper()
	d.tx(func(ctx context.Context, tx pgx.Tx) (err error) {
		settled, err = d.Finish(ctx, tx, finals, messages.Rows{})
		return err
	})
	return settled
}

// TestFinish: pending messages become sent or failed, once, with the data of their events.
func TestFinish(t *testing.T) {
	d := newHotStore(t)
	ids := d.pending(4)
	when := time.Now().Add(-time.Minute).Truncate(time.Microsecond)
	d.settle([]receipts.Segment{accepted(ids[1], "x")})
	got := d.finish(
		messages.Final{MessageID: ids[0], Status: sms.Sent, At: when, Reason: "not looked at"},
		messages.Final{MessageID: ids[1], Status: sms.Failed, At: when, Reason: "UNDELIV \x00027"},
		messages.Final{MessageID: ids[2], Status: sms.Failed, At: when, Reason: submission.ReasonExpired},
		messages.Final{MessageID: ids[0], Status: sms.Failed, At: when}, // the first verdict counts
		messages.Final{MessageID: 999, Status: sms.Failed, At: when},
	)
	if len(got) != 3 {
		t.Fatalf("settled %+v", got)
	}
	for _, m := range got {
		i := slices.Index(ids, m.ID)
		want := []struct {
			status      sms.Status
			reason      string
			unsubmitted bool
		}{{sms.Sent, "", false}, {sms.Failed, "UNDELIV 027", false}, {sms.Failed, "expired", true}}[i]
		r, err := d.ByULID(t.Context(), 1, m.ULID)
		if err != nil {
			t.Fatal(err)
		}
		if m.Status != want.status || m.Reason != want.reason || m.Unsubmitted != want.unsubmitted || !m.At.Equal(when) ||
			m.CompanyID != 1 || m.UserID != 1 || m.Number != r.Number || m.Segments != 1 || m.Test || m.Carrier != carrier ||
			!m.From.Equal(r.CreatedAt) {
			t.Errorf("message %d: %+v", i, m)
		}
		if r.Status != want.status || r.FailureReason != want.reason ||
			(r.SentAt != nil) != (want.status == sms.Sent) || (r.FailedAt != nil) != (want.status == sms.Failed) {
			t.Errorf("message %d as recorded: %+v", i, r)
		}
	}
	// failed messages are not claimed, also after another verdict came first
	same(t, "in the outbox", idsOf(d.claim(1, ids...)), ids[3:])
	if again := d.finish(messages.Final{MessageID: ids[0], Status: sms.Failed, At: when},
		messages.Final{MessageID: ids[1], Status: sms.Sent, At: when}); len(again) != 0 {
		t.Errorf("final and settled again: %+v", again)
	}
	if nothing := d.finish(); nothing != nil {
		t.Errorf("%+v", nothing)
	}
}

func TestExpired(t *testing.T) {
	d := newTestStore(t)
	ids := d.pending(4)
	d.exec(`UPDATE outbox SET expires_at = now() - interval '1 second' WHERE message_id <> $1`, ids[0])
	d.exec(`UPDATE outbox SET claimed_by = 1 WHERE message_id = $1`, ids[1]) // in flight: its result comes first
	expired := func(of ...int64) (got []int64) {
		t.Helper()
		d.tx(func(ctx context.Context, tx pgx.Tx) error {
			finals, err := d.Expired(ctx, tx, of)
			for _, f := range finals {
				got = append(got, f.MessageID)
				if f.Status != sms.Failed || f.Reason != submission.ReasonExpired || time.Since(f.At).Abs() > time.Minute {
					t.Errorf("%+v", f)
				}
			}
			return err
		})
		return got
	}
	same(t, "the given one", expired(ids[2]), ids[2:3])
	same(t, "the rest", expired(ids...), ids[3:])
	same(t, "no more", expired(ids...), nil)
	d.exec(`UPDATE outbox SET claimed_by = NULL`)
	same(t, "given back", expired(ids...), ids[1:2])
}

// TestVerdictOfAClaim: the result of a dispatcher's attempt is not a verdict once the message is claimed again.
func TestVerdictOfAClaim(t *testing.T) {
	d := newTestStore(t)
	ids := d.pending(3)
	d.claim(7, ids...)
	d.exec(`UPDATE outbox SET claimed_by = 8 WHERE message_id = $1`, ids[0])
	if err := d.Release(t.Context(), 7, d.claims(ids[1]), 0); err != nil {
		t.Fatal(err)
	}
	d.claim(7, ids[1])
	var finals []messages.Final
	for _, id := range ids {
		finals = append(finals, messages.Final{MessageID: id, Status: sms.Failed, At: time.Now(), Reason: "no_answer",
			Claimant: 7, Epoch: 1})
	}
	settledAs(t, settlement{settled: d.finish(finals...)}, sms.Failed, ids[2])
	if n := d.count(`SELECT count(*) FROM outbox WHERE message_id = ANY($1)`, ids[:2]); n != 2 {
		t.Errorf("%d of the others' 2 messages are on the outbox", n)
	}
}

// TestEndOfAClaim: an ended attempt ends its own claim only. A new claim continues.
func TestEndOfAClaim(t *testing.T) {
	for _, c := range []struct {
		name string
		row  string // the row's state since it was claimed by 7 under epoch 1
		goes bool
		free bool // and so does a message that leaves without a claim
	}{
		{"it is as it was", ``, true, false},
		{"given back, or freed", `claimed_by = NULL`, true, true},
		{"given back, claimed, given back", `claimed_by = NULL, epoch = 2`, true, true},
		{"claimed anew by the same", `epoch = 2`, false, false},
		{"claimed by another", `epoch = 2, claimed_by = 8`, false, false},
	} {
		for _, free := range []bool{false, true} {
			d := newHotStore(t)
			ids := d.pending(2)
			claims := claimsOf(d.claim(7, ids...))
			if c.row != "" {
				d.exec(`UPDATE outbox SET ` + c.row)
			}
			want := 2
			if free && c.free || !free && c.goes {
				want = 0
			}
			if free {
				claims = leaving(ids)
			}
			d.tx(func(ctx context.Context, tx pgx.Tx) error {
				return d.end(ctx, tx, messages.Rows{Dispatcher: 7, Leave: claims})
			})
			if n := d.count(`SELECT count(*) FROM outbox`); n != want {
				t.Errorf("%s, without a claim %v: %d are left in the outbox, want %d", c.name, free, n, want)
			}
		}
	}
}
