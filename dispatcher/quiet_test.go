package dispatcher

import (
	"context"
	"slices"
	"testing"
	"time"

	"intumwa/dispatcher/core"
	"intumwa/sms"
)

// TestQuietHoursPutOff: when quiet hours begin, waiting batch messages are postponed, except
// those of a company with its own hours. During quiet hours the walk postpones new ones. A
// company's own hours begin at their own time.
func TestQuietHoursPutOff(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	now := time.Now().In(sms.Burundi)
	hours := func(from, to time.Duration) sms.QuietHours {
		t.Helper()
		q, err := sms.ParseQuietHours(now.Add(from).Format("15:04") + "-" + now.Add(to).Format("15:04"))
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	own := map[int64]sms.QuietHours{2: {}}
	b.d.core.Opts.QuietCompanies = func(context.Context) (map[int64]sms.QuietHours, error) { return own, nil }
	b.wait("lumitel", 300)
	b.wait("gone", 100)
	b.exec(`UPDATE outbox SET company_id = 2 WHERE carrier = 'gone'`)
	putOff := func(what string, first, second int) {
		t.Helper()
		if err := b.d.recovery.FindStranded(t.Context()); err != nil { // so that the walk has the lanes
			t.Fatal(err)
		}
		if _, err := b.d.recovery.LookForQuiet(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.walk()
		for company, want := range map[int]int{1: first, 2: second} {
			if n := b.count(`SELECT count(*) FROM outbox WHERE company_id = $1 AND due_at > now() AND pushed_at IS NULL`,
				company); n != want {
				t.Errorf("%s: %d messages of company %d are put off, want %d", what, n, company, want)
			}
		}
	}
	putOff("nobody has quiet hours", 0, 0)
	b.exec(`UPDATE outbox SET pushed_at = now() - interval '1 hour' WHERE message_id % 3 = 0`) // the queue has lost them
	b.d.core.Opts.QuietHours = hours(-time.Hour, 2*time.Hour)
	putOff("they begin", 300, 0)
	b.wait("lumitel", 10)
	b.walk()
	putOff("more messages come", 310, 0)
	own[2] = hours(-time.Hour, 3*time.Hour)
	putOff("the company's own begin", 310, 100)
}

// TestQuietHoursEndTheRest: the start of quiet hours ends the walk's rest.
func TestQuietHoursEndTheRest(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.wait("lumitel", 5)
	now := time.Now().In(sms.Burundi)
	recovery, _ := b.d.tasks()
	tasks := slices.DeleteFunc(recovery, func(of *core.Task) bool {
		return of.Name != "quiet" &&
			of.Name != "walk_outbox"
	})
	for _, hours := range []string{"", now.Add(-time.Hour).Format("15:04") + "-" + now.Add(2*time.Hour).Format("15:04")} {
		b.d.core.Opts.QuietHours, _ = sms.ParseQuietHours(hours)
		if err := b.d.core.DoTasks(t.Context(), tasks); err != nil {
			t.Fatal(err)
		}
		tasks[0].Next, tasks[1].Next = time.Time{}, time.Now().Add(core.RestMost)
	}
	if n := b.count(`SELECT count(*) FROM outbox WHERE due_at > now() AND pushed_at IS NULL`); n != 5 {
		t.Errorf("%d messages are put off", n)
	}
}
