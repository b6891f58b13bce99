package receipts

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/sms"
)

// another is a number that is none of ours.
const another = "25799999999"

// TestReceiptAfterResponse: the usual order. Receipts after the first final one change nothing.
func TestReceiptAfterResponse(t *testing.T) {
	d := newTest(t, Same)
	settledAs(t, d.record([]Segment{accepted(1, "00AB"), accepted(2, "00AC")}).Settled, sms.Sent)
	r := d.record(nil, receipt("00ab", "ENROUTE", ""), receipt("AB", "DELIVRD", ""), receipt("ac", "UNDELIV", ""))
	outcomes(t, r, Intermediate, Matched, Matched)
	if want := []int64{0, 1, 2}; !slices.Equal(r.Whose, want) {
		t.Errorf("they are of the messages %v, want %v", r.Whose, want)
	}
	if d.stateOf(1) != sms.Sent || d.stateOf(2) != sms.Failed {
		t.Errorf("%+v", r.Settled)
	}
	for _, st := range r.Settled {
		if c := st.Record(); c.Status == sms.Failed && c.Reason != "UNDELIV 027" || !c.Answered {
			t.Errorf("%+v", c)
		}
	}
	r = d.record(nil, receipt("ab", "DELIVRD", ""), receipt("ab", "ACCEPTD", ""), receipt("ab", "UNDELIV", ""),
		receipt("ac", "DELIVRD", ""), receipt("ac", "ENROUTE", ""))
	outcomes(t, r, Duplicate, Duplicate, Contradiction, Contradiction, Intermediate)
	settledAs(t, r.Settled, sms.Sent)
	b := &pgx.Batch{}
	segmentsOf, receiptsOf := QueueHistory(b, []int64{1})
	if err := d.pool.SendBatch(t.Context(), b).Close(); err != nil {
		t.Fatal(err)
	}
	segments := segmentsOf[1]
	var kept []string
	for _, r := range receiptsOf[1] {
		kept = append(kept, r.State+" "+string(r.Outcome))
	}
	if len(segments) != 1 || segments[0].Receipt != "DELIVRD" || segments[0].CarrierID != "00AB" ||
		segments[0].ReceiptAt == nil || segments[0].Carrier != "lumitel" {
		t.Errorf("segments %+v", segments)
	}
	if want := []string{"ENROUTE intermediate", "UNDELIV contradiction"}; !slices.Equal(kept, want) {
		t.Errorf("kept %v, want %v", kept, want)
	}
	if n := d.waiting(); n != 0 {
		t.Errorf("%d in the inbox", n)
	}
}

// TestReceiptsInOneTransaction: the first final one counts, and the others are compared with it.
func TestReceiptsInOneTransaction(t *testing.T) {
	d := newTest(t, Same)
	r := d.record([]Segment{accepted(1, "7")},
		receipt("7", "UNDELIV", ""), receipt("07", "DELIVRD", ""), receipt("7", "UNDELIV", ""), receipt("7", "ENROUTE", ""))
	outcomes(t, r, Matched, Contradiction, Duplicate, Intermediate)
	settledAs(t, r.Settled, sms.Failed, 1)
}

