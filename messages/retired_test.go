package messages_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/testenv"
	"intumwa/messages"
	"intumwa/messages/rerouting"
	"intumwa/messages/submission"
)

func (d *testStore) retires(name, to string) (err error) {
	d.Helper()
	return pgx.BeginFunc(d.Context(), d.pool, func(tx pgx.Tx) error {
		_, err := rerouting.Retire(d.Context(), tx, name, to)
		return err
	})
}

// leaves takes all away from carrier and finishes what fails. required: the successor requires the registration of
// senders.
func (d *testStore) leaves(required bool) (handed map[string]int64, failed []int64) {
	d.Helper()
	d.tx(func(ctx context.Context, tx pgx.Tx) error {
		list, err := rerouting.Retirements(ctx, tx)
		if err != nil {
			return err
		}
		takers := rerouting.Takers{}
		for name, next := range rerouting.Successors(list) {
			takers[name] = rerouting.To{Carrier: next, Registration: required}
		}
		outbox, err := d.LeaveOutbox(ctx, tx, carrier, takers, 100)
		if err != nil {
			return err
		}
		scheduled, err := d.LeaveScheduled(ctx, tx, carrier, takers, 100)
		if err != nil {
			return err
		}
		handed = map[string]int64{}
		for _, l := range []rerouting.Leaving{outbox, scheduled} {
			for to, n := range l.Handed {
				handed[to] += n
			}
			for _, f := range l.Finals {
				if f.Reason != submission.ReasonClosed {
					d.Errorf("message %d fails with %q", f.MessageID, f.Reason)
				}
				failed = append(failed, f.MessageID)
			}
			if _, err := d.Finish(ctx, tx, l.Finals, messages.Rows{}); err != nil {
				return err
			}
		}
		return nil
	})
	slices.Sort(failed)
	return handed, failed
}

// TestLeaving: what waits for a retired carrier leaves it, but for what that may have.
func TestLeaving(t *testing.T) {
	for _, to := range []string{"leo", ""} {
		t.Run("to "+to, func(t *testing.T) {
			d := newHotStore(t)
			plain, suspended, later := d.pending(1)[0], d.pending(1)[0],
				d.pending(1, func(m *messages.Message) { m.SendAt, m.Scheduled = time.Now().Add(time.Hour), true })[0]
			cut, away, quiet, claimed := d.pending(1, segments(2))[0], d.pending(1)[0], d.pending(1)[0], d.pending(1)[0]
			d.exec(`UPDATE outbox SET due_at = '9999-12-31T00:00:00Z' WHERE message_id = $1`, suspended)
			d.exec(`INSERT INTO segments (message_id, segment, total, carrier, link, key, submitted_at)
				VALUES ($1, 1, 2, $2, '', '?x', now())`, cut, carrier)
			d.exec(`UPDATE outbox SET attempts = 1, due_at = now() + interval '10 seconds' WHERE message_id = $1`, cut)
			d.exec(`UPDATE outbox SET original_carrier = 'smart' WHERE message_id = $1`, away)
			back := d.pending(1)[0] // its own carrier may have it, sends it again, and was down
			d.exec(`INSERT INTO segments (message_id, segment, total, carrier, link, key, submitted_at)
				VALUES ($1, 1, 1, 'smart', '', '?y', now())`, back)
			d.exec(`UPDATE outbox SET original_carrier = 'smart', attempts = 1 WHERE message_id = $1`, back)
			d.exec(`UPDATE outbox SET due_at = now() + interval '20 minutes', since = now() + interval '20 minutes',
				pushed_at = NULL WHERE message_id = $1`, quiet)
			d.exec(`UPDATE outbox SET claimed_by = 7, epoch = 1, begun = true WHERE message_id = $1`, claimed)
			if err := d.retires(carrier, to); err != nil {
				t.Fatal(err)
			}
			handed, failed := d.leaves(false)
			want, fail := map[string]int64{"leo": 4, "smart": 2}, []int64(nil)
			if to == "" {
				want, fail = map[string]int64{"smart": 2}, []int64{plain, suspended, later, quiet}
			}
			if !maps.Equal(handed, want) || !slices.Equal(failed, fail) {
				t.Errorf("handed %v, failed %v; want %v and %v", handed, failed, want, fail)
			}
			if n := d.count(
				`SELECT count(*) FROM outbox o JOIN messages m ON m.id = o.message_id WHERE m.carrier <> o.carrier`); n != 0 {
				t.Errorf("%d messages have another carrier than their rows", n)
			}
			if got := column[int64](d, `SELECT message_id FROM outbox WHERE carrier = $1 ORDER BY 1`, carrier); !slices.Equal(
				got, []int64{cut, claimed}) {
				t.Errorf("%v stay, want %v", got, []int64{cut, claimed})
			}
			if n := d.count(`SELECT count(*) FROM outbox WHERE message_id = $1 AND due_at = expires_at`, cut); n != 1 {
				t.Error("the carrier may have a message, which is due again")
			}
			if n := d.count(`SELECT count(*) FROM outbox WHERE message_id = $1 AND due_at < now() + interval '19 minutes'`,
				quiet); n != 0 {
				t.Error("quiet hours are over early")
			}
			if handed, failed := d.leaves(false); len(handed)+len(failed) > 0 {
				t.Errorf("a second time: handed %v, failed %v", handed, failed)
			}
			d.tx(func(ctx context.Context, tx pgx.Tx) error { _, err := rerouting.Reopen(ctx, tx, carrier); return err })
			if n := d.count(`SELECT count(*) FROM outbox WHERE message_id = $1 AND due_at <= now()`, cut); n != 1 {
				t.Error("the carrier is open again, and its message is not due")
			}
			d.pending(1)
			d.pending(1, func(m *messages.Message) { m.SendAt, m.Scheduled = time.Now().Add(time.Hour), true })
			if handed, failed := d.leaves(false); len(handed)+len(failed) > 0 {
				t.Errorf("the carrier is open again: handed %v, failed %v", handed, failed)
			}
		})
	}
}

