package dispatcher

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/oklog/ulid/v2"

	"intumwa/dispatcher/core"
	"intumwa/dispatcher/profile"
	"intumwa/dispatcher/recovery"
	"intumwa/dispatcher/settling"
	"intumwa/dispatcher/setup"
	"intumwa/messages"
	"intumwa/messages/outbox"
	"intumwa/messages/rerouting"
	"intumwa/messages/submission"
	"intumwa/smpp"
	"intumwa/sms"
)

// cancelled cancels one message and returns how many were stopped.
func (b *bench) cancelled(m *core.InFlight) int64 {
	b.Helper()
	done, err := settling.Cancel(b.Context(), b.pool, b.d.core.Store.Messages, b.d.core.Webhooks,
		messages.Queued{Company: 1, Message: m.Msg.ID}, nil)
	if err != nil {
		b.Fatal(err)
	}
	return done.Cancelled
}

// TestHoldRemembersUnanswered: with on_ambiguous hold, a message whose first segment was not answered and whose second
// was put off ends undecided when the second is accepted: an operator sees it, it cannot be cancelled, and a late
// temporary refusal sends it again.
func TestHoldRemembersUnanswered(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *setup.Carrier) { c.OnAmbiguous = setup.AmbiguousAwaitReceipt })
	for name, second := range map[string]fate{"not written": ended(smpp.NotWritten, 0, smpp.ErrNotBound),
		"throttled": ended(smpp.Rejected, smpp.StatusThrottled, nil)} {
		t.Run(name, func(t *testing.T) {
			b := b.in(t)
			b.cleared()
			m := b.begun(2)
			b.settle(settling.Settlement{Results: []core.Result{unanswered(m, 1), second(m, 2)}})
			b.exec(`UPDATE outbox SET due_at = now()`)
			again := b.claim(m.Msg.ID, 0)
			again.Open = 1
			r := accepted("b")(again, 2)
			r.Slot = false
			b.settle(settling.Settlement{Results: []core.Result{r}})
			if n := b.count(`SELECT count(*) FROM outbox`); n != 0 {
				t.Fatal("it is to be sent again")
			}
			list, _, err := b.d.core.Store.Rerouting.Unanswered(t.Context(), "", 0, 10, time.Hour)
			if err != nil || len(list) != 1 || list[0].ID != m.Msg.ID || list[0].Segments != 1 {
				t.Errorf("an operator sees %+v, %v", list, err)
			}
			if n := b.cancelled(m); n != 0 {
				t.Error("it is cancelled, and the carrier may have it")
			}
			b.settle(settling.Settlement{Late: []settling.LateAnswer{throttledLate(m, 1, 2)}})
			if n := b.count(`SELECT count(*) FROM outbox WHERE claimed_by IS NULL`); n != 1 {
				t.Error("after a late refusal the segment is not sent again")
			}
			b.clean()
		})
	}
}

