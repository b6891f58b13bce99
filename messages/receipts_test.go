package messages_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/messages"
	"intumwa/sms"
)

func TestKey(t *testing.T) {
	for id, want := range map[string]string{
		"": "", "0": "0", "000": "0", "00A1": "a1", "a1": "a1", " 7F ": "7f", "A\x00B": "ab", "\xffAB": "ab", "   ": "",
		"0f3c6c1e-8B4D": "f3c6c1e-8b4d", "12345678901234567890123456789012345678901234567890": "12345678901234567890123456789012345678901234567890",
	} {
		if got := messages.Key(id); got != want {
			t.Errorf("Key(%q) = %q, want %q", id, got, want)
		}
	}
}

// outcomes fails the test unless the receipts came to these.
func outcomes(t *testing.T, s settlement, want ...messages.Outcome) {
	t.Helper()
	if !slices.Equal(s.outcomes, want) {
		t.Errorf("outcomes %v, want %v", s.outcomes, want)
	}
}

// sent fails the test unless exactly these messages were settled so.
func settledAs(t *testing.T, s settlement, status sms.Status, ids ...int64) {
	t.Helper()
	var got []int64
	for _, m := range s.settled {
		got = append(got, m.ID)
		if m.Status != status {
			t.Errorf("message %d became %v, want %v", m.ID, m.Status, status)
		}
	}
	same(t, "settled", got, ids)
}

// TestReceiptAfterResponse: the usual order; whatever comes after the first
// final word changes nothing.
func TestReceiptAfterResponse(t *testing.T) {
	d := newHotStore(t)
	ids := d.pending(2)
	s := d.settle([]messages.Segment{accepted(ids[0], "00AB"), accepted(ids[1], "00AC")})
	settledAs(t, s, sms.Sent)
	s = d.settle(nil, receipt("00ab", "ENROUTE"), receipt("AB", "DELIVRD"), receipt("ac", "UNDELIV"))
	outcomes(t, s, messages.Intermediate, messages.Matched, messages.Matched)
	if status, reason := d.status(ids[0]); status != sms.Sent || reason != "" {
		t.Errorf("delivered: %v %q", status, reason)
	}
	if status, reason := d.status(ids[1]); status != sms.Failed || reason != "UNDELIV 027" {
		t.Errorf("undelivered: %v %q", status, reason)
	}
	s = d.settle(nil, receipt("ab", "DELIVRD"), receipt("ab", "ACCEPTD"), receipt("ab", "UNDELIV"), receipt("ac", "DELIVRD"), receipt("ac", "ENROUTE"))
	outcomes(t, s, messages.Duplicate, messages.Duplicate, messages.Contradiction, messages.Contradiction, messages.Intermediate)
	settledAs(t, s, sms.Sent)
	if status, _ := d.status(ids[0]); status != sms.Sent {
		t.Errorf("a contradiction made it %v", status)
	}
	h, err := d.HistoryOf(t.Context(), ids[0])
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Segments) != 1 || h.Segments[0].Receipt != "DELIVRD" || h.Segments[0].CarrierID != "00AB" || h.Segments[0].ReceiptAt == nil {
		t.Errorf("segments %+v", h.Segments)
	}
	var kept []string
	for _, r := range h.Receipts {
		kept = append(kept, r.State+" "+string(r.Outcome))
	}
	if want := []string{"ENROUTE intermediate", "UNDELIV contradiction"}; !slices.Equal(kept, want) {
		t.Errorf("kept %v, want %v", kept, want)
	}
	if n := d.count(`SELECT count(*) FROM receipts WHERE message_id IS NULL`); n != 0 {
		t.Errorf("%d in the inbox", n)
	}
}

// TestReceiptsInOneLot: the first final one counts, the others are judged by it.
func TestReceiptsInOneLot(t *testing.T) {
	d := newHotStore(t)
	ids := d.pending(1)
	s := d.settle([]messages.Segment{accepted(ids[0], "7")},
		receipt("7", "UNDELIV"), receipt("07", "DELIVRD"), receipt("7", "UNDELIV"), receipt("7", "ENROUTE"))
	outcomes(t, s, messages.Matched, messages.Contradiction, messages.Duplicate, messages.Intermediate)
	settledAs(t, s, sms.Failed, ids[0])
}