// TestReceiptBeforeResponse: it waits in the inbox for its response. fault 26
func TestReceiptBeforeResponse(t *testing.T) {
	d := newTest(t, Same)
	r := d.record(nil, receipt("A1", "DELIVRD", ""), receipt("A1", "DELIVRD", ""), receipt("A2", "EXPIRED", ""),
		receipt("A2", "DELIVRD", ""), receipt("A3", "ENROUTE", ""))
	outcomes(t, r, Unmatched, Unmatched, Unmatched, Unmatched, Unmatched)
	if n := d.count(`SELECT count(*) FROM receipts`); n != 4 {
		t.Errorf("%d in the inbox, want 4: the second A1 is a repetition", n)
	}
	r = d.record([]Segment{accepted(1, "a1"), accepted(2, "a2"), accepted(3, "a3")})
	if len(r.Settled) != 2 || r.Early != 2 {
		t.Errorf("settled %+v, %d by early receipts", r.Settled, r.Early)
	}
	for message, want := range map[int64]sms.Status{1: sms.Sent, 2: sms.Failed, 3: sms.Pending} {
		if got := d.stateOf(message); got != want {
			t.Errorf("message %d is %v, want %v", message, got, want)
		}
	}
	if n := d.count(`SELECT count(*) FROM receipts WHERE key IN ('a1', 'a2')`); n != 0 {
		t.Errorf("%d receipts still wait", n)
	}
	// An older one belongs to another message: carriers reuse ids.
	d.record(nil, receipt("A4", "DELIVRD", ""))
	d.exec(`UPDATE receipts SET received_at = now() - interval '16 minutes' WHERE key = 'a4'`)
	settledAs(t, d.record([]Segment{accepted(4, "a4")}).Settled, sms.Sent)
	// Another carrier's ids are other ids.
	d.record(nil, receipt("A5", "DELIVRD", ""))
	d.exec(`UPDATE receipts SET carrier = 'onatel' WHERE key = 'a5'`)
	settledAs(t, d.record([]Segment{accepted(5, "a5")}).Settled, sms.Sent)
}

// TestReceiptAndResponseRace: response and receipt are recorded in two transactions at once; the second one settles the
// message.
func TestReceiptAndResponseRace(t *testing.T) {
	d := newTest(t, Same)
	const n = 60
	var mu sync.Mutex
	settled := map[int64]int{}
	var wg sync.WaitGroup
	note := func(r Recorded, err error) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			t.Error(err)
		}
		for _, st := range r.Settled {
			settled[st.MessageID]++
		}
	}
	for message := range int64(n) {
		key := fmt.Sprintf("R%d", message)
		wg.Go(func() { note(d.tryRecord([]Segment{accepted(message, key)})) })
		wg.Go(func() { note(d.tryRecord(nil, receipt(key, "DELIVRD", numberOf(message)))) })
		wg.Go(func() { note(d.tryRecord(nil, receipt(key, "DELIVRD", numberOf(message)))) })
	}
	wg.Wait()
	for message := range int64(n) {
		if settled[message] != 1 {
			t.Errorf("message %d was settled %d times", message, settled[message])
		}
	}
}

// TestReusedIDs: when a carrier reuses an id, its receipt settles the youngest open segment.
func TestReusedIDs(t *testing.T) {
	d := newTest(t, Same)
	hour := time.Now().Add(-time.Hour)
	first, second := accepted(1, "1"), accepted(2, "1")
	first.At, second.At = hour, hour.Add(30*time.Minute)
	d.record([]Segment{first, second})
	hidden := func(state string) Receipt { return receipt("1", state, "hidden") }
	settledAs(t, d.record(nil, hidden("DELIVRD")).Settled, sms.Sent, 2)
	settledAs(t, d.record(nil, hidden("DELIVRD")).Settled, sms.Sent, 1)
	outcomes(t, d.record(nil, hidden("DELIVRD")), Duplicate)
	settledAs(t, d.record([]Segment{accepted(3, "1")}, hidden("UNDELIV")).Settled, sms.Failed, 3)
}