// TestAnotherSuccessorMeanwhile: what still takes messages away from a carrier without a successor neither fails nor
// moves any once the carrier has one.
func TestAnotherSuccessorMeanwhile(t *testing.T) {
	d := newHotStore(t)
	d.pending(1)
	d.pending(1, func(m *messages.Message) { m.SendAt, m.Scheduled = time.Now().Add(time.Hour), true })
	if err := d.retires(carrier, ""); err != nil {
		t.Fatal(err)
	}
	ctx := context.WithoutCancel(t.Context())
	retiring, err := d.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = retiring.Rollback(ctx) }()
	if _, err := retiring.Exec(ctx, `SET LOCAL idle_in_transaction_session_timeout = 0`); err != nil {
		t.Fatal(err)
	}
	if _, err := rerouting.Retire(ctx, retiring, carrier, "leo"); err != nil {
		t.Fatal(err)
	}
	done := make(chan []rerouting.Leaving, 1)
	go func() {
		var both []rerouting.Leaving
		defer func() { done <- both }()
		d.tx(func(ctx context.Context, tx pgx.Tx) error {
			for _, leave := range []func(context.Context, pgx.Tx, string, rerouting.Takers, int) (rerouting.Leaving, error){
				d.LeaveOutbox, d.LeaveScheduled} {
				l, err := leave(ctx, tx, carrier, rerouting.Takers{carrier: {}}, 100)
				if err != nil {
					return err
				}
				both = append(both, l)
			}
			return nil
		})
	}()
	for end := time.Now().Add(time.Minute); !testenv.Blocked(t, d.pool); <-time.After(10 * time.Millisecond) {
		if len(done) > 0 || time.Now().After(end) {
			t.Fatal("it does not wait")
		}
	}
	if err := retiring.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	for _, l := range <-done {
		if l.Seen > 0 {
			t.Errorf("it took some away: %+v", l)
		}
	}
	if handed, failed := d.leaves(false); handed["leo"] != 2 || len(failed) > 0 {
		t.Errorf("then: handed %v, failed %v", handed, failed)
	}
}

// TestRetiring: a carrier is retired to one that is not, so that no circle comes up. A successor may be retired later.
func TestRetiring(t *testing.T) {
	d := newTestStore(t)
	for _, one := range []struct {
		name, to string
		want     error
	}{{"smart", "leo", nil}, {"leo", "smart", rerouting.ErrRetired}, {"leo", "lumitel", nil},
		{"onatel", "leo", rerouting.ErrRetired}, {"smart", "onatel", nil}, {"onatel", "", nil}} {
		if err := d.retires(one.name, one.to); !errors.Is(err, one.want) {
			t.Errorf("%s to %s: %v, want %v", one.name, one.to, err, one.want)
		}
	}
	list, err := rerouting.Retirements(t.Context(), d.pool)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"smart": "", "leo": "lumitel", "onatel": ""}
	if got := rerouting.Successors(list); !maps.Equal(got, want) {
		t.Errorf("successors %v, want %v", got, want)
	}
}

// TestLeavingBySender: a message does not go to a carrier where its sender does not work, and fails. A test message and
// one of the gateway's own have no registered sender.
func TestLeavingBySender(t *testing.T) {
	for _, one := range []struct {
		state    string // of the sender at leo; "": nothing is recorded
		required bool
		goes     bool
	}{{"", false, true}, {"", true, false}, {"approved", true, true}, {"sent", false, false}, {"not_needed", true, true},
		{"refused", true, false}} {
		d := newHotStore(t)
		d.exec(`INSERT INTO sender_carriers (sender_id, company_id, carrier, state) SELECT id, company_id, 'leo', $1
			FROM senders WHERE company_id = 1 AND $1 <> ''`, one.state)
		plain := d.pending(1)[0]
		later := d.pending(1, func(m *messages.Message) { m.SendAt, m.Scheduled = time.Now().Add(time.Hour), true })[0]
		d.pending(1, func(m *messages.Message) { m.Test = true })
		d.pending(1, func(m *messages.Message) { m.CompanyID = 0 })
		if err := d.retires(carrier, "leo"); err != nil {
			t.Fatal(err)
		}
		want, fail := int64(4), []int64(nil)
		if !one.goes {
			want, fail = 2, []int64{plain, later}
		}
		if handed, failed := d.leaves(one.required); handed["leo"] != want || !slices.Equal(failed, fail) {
			t.Errorf("%+v: handed %v, failed %v", one, handed, failed)
		}
	}
}