// TestReceiptBeforeResponse: it waits in the inbox for its response. fault 26
func TestReceiptBeforeResponse(t *testing.T) {
	d := newHotStore(t)
	ids := d.pending(3)
	s := d.settle(nil, receipt("A1", "DELIVRD"), receipt("A1", "DELIVRD"), receipt("A2", "EXPIRED"), receipt("A2", "DELIVRD"), receipt("A3", "ENROUTE"))
	outcomes(t, s, messages.Unmatched, messages.Unmatched, messages.Unmatched, messages.Unmatched, messages.Unmatched)
	if n := d.count(`SELECT count(*) FROM receipts`); n != 4 {
		t.Errorf("%d in the inbox, want 4: the second A1 says nothing new", n)
	}
	s = d.settle([]messages.Segment{accepted(ids[0], "a1"), accepted(ids[1], "a2"), accepted(ids[2], "a3")})
	if len(s.settled) != 2 {
		t.Errorf("settled %+v", s.settled)
	}
	for i, want := range []sms.Status{sms.Sent, sms.Failed, sms.Pending} {
		if status, _ := d.status(ids[i]); status != want {
			t.Errorf("message %d is %v, want %v", i, status, want)
		}
	}
	if n := d.count(`SELECT count(*) FROM receipts WHERE key IN ('a1', 'a2')`); n != 0 {
		t.Errorf("%d receipts still wait", n)
	}
	// One that waited too long is another message's: ids come round.
	d.settle(nil, receipt("A4", "DELIVRD"))
	d.exec(`UPDATE receipts SET received_at = now() - interval '16 minutes' WHERE key = 'a4'`)
	late := d.pending(1)
	settledAs(t, d.settle([]messages.Segment{accepted(late[0], "a4")}), sms.Sent)
	// Another carrier's id is another id.
	d.settle(nil, receipt("A5", "DELIVRD"))
	d.exec(`UPDATE receipts SET carrier = 'onatel' WHERE key = 'a5'`)
	settledAs(t, d.settle([]messages.Segment{accepted(d.pending(1)[0], "a5")}), sms.Sent)
}

// TestReceiptAndResponseRace: response and receipt of each message are worked
// on in two transactions at once; whichever comes second settles it.
func TestReceiptAndResponseRace(t *testing.T) {
	d := newHotStore(t)
	const n = 60
	ids := d.pending(n)
	var mu sync.Mutex
	settled := map[int64]int{}
	var wg sync.WaitGroup
	note := func(s settlement, err error) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			t.Error(err)
		}
		for _, m := range s.settled {
			settled[m.ID]++
		}
	}
	for i, id := range ids {
		key := fmt.Sprintf("R%d", i)
		wg.Go(func() { note(d.trySettle([]messages.Segment{accepted(id, key)})) })
		wg.Go(func() { note(d.trySettle(nil, receipt(key, "DELIVRD"))) })
		wg.Go(func() { note(d.trySettle(nil, receipt(key, "DELIVRD"))) })
	}
	wg.Wait()
	for _, id := range ids {
		if settled[id] != 1 {
			t.Errorf("message %d was settled %d times", id, settled[id])
		}
	}
	if n := d.count(`SELECT count(*) FROM receipts WHERE message_id IS NULL AND received_at < now() - interval '1 hour'`); n != 0 {
		t.Errorf("%d wait", n)
	}
}

// TestReusedIDs: a carrier that counts its ids anew means the youngest segment
// that nothing has been said of yet.
func TestReusedIDs(t *testing.T) {
	d := newHotStore(t)
	ids := d.pending(3)
	hour := time.Now().Add(-time.Hour)
	d.settle([]messages.Segment{accepted(ids[0], "1", at(hour)), accepted(ids[1], "1", at(hour.Add(30*time.Minute)))})
	hidden := func(state string) messages.Receipt {
		r := receipt("1", state)
		r.Number = "hidden"
		return r
	}
	settledAs(t, d.settle(nil, hidden("DELIVRD")), sms.Sent, ids[1])
	settledAs(t, d.settle(nil, hidden("DELIVRD")), sms.Sent, ids[0])
	outcomes(t, d.settle(nil, hidden("DELIVRD")), messages.Duplicate)
	settledAs(t, d.settle([]messages.Segment{accepted(ids[2], "1")}, hidden("UNDELIV")), sms.Failed, ids[2])
}

