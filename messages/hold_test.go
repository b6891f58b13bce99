package messages_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
	"intumwa/messages"
)

// holdStore is a testStore with a company, 1, whose approval comes and goes, and another
// connection for the one who lets go what is held.
type holdStore struct {
	*testStore
	letting *messages.Store
}

func newHoldStore(t *testing.T) *holdStore {
	t.Helper()
	url := testenv.Database(t)
	open := func(change ...string) *pgxpool.Pool {
		t.Helper()
		change = append(change, "lock_timeout=60000", "idle_in_transaction_session_timeout=60000") // a slow machine is no fault
		pool, err := postgres.Open(t.Context(), url+joined(url, change), postgres.Options{BatchUpdates: true, StatementTimeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		return pool
	}
	pool := open()
	d := &holdStore{testStore: &testStore{TB: t, pool: pool, Store: messages.New(pool), matcher: newMatcher()},
		letting: messages.New(open("application_name=letting"))}
	d.exec(`INSERT INTO users (email, name, password_hash) VALUES ('a@b', 'A', 'x')`)
	d.exec(`INSERT INTO companies (owner_id, name, approved) SELECT id, 'A', true FROM users`)
	if n := d.count(`SELECT id FROM companies`); n != 1 {
		t.Fatalf("the company is %d", n)
	}
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

// approve gives the company its approval, or takes it away.
func (d *holdStore) approve(is bool) error {
	_, err := d.pool.Exec(d.Context(), `UPDATE companies SET approved = $1 WHERE id = 1`, is)
	return err
}

func (d *holdStore) held() int {
	d.Helper()
	return d.count(`SELECT count(*) FROM outbox WHERE due_at > now() + interval '1 year'`)
}

// TestHoldBesideUnhold: the approval is taken away again, and perhaps given again, at every moment at which the one who lets go
// looks at the outbox. Nothing is let go behind the withdrawal, and nothing is held for ever.
func TestHoldBesideUnhold(t *testing.T) {
	for _, again := range []bool{false, true} {
		looks := 1
		for ; looks < 20; looks++ {
			t.Run(fmt.Sprintf("approved again: %v, look %d", again, looks), func(t *testing.T) {
				if !holdBesideUnhold(t, looks, again) {
					looks = 20 // there is no such look
				}
			})
		}
	}
}

// stallAt has whoever lets go wait at its n-th look at the outbox, as long as the lock 77 is held, with what it knew before.
func (d *holdStore) stallAt(n int) {
	d.Helper()
	d.exec(`CREATE SEQUENCE looks`)
	d.exec(fmt.Sprintf(`CREATE FUNCTION look() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
			IF current_setting('application_name') = 'letting' AND nextval('looks') = %d THEN
				PERFORM pg_advisory_lock_shared(77);
				PERFORM pg_advisory_unlock_shared(77);
			END IF;
			RETURN true;
		END $$`, n))
	d.exec(`ALTER TABLE outbox RENAME TO outbox_rows`)
	d.exec(`CREATE VIEW outbox AS SELECT * FROM outbox_rows WHERE (SELECT look())`)
}

// holdBesideUnhold plays it at the n-th look; false: there is none.
func holdBesideUnhold(t *testing.T, n int, again bool) (stalled bool) {
	d := newHoldStore(t)
	ctx := t.Context()
	ids := d.pending(2)
	hold := func() error { _, err := d.Hold(ctx, ids); return err }
	must := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	must(d.approve(false))
	if n%2 == 0 { // with something to let go, and without
		must(hold())
	}
	must(d.approve(true))
	d.stallAt(n)
	gate, err := d.pool.Acquire(ctx)
	must(err)
	defer gate.Release()
	_, err = gate.Exec(ctx, `SELECT pg_advisory_lock(77)`)
	must(err)
	letting := make(chan error, 1)
	go func() { _, err := d.letting.Unhold(ctx, 1); letting <- err }()
	waits := func(event string) bool {
		return d.count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND wait_event = $1`, event) > 0
	}
	for !stalled {
		select {
		case err := <-letting: // it came to its end before
			must(err)
			_, err = gate.Exec(ctx, `SELECT pg_advisory_unlock(77)`)
			must(err)
			return false
		case <-time.After(5 * time.Millisecond):
			stalled = waits("advisory")
		}
	}
	// While it stands there, the approval goes, the walk comes by, and the approval may be given again.
	withdrawn := make(chan error, 1)
	go func() { withdrawn <- d.approve(false) }()
	behind, held := false, 0
	for busy := true; busy; {
		select {
		case err := <-withdrawn:
			must(err, hold())
			behind, busy, held = true, false, d.held()
			if again {
				must(d.approve(true))
			}
		case <-time.After(5 * time.Millisecond):
			busy = !waits("tuple") && !waits("transactionid")
		}
	}
	_, err = gate.Exec(ctx, `SELECT pg_advisory_unlock(77)`)
	must(err, <-letting)
	if !behind {
		must(<-withdrawn)
	}
	if now := d.held(); behind && !again && now < held {
		t.Errorf("%d were held when the approval was gone, and %d are", held, now)
	}
	must(hold())
	if !again || !behind {
		if got := d.held(); d.count(`SELECT count(*) FROM companies WHERE approved`) == 0 && got != 2 {
			t.Errorf("%d of 2 are held", got)
		}
		must(d.approve(true))
	}
	_, err = d.letting.Unhold(ctx, 1) // the next round
	must(err)
	if n, rows := d.held(), d.count(`SELECT count(*) FROM holds`); n+rows != 0 {
		t.Errorf("%d are held for ever, behind %d holds", n, rows)
	}
	return true
}

// TestHoldsInAnyOrder: an administrator takes the approval away and gives it, in transactions that stay open for a while, beside
// the walk, the release of what is scheduled, the one who lets go and dispatchers. In the end nothing is due of a company that is
// not approved, and nothing is held of one that is.
func TestHoldsInAnyOrder(t *testing.T) {
	d := newHoldStore(t)
	ctx := t.Context()
	var ids []int64
	rapid.Check(t, func(rt *rapid.T) {
		d.exec(`DELETE FROM outbox`)
		d.exec(`DELETE FROM scheduled`)
		d.exec(`DELETE FROM holds`)
		d.exec(`UPDATE companies SET approved = true`)
		d.exec(`DELETE FROM holds`)
		ids = append(d.pending(2), d.pending(2, later(time.Now().Add(-time.Second)))...)
		var (
			admin   pgx.Tx
			running int
			ended   = make(chan error)
			locked  []*messages.Claimed
		)
		start := func(do func() error) {
			if running == 3 { // each has a connection
				return
			}
			running++
			go func() { ended <- do() }()
		}
		// rests waits until whatever runs has ended, or waits for a lock.
		rests := func() {
			for running > 0 {
				select {
				case err := <-ended:
					if running--; err != nil {
						rt.Fatal(err)
					}
				case <-time.After(2 * time.Millisecond):
					if n := d.count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`); n == running {
						return
					}
				}
			}
		}
		commits := func() {
			if admin == nil {
				return
			}
			if err := admin.Commit(ctx); err != nil {
				rt.Fatal(err)
			}
			admin = nil
		}
		defer func() {
			if admin != nil {
				_ = admin.Rollback(ctx)
			}
		}()
		steps := []func(){
			func() { // the approval changes, and is not committed yet
				if admin != nil || running > 0 {
					return
				}
				tx, err := d.pool.Begin(ctx)
				if err != nil {
					rt.Fatal(err)
				}
				admin = tx
				if _, err := tx.Exec(ctx, `UPDATE companies SET approved = NOT approved`); err != nil {
					rt.Fatal(err)
				}
			},
			commits,
			func() { start(func() error { return d.approve(true) }) },
			func() { start(func() error { return d.approve(false) }) },
			func() { start(func() error { _, err := d.Hold(ctx, ids); return err }) },
			func() {
				start(func() error { _, _, err := d.ReleaseScheduled(ctx, 0, 1, messages.Quiet{}, messages.Due{}); return err })
			},
			func() { start(func() error { _, err := d.letting.Unhold(ctx, 1); return err }) },
			func() { locked = append(locked, d.claim(7, ids...)...) },
			func() {
				if err := d.Release(ctx, 7, claimsOf(locked), 0); err != nil {
					rt.Fatal(err)
				}
				locked = nil
			},
		}
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			steps[rapid.IntRange(0, len(steps)-1).Draw(rt, "step")]()
			rests()
			if running == 0 && admin == nil && d.held() > 0 && d.count(`SELECT count(*) FROM holds`) == 0 {
				rt.Fatal("messages are held, and nobody knows of it")
			}
		}
		commits()
		for running > 0 {
			if err := <-ended; err != nil {
				rt.Fatal(err)
			}
			running--
		}
		if err := d.Release(ctx, 7, claimsOf(locked), 0); err != nil {
			rt.Fatal(err)
		}
		if _, _, err := d.ReleaseScheduled(ctx, 0, 10, messages.Quiet{}, messages.Due{}); err != nil {
			rt.Fatal(err)
		}
		// The tasks' next round.
		if _, err := d.letting.Unhold(ctx, 1); err != nil {
			rt.Fatal(err)
		}
		if _, err := d.Hold(ctx, ids); err != nil {
			rt.Fatal(err)
		}
		want := len(ids)
		if d.count(`SELECT count(*) FROM companies WHERE approved`) == 1 {
			want = 0
		}
		if got := d.held(); got != want {
			rt.Fatalf("%d are held, want %d", got, want)
		}
	})
}

