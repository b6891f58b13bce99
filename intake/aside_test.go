package intake

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"intumwa/accounts"
	"intumwa/accounts/companies"
	"intumwa/billing"
	"intumwa/internal/postgres"
	"intumwa/internal/queue"
	"intumwa/internal/testenv"
	"intumwa/messages"
	"intumwa/messages/statistics"
	"intumwa/sms"
)

// customer adds a customer with a company, credits and a sender of its own, and the same test number.
func (d *district) customer(t testing.TB, name string, credits int64) *accounts.Principal {
	t.Helper()
	ctx := context.Background()
	email := name + "@example.com"
	if _, err := d.pool.Exec(ctx, `INSERT INTO users (email, name, password_hash) VALUES ($1, $2, 'none')`, email,
		name); err != nil {
		t.Fatal(err)
	}
	_, token, err := d.keys.CreateToken(ctx, email, "test", accounts.TokenLimits{})
	if err != nil {
		t.Fatal(err)
	}
	var company int64
	err = pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		c, err := d.companies.CreateCompany(ctx, tx, companies.NewCompany{OwnerEmail: email, Name: name, Approved: true,
			Verified: true})
		if err != nil {
			return err
		}
		company = c.ID
		if err := billing.Open(ctx, tx, c.ID); err != nil {
			return err
		}
		_, err = billing.Grant(ctx, tx, c.ID, credits, "test")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.senders.CreateSender(ctx, company, "ACME", "", true); err != nil {
		t.Fatal(err)
	}
	p, err := d.holders.Authenticate(ctx, token)
	if err != nil {
		t.Fatal(err)
	}
	p.TestNumber = "+25779123456"
	return p
}

// apart returns a process with a pool and a log of its own.
func (d *district) apart(t testing.TB) (in *Intake, log *logbook) {
	t.Helper()
	pool := d.another(t)
	rdb, prefix := testenv.Redis(t)
	routes, err := sms.NewRoutes([]sms.Route{{Carrier: "leo", Default: true}})
	if err != nil {
		t.Fatal(err)
	}
	log = &logbook{}
	in = New(pool, d.holders, d.testNumbers, messages.New(pool), queue.New(rdb, queue.Options{Prefix: prefix}), routes,
		Options{TestSender: "TEST", TestQuota: 5, Log: slog.New(slog.NewTextHandler(log, nil))})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = in.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return in, log
}

// another returns a second pool of the same database.
func (d *district) another(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool, err := postgres.Open(t.Context(), d.pool.Config().ConnString(), postgres.Options{BatchUpdates: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// lockRows locks rows until release is called.
func (d *district) lockRows(t testing.TB, query string, args ...any) (release func()) {
	t.Helper()
	ctx := context.Background()
	tx, err := d.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, `SET LOCAL idle_in_transaction_session_timeout = 0`); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, query, args...); err != nil {
		t.Fatal(err)
	}
	release = sync.OnceFunc(func() { _ = tx.Rollback(ctx) })
	t.Cleanup(release)
	return release
}

type logbook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logbook) lines(with string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, with) {
			n++
		}
	}
	return n
}