// TestSameIDs: two SMSCs of a carrier use the same ids. A receipt belongs to its handset, in every format; if its
// number is not a handset that has the id, it belongs to its own link, with a configured format.
func TestSameIDs(t *testing.T) {
	for _, fixed := range []bool{true, false} {
		d := newTest(t, Same)
		if !fixed {
			d = newTest(t, Auto)
		}
		// The other message's receipt comes before its response.
		outcomes(t, d.record([]Segment{accepted(1, "5")}, receipt("5", "UNDELIV", numberOf(2)).over("l2")), Unmatched)
		settledAs(t, d.record([]Segment{accepted(2, "5", on("l2"))}).Settled, sms.Failed, 2)
		// over the other link
		settledAs(t, d.record(nil, receipt("5", "DELIVRD", numberOf(1)).over("l2")).Settled, sms.Sent, 1)
		// And vice versa: the response is another message's.
		outcomes(t, d.record(nil, receipt("6", "UNDELIV", numberOf(3)).over("l2")), Unmatched)
		if r := d.record([]Segment{accepted(4, "6")}); len(r.Settled) != 0 {
			t.Errorf("fixed %t: another's receipt settled %+v", fixed, r.Settled)
		}
		settledAs(t, d.record([]Segment{accepted(3, "6", on("l2"))}).Settled, sms.Failed, 3)
		// Both responses in one transaction, after the receipts of both.
		d.record(nil, receipt("7", "DELIVRD", numberOf(5)), receipt("7", "UNDELIV", numberOf(6)).over("l2"))
		d.record([]Segment{accepted(6, "7", on("l2")), accepted(5, "7")})
		if d.stateOf(5) != sms.Sent || d.stateOf(6) != sms.Failed {
			t.Errorf("fixed %t: recorded together they are %v and %v", fixed, d.stateOf(5), d.stateOf(6))
		}
		// A settled segment's state is repeated, and contradicted, on the link where the id is open for another one.
		d.record([]Segment{accepted(7, "8"), accepted(8, "8")}, receipt("8", "DELIVRD", numberOf(7)))
		outcomes(t, d.record(nil, receipt("8", "DELIVRD", numberOf(7)), receipt("8", "UNDELIV", numberOf(7))), Duplicate,
			Contradiction)
		if status := d.stateOf(8); status != sms.Pending {
			t.Errorf("fixed %t: another's segment was settled: %v", fixed, status)
		}
		// A number of the carrier's own.
		if r := d.record(nil, receipt("6", "DELIVRD", another)); (len(r.Settled) == 1) != fixed {
			t.Errorf("fixed %t: a receipt for a number that is none of ours settled %+v", fixed, r.Settled)
		}
	}
}

// TestEarlyReceiptOfOne: of two messages with one id that are recorded together, an earlier receipt settles only its
// own.
func TestEarlyReceiptOfOne(t *testing.T) {
	for _, c := range []struct {
		name  string
		early Receipt
		want  int64
	}{
		{"by its handset", receipt("9", "DELIVRD", numberOf(2)).over("l1"), 2},
		{"by its link", receipt("9", "DELIVRD", "").over("l1"), 1},
		{"by its link, a number of the carrier's own", receipt("9", "DELIVRD", another).over("l2"), 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newTest(t, Same)
			d.record(nil, c.early)
			settledAs(t, d.record([]Segment{accepted(1, "9"), accepted(2, "9", on("l2"))}).Settled, sms.Sent, c.want)
			if n := d.waiting(); n != 0 {
				t.Errorf("%d receipts wait still", n)
			}
		})
	}
}

// TestSegmentsWithoutID: a segment accepted without an id is found by the reference that its receipt echoes, in either
// order.
func TestSegmentsWithoutID(t *testing.T) {
	d := newTest(t, Same)
	nameless := func(message int64, reference uint16) Segment {
		return accepted(message, "", func(p *Segment) { p.Reference = reference })
	}
	settledAs(t, d.record([]Segment{nameless(1, 7)}, receipt("x1", "DELIVRD", numberOf(1)).echoing(7)).Settled, sms.Sent,
		1)
	outcomes(t, d.record(nil, receipt("", "DELIVRD", numberOf(2)).echoing(8)), Unmatched)
	settledAs(t, d.record([]Segment{nameless(2, 8)}).Settled, sms.Sent, 2)
}