// TestUnholdReadsOn: what was let go is not read again in the same round, however long a snapshot keeps it.
func TestUnholdReadsOn(t *testing.T) {
	const held = 20_000
	d := newHoldStore(t)
	ctx := t.Context()
	if err := d.approve(false); err != nil {
		t.Fatal(err)
	}
	d.exec(`INSERT INTO outbox (message_id, company_id, carrier, lane, due_at, expires_at, pushed_at)
		SELECT n, 1, 'lumitel', 1, '9999-12-31T00:00:00Z', now() + interval '1 day', NULL FROM generate_series(1, $1) n`, held)
	if err := d.approve(true); err != nil {
		t.Fatal(err)
	}
	d.exec(`ANALYZE outbox`)
	snapshot, err := d.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = snapshot.Rollback(context.WithoutCancel(ctx)) }()
	if _, err := snapshot.Exec(ctx, `SELECT FROM outbox LIMIT 1`); err != nil {
		t.Fatal(err)
	}
	// What a session has read is told when it ends.
	url := d.pool.Config().ConnString()
	pool, err := postgres.Open(ctx, url+joined(url, []string{"application_name=counted"}), postgres.Options{BatchUpdates: true, MaxConns: 1, StatementTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	n, err := messages.New(pool).Unhold(ctx, 1)
	pool.Close()
	if err != nil || n != held {
		t.Fatalf("%d are let go, %v", n, err)
	}
	read := func() int {
		return d.count(`SELECT sum(idx_tup_read)::bigint FROM pg_stat_user_indexes WHERE relname = 'outbox'`)
	}
	for end := time.Now().Add(time.Minute); read() < held || d.count(`SELECT count(*) FROM pg_stat_activity WHERE application_name = 'counted'`) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d entries of indexes were read", read())
		}
	}
	// To let go, to find the row again that is changed, and to see that none is left.
	if got := read(); got > 4*held {
		t.Errorf("%d entries of indexes were read for %d messages", got, held)
	}
}
