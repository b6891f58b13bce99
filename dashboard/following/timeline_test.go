package following

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"intumwa/dashboard/web"
	"intumwa/messages/lookup"
	"intumwa/messages/receipts"
	"intumwa/messages/submission"
	"intumwa/sms"
	"intumwa/texts"
)

// TestTimelineOfASegment: the timeline shows what is recorded of a segment: with its carrier id, submitted, without a
// response, answered without an id, or possibly not submitted. The internal key of a segment without an id is not
// shown.
func TestTimelineOfASegment(t *testing.T) {
	all, err := texts.Load()
	if err != nil {
		t.Fatal(err)
	}
	v := &web.Visit{Lang: all.Match("en")}
	for _, try := range []struct{ link, id, kind, detail string }{
		{"leo-1", "75", "good", v.Lang.T("life.carrierid", "75")},
		{"leo-1", "?75", "good", v.Lang.T("life.unanswered")},
		{"leo-1", "!75", "good", v.Lang.T("life.link", "leo-1")},
		{"", "?75", "wait", v.Lang.T("life.carrier", "leo")},
	} {
		l := newTimeline(v, lookup.Record{Segments: 1, Carrier: "leo"}, lookup.History{
			Segments: []receipts.SegmentRecord{{Segment: 1, Carrier: "leo", Link: try.link, CarrierID: try.id,
				SubmittedAt: time.Now()}},
		}, nil, whyFailed{})
		last := l.Moments[len(l.Moments)-1]
		if last.Kind != try.kind || last.Detail[len(last.Detail)-1] != try.detail ||
			strings.ContainsAny(fmt.Sprint(l.Moments), "?!") {
			t.Errorf("%+v: %+v", try, last)
		}
	}
}

// TestDelivered: the page of a message says that it arrived once every segment has a receipt with DELIVRD. Its status
// is "sent", as in lists.
func TestDelivered(t *testing.T) {
	all, err := texts.Load()
	if err != nil {
		t.Fatal(err)
	}
	v, now := &web.Visit{Lang: all.Match("en")}, time.Now()
	for _, try := range []struct{ first, second, want string }{
		{"DELIVRD", "DELIVRD", "delivered"}, {"DELIVRD", "", "sent"}, {"DELIVRD", "ACCEPTD", "sent"}, {"", "", "sent"},
	} {
		l := newTimeline(v, lookup.Record{Segments: 2, Status: sms.Sent, SentAt: &now},
			lookup.History{Segments: []receipts.SegmentRecord{
				{Segment: 1, Receipt: try.first, ReceiptAt: &now}, {Segment: 2, Receipt: try.second, ReceiptAt: &now}}}, nil,
			whyFailed{})
		title := v.Lang.T("life." + try.want)
		if last := l.Moments[len(l.Moments)-1]; l.Status != sms.Sent || last.Title != title {
			t.Errorf("%+v: %s, %+v", try, l.Status, last)
		}
	}
}

// TestFailure: a failed message's page says why, what to do, what was charged, and the carrier's own words.
func TestFailure(t *testing.T) {
	all, err := texts.Load()
	if err != nil {
		t.Fatal(err)
	}
	v := &web.Visit{Lang: all.Match("en")}
	for _, try := range []struct {
		m              lookup.Record
		refunded       int64
		text, carriers string
	}{
		{lookup.Record{CompanyID: 1, Segments: 2, FailureReason: "UNDELIV 011"}, 0, v.Lang.T("reason.undeliv") +
			" 2 credits were charged.", "UNDELIV 011"},
		{lookup.Record{CompanyID: 1, Segments: 2, FailureReason: submission.ReasonExpired}, 2, v.Lang.T("reason.expired") +
			" " + v.Lang.T("reason.refunded"), ""},
		{lookup.Record{CompanyID: 1, Segments: 1, Test: true, FailureReason: "REJECTD"}, 0, v.Lang.T("reason.rejectd") +
			" It was free of charge.", "REJECTD"},
		{lookup.Record{CompanyID: 1, Segments: 1, Carrier: sms.SandboxCarrier}, 0, "It was free of charge.", ""},
	} {
		if why := failure(v, &try.m, try.refunded); why.Text != try.text || why.Carriers != try.carriers {
			t.Errorf("%+v: %+v", try, why)
		}
	}
}