// TestSameIDs: two SMSCs of a carrier give the same ids. A receipt is its
// handset's, whether the form of ids is trusted or not; where a number is no
// handset's that the id was given for, it is its own link's, if that is trusted.
func TestSameIDs(t *testing.T) {
	for _, verify := range []bool{false, true} {
		d := newHotStore(t)
		ids := d.pending(4)
		of := func(id string, n int, link, state string) messages.Receipt {
			r := receipt(id, state)
			r.Verify, r.Link = verify, link
			if err := d.pool.QueryRow(t.Context(), `SELECT phone_number FROM messages WHERE id = $1`, ids[n]).Scan(&r.Number); err != nil {
				t.Fatal(err)
			}
			return r
		}
		on := func(link string) func(*messages.Segment) {
			return func(p *messages.Segment) { p.Link, p.Unsure = link, verify }
		}
		// The other's receipt comes before its response.
		outcomes(t, d.settle([]messages.Segment{accepted(ids[0], "5", on("a"))}, of("5", 1, "b", "UNDELIV")), messages.Unmatched)
		settledAs(t, d.settle([]messages.Segment{accepted(ids[1], "5", on("b"))}), sms.Failed, ids[1])
		settledAs(t, d.settle(nil, of("5", 0, "b", "DELIVRD")), sms.Sent, ids[0]) // over the other link
		// And the other way around: its response is not the receipt's.
		outcomes(t, d.settle(nil, of("6", 2, "b", "UNDELIV")), messages.Unmatched)
		if s := d.settle([]messages.Segment{accepted(ids[3], "6", on("a"))}); len(s.settled) != 0 {
			t.Errorf("verify %t: another's receipt settled %+v", verify, s.settled)
		}
		settledAs(t, d.settle([]messages.Segment{accepted(ids[2], "6", on("b"))}), sms.Failed, ids[2])
		// What is decided is told again, and otherwise, on the link where the id is
		// open for another.
		ids = append(ids, d.pending(2)...)
		d.settle([]messages.Segment{accepted(ids[4], "8", on("a")), accepted(ids[5], "8", on("a"))}, of("8", 4, "a", "DELIVRD"))
		outcomes(t, d.settle(nil, of("8", 4, "a", "DELIVRD"), of("8", 4, "a", "UNDELIV")), messages.Duplicate, messages.Contradiction)
		if status, _ := d.status(ids[5]); status != sms.Pending {
			t.Errorf("verify %t: another's segment was settled: %v", verify, status)
		}
		// A number of the carrier's own.
		foreign := of("6", 3, "a", "DELIVRD")
		foreign.Number = "25799999999"
		if s := d.settle(nil, foreign); (len(s.settled) == 1) == verify {
			t.Errorf("verify %t: a receipt for a number that is none of ours settled %+v", verify, s.settled)
		}
	}
}

// TestNamelessSegments: a segment that was accepted without an id is found by
// the reference that its receipt echoes, whichever comes first.
func TestNamelessSegments(t *testing.T) {
	d := newTestStore(t)
	ids := d.pending(2)
	echo := func(n int, id string) messages.Receipt {
		r := receipt(id, "DELIVRD")
		ref := uint16(7 + n)
		r.Reference = &ref
		if err := d.pool.QueryRow(t.Context(), `SELECT phone_number FROM messages WHERE id = $1`, ids[n]).Scan(&r.Number); err != nil {
			t.Fatal(err)
		}
		return r
	}
	nameless := func(n int) messages.Segment {
		return accepted(ids[n], "", func(p *messages.Segment) { p.Reference = uint16(7 + n) })
	}
	settledAs(t, d.settle([]messages.Segment{nameless(0)}, echo(0, "x1")), sms.Sent, ids[0])
	outcomes(t, d.settle(nil, echo(1, "")), messages.Unmatched)
	settledAs(t, d.settle([]messages.Segment{nameless(1)}), sms.Sent, ids[1])
}

