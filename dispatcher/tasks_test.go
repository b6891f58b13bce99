package dispatcher

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// tasks does every task once and returns what those say that failed.
func (b *bench) tasks() error {
	b.Helper()
	var failed error
	tasks := b.d.newTasks()
	for _, t := range tasks {
		run := t.run
		t.run = func(ctx context.Context) error {
			err := run(ctx)
			failed = errors.Join(failed, err)
			return err
		}
	}
	if err := b.d.round(b.Context(), tasks); err != nil {
		b.Fatal(err)
	}
	return failed
}

// TestTaskTimes: a task is done when it is due, and rests as long as its price
// says; one that somebody's death makes due is done at once; who has not the
// lock does none.
func TestTaskTimes(t *testing.T) {
	b := newBench(t)
	b.d.opts.SweepInterval = time.Hour
	var done []string
	var dear time.Duration
	other := func(name string, every time.Duration, cost *time.Duration) *task {
		made := &task{name: name, every: every, run: func(context.Context) error {
			done = append(done, name)
			if cost != nil {
				time.Sleep(*cost)
			}
			return nil
		}}
		if cost != nil {
			made.rest = swept
		}
		return made
	}
	tasks := []*task{b.d.newTasks()[0], other("often", 0, nil), other("dear", 0, &dear), other("seldom", 10*time.Hour, nil)}
	tasks[0].run = other("free", 0, nil).run
	b.d.opts.SweepInterval = 0
	round := func(want string) {
		t.Helper()
		done = nil
		if err := b.d.round(t.Context(), tasks); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(done, " "); got != want {
			t.Errorf("done: %q, want %q", got, want)
		}
	}
	dear = 200 * time.Millisecond
	round("free often dear seldom")
	round("often") // the dear one rests for ten seconds
	b.d.deaths.note()
	round("free often")
	tasks[2].next = time.Now()
	round("often dear")

	tx, err := b.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SELECT pg_advisory_xact_lock($1)`, tasksLock); err != nil {
		t.Fatal(err)
	}
	round("")
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	round("often")
}

// TestTaskTrouble: a task that cannot be done is told of by its name, once, and
// so is that it can again; its metric stands still meanwhile.
func TestTaskTrouble(t *testing.T) {
	b := newBench(t)
	failure := errors.New("no")
	ran := 0
	forget := &task{name: "forget", run: func(context.Context) error { ran++; return failure }}
	for range 2 {
		if err := b.d.round(t.Context(), []*task{forget}); err != nil {
			t.Error(err)
		}
		forget.next = time.Time{}
	}
	if n := b.metric("intumwa_task_last_success_timestamp_seconds"); n != 0 || !forget.failing || ran != 2 {
		t.Errorf("metric %v, failing %v, ran %d times", n, forget.failing, ran)
	}
	failure = nil
	if err := b.d.round(t.Context(), []*task{forget}); err != nil || forget.failing {
		t.Errorf("%v, failing %v", err, forget.failing)
	}
	names := []string{}
	for _, task := range b.d.newTasks() {
		if slices.Contains(names, task.name) {
			t.Errorf("two tasks are called %s", task.name)
		}
		names = append(names, task.name)
	}
}
