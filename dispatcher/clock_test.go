package dispatcher_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"intumwa/internal/testenv"
	"intumwa/tools/carriersim"
)

// sendLasting sends short texts that are valid for days, because this process does not use the
// database clock that the test has set.
func (w *world) sendLasting(n int) []int64 {
	w.Helper()
	notes := make([]note, n)
	for i := range notes {
		notes[i] = note{to: w.number("00"), validity: 72 * time.Hour}
	}
	return w.send(notes...)
}

// TestBacklogAfterTheClockWentBack: after the database's clock was set back by an hour, the
// runbook's statement sends a carrier's backlog at once, except messages that wait for the end
// of quiet hours.
func TestBacklogAfterTheClockWentBack(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/runbooks/clock.md")
	if err != nil {
		t.Fatal(err)
	}
	_, statement, _ := strings.Cut(string(page), `-c "update outbox`)
	statement, _, found := strings.Cut(statement, `"`)
	if !found {
		t.Fatal("the runbook has no statement")
	}
	w := newWorld(t)
	clock := testenv.NewClock(t, w.pool, w.hot)
	mno := w.carrier(carriersim.Options{NoFates: true})
	ids := w.sendLasting(10)
	quiet := w.sendLasting(1)[0]
	exec := func(statement string, args ...any) {
		t.Helper()
		w.exec(statement, args...)
	}
	clock.Set(-time.Hour)
	exec(`UPDATE outbox SET due_at = now() + interval '30 minutes', since = now() + interval '30 minutes', pushed_at = NULL
		WHERE message_id = $1`, quiet)
	w.start(mno.mno())
	w.await("sent", 10*time.Second, w.sendLasting(1)...) // new messages are not delayed
	w.stays(time.Second, "what waited waits", func() bool { return mno.Stats().Accepted == 1 })
	exec("update outbox" + statement)
	w.await("sent", 10*time.Second, ids...)
	if status, _ := w.statusOf(quiet); status != "pending" {
		t.Errorf("what waits for the end of quiet hours is %s", status)
	}
}
