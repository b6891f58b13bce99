package messages_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
	"intumwa/messages"
	"intumwa/messages/outbox"
)

// demo is the sender of most messages.
var demo = outbox.Suspension{CompanyID: 1, Sender: "DEMO"}

// followApprovals does the work of the task hold.
func (d *testStore) followApprovals() {
	d.Helper()
	suspensions, err := d.Suspensions(d.Context())
	for _, h := range suspensions {
		if h.Over {
			_, _, failed := d.FollowApproval(d.Context(), h, 0)
			err = errors.Join(err, failed)
		}
	}
	if err != nil {
		d.Fatal(err)
	}
}

// TestClaimHoldsUnapproved: a claim does not get a message whose company or sender is not approved at that moment,
// scheduled ones included. Test messages and the gateway's own need no approval.
func TestClaimHoldsUnapproved(t *testing.T) {
	const name, other = "DEMO", "NEWS"
	for what, c := range map[string]struct {
		change string
		want   []int // the indexes of the claimed ones
	}{
		"all approved":        {`SELECT 1`, []int{0, 1, 2, 3, 4, 5}},
		"the company lost it": {`UPDATE companies SET approved = false WHERE id = 1`, []int{3, 4, 5}},
		"the sender lost it": {`UPDATE senders SET approved = false WHERE company_id = 1 AND name = 'DEMO'`,
			[]int{1, 3, 4, 5}},
		"the sender is deleted":     {`DELETE FROM senders WHERE company_id = 1 AND name = 'DEMO'`, []int{1, 3, 4, 5}},
		"the other company lost it": {`UPDATE companies SET approved = false WHERE id = 2`, []int{0, 1, 2, 4, 5}},
	} {
		t.Run(what, func(t *testing.T) {
			d := newHotStore(t)
			d.exec(`INSERT INTO senders (company_id, name, approved) VALUES (1, $1, true)`, other)
			of := func(company int64, sender string, test bool) func(*messages.Message) {
				return func(m *messages.Message) { m.CompanyID, m.Sender, m.Test = company, sender, test }
			}
			ids := d.insert(d.compose(of(1, name, false)), d.compose(of(1, other, false)),
				d.compose(of(1, name, false), later(time.Now().Add(-time.Second))),
				d.compose(of(2, name, false)), d.compose(of(1, "INTUMWATEST", true)), d.compose(of(0, "INTUMWA", false)))
			d.exec(c.change)
			d.release(0, 10)
			var want []int64
			for _, place := range c.want {
				want = append(want, ids[place])
			}
			same(t, "carried", idsOf(d.claim(7, ids...)), want)
			same(t, "carried at the second try", idsOf(d.claim(7, ids...)), nil)
			if n := d.count(`SELECT count(*) FROM outbox WHERE due_at > now() + interval '1 year' AND claimed_by IS NULL
				AND pushed_at IS NULL AND attempts = 0`); n != len(ids)-len(want) {
				t.Errorf("%d are suspended, want %d", n, len(ids)-len(want))
			}
			d.followApprovals()
			same(t, "carried while nothing has changed", idsOf(d.claim(7, ids...)), nil)

			d.exec(`INSERT INTO senders (company_id, name, approved) VALUES (1, 'DEMO', true)
				ON CONFLICT (company_id, name) DO UPDATE SET approved = true`)
			d.exec(`UPDATE companies SET approved = true`)
			d.followApprovals()
			if n := d.count(`SELECT count(*) FROM suspensions`); n != 0 {
				t.Errorf("%d senders are suspended", n)
			}
			rest := slices.DeleteFunc(ids, func(id int64) bool { return slices.Contains(want, id) })
			for _, m := range d.claim(7, rest...) {
				if rest = slices.DeleteFunc(rest, func(id int64) bool { return id == m.ID }); m.Attempt != 1 {
					t.Errorf("approved again: %+v", m)
				}
			}
			same(t, "still suspended", rest, nil)
		})
	}
}

// suspensionStore is a testStore with long lock timeouts, and another one for the task that releases suspended
// messages.
type suspensionStore struct {
	*testStore
	releasing *outbox.Store
}