// TestTestUsersDoNotStallOthers: while two accounts with used-up quotas send as much as they can to two processes, a
// paying customer's sends continue without deadlocks.
func TestTestUsersDoNotStallOthers(t *testing.T) {
	d := newDistrict(t, 1000)
	testers := []*accounts.Principal{d.customer(t, "t1", 1), d.customer(t, "t2", 1)}
	var processes []*Intake
	var logs []*logbook
	for range 2 {
		in, log := d.apart(t)
		processes, logs = append(processes, in), append(logs, log)
	}
	over, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			for over.Err() == nil {
				_, err := processes[i%2].Send(t.Context(), testers[i/2%2],
					Single{Number: "+25779123456", Sender: "TEST", Message: "x"})
				if _, refused := errors.AsType[sms.Refusal](err); err != nil && !refused {
					t.Errorf("a test message: %v", err)
				}
			}
		})
	}
	const sends = 100
	start := time.Now()
	for i := range sends {
		if _, err := processes[i%2].Send(t.Context(), d.principal, d.request("x", nil)); err != nil {
			t.Error(err)
		}
	}
	took := time.Since(start)
	stop()
	wg.Wait()
	if took > 30*time.Second {
		t.Errorf("%d sends took %s", sends, took)
	}
	t.Logf("%d sends took %s", sends, took)
	for _, log := range logs {
		if n := log.lines("event=group_commit_halved"); n != 0 {
			t.Errorf("a deadlock: %s", log.text.String())
		}
	}
	var deadlocks, used int
	if err := d.pool.QueryRow(t.Context(), `SELECT (SELECT deadlocks FROM pg_stat_database
		WHERE datname = current_database()), (SELECT sum(test_used) FROM balances)`).
		Scan(&deadlocks, &used); err != nil || deadlocks != 0 || used != 10 {
		t.Errorf("%d deadlocks, %d segments of 10 used, %v", deadlocks, used, err)
	}
}