// TestPutBack: what is refused after all, for now, is to be sent again: once,
// within its validity, and all that the carrier does not have of it.
func TestPutBack(t *testing.T) {
	d := newTestStore(t)
	ids := d.pending(3, segments(2))
	d.claim(1, ids...)
	d.tx(func(ctx context.Context, tx pgx.Tx) error {
		var segments []messages.Segment
		for _, id := range ids {
			segments = append(segments, accepted(id, "A", segment(1, 2)), accepted(id, "", segment(2, 2), func(p *messages.Segment) { p.Unanswered, p.Reference = true, 9 }))
		}
		if _, err := d.Record(ctx, tx, carrier, segments, nil, 0); err != nil {
			return err
		}
		return d.end(ctx, tx, messages.Ends{Dispatcher: 1, Held: ids})
	})
	d.finish(messages.Final{MessageID: ids[1], Status: sms.Sent, At: time.Now()})
	d.exec(`UPDATE held SET expires_at = now() WHERE message_id = $1`, ids[2])
	for range 2 {
		d.tx(func(ctx context.Context, tx pgx.Tx) error {
			var refused []messages.Refused
			for _, id := range ids {
				refused = append(refused, messages.Refused{MessageID: id, Segment: 2}, messages.Refused{MessageID: id, Segment: 2})
			}
			return d.PutBack(ctx, tx, refused, time.Hour)
		})
	}
	got := d.claim(2, ids...)
	if len(got) != 1 || got[0].ID != ids[0] || !slices.Equal(got[0].Accepted, []int{1}) || len(got[0].Unanswered) != 0 {
		t.Errorf("%+v", got)
	}
}

// TestPutBackKeepsItsOwn: a message that goes back has the time that it was
// given, not what messages have as a rule, and no claim of it has the epoch of one
// before; also when it was held by a release that did not write that down, and
// when the row was taken from a dispatcher that died.
func TestPutBackKeepsItsOwn(t *testing.T) {
	d := newTestStore(t)
	ids := d.pending(3)
	d.exec(`UPDATE outbox SET epoch = 40, expires_at = now() + interval '10 minutes' WHERE message_id = ANY($1)`, ids)
	first := d.claim(1, ids...)
	if err := d.Begin(t.Context(), 1, []messages.Claim{{MessageID: ids[2], Epoch: 41}}); err != nil {
		t.Fatal(err)
	}
	d.tx(func(ctx context.Context, tx pgx.Tx) error {
		if err := d.end(ctx, tx, messages.Ends{Dispatcher: 1, Held: ids[:1], Carried: ids[1:2]}); err != nil {
			return err
		}
		_, err := d.TakeBegun(ctx, tx, carrier, []int64{1}, 10)
		return err
	})
	d.tx(func(ctx context.Context, tx pgx.Tx) error {
		return d.PutBack(ctx, tx, []messages.Refused{{MessageID: ids[0], Segment: 1}, {MessageID: ids[1], Segment: 1}, {MessageID: ids[2], Segment: 1}}, 24*time.Hour)
	})
	again := d.claim(1, ids...)
	if len(again) != 3 {
		t.Fatalf("%d of 3 are back", len(again))
	}
	for _, c := range again {
		if c.Epoch <= first[0].Epoch {
			t.Errorf("message %d: epoch %d after epoch %d", c.ID, c.Epoch, first[0].Epoch)
		}
		if left := time.Until(c.ExpiresAt); c.ID != ids[1] && left > 10*time.Minute+time.Second {
			t.Errorf("message %d: it has %s left of ten minutes", c.ID, left)
		}
	}
	// What is said late of the first claim changes nothing in the second.
	if err := d.Release(t.Context(), 1, []messages.Claim{first[0].Claim()}, 0); err != nil {
		t.Fatal(err)
	}
	if n := d.count(`SELECT count(*) FROM outbox WHERE claimed_by = 1`); n != 3 {
		t.Errorf("%d of 3 are claimed", n)
	}
}

