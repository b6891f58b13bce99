package dispatcher_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"intumwa/billing"
	"intumwa/dispatcher/setup"
	"intumwa/inbound/handsets"
	"intumwa/messages"
	"intumwa/sms"
	"intumwa/tools/carriersim"
)

// account opens a company's account.
func (w *world) account(company int64) {
	w.Helper()
	if err := pgx.BeginFunc(w.Context(), w.pool, func(tx pgx.Tx) error {
		if err := billing.Open(w.Context(), tx, company); err != nil {
			return err
		}
		_, err := billing.Grant(w.Context(), tx, company, 10_000, "")
		return err
	}); err != nil {
		w.Fatal(err)
	}
}

func (w *world) optsOut(company int64, number sms.Number, sender string) {
	w.Helper()
	if _, err := handsets.New(w.pool).OptOut(w.Context(), sms.CompanyID(company),
		[]handsets.OptOut{{Number: number, Sender: sender, Source: handsets.ByHandset}}); err != nil {
		w.Fatal(err)
	}
}

// paidBack returns how many messages of a company were refunded, and how many refunds there were.
func (w *world) paidBack(company int64) (messages, times int) {
	w.Helper()
	return w.count(`SELECT count(DISTINCT ref) FROM ledger WHERE kind = 'refund' AND company_id = $1`, company),
		w.count(`SELECT count(*) FROM ledger WHERE kind = 'refund' AND company_id = $1`, company)
}

// TestStopHoldsForWhatWaits: messages accepted before a handset opted out, single or in a batch, fail when they would
// go out, and are refunded. Messages of another company, or after the handset has opted in again, go out.
// rule choices 9.4
func TestStopHoldsForWhatWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mno, late := w.carrier(carriersim.Options{}), w.carrier(carriersim.Options{})
	w.account(1)
	w.account(2)
	w.start(mno.mno())
	batch := &messages.Batch{ULID: ulid.Make(), CompanyID: 1, UserID: 1, Kind: "bulk", Sender: "DEMO", Recipients: 1,
		Segments: 1}
	at := time.Now().Add(time.Hour)
	gone, back, busy := w.number("00"), w.number("00"), w.number("43")
	ids := w.send(
		note{to: gone, company: 1, sendAt: at},               // 0: scheduled
		note{to: gone, company: 1, sendAt: at, batch: batch}, // 1
		note{to: gone, company: 1, carrier: "leo"},           // 2: its carrier is not running yet
		note{to: busy, company: 1},                           // 3: its carrier's queue is full, again and again
		note{to: gone, company: 2, sendAt: at},               // 4: of another company
		note{to: back, company: 1, sendAt: at},               // 5: its handset opts in again
	)
	w.until("the handset's queue is full", func() bool { return len(mno.submitsTo(busy)) > 1 })
	w.optsOut(1, gone, "demo")
	w.optsOut(1, busy, "")
	w.optsOut(1, back, "DEMO")
	if n, err := handsets.New(w.pool).OptIn(t.Context(), 1, back, nil); err != nil || n != 1 {
		t.Fatalf("%d entries are gone, %v", n, err)
	}
	w.exec(`UPDATE scheduled SET due_at = now()`)
	w.await("failed", 10*time.Second, ids[3])
	tried := len(mno.submitsTo(busy))
	if err := w.d.Reload([]setup.Carrier{mno.mno(), named("leo", late)}); err != nil {
		t.Fatal(err)
	}
	w.await("failed", 20*time.Second, ids[:4]...)
	w.await("sent", 20*time.Second, ids[4:]...)
	for i, id := range ids[:4] {
		if _, reason := w.statusOf(id); reason != "opted_out" {
			t.Errorf("message %d failed for %q", i, reason)
		}
	}
	if got := len(mno.submitsTo(gone)); got != 1 {
		t.Errorf("%d went to the handset, want that of the other company", got)
	}
	if got := len(late.Submits()); got != 0 {
		t.Errorf("%d went to it over the other carrier", got)
	}
	if got := len(mno.submitsTo(busy)); got != tried {
		t.Errorf("it was tried %d times after it had failed", got-tried)
	}
	// Two carriers' settlers may have wanted the balance at the same time: then one refund comes later.
	w.until("they are paid back", func() bool { n, _ := w.paidBack(1); return n == 4 })
	if _, times := w.paidBack(1); times != 4 {
		t.Errorf("4 messages are paid back %d times", times)
	}
	if n, _ := w.paidBack(2); n != 0 {
		t.Errorf("%d of the other company's are paid back", n)
	}
	w.until("they are counted", func() bool {
		return w.metric("intumwa_messages_final_total", "reason_class", "opted_out", "status", "failed") == 4
	})
	w.settledAll()
	w.stop()
	w.clean(mno, late)
}

// TestTurningAwayIsBounded: while nothing can be settled, only a few thousand messages are claimed to be turned away.
func TestTurningAwayIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mno := w.carrier(carriersim.Options{NoFates: true})
	const many = 6000
	w.account(1)
	gone := w.number("00")
	w.optsOut(1, gone, "")
	batch := &messages.Batch{ULID: ulid.Make(), CompanyID: 1, UserID: 1, Kind: "bulk", Sender: "DEMO", Recipients: many,
		Segments: many}
	notes := make([]note, many)
	for i := range notes {
		notes[i] = note{to: gone, company: 1, batch: batch}
	}
	w.send(notes...)
	locked, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = locked.Rollback(context.WithoutCancel(t.Context())) }()
	for _, statement := range []string{`SET LOCAL idle_in_transaction_session_timeout = 0`,
		`LOCK TABLE messages IN SHARE MODE`} {
		// reads go on, nothing is settled
		if _, err := locked.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	w.start(mno.mno())
	claimed, since := 0, time.Now()
	w.eventually(20*time.Second, func() bool {
		if n := w.count(`SELECT count(*) FROM outbox WHERE claimed_by IS NOT NULL`); n != claimed {
			claimed, since = n, time.Now()
		}
		return claimed > 0 && time.Since(since) > 2*time.Second
	}, func() string { return "it stops to claim" })
	if claimed >= 3500 {
		t.Errorf("%d are claimed", claimed)
	}
	if err := locked.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	out := func() int { return w.count(`SELECT count(*) FROM messages WHERE failure_reason = 'opted_out'`) }
	w.eventually(60*time.Second, func() bool { return out() == many }, func() string { return "all are turned away" })
	if n := mno.Stats().Submits; n != 0 {
		t.Errorf("%d were submitted", n)
	}
}