// TestLateAnswer: a late answer replaces the unanswered segment and keeps its handset; its receipt finds it.
func TestLateAnswer(t *testing.T) {
	d := newTest(t, Auto)
	late := func(message int64, key string) Segment {
		return accepted(message, key, func(p *Segment) { p.Late, p.Number = true, "" })
	}
	d.record([]Segment{unanswered(1, 9), unanswered(2, 9)})
	d.record([]Segment{late(1, "L0")})
	settledAs(t, d.record(nil, receipt("L0", "DELIVRD", numberOf(1))).Settled, sms.Sent, 1)
	outcomes(t, d.record(nil, receipt("L1", "DELIVRD", numberOf(2))), Unmatched)
	settledAs(t, d.record([]Segment{late(2, "L1")}).Settled, sms.Sent, 2)
	if n := d.count(`SELECT count(*) FROM segments WHERE key LIKE '?%'`); n != 0 {
		t.Errorf("%d segments are unanswered still", n)
	}
	// Recorded together with the segment that it answers.
	d.record([]Segment{late(3, "L2"), unanswered(3, 10)})
	settledAs(t, d.record(nil, receipt("L2", "DELIVRD", numberOf(3))).Settled, sms.Sent, 3)
	if n := d.count(`SELECT count(*) FROM segments WHERE key LIKE '?%'`); n != 0 {
		t.Errorf("%d segments that were recorded together with their answer are unanswered still", n)
	}
}

// TestLateAnswerOfOneSubmit: a late answer applies to one unanswered submit record, not to others, other segments, or
// another carrier's.
func TestLateAnswerOfOneSubmit(t *testing.T) {
	d := newTest(t, Same)
	late := func(key string) Segment { return accepted(1, key, segment(1, 2), func(p *Segment) { p.Late = true }) }
	left := func(step string, want int) {
		t.Helper()
		if n := d.count(`SELECT count(*) FROM segments WHERE message_id = 1 AND segment = 1 AND key LIKE '?%'
			AND state IS NULL`); n != want {
			t.Errorf("%s: %d submit records are unanswered, want %d", step, n, want)
		}
	}
	for range 5 {
		d.record([]Segment{unanswered(1, 9, segment(1, 2))})
	}
	d.record([]Segment{unanswered(1, 10, segment(2, 2)), unanswered(2, 9, segment(1, 2))})
	d.exec(`INSERT INTO segments (message_id, segment, total, carrier, link, key, submitted_at)
		VALUES (1, 1, 2, 'another', 'x', '?9', now() - interval '1 hour')`)
	left("before", 6)
	d.record([]Segment{late("L1")})
	left("one answer", 5)
	d.record([]Segment{late("L2"), late("L3")})
	left("two answers at once", 3)
	d.tx(func(ctx context.Context, tx pgx.Tx) error {
		if err := d.Lock(ctx, tx); err != nil {
			return err
		}
		return Refuse(ctx, tx, "lumitel", []Refusal{{1, 1, time.Now()}})
	})
	left("a refusal", 2)
	d.record([]Segment{late("L4"), late("L5"), late("L6")})
	left("more answers than submit records", 1)
	if n := d.count(`SELECT count(*) FROM segments WHERE key LIKE '?%' AND carrier = 'another'`); n != 1 {
		t.Error("an unanswered submit record at another carrier counts as answered")
	}
	if n := d.count(`SELECT count(*) FROM segments WHERE key LIKE '?%' AND (message_id, segment) <> (1, 1)`); n != 2 {
		t.Errorf("%d of the other segments' 2 are unanswered", n)
	}
	if n := d.count(`SELECT count(*) FROM segments WHERE key LIKE 'l%' AND message_id = 1`); n != 6 {
		t.Errorf("%d of 6 answers are recorded", n)
	}
}

// TestConfirmedBySubmit: for a carrier without receipts the response is final.
func TestConfirmedBySubmit(t *testing.T) {
	d := newTest(t, Same)
	confirmed := func(p *Segment) { p.Confirmed = true }
	r := d.record([]Segment{accepted(1, "", confirmed), accepted(2, "", segment(1, 2), confirmed)})
	settledAs(t, r.Settled, sms.Sent, 1, 2)
	if r.Early != 0 {
		t.Errorf("%d by receipts", r.Early)
	}
}

// TestEmptyIDs: a segment accepted without an id and a reference gets no receipt.
func TestEmptyIDs(t *testing.T) {
	d := newTest(t, Same)
	settledAs(t, d.record([]Segment{accepted(1, ""), accepted(2, "")}, receipt("", "DELIVRD", "")).Settled, sms.Sent)
	if status := d.stateOf(1); status != sms.Pending {
		t.Errorf("it is %v", status)
	}
}

