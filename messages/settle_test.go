package messages_test

import (
	"context"
	"fmt"
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
		settled, err = d.Finish(ctx, tx, finals, messages.Ends{})
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
			m.CompanyID != 1 || m.UserID != 1 || m.Number != r.Number || m.Segments != 1 || m.Test || m.Carrier != carrier || !m.From.Equal(r.CreatedAt) {
			t.Errorf("message %d: %+v", i, m)
		}
		if r.Status != want.status || r.FailureReason != want.reason ||
			(r.SentAt != nil) != (want.status == sms.Sent) || (r.FailedAt != nil) != (want.status == sms.Failed) {
			t.Errorf("message %d as recorded: %+v", i, r)
		}
	}
	same(t, "in the outbox", idsOf(d.claim(1, ids...)), ids[3:]) // failed messages are not claimed, also after another verdict came first
	if again := d.finish(messages.Final{MessageID: ids[0], Status: sms.Failed, At: when}, messages.Final{MessageID: ids[1], Status: sms.Sent, At: when}); len(again) != 0 {
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

// TestOverdueOfNewCarrier: its sweep begins at the position of the sweep over all others.
func TestOverdueOfNewCarrier(t *testing.T) {
	d := newTestStore(t)
	ids := d.pending(3)
	d.exec(`DELETE FROM outbox`)
	d.tx(func(ctx context.Context, tx pgx.Tx) error {
		got, _, err := d.OverdueElsewhere(ctx, tx, []string{carrier}, 0, 2)
		same(t, "elsewhere", got, nil)
		return err
	})
	d.exec(`UPDATE messages SET carrier = 'new' WHERE id = $1`, ids[2])
	d.tx(func(ctx context.Context, tx pgx.Tx) error {
		got, _, err := d.Overdue(ctx, tx, "new", 0, 10)
		same(t, "of the new one", got, ids[2:])
		return err
	})
	if n := d.count(`SELECT up_to FROM sweeps WHERE name = 'overdue elsewhere'`); int64(n) != ids[1] {
		t.Errorf("the sweep over the others is at %d, want %d", n, ids[1])
	}
}

// TestVerdictOfAClaim: the result of a dispatcher's attempt is no verdict once the message is claimed again.
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
		finals = append(finals, messages.Final{MessageID: id, Status: sms.Failed, At: time.Now(), Reason: "no_answer", Claimant: 7, Epoch: 1})
	}
	settledAs(t, settlement{settled: d.finish(finals...)}, sms.Failed, ids[2])
	if n := d.count(`SELECT count(*) FROM outbox WHERE message_id = ANY($1)`, ids[:2]); n != 2 {
		t.Errorf("%d of the others' 2 messages are on the outbox", n)
	}
}

// TestEndOfAClaim: an ended attempt ends its own claim only. A new claim continues, and a message with which a process
// died is left to the next claim.
func TestEndOfAClaim(t *testing.T) {
	for _, c := range []struct {
		name string
		row  string // the row's state since it was claimed by 7 under epoch 1
		goes bool
		done bool // and so does a message in Done
	}{
		{"it is as it was", ``, true, false},
		{"freed", `claimed_by = NULL, in_doubt = true`, true, false},
		{"given back", `claimed_by = NULL`, true, true},
		{"given back, claimed, given back", `claimed_by = NULL, epoch = 2`, true, true},
		{"given back, claimed, freed", `claimed_by = NULL, epoch = 2, in_doubt = true`, false, false},
		{"claimed anew by the same", `epoch = 2`, false, false},
		{"claimed by another", `epoch = 2, claimed_by = 8`, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for how, ends := range map[string]func(claims []messages.Claim, ids []int64) messages.Ends{
				"carried":    func(claims []messages.Claim, _ []int64) messages.Ends { return messages.Ends{Carried: claims} },
				"unanswered": func(claims []messages.Claim, _ []int64) messages.Ends { return messages.Ends{Unanswered: claims} },
				"done":       func(_ []messages.Claim, ids []int64) messages.Ends { return messages.Ends{Done: ids} },
			} {
				d := newHotStore(t)
				ids := d.pending(2)
				claims := claimsOf(d.claim(7, ids...))
				if c.row != "" {
					d.exec(`UPDATE outbox SET ` + c.row)
				}
				d.tx(func(ctx context.Context, tx pgx.Tx) error {
					e := ends(claims, slices.Clone(ids))
					e.Dispatcher = 7
					return d.end(ctx, tx, e)
				})
				want := 2
				if (how == "done" && c.done) || (how != "done" && c.goes) {
					want = 0
				}
				if n := d.count(`SELECT count(*) FROM outbox`); n != want {
					t.Errorf("%s: %d are left on the outbox, want %d", how, n, want)
				}
				if n := d.count(`SELECT count(*) FROM held`); how == "unanswered" && n != 2-want {
					t.Errorf("%d are unanswered", n)
				}
			}
		})
	}
}

// TestOverdue: the sweep visits each message once and stops at its horizon.
func TestOverdue(t *testing.T) {
	d := newTestStore(t)
	ids := d.pending(10)
	d.exec(`UPDATE messages SET created_at = now() - interval '2 hours' WHERE id <= $1`, ids[6])
	d.exec(`UPDATE messages SET carrier = 'onatel' WHERE id = $1`, ids[1])
	d.finish(messages.Final{MessageID: ids[2], Status: sms.Sent, At: time.Now()})
	d.exec(`DELETE FROM outbox WHERE message_id <> $1`, ids[5]) // a carrier has the others
	overdue := func(carrier string, horizon time.Duration, limit int) (got []int64, done bool) {
		t.Helper()
		d.tx(func(ctx context.Context, tx pgx.Tx) (err error) {
			got, done, err = d.Overdue(ctx, tx, carrier, horizon, limit)
			return err
		})
		return got, done
	}
	step := func(carrier string, horizon time.Duration, limit int, wantDone bool, want ...int64) {
		t.Helper()
		got, done := overdue(carrier, horizon, limit)
		same(t, "overdue", got, want)
		if done != wantDone {
			t.Errorf("done: %v, want %v", done, wantDone)
		}
	}
	step(carrier, 3*time.Hour, 10, true)
	step(carrier, time.Hour, 4, false, ids[0], ids[3])
	step(carrier, time.Hour, 4, true, ids[4])
	step(carrier, time.Hour, 4, true) // a message still to be delivered stops it
	d.exec(`UPDATE outbox SET claimed_by = 1`)
	step(carrier, time.Hour, 4, true)
	d.exec(`UPDATE outbox SET expires_at = now()`) // in flight beyond its validity
	step(carrier, time.Hour, 4, true, ids[5], ids[6])
	step(carrier, time.Hour, 4, true) // each once
	step("onatel", time.Hour, 100, true, ids[1])
	d.exec(`UPDATE messages SET created_at = now() - interval '2 hours' WHERE id = $1`, ids[7])
	step(carrier, time.Hour, 1, false, ids[7])
	step(carrier, time.Hour, 1, true)
	step(carrier, 0, 100, true, ids[8], ids[9])
	step(carrier, 0, 100, true)

	// A sweep that was rolled back has no effect.
	err := pgx.BeginFunc(t.Context(), d.pool, func(tx pgx.Tx) error {
		if _, _, err := d.Overdue(t.Context(), tx, "lacell", 0, 100); err != nil {
			return err
		}
		return fmt.Errorf("crash")
	})
	if err == nil || d.count(`SELECT coalesce(max(up_to), 0) FROM sweeps WHERE name = 'overdue lacell'`) != 0 {
		t.Errorf("after a crash: %v", err)
	}
}