// TestMayHaveAfterHandOver: what a dead process may have submitted stays known when another carrier takes the message,
// or an operator sends it again: it is neither cancelled nor opted out.
func TestMayHaveAfterHandOver(t *testing.T) {
	t.Parallel()
	b, _ := newSecondBench(t)
	for name, c := range map[string]struct {
		policy setup.Ambiguous
		then   func(b *bench, m *core.InFlight)
	}{
		"freed":       {setup.AmbiguousResend, func(*bench, *core.InFlight) {}},
		"handed over": {setup.AmbiguousResend, func(b *bench, _ *core.InFlight) { b.handedOver("leo", 1) }},
		"sent again by an operator": {setup.AmbiguousAwaitReceipt, func(b *bench, m *core.InFlight) {
			if sent, err := recovery.SendUnanswered(b.Context(), b.pool, b.d.core.Store.Messages, "lumitel", []int64{m.Msg.ID},
				time.Hour, toAny, unrecorded); err != nil || len(sent) != 1 {
				b.Errorf("%v are sent again, %v", sent, err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := b.in(t)
			b.cleared()
			b.exec(`DELETE FROM opt_outs`)
			b.configure(func(c2 *setup.Carrier) { c2.OnAmbiguous = c.policy })
			m := b.begun(1)
			b.by(m, ended(smpp.NotWritten, 0, nil))
			b.claimedBy(8, m)
			if err := b.d.recovery.Free(t.Context()); err != nil {
				t.Fatal(err)
			}
			if c.then(b, m); b.count(`SELECT count(*) FROM outbox WHERE claimed_by IS NULL`) != 1 {
				t.Fatal("it does not wait")
			}
			if n := b.cancelled(m); n != 0 {
				t.Error("it is cancelled, and a carrier may have it")
			}
			b.exec(`INSERT INTO opt_outs (company_id, phone_number, source) VALUES (1, $1, 'handset')`, m.Msg.Number)
			claimed, err := b.d.core.Store.Outbox.Claim(t.Context(), 9, b.word(`SELECT carrier FROM outbox`), []int64{m.Msg.ID},
				false)
			if err != nil || len(claimed) != 1 || claimed[0].OptedOut {
				t.Errorf("it is opted out, and a carrier may have it: %+v, %v", claimed, err)
			}
		})
	}
}

// TestFreedSecondSubmit: a process that dies after it has sent a segment again leaves a second submit record, even if
// the first one was accepted late meanwhile. So no second carrier gets the message when the first submit record is not
// delivered.
func TestFreedSecondSubmit(t *testing.T) {
	t.Parallel()
	b, _ := newSecondBench(t)
	m := b.begun(1)
	b.by(m, unanswered)
	b.exec(`UPDATE outbox SET due_at = now()`)
	b.claimedBy(8, m)
	b.settle(settling.Settlement{Late: []settling.LateAnswer{late(m, 1, 1, "a")}})
	if err := b.d.recovery.Free(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.hasRecords(m, "?", "a")
	b.reported(b.receipt("a", "UNDELIV"))
	if status, reason := b.status(m.Msg.ID); status != sms.Failed || b.count(`SELECT count(*) FROM outbox`) != 0 {
		t.Errorf("it is %v %q, or at the second carrier", status, reason)
	}
}

// TestUnansweredStays: with hold and fail, no other carrier takes a message that its carrier may have.
func TestUnansweredStays(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for policy, want := range map[setup.Ambiguous]int{setup.AmbiguousResend: 1, setup.AmbiguousAwaitReceipt: 0,
		setup.AmbiguousFail: 0} {
		b.cleared()
		b.configure(func(c *setup.Carrier) { c.OnAmbiguous = setup.AmbiguousResend })
		m := b.begun(1)
		b.by(m, unanswered)
		b.exec(`UPDATE outbox SET due_at = now()`)
		b.configure(func(c *setup.Carrier) { c.OnAmbiguous = policy })
		b.handedOver("leo", want)
	}
}

// handedOver lets another carrier take what it may from the first.
func (b *bench) handedOver(to string, want int) {
	b.Helper()
	if n, err := b.d.recovery.HandOver(b.Context(), b.s.Carrier, rerouting.To{Carrier: to}); err != nil ||
		n != int64(want) {
		b.Errorf("%d handed over, want %d, %v", n, want, err)
	}
}

func (b *bench) word(query string) (s string) {
	b.Helper()
	if err := b.pool.QueryRow(b.Context(), query).Scan(&s); err != nil {
		b.Fatal(err)
	}
	return s
}

// TestOnlyOwnCarriersAreDecided: a process decides nothing about a carrier that only another process has in its
// configuration: neither overdue messages nor what a dead process may have submitted. It frees what was only claimed.
func TestOnlyOwnCarriersAreDecided(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *setup.Carrier) { c.OnAmbiguous = setup.AmbiguousAwaitReceipt })
	b.exec(`INSERT INTO dispatchers (id, name, links) OVERRIDING SYSTEM VALUE VALUES (1000000, 'x', '{leo-1}')`)
	b.exec(`INSERT INTO links (name, carrier, updated_at) VALUES ('leo-1', 'leo', now() - interval '1 hour')`)
	overdue, begun, claimed := b.begun(1), b.begun(1), b.begun(1)
	b.by(overdue, accepted("a"))
	if _, err := b.d.core.Store.Outbox.Begin(t.Context(), 7, []messages.Claim{begun.Msg.Claim()}); err != nil {
		t.Fatal(err)
	}
	b.exec(`UPDATE messages SET carrier = 'leo', created_at = now() - interval '30 days'; UPDATE outbox
		SET carrier = 'leo'`)
	decide := func() {
		t.Helper()
		if err := b.d.housekeeping.Overdue(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := b.d.recovery.Free(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	decide()
	if status, reason := b.status(overdue.Msg.ID); status != sms.Pending {
		t.Errorf("the overdue message is %v %q", status, reason)
	}
	for id, want := range map[int64]int{begun.Msg.ID: 7, claimed.Msg.ID: 0} {
		if got := b.count(`SELECT coalesce(claimed_by, 0) FROM outbox WHERE message_id = $1`, id); got != want {
			t.Errorf("message %d is claimed by %d, want %d", id, got, want)
		}
	}
	b.exec(`DELETE FROM dispatchers`) // now no process has the carrier
	decide()
	if status, reason := b.status(overdue.Msg.ID); status != sms.Failed || reason != "no_receipt" {
		t.Errorf("of a carrier that no process has, the overdue message is %v %q", status, reason)
	}
	if n := b.count(`SELECT count(*) FROM segments WHERE message_id = $1 AND key LIKE '?%'`, begun.Msg.ID); n != 1 ||
		b.count(`SELECT count(*) FROM outbox WHERE message_id = $1`, begun.Msg.ID) != 0 {
		t.Error("what a dead process may have submitted to it is not kept from being sent again")
	}
}

// TestConcatChangedBetweenAttempts: a message of which a carrier has a part is finished as it was cut.
func TestConcatChangedBetweenAttempts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	text := strings.Repeat("Amahoro. ", 40)
	for from, to := range map[profile.Concat]profile.Concat{profile.ConcatUDH8: profile.ConcatPayload,
		profile.ConcatPayload: profile.ConcatUDH8, profile.ConcatUDH16: profile.ConcatPayload,
		profile.ConcatSAR: profile.ConcatPayload} {
		b.configure(func(c *setup.Carrier) { c.Concat = from })
		m := &outbox.Claimed{ID: 1, Number: "+25761000001", Body: text, Segments: 3}
		before, _ := b.s.Carrier.Config().Segments(m, nil, time.Now())
		m.Records = append(m.Records, submission.Record{Segment: 1, Total: len(before), Answered: true})
		b.configure(func(c *setup.Carrier) { c.Concat = to })
		after, err := b.s.Carrier.Config().Segments(m, nil, time.Now())
		if err != nil || len(after) != len(before) {
			t.Errorf("%v, then %v: %d segments, then %d, %v", from, to, len(before), len(after), err)
		}
	}
	m := &outbox.Claimed{ID: 1, Number: "+25761000001", Body: text, Segments: 3}
	m.Records = append(m.Records, submission.Record{Segment: 1, Total: 7, Answered: true})
	if _, err := b.s.Carrier.Config().Segments(m, nil, time.Now()); err == nil ||
		!strings.Contains(err.Error(), "was cut into 7 segments") {
		t.Errorf("cut in no known way: %v", err)
	}
}

// sentQueries are the statements of a pool, outside pipelines.
type sentQueries struct {
	mu   sync.Mutex
	list []string
}

func (s *sentQueries) TraceQueryStart(ctx context.Context, _ *pgx.Conn, one pgx.TraceQueryStartData) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, one.SQL)
	return ctx
}

func (s *sentQueries) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// with counts the statements that have a text in them.
func (s *sentQueries) with(text string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.list {
		n += min(strings.Count(one, text), 1)
	}
	return n
}

// TestCancelReadsABatchOnce: cancelling a campaign reads its messages once, not once for each step.
func TestCancelReadsABatchOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const recipients = 4 * settling.CancelAtOnce
	batch := &messages.Batch{ULID: ulid.Make(), CompanyID: 1, UserID: 1, Kind: "bulk", Sender: "DEMO",
		Recipients: recipients, Segments: recipients}
	list := make([]*messages.Message, recipients)
	for i := range list {
		list[i] = &messages.Message{ULID: ulid.Make(), CompanyID: 1, UserID: 1,
			Number: sms.Number(fmt.Sprintf("+25762%06d", i)), Sender: "DEMO", Test: true,
			Body: "Hello", Segments: 1, Carrier: "lumitel", Validity: time.Hour, Batch: batch}
	}
	if err := pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
		_, err := b.d.core.Store.Messages.Insert(t.Context(), tx, list)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	conf, sent := b.pool.Config(), &sentQueries{}
	conf.ConnConfig.Tracer = sent
	pool, err := pgxpool.NewWithConfig(t.Context(), conf)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	q := messages.Queued{Company: 1, Batch: int64(b.count(`SELECT id FROM batches`))}
	done, err := settling.Cancel(t.Context(), pool, messages.New(pool), b.d.core.Webhooks, q, nil)
	if err != nil || done.Cancelled != recipients {
		t.Fatalf("%+v, %v", done, err)
	}
	if n := sent.with("m.batch_id = "); n != 1 {
		t.Errorf("the batch is read %d times", n)
	}
}