// TestDirtyReceipts: a receipt with bytes that PostgreSQL refuses is stored without them.
func TestDirtyReceipts(t *testing.T) {
	d := newTest(t, Same)
	r := receipt("D\x001\xff", "DELIVRD", "\x00257\xc3")
	r.State, r.Error = "DELI\x00VRD", "\xfe0"
	stranger := r
	stranger.CarrierID = "S\x00"
	got := d.record([]Segment{accepted(1, "\x00D1\xff")}, r, stranger)
	outcomes(t, got, Matched, Unmatched)
	settledAs(t, got.Settled, sms.Sent, 1)
}

// TestSegmentsOfOneID: a carrier that gives a message's segments one id reports each of them: in one transaction, one
// by one, or once before the responses.
func TestSegmentsOfOneID(t *testing.T) {
	three := []Segment{accepted(1, "A", segment(1, 3)), accepted(1, "A", segment(2, 3)), accepted(1, "A", segment(3, 3))}
	for _, groups := range [][]int{{3}, {1, 1, 1}, {2, 1}} {
		d := newTest(t, Same)
		d.record(three)
		var settled []SegmentState
		for _, n := range groups {
			var list []Receipt
			for range n {
				list = append(list, receipt("A", "DELIVRD", ""))
			}
			settled = append(settled, d.record(nil, list...).Settled...)
		}
		settledAs(t, settled, sms.Sent, 1, 1, 1)
		outcomes(t, d.record(nil, receipt("A", "DELIVRD", ""), receipt("A", "DELIVRD", "")), Duplicate, Duplicate)
	}
	d := newTest(t, Same)
	for range 3 {
		d.record(nil, receipt("A", "DELIVRD", ""))
	}
	settledAs(t, d.record(three).Settled, sms.Sent, 1, 1, 1)
}

// TestInboxOfReusedIDs: a receipt equal to an old one in the inbox belongs to the newer message.
func TestInboxOfReusedIDs(t *testing.T) {
	d := newTest(t, Same)
	outcomes(t, d.record(nil, receipt("7", "DELIVRD", "")), Unmatched)
	d.exec(`UPDATE receipts SET received_at = now() - interval '1 day'`)
	outcomes(t, d.record(nil, receipt("7", "DELIVRD", "")), Unmatched)
	settledAs(t, d.record([]Segment{accepted(1, "7")}).Settled, sms.Sent, 1)
}

// TestInboxIsBounded: receipts are deleted after their retention, in the inbox and of messages; the inbox takes no more
// than its room. fault 25
func TestInboxIsBounded(t *testing.T) {
	d := newTest(t, Same)
	d.record([]Segment{accepted(1, "k")}, receipt("k", "ENROUTE", ""), receipt("old", "DELIVRD", ""),
		receipt("new", "DELIVRD", ""))
	d.exec(`UPDATE receipts SET received_at = now() - interval '2 hours' WHERE key <> 'new'`)
	if n, err := Forget(t.Context(), d.pool, time.Hour); err != nil || n != 2 {
		t.Errorf("%d forgotten, %v", n, err)
	}
	if n := d.count(`SELECT count(*) FROM receipts WHERE key = 'new'`); n != 1 {
		t.Errorf("%d of 1 left", n)
	}
	d.tx(func(ctx context.Context, tx pgx.Tx) error {
		r, err := d.Record(ctx, tx, nil, []Receipt{receipt("a", "DELIVRD", ""), receipt("k", "ENROUTE", ""),
			receipt("b", "DELIVRD", ""), receipt("c", "ENROUTE", "")}, 2)
		outcomes(t, r, Unmatched, Intermediate, Unmatched, Throttled)
		return err
	})
}

