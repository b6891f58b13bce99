package dispatcher

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"intumwa/dispatcher/core"
	"intumwa/messages"
)

// tasks does every task once and returns the errors.
func (b *bench) tasks() error {
	b.Helper()
	var failed error
	recovery, housekeeping := b.d.tasks()
	tasks := append(recovery, housekeeping...)
	for _, t := range tasks {
		run := t.Run
		t.Run = func(ctx context.Context) error {
			err := run(ctx)
			failed = errors.Join(failed, err)
			return err
		}
	}
	if err := b.d.core.DoTasks(b.Context(), tasks); err != nil {
		b.Fatal(err)
	}
	return failed
}

// TestTaskTimes: a task runs when it is due, and rests by its duration. free_claims
// runs at once after a death. A process without the lease runs none.
func TestTaskTimes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.listedWith()
	b.d.core.Opts.SweepInterval = time.Hour
	var done []string
	var dear time.Duration
	other := func(name string, every time.Duration, cost *time.Duration) *core.Task {
		made := &core.Task{Name: name, Every: every, Run: func(context.Context) error {
			done = append(done, name)
			if cost != nil {
				time.Sleep(*cost)
			}
			return nil
		}}
		if cost != nil {
			made.Rest = core.Swept
		}
		return made
	}
	recovery, _ := b.d.tasks()
	tasks := []*core.Task{recovery[0], other("often", 0, nil), other("dear", 0, &dear), other("seldom", 10*time.Hour, nil)}
	free := other("free", 0, nil).Run
	tasks[0].Run = func(ctx context.Context) error { b.d.recovery.Deaths.Unfreed.Store(false); return free(ctx) }
	b.d.core.Opts.SweepInterval = 0
	round := func(want string) {
		t.Helper()
		done = nil
		if err := b.d.core.Round(t.Context(), core.RecoveryLease, tasks); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(done, " "); got != want {
			t.Errorf("done: %q, want %q", got, want)
		}
	}
	dear = 200 * time.Millisecond
	round("free often dear seldom")
	round("often") // the slow one rests for ten seconds
	b.d.recovery.Deaths.Note()
	round("free often")
	tasks[2].Next = time.Now()
	round("often dear")

	beside := core.NewLeases(b.pool, b.d.core.Log, b.d.core.Opts)
	if err := beside.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	if held, err := beside.Acquire(t.Context(), core.RecoveryLease); err != nil || len(held) != 1 {
		t.Fatal(held, err)
	}
	round("")
	beside.Leave()
	round("often")
}

// TestTaskTrouble: the metric of a failing task does not change until it succeeds. Task names are unique.
func TestTaskTrouble(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	failure := errors.New("no")
	ran := 0
	forget := &core.Task{Name: "forget", Run: func(context.Context) error { ran++; return failure }}
	for range 2 {
		if err := b.d.core.DoTasks(t.Context(), []*core.Task{forget}); err != nil {
			t.Error(err)
		}
		forget.Next = time.Time{}
	}
	if n := b.metric("intumwa_task_last_success_timestamp_seconds"); n != 0 || ran != 2 {
		t.Errorf("metric %v, ran %d times", n, ran)
	}
	failure = nil
	if err := b.d.core.DoTasks(t.Context(), []*core.Task{forget}); err != nil ||
		b.metric("intumwa_task_last_success_timestamp_seconds") == 0 {
		t.Errorf("it succeeded: %v", err)
	}
	names := []string{}
	recovery, housekeeping := b.d.tasks()
	for _, task := range append(recovery, housekeeping...) {
		if slices.Contains(names, task.Name) {
			t.Errorf("two tasks are called %s", task.Name)
		}
		names = append(names, task.Name)
	}
}

// TestTasksInOneProcess: while one process does the tasks no other does, even if the server
// ends every session that is idle in a transaction. A process that may have been replaced
// ends its round.
func TestTasksInOneProcess(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	other := b.beside(8)
	for _, d := range []*Dispatcher{b.d, other.d} {
		d.core.Opts.DeadAfter = time.Minute // nobody renews them
		if err := d.member.Register(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(d.member.Leave)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- b.d.core.Round(ctx, core.HousekeepingLease,
			[]*core.Task{{Name: "forget", Run: func(ctx context.Context) error {
				close(began)
				<-ctx.Done()
				return ctx.Err()
			}}})
	}()
	<-began
	b.count(`SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database()
		AND state = 'idle in transaction'`)
	two := false
	if err := other.d.core.Round(ctx, core.HousekeepingLease,
		[]*core.Task{{Name: "forget", Run: func(context.Context) error { two = true; return nil }}}); err != nil || two {
		t.Errorf("both processes do the tasks: %v, %v", two, err)
	}
	b.d.member.Beat.Store(-int64(time.Hour))
	select {
	case err := <-ended:
		if err == nil {
			t.Error("a round that was ended has no error")
		}
	case <-time.After(20 * time.Second):
		t.Error("a process that may have been replaced does the tasks")
		cancel()
		if err := <-ended; err == nil {
			t.Error("a cancelled round has no error")
		}
	}
}

// TestRecoveryGoesOn: while a task of housekeeping has long work, the claims of a dead dispatcher are freed, and the
// other tasks of housekeeping have their turns.
func TestRecoveryGoesOn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const backlog = 15_000
	b.exec(`WITH m AS (INSERT INTO messages (ulid, company_id, user_id, phone_number, sender, body, encoding, segments,
		test, carrier)
			SELECT gen_random_uuid(), 1, 1, '+25761' || lpad(n::text, 6, '0'), 'DEMO', 'x', 0, 1, false, 'lumitel'
				FROM generate_series(1, $1) n RETURNING id)
		INSERT INTO outbox (message_id, company_id, carrier, lane, expires_at) SELECT id, 1, 'lumitel', $2,
			now() + interval '1 day' FROM m`, backlog, messages.LaneBatch)
	b.d.core.Opts.SweepInterval = 50 * time.Millisecond
	b.exec(`CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.004); RETURN NEW; END'`)
	b.exec(`CREATE TRIGGER slowly BEFORE UPDATE OF due_at ON outbox FOR EACH ROW WHEN (NEW.due_at > '9000-01-01'
		AND NEW.message_id % 20 = 0) EXECUTE FUNCTION slowly()`)
	b.exec(`UPDATE senders SET approved = false`)
	b.exec(`INSERT INTO suspensions (company_id, sender) VALUES (1, 'DEMO')`)
	if err := b.d.member.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.d.member.Leave)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { b.d.member.Keep(ctx) })
	running.Go(func() { b.d.runTasks(ctx) })
	defer running.Wait()
	defer cancel()
	suspended := func() int { return b.count(`SELECT count(*) FROM outbox WHERE due_at > '9000-01-01'`) }
	until(t, "it works on the sender", func() bool { return suspended() > 0 })
	b.exec(`UPDATE outbox SET claimed_by = 99 WHERE message_id = (SELECT max(message_id) FROM outbox)`)
	b.d.recovery.Deaths.Note()
	last := func() float64 { return testutil.ToFloat64(b.d.core.Metrics.Tasks.WithLabelValues("pay_refunds")) }
	paid := last()
	until(t, "the claim is freed", func() bool {
		return b.count(`SELECT count(*) FROM outbox WHERE claimed_by IS NOT NULL`) == 0
	})
	until(t, "another task has its turn", func() bool { return last() > paid })
	if n := suspended(); n >= backlog-1 {
		t.Error("both came only when the long work was done")
	}
	until(t, "the whole backlog is suspended", func() bool { return suspended() >= backlog-1 })
}
