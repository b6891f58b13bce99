package messages_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"intumwa/messages"
	"intumwa/messages/lookup"
	"intumwa/messages/receipts"
	"intumwa/sms"
)

// TestTenancy: another company's message or batch is not found.
func TestTenancy(t *testing.T) {
	d := newTestStore(t)
	b := &messages.Batch{ULID: ulid.Make(), CompanyID: 1, UserID: 1, Kind: "bulk", Sender: "DEMO", Recipients: 1,
		Segments: 1}
	m := d.compose(func(m *messages.Message) { m.Batch = b })
	id := d.insert(m)[0]
	for company, found := range map[sms.CompanyID]bool{1: true, 2: false, 0: false, -1: false} {
		r, err := d.ByULID(t.Context(), company, m.ULID)
		if found && (err != nil || r.ID != id) || !found && !errors.Is(err, messages.ErrNotFound) {
			t.Errorf("company %d: %+v, %v", company, r, err)
		}
		r, err = d.ByID(t.Context(), company, id)
		if found && (err != nil || r.ULID != m.ULID) || !found && !errors.Is(err, messages.ErrNotFound) {
			t.Errorf("company %d, by its number: %+v, %v", company, r, err)
		}
	}
	if r, err := d.OperatorsByULID(t.Context(), m.ULID); err != nil || r.ID != id {
		t.Errorf("for an operator: %+v, %v", r, err)
	}
	// The gateway's own, with one-time codes, belong to no company.
	own := d.compose(func(m *messages.Message) { m.CompanyID = 0 })
	d.insert(own)
	if r, err := d.ByULID(t.Context(), 0, own.ULID); !errors.Is(err, messages.ErrNotFound) {
		t.Errorf("company 0 sees the gateway's own: %+v, %v", r, err)
	}
	if page, _, err := d.List(t.Context(), 0, lookup.Filter{}, 0, 10); err != nil || len(page) != 0 {
		t.Errorf("company 0 lists the gateway's own: %+v, %v", page, err)
	}
	if _, err := d.ByULID(t.Context(), 1, ulid.Make()); !errors.Is(err, messages.ErrNotFound) {
		t.Errorf("an unknown message: %v", err)
	}
	if _, err := d.BatchByULID(t.Context(), 2, b.ULID); !errors.Is(err, messages.ErrNotFound) {
		t.Errorf("another's batch: %v", err)
	}
	if page, next, err := d.List(t.Context(), 2, lookup.Filter{Batch: &b.ULID}, 0, 10); err != nil || next != 0 ||
		len(page) != 0 {
		t.Errorf("another's batch has %v, %d, %v", page, next, err)
	}
	if page, _, err := d.List(t.Context(), 2, lookup.Filter{}, 0, 10); err != nil || len(page) != 0 {
		t.Errorf("another's messages: %v, %v", page, err)
	}
}

// TestByCarrierID: a message is found by the id that a carrier gave one of its segments, in the form of the response or
// of a receipt. The reference of a segment without an id finds nothing.
func TestByCarrierID(t *testing.T) {
	d := newTestStore(t)
	ids := d.pending(2, segments(1))
	d.claim(1, ids...)
	d.settle([]receipts.Segment{accepted(ids[0], "00FF"), accepted(ids[1], "")})
	for id, found := range map[string]bool{"00FF": true, "ff": true, " 255": true, "FE": false, "": false, "!1": false,
		"!": false} {
		if got, err := d.ByCarrierID(t.Context(), 1, id); err != nil || (len(got) == 1 && got[0].ID == ids[0]) != found ||
			len(got) > 1 {
			t.Errorf("%q: %+v, %v", id, got, err)
		}
	}
	for _, company := range []sms.CompanyID{0, 2} {
		if got, err := d.ByCarrierID(t.Context(), company, "00FF"); err != nil || len(got) != 0 {
			t.Errorf("company %d: %+v, %v", company, got, err)
		}
	}
	if got, err := d.OperatorsByCarrierID(t.Context(), "00FF"); err != nil || len(got) != 1 {
		t.Errorf("for an operator: %+v, %v", got, err)
	}
}

// TestHistory: of a new message, and of one at a carrier.
func TestHistory(t *testing.T) {
	d := newTestStore(t)
	ids := d.pending(2, segments(2))
	d.claim(1, ids[0])
	first := time.Now().Add(-time.Second).Truncate(time.Microsecond)
	d.settle([]receipts.Segment{
		accepted(ids[0], "B", segment(2, 2), at(first.Add(time.Millisecond))),
		accepted(ids[0], "A", segment(1, 2), at(first)),
	}, receipt("a", "DELIVRD"), receipt("b", "BUFFRED"))
	histories, err := d.HistoriesOf(t.Context(), append(ids, 999))
	if err != nil {
		t.Fatal(err)
	}
	h := histories[ids[0]]
	if len(h.Segments) != 2 || h.Segments[0].Segment != 1 || h.Segments[0].CarrierID != "A" ||
		!h.Segments[0].SubmittedAt.Equal(first) ||
		h.Segments[0].Receipt != "DELIVRD" || h.Segments[1].Receipt != "" || h.Segments[1].ReceiptAt != nil ||
		h.Segments[1].Link != "lumitel-1" {
		t.Errorf("segments %+v", h.Segments)
	}
	if len(h.Receipts) != 1 || h.Receipts[0].State != "BUFFRED" || h.Receipts[0].Outcome != receipts.Intermediate {
		t.Errorf("receipts %+v", h.Receipts)
	}
	if h.Waiting == nil || !h.Waiting.Claimed || h.Waiting.Attempts != 1 {
		t.Errorf("waiting %+v", h.Waiting)
	}
	if h := histories[ids[1]]; len(h.Segments)+len(h.Receipts) != 0 || h.Waiting == nil || h.Waiting.Claimed {
		t.Errorf("the other %+v", h)
	}
	if h, err := d.HistoryOf(t.Context(), 999); err != nil || h.Waiting != nil || h.Segments != nil {
		t.Errorf("an unknown message's %+v, %v", h, err)
	}
}