// TestForgetSkipsLockedRows: it does not wait for locks.
func TestForgetSkipsLockedRows(t *testing.T) {
	d := newTest(t, Same)
	d.record(nil, receipt("a", "DELIVRD", ""), receipt("b", "DELIVRD", ""))
	d.exec(`UPDATE receipts SET received_at = now() - interval '2 hours'`)
	for want := range 2 {
		d.tx(func(ctx context.Context, tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `SELECT FROM receipts WHERE key = 'a' FOR UPDATE`); err != nil {
				return err
			}
			if n, err := Forget(ctx, d.pool, time.Hour); err != nil || n != int64(1-want) {
				t.Errorf("beside a locked one: %d, %v", n, err)
			}
			return nil
		})
	}
	if n, err := Forget(t.Context(), d.pool, time.Hour); err != nil || n != 1 {
		t.Errorf("afterwards: %d, %v", n, err)
	}
}

// TestUnanswered: an unanswered segment is settled by a receipt that echoes its reference from its own handset, and by
// no other.
func TestUnanswered(t *testing.T) {
	d := newTest(t, Same)
	d.record([]Segment{accepted(1, "x1", segment(1, 2)), unanswered(1, 77, segment(2, 2)),
		unanswered(2, 78, segment(1, 2))})
	r := d.record(nil, receipt("x2", "DELIVRD", "25761999999").echoing(77), receipt("x3", "DELIVRD", numberOf(1)).echoing(
		79),
		receipt("x5", "DELIVRD", "").echoing(77))
	outcomes(t, r, Unmatched, Unmatched, Unmatched)
	r = d.record(nil, receipt("x4", "DELIVRD", numberOf(1)[3:]).echoing(77), receipt("x1", "DELIVRD", numberOf(1)).echoing(
		76))
	outcomes(t, r, Matched, Matched)
	settledAs(t, r.Settled, sms.Sent, 1, 1)
	for _, st := range r.Settled {
		if st.Unanswered != (st.Segment == 2) {
			t.Errorf("%+v", st)
		}
	}
	// In the other order.
	d.record(nil, receipt("x6", "DELIVRD", numberOf(3)).echoing(80))
	echoed, err := d.Echoed(t.Context(), d.pool, []Segment{
		{Number: "+25761000002", Reference: 80}, {Number: "+25761000003", Reference: 80},
		{Number: "+25761000003", Reference: 81}, {Reference: 80},
	})
	if err != nil || !slices.Equal(echoed, []int{1}) {
		t.Errorf("echoed %v, %v", echoed, err)
	}
	settledAs(t, d.record([]Segment{unanswered(3, 80)}).Settled, sms.Sent, 3)
}

// TestAuto: each format of an id finds the segment of the receipt's handset, before and after the response, and no
// other. If two formats fit, the id as written wins, and its repetition settles no other segment.
func TestAuto(t *testing.T) {
	d := newTest(t, Auto)
	d.record([]Segment{accepted(1, "10"), accepted(2, "16")})
	settledAs(t, d.record(nil, receipt("16", "DELIVRD", numberOf(1))).Settled, sms.Sent, 1) // decimal for hexadecimal 10
	outcomes(t, d.record(nil, receipt("16", "DELIVRD", numberOf(1)), receipt("16", "UNDELIV", numberOf(1))), Duplicate,
		Contradiction)
	outcomes(t, d.record(nil, receipt("21", "DELIVRD", numberOf(3)), receipt("1f", "DELIVRD", numberOf(4))), Unmatched,
		Unmatched)
	settledAs(t, d.record([]Segment{accepted(4, "15"), accepted(3, "15"), accepted(5, "31")}).Settled, sms.Sent, 3)
	settledAs(t, d.record([]Segment{accepted(4, "31")}).Settled, sms.Sent, 4)

	same := func(p *Segment) { p.Number = sms.Number("+" + numberOf(6)) }
	d.record([]Segment{accepted(6, "20"), accepted(7, "32", same)})
	settledAs(t, d.record(nil, receipt("32", "DELIVRD", numberOf(6))).Settled, sms.Sent, 7)
	outcomes(t, d.record(nil, receipt("32", "DELIVRD", numberOf(6))), Duplicate)
	if status := d.stateOf(6); status != sms.Pending {
		t.Errorf("a repetition settled another message: %v", status)
	}
}