// TestForgetHeld: what was kept of a held message goes when no message of its age
// is put back.
func TestForgetHeld(t *testing.T) {
	d := newTestStore(t)
	d.exec(`INSERT INTO held (message_id, epoch, expires_at) VALUES (1, 1, now() - interval '1 hour'), (2, 1, now() - interval '1 minute')`)
	if n, err := d.ForgetHeld(t.Context(), 30*time.Minute); err != nil || n != 1 {
		t.Errorf("%d, %v", n, err)
	}
}

// TestLateAnswer: an answer after the segment was given up takes the place of
// what was recorded then; its receipt finds it.
func TestLateAnswer(t *testing.T) {
	d := newTestStore(t)
	ids := d.pending(2)
	unanswered := func(id int64) messages.Segment {
		return accepted(id, "", func(p *messages.Segment) { p.Unanswered, p.Reference = true, 9 })
	}
	late := func(id int64, key string) messages.Segment {
		return accepted(id, key, func(p *messages.Segment) { p.Late = true })
	}
	d.settle([]messages.Segment{unanswered(ids[0]), unanswered(ids[1])})
	d.settle([]messages.Segment{late(ids[0], "L0")})
	settledAs(t, d.settle(nil, receipt("L0", "DELIVRD")), sms.Sent, ids[0])
	outcomes(t, d.settle(nil, receipt("L1", "DELIVRD")), messages.Unmatched)
	settledAs(t, d.settle([]messages.Segment{late(ids[1], "L1")}), sms.Sent, ids[1])
	if n := d.count(`SELECT count(*) FROM segments WHERE key LIKE '?%'`); n != 0 {
		t.Errorf("%d parts are unanswered still", n)
	}
}

// TestSegments: a message is sent when all its segments are and failed as soon
// as one is, in whatever lots that becomes known. fault 30
func TestSegments(t *testing.T) {
	d := newHotStore(t)
	ids := d.pending(3, segments(3))
	parts := func(message int, keys ...string) (segments []messages.Segment) {
		for i, key := range keys {
			segments = append(segments, accepted(ids[message], key, segment(i+1, 3)))
		}
		return segments
	}
	settledAs(t, d.settle(parts(0, "a", "b", "c"), receipt("b", "DELIVRD")), sms.Sent)
	settledAs(t, d.settle(nil, receipt("c", "DELIVRD"), receipt("b", "DELIVRD")), sms.Sent)
	settledAs(t, d.settle(nil, receipt("a", "DELIVRD")), sms.Sent, ids[0])

	// All in one lot, and before the last response.
	settledAs(t, d.settle(parts(1, "d", "e"), receipt("d", "DELIVRD"), receipt("e", "DELIVRD"), receipt("f", "DELIVRD")), sms.Sent)
	last := accepted(ids[1], "f", segment(3, 3))
	settledAs(t, d.settle([]messages.Segment{last}), sms.Sent, ids[1])

	s := d.settle(parts(2, "g", "h", "i"), receipt("g", "DELIVRD"), receipt("h", "UNDELIV"), receipt("i", "DELIVRD"))
	settledAs(t, s, sms.Failed, ids[2])
	if _, reason := d.status(ids[2]); reason != "UNDELIV 027" {
		t.Errorf("reason %q", reason)
	}

	// A segment that was sent twice counts once.
	twice := d.pending(1, segments(2))
	settledAs(t, d.settle([]messages.Segment{accepted(twice[0], "j", segment(1, 2)), accepted(twice[0], "k", segment(1, 2))},
		receipt("j", "DELIVRD"), receipt("k", "DELIVRD")), sms.Sent)
	settledAs(t, d.settle([]messages.Segment{accepted(twice[0], "l", segment(2, 2))}, receipt("l", "DELIVRD")), sms.Sent, twice[0])
}

// TestConfirmedBySubmit: for a carrier without receipts the response decides.
func TestConfirmedBySubmit(t *testing.T) {
	d := newHotStore(t)
	confirmed := func(p *messages.Segment) { p.Confirmed = true }
	one, two := d.pending(1), d.pending(1, segments(2))
	s := d.settle([]messages.Segment{accepted(one[0], "", confirmed), accepted(two[0], "", segment(1, 2), confirmed)})
	settledAs(t, s, sms.Sent, one[0])
	settledAs(t, d.settle([]messages.Segment{accepted(two[0], "", segment(2, 2), confirmed)}), sms.Sent, two[0])
}