// TestLockedBalance: a locked balance delays its own company's requests only. They run when it is free, or are refused
// after their time.
func TestLockedBalance(t *testing.T) {
	d := newDistrict(t, 1000)
	locked := d.customer(t, "locked", 1000)
	in, log := d.apart(t)
	send := func(p *accounts.Principal) error {
		_, err := in.Send(t.Context(), p, d.request("x", nil))
		return err
	}
	for _, c := range []struct {
		how  string
		ends func(release func()) error
		done bool
	}{
		{"freed in time", func(release func()) error { release(); return nil }, true},
		{"locked too long", func(func()) error { return ErrUnavailable }, false},
	} {
		t.Run(c.how, func(t *testing.T) {
			release := d.lockRows(t, `SELECT FROM balances WHERE company_id = $1 FOR UPDATE`, locked.Company.ID)
			waiting := make(chan error, 3)
			for range cap(waiting) {
				go func() { waiting <- send(locked) }()
			}
			start := time.Now()
			for i := range 15 { // while some find the lock, and others wait aside
				if err := send(d.principal); err != nil {
					t.Errorf("send %d: %v", i, err)
				}
			}
			if took := time.Since(start); took > 4*time.Second { // a lock's timeout is longer
				t.Errorf("15 sends of another company took %s", took)
			}
			select {
			case err := <-waiting:
				t.Errorf("its own request did not wait: %v", err)
			default:
			}
			want := c.ends(release)
			for range cap(waiting) {
				if err := <-waiting; !errors.Is(err, want) {
					t.Errorf("its own request: %v, want %v", err, want)
				}
			}
			release()
			if err := send(locked); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
	if n := log.lines("event=balance_locked"); n < 1 || n > 3 {
		t.Errorf("%d lines of it: %s", n, log.text.String())
	}
	d.sound(t, 30+4+1)
}

// TestLockedBalanceAmongOthers: in a group where every second request meets a locked balance, few of the halves wait
// for it, and the other requests are committed.
func TestLockedBalanceAmongOthers(t *testing.T) {
	d := newDistrict(t, 1000)
	locked := d.customer(t, "locked", 1000)
	in, _ := d.apart(t)
	registry := prometheus.NewRegistry()
	registry.MustRegister(in.metrics.perCommit)
	release := d.lockRows(t, `SELECT FROM balances WHERE company_id = $1 FOR UPDATE`, locked.Company.ID)
	var requests []*request
	for i := range 64 {
		r, err := in.single(t.Context(), []*accounts.Principal{d.principal, locked}[i%2], d.request("x", nil), kindSingle)
		if err != nil {
			t.Fatal(err)
		}
		r.done, r.came = make(chan struct{}), time.Now()
		requests = append(requests, r)
	}
	in.committer.process(t.Context(), requests, groupLockWait)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if tries := families[0].Metric[0].Histogram.GetSampleCount(); tries > 20 {
		t.Errorf("%d tries", tries)
	}
	release()
	for i, r := range requests {
		if <-r.done; r.err != nil || !r.admitted {
			t.Errorf("request %d: admitted %v, %v", i, r.admitted, r.err)
		}
	}
	d.sound(t, 64)
}

// sound audits the ledgers of all companies and counts the messages.
func (d *district) sound(t testing.TB, count int) {
	t.Helper()
	_, mismatches, err := billing.New(d.pool).Audit(t.Context())
	audit, err2 := statistics.New(d.pool).Audit(t.Context(), time.Hour)
	var n int
	err3 := d.pool.QueryRow(t.Context(), `SELECT count(*) FROM messages`).Scan(&n)
	if err := errors.Join(err, err2, err3); err != nil || mismatches != 0 || audit.Unpaid != 0 || audit.Unrecorded != 0 ||
		n != count {
		t.Errorf("%d mismatches, %+v, %d messages (want %d), %v", mismatches, audit, n, count, err)
	}
}

// TestDeadlockedGroupIsSplit: a group that is the victim of each deadlock is tried in halves: no request is refused,
// and the log has one line for the group.
func TestDeadlockedGroupIsSplit(t *testing.T) {
	d := newDistrict(t, 1000)
	other := d.customer(t, "other", 1000)
	// This server process must detect the deadlock first.
	if _, err := d.pool.Exec(t.Context(), `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET deadlock_timeout = 1500',
		current_database()); END $$`); err != nil {
		t.Fatal(err)
	}
	in, log := d.apart(t)
	holds := make(chan struct{})
	var opponent sync.WaitGroup
	opponent.Go(func() {
		if err := d.ring(t.Context(), other.Company.ID, d.principal.Company.ID, 3, holds); err != nil {
			t.Errorf("the opponent: %v", err)
		}
	})
	defer opponent.Wait()

	var requests []*request
	for i := range 8 {
		p := []*accounts.Principal{d.principal, other}[i/4]
		r, err := in.single(t.Context(), p, d.request(fmt.Sprint(i), nil), kindSingle)
		if err != nil {
			t.Fatal(err)
		}
		r.done, r.came = make(chan struct{}), time.Now()
		requests = append(requests, r)
	}
	<-holds
	for _, r := range requests {
		r.came = time.Now()
	}
	// The committer's own lock wait is too short for a deadlock on a loaded machine.
	requests, err := in.committer.try(t.Context(), requests, 20*time.Second)
	if !postgres.GaveWay(err) {
		t.Errorf("the group: %v, want a deadlock", err)
	}
	in.committer.finish(t.Context(), requests, err)
	for i, r := range requests {
		<-r.done
		if r.err != nil || !r.admitted {
			t.Errorf("request %d: admitted %v, %v", i, r.admitted, r.err)
		}
	}
	if n := log.lines("event=group_commit_halved"); n != 1 {
		t.Errorf("%d lines of it, want 1: %s", n, log.text.String())
	}
	d.sound(t, 8)
}

// ring locks first and, whenever another transaction waits for it, second for a moment; it does so several times.
// Transactions in the other order deadlock with it each time.
func (d *district) ring(ctx context.Context, first, second int64, times int, holds chan<- struct{}) error {
	return pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		if _,
			err := tx.Exec(
			ctx, `SET LOCAL deadlock_timeout = '60s'; SET LOCAL idle_in_transaction_session_timeout = 0`); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `SELECT FROM balances WHERE company_id = $1 FOR UPDATE`, first); err != nil {
			return err
		}
		close(holds)
		for range times {
			for waits := false; !waits; {
				if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted
					AND pg_backend_pid() = ANY(pg_blocking_pids(pid)))`).Scan(&waits); err != nil {
					return err
				}
			}
			if _, err := tx.Exec(ctx, `SAVEPOINT alone`); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, `SELECT FROM balances WHERE company_id = $1 FOR UPDATE`, second); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, `ROLLBACK TO alone`); err != nil {
				return err
			}
		}
		return nil
	})
}