func newHoldStore(t *testing.T) *suspensionStore {
	t.Helper()
	url := testenv.Database(t)
	open := func(change ...string) *pgxpool.Pool {
		t.Helper()
		change = append(change, "lock_timeout=60000", "idle_in_transaction_session_timeout=60000") // for a slow machine
		pool, err := postgres.Open(t.Context(), url+joined(url, change),
			postgres.Options{BatchUpdates: true, StatementTimeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		return pool
	}
	pool := open()
	d := &suspensionStore{testStore: &testStore{TB: t, pool: pool, stores: storesOf(pool), matcher: newMatcher()},
		releasing: outbox.New(open("application_name=releasing"))}
	testenv.Companies(t, pool, 3)
	return d
}

// joined adds parameters to a database's URL.
func joined(url string, change []string) (more string) {
	for _, c := range change {
		sign := "?"
		if strings.Contains(url+more, "?") {
			sign = "&"
		}
		more += sign + c
	}
	return more
}

func (d *suspensionStore) suspended() int {
	d.Helper()
	return d.count(`SELECT count(*) FROM outbox WHERE due_at > now() + interval '1 year'`)
}

// TestSuspendsInAnyOrder: administrators withdraw and give approvals, in transactions that stay open for a while,
// beside claims, which stay open as well, and the release of scheduled and of suspended messages. No message is
// suspended without a row of suspensions. In the end a claim gets all messages if company and sender are approved, else
// none.
func TestSuspendsInAnyOrder(t *testing.T) {
	d := newHoldStore(t)
	ctx, claims := t.Context(), d.claimStatements()
	rapid.Check(t, func(rt *rapid.T) {
		for _, table := range []string{"outbox", "scheduled", "suspensions"} {
			d.exec(`DELETE FROM ` + table)
		}
		d.exec(`UPDATE companies SET approved = true`)
		d.exec(`UPDATE senders SET approved = true`)
		ids := append(d.pending(3), d.pending(2, later(time.Now().Add(-time.Second)))...)
		ok := func(err error) {
			if err != nil {
				rt.Fatal(err)
			}
		}
		var open [2]pgx.Tx // the administrator's, the claim's
		begin := func(i int, statement string, args ...any) {
			if open[i] == nil {
				tx, err := d.pool.Begin(ctx)
				ok(err)
				open[i] = tx
				_, err = tx.Exec(ctx, statement, args...)
				ok(err)
			}
		}
		commit := func(i int) {
			if open[i] != nil {
				ok(open[i].Commit(ctx))
				open[i] = nil
			}
		}
		defer func() {
			for _, tx := range open {
				if tx != nil {
					_ = tx.Rollback(context.WithoutCancel(ctx))
				}
			}
		}()
		var releasing chan error
		waits := func() bool { // until it has ended or waits for a claim
			for releasing != nil {
				select {
				case err := <-releasing:
					ok(err)
					releasing = nil
				case <-time.After(2 * time.Millisecond):
					if testenv.Blocked(t, d.pool) {
						return true
					}
				}
			}
			return false
		}
		steps := []func(){
			func() { begin(0, `UPDATE companies SET approved = NOT approved`) },
			func() { begin(0, `UPDATE senders SET approved = NOT approved`) },
			func() { commit(0) },
			func() {
				if releasing == nil { // else it might wait for it
					begin(1, rapid.SampledFrom(claims).Draw(rt, "claim"), 7, false, ids[:rapid.IntRange(1, len(ids)).Draw(rt, "some")],
						carrier)
				}
			},
			func() { commit(1) },
			func() {
				d.exec(`UPDATE outbox SET claimed_by = NULL WHERE message_id IN (SELECT message_id FROM outbox WHERE claimed_by = 7
					FOR UPDATE SKIP LOCKED)`)
			},
			func() { d.release(0, 10) },
			func() {
				if releasing == nil {
					releasing = make(chan error, 1)
					go func() {
						_, _, err := d.releasing.FollowApproval(ctx, outbox.Suspension{CompanyID: 1, Sender: "DEMO", Over: true}, 0)
						releasing <- err
					}()
				}
			},
		}
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			steps[rapid.IntRange(0, len(steps)-1).Draw(rt, "step")]()
			if !waits() && d.suspended() > 0 && d.count(`SELECT count(*) FROM suspensions`) == 0 {
				rt.Fatal("messages are suspended without a row of suspensions")
			}
		}
		commit(0)
		commit(1)
		waits()
		d.release(0, 10)
		d.exec(`UPDATE outbox SET claimed_by = NULL`)
		d.followApprovals()
		want := 0
		if d.count(`SELECT count(*) FROM senders s JOIN companies c ON c.id = s.company_id WHERE c.id = 1 AND c.approved
			AND s.approved`) == 1 {
			want = len(ids)
		}
		if got := len(d.claim(7, ids...)); got != want || d.suspended() != len(ids)-want {
			rt.Fatalf("%d are claimed and %d suspended, want %d claimed of %d", got, d.suspended(), want, len(ids))
		}
	})
}

// TestSuspendBacklog: it suspends a sender's backlog, but no messages of an approved sender and no claimed ones. All
// are released again.
func TestSuspendBacklog(t *testing.T) {
	d := newHoldStore(t)
	ctx := t.Context()
	ids := d.pending(6)
	d.claim(7, ids[0])
	d.exec(`UPDATE senders SET approved = false`)
	if n, next, err := d.releasing.FollowApproval(ctx, demo, 0); next != 0 || n != 0 || err != nil {
		t.Errorf("without a row of suspensions %d are put off, %v", n, err)
	}
	d.claim(7, ids[1])
	if n, next, err := d.releasing.FollowApproval(ctx, demo, 0); next != 0 || n != 4 || err != nil || d.suspended() != 5 {
		t.Errorf("%d are put off and %d suspended, want 4 and 5, %v", n, d.suspended(), err)
	}
	d.exec(`UPDATE senders SET approved = true`)
	d.exec(`UPDATE outbox SET since = now() + interval '1 hour' WHERE message_id = $1`, ids[5]) // put off for quiet hours
	if n, next, err := d.releasing.FollowApproval(ctx, demo, 0); next != 0 || n != 0 || err != nil {
		t.Errorf("of an approved sender %d are put off, %v", n, err)
	}
	d.followApprovals()
	same(t, "released", idsOf(d.claim(7, ids...)), ids[1:5])
	if d.suspended() != 0 {
		t.Error("a message that was put off is suspended still")
	}
}