// TestEmptyIDs: accepted without an id; no receipt can speak of it.
func TestEmptyIDs(t *testing.T) {
	d := newHotStore(t)
	ids := d.pending(2)
	settledAs(t, d.settle([]messages.Segment{accepted(ids[0], ""), accepted(ids[1], "")}, receipt("", "DELIVRD")), sms.Sent)
	if status, _ := d.status(ids[0]); status != sms.Pending {
		t.Errorf("it is %v", status)
	}
}

// TestDirtyReceipts: what no database takes does not keep a receipt out of it.
func TestDirtyReceipts(t *testing.T) {
	d := newHotStore(t)
	ids := d.pending(1)
	r := receipt("D\x001\xff", "DELIVRD")
	r.State, r.Error, r.Number = "DELI\x00VRD", "\xfe0", "\x00257\xc3"
	stranger := r
	stranger.CarrierID, stranger.Key = "S\x00", messages.Key("S\x00")
	s := d.settle([]messages.Segment{accepted(ids[0], "\x00D1\xff")}, r, stranger)
	outcomes(t, s, messages.Matched, messages.Unmatched)
	settledAs(t, s, sms.Sent, ids[0])
}

// TestSegmentsOfOneID: a carrier that gives all segments of a message one id
// reports each of them; they may come in one lot or one by one.
func TestSegmentsOfOneID(t *testing.T) {
	for _, lots := range [][]int{{3}, {1, 1, 1}, {2, 1}} {
		d := newTestStore(t)
		ids := d.pending(1, segments(3))
		d.settle([]messages.Segment{accepted(ids[0], "A", segment(1, 3)), accepted(ids[0], "A", segment(2, 3)), accepted(ids[0], "A", segment(3, 3))})
		var s settlement
		for _, n := range lots {
			if len(s.settled) != 0 {
				t.Errorf("%v: settled before its last receipt", lots)
			}
			var list []messages.Receipt
			for range n {
				list = append(list, receipt("A", "DELIVRD"))
			}
			s = d.settle(nil, list...)
		}
		settledAs(t, s, sms.Sent, ids[0])
		outcomes(t, d.settle(nil, receipt("A", "DELIVRD"), receipt("A", "DELIVRD")), messages.Duplicate, messages.Duplicate)
	}
}

// TestInboxOfReusedIDs: a receipt that is like one which waits in vain since
// long ago is the newer message's.
func TestInboxOfReusedIDs(t *testing.T) {
	d := newTestStore(t)
	ids := d.pending(1)
	outcomes(t, d.settle(nil, receipt("7", "DELIVRD")), messages.Unmatched)
	d.exec(`UPDATE receipts SET received_at = now() - interval '1 day'`)
	outcomes(t, d.settle(nil, receipt("7", "DELIVRD")), messages.Unmatched)
	settledAs(t, d.settle([]messages.Segment{accepted(ids[0], "7")}), sms.Sent, ids[0])
}

// TestInboxIsBounded: receipts that nobody waits for go after their time, and
// so do those that are kept beside a message. fault 25
func TestInboxIsBounded(t *testing.T) {
	d := newTestStore(t)
	ids := d.pending(1)
	d.settle([]messages.Segment{accepted(ids[0], "k")}, receipt("k", "ENROUTE"), receipt("old", "DELIVRD"), receipt("new", "DELIVRD"))
	d.exec(`UPDATE receipts SET received_at = now() - interval '2 hours' WHERE key <> 'new'`)
	if n, err := d.ForgetReceipts(t.Context(), time.Hour); err != nil || n != 2 {
		t.Errorf("%d forgotten, %v", n, err)
	}
	if n := d.count(`SELECT count(*) FROM receipts WHERE key = 'new'`); n != 1 {
		t.Errorf("%d of 1 left", n)
	}
}