// TestTimeline: entries are chronological, the end last, and cause before effect at the same time.
func TestTimeline(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	after := func(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }
	pointer := func(at time.Time) *time.Time { return &at }
	r := lookup.Record{Segments: 2, Status: sms.Failed, FailureReason: "UNDELIV 027", CreatedAt: start,
		FailedAt: pointer(after(3))}
	h := lookup.History{
		Segments: []receipts.SegmentRecord{
			{Segment: 1, Link: "l", SubmittedAt: after(1), Receipt: "UNDELIV", ReceiptAt: pointer(after(3))},
			{Segment: 2, Link: "l", SubmittedAt: after(2), Receipt: "DELIVRD", ReceiptAt: pointer(after(2))}, // at the same time
			{Segment: 2, Link: "l", SubmittedAt: after(2)},
			{Segment: 2, Carrier: "leo", SubmittedAt: after(2)}, // unanswered
		},
		Second: &lookup.SecondRecord{At: after(2), From: "a", To: "b", Reason: "UNDELIV"},
		Receipts: []receipts.ReceiptRecord{{At: after(9), State: "DELIVRD", Outcome: receipts.Contradiction},
			{At: after(2), State: "ENROUTE", Outcome: receipts.Intermediate}},
	}
	var got []string
	for _, m := range lookup.Timeline(r, h) {
		got = append(got, m.Event+" "+m.Detail)
	}
	want := []string{
		"accepted ", "submitted segment 1 of 2 by l", "submitted segment 2 of 2 by l", "submitted segment 2 of 2 by l",
		"unanswered segment 2 of 2: leo may have it", "receipt segment 2: DELIVRD", "receipt ENROUTE (intermediate)",
		"sent_on from a to b: UNDELIV", "receipt segment 1: UNDELIV", "receipt DELIVRD (contradiction)", "failed UNDELIV 027",
	}
	if !slices.Equal(got, want) {
		t.Errorf("timeline\n%q, want\n%q", got, want)
	}
}

// TestList: pages from the newest on, with every filter.
func TestList(t *testing.T) {
	d := newTestStore(t)
	b := &messages.Batch{ULID: ulid.Make(), CompanyID: 1, UserID: 1, Kind: "bulk", Sender: "DEMO", Recipients: 3,
		Segments: 3}
	ids := slices.Concat(d.pending(4), d.pending(3, func(m *messages.Message) { m.Batch = b }),
		d.pending(1, to("+25761222333")))
	d.pending(2, func(m *messages.Message) { m.CompanyID = 2 })
	d.finish(messages.Final{MessageID: ids[1], Status: sms.Sent, At: time.Now()})
	d.exec(`UPDATE messages SET created_at = now() - (100 - id) * interval '1 hour'`)
	moment := func(id int64) time.Time {
		var at time.Time
		if err := d.pool.QueryRow(t.Context(), `SELECT created_at FROM messages WHERE id = $1`, id).Scan(&at); err != nil {
			t.Fatal(err)
		}
		return at
	}
	all := slices.Clone(ids)
	slices.Reverse(all)
	status := sms.Sent
	stranger := ulid.Make()
	for _, c := range []struct {
		name   string
		filter lookup.Filter
		want   []int64
	}{
		{"all", lookup.Filter{}, all},
		{"sent", lookup.Filter{Status: &status}, ids[1:2]},
		{"a batch", lookup.Filter{Batch: &b.ULID}, []int64{ids[6], ids[5], ids[4]}},
		{"no batch", lookup.Filter{Batch: &stranger}, nil},
		{"a number", lookup.Filter{Number: "+25761222333"}, ids[7:]},
		{"from", lookup.Filter{From: moment(ids[5])}, []int64{ids[7], ids[6], ids[5]}},
		{"to", lookup.Filter{To: moment(ids[2])}, []int64{ids[1], ids[0]}},
		{"between", lookup.Filter{From: moment(ids[2]), To: moment(ids[4])}, []int64{ids[3], ids[2]}},
		{"of a batch, from", lookup.Filter{Batch: &b.ULID, From: moment(ids[6])}, ids[6:7]},
	} {
		for _, limit := range []int{1, 2, 3, 100} {
			var got []int64
			before, pages := int64(0), 0
			for {
				page, next, err := d.List(t.Context(), 1, c.filter, before, limit)
				if err != nil || len(page) > limit {
					t.Fatalf("%s by %d: %d messages, %v", c.name, limit, len(page), err)
				}
				for _, r := range page {
					got = append(got, r.ID)
				}
				if pages++; next == 0 || pages > 20 {
					break
				}
				before = next
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%s by %d: %v, want %v", c.name, limit, got, c.want)
			}
		}
	}
}