// TestUnanswered: a segment whose answer was lost is settled by a receipt that
// echoes its reference from its own handset, and by no other; until then it
// counts as not accepted.
func TestUnanswered(t *testing.T) {
	d := newHotStore(t)
	ids := d.pending(2, to("+25761222333"), segments(2))
	d.claim(1, ids...)
	lost := func(id int64, n int, reference uint16) messages.Segment {
		return accepted(id, "", segment(n, 2), func(p *messages.Segment) { p.Unanswered, p.Reference = true, reference })
	}
	d.settle([]messages.Segment{accepted(ids[0], "x1", segment(1, 2)), lost(ids[0], 2, 77), lost(ids[1], 1, 78)})
	d.tx(func(ctx context.Context, tx pgx.Tx) error {
		return d.end(ctx, tx, messages.Ends{Dispatcher: 1, Retries: []messages.Retry{{Claim: d.held(ids[0]), Counts: true}, {Claim: d.held(ids[1]), Counts: true}}})
	})
	for _, c := range d.claim(1, ids...) {
		if want := map[int64][]int{ids[0]: {1}}[c.ID]; !slices.Equal(c.Accepted, want) {
			t.Errorf("message %d: accepted %v, want %v", c.ID, c.Accepted, want)
		}
	}
	echo := func(id, number string, reference uint16) messages.Receipt {
		r := receipt(id, "DELIVRD")
		r.Number, r.Reference = number, &reference
		return r
	}
	s := d.settle(nil, echo("x2", "25761999999", 77), echo("x3", "25761222333", 79))
	outcomes(t, s, messages.Unmatched, messages.Unmatched)
	s = d.settle(nil, echo("x4", "61222333", 77), echo("x1", "25761222333", 76))
	outcomes(t, s, messages.Matched, messages.Matched)
	settledAs(t, s, sms.Sent, ids[0])
	for _, st := range s.states {
		if st.Unanswered != (st.Segment == 2) {
			t.Errorf("%+v", st)
		}
	}
}

// TestVerify: until a link's form of ids is known, only a receipt from the
// segment's own handset settles it; the others wait in the inbox, from where
// another form can take them.
func TestVerify(t *testing.T) {
	d := newHotStore(t)
	ids := append(d.pending(1, to("+25761222333")), d.pending(1, to("+25779444555"))...)
	d.settle([]messages.Segment{accepted(ids[0], "10"), accepted(ids[1], "16")})
	r := receipt("16", "DELIVRD") // decimal for hexadecimal 10
	r.Verify, r.Number = true, "25761222333"
	outcomes(t, d.settle(nil, r), messages.Unmatched)
	var inbox []messages.InboxReceipt
	var settled []messages.Settled
	d.tx(func(ctx context.Context, tx pgx.Tx) error {
		var err error
		if inbox, err = d.Inbox(ctx, tx, carrier, 0, 0, 10); err != nil {
			return err
		}
		if len(inbox) != 1 || inbox[0].CarrierID != "16" || inbox[0].Number != "25761222333" || inbox[0].Status != sms.Sent {
			t.Fatalf("inbox %+v", inbox)
		}
		if rest, err := d.Inbox(ctx, tx, carrier, inbox[0].ID, 0, 10); err != nil || len(rest) != 0 {
			t.Errorf("after it: %+v, %v", rest, err)
		}
		if young, err := d.Inbox(ctx, tx, carrier, 0, time.Hour, 10); err != nil || len(young) != 0 {
			t.Errorf("older than an hour: %+v, %v", young, err)
		}
		if err := d.LockCarrier(ctx, tx, carrier); err != nil {
			return err
		}
		inbox[0].Key = "10"
		states, matched, err := d.Settle(ctx, tx, inbox)
		if err != nil || !slices.Equal(matched, []bool{true}) {
			t.Errorf("matched %v, %v", matched, err)
		}
		finals, err := d.Verdicts(ctx, tx, states)
		if err != nil {
			return err
		}
		settled, err = d.Finish(ctx, tx, finals, messages.Ends{})
		return err
	})
	settledAs(t, settlement{settled: settled}, sms.Sent, ids[0])
	if n := d.count(`SELECT count(*) FROM receipts`); n != 0 {
		t.Errorf("%d left in the inbox", n)
	}
}
