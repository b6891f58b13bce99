package dashboard

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"intumwa/dashboard/words"
	"intumwa/messages"
	"intumwa/messages/receipts"
	"intumwa/messages/submission"
	"intumwa/sms"
)

// TestTimelineOfASegment: a segment is shown as far as it is recorded: with its carrier id, submitted, without a
// response, answered without an id, or possibly not submitted. The internal key of a segment without an id is not
// shown.
func TestTimelineOfASegment(t *testing.T) {
	all, err := words.Load()
	if err != nil {
		t.Fatal(err)
	}
	v := &visit{lang: all.Match("en")}
	for _, try := range []struct{ link, id, kind, detail string }{
		{"leo-1", "75", "good", v.lang.T("life.carrierid", "75")},
		{"leo-1", "?75", "good", v.lang.T("life.unanswered")},
		{"leo-1", "!75", "good", v.lang.T("life.link", "leo-1")},
		{"", "?75", "wait", v.lang.T("life.carrier", "leo")},
	} {
		l := v.newTimeline(messages.Record{Segments: 1, Carrier: "leo"}, messages.History{
			Segments: []receipts.SegmentRecord{{Segment: 1, Carrier: "leo", Link: try.link, CarrierID: try.id, SubmittedAt: time.Now()}},
		}, nil)
		last := l.Moments[len(l.Moments)-1]
		if last.Kind != try.kind || last.Detail[len(last.Detail)-1] != try.detail || strings.ContainsAny(fmt.Sprint(l.Moments), "?!") {
			t.Errorf("%+v: %+v", try, last)
		}
	}
}

// TestDelivered: a message is shown as delivered once every segment has a receipt with DELIVRD.
func TestDelivered(t *testing.T) {
	all, err := words.Load()
	if err != nil {
		t.Fatal(err)
	}
	v, now := &visit{lang: all.Match("en")}, time.Now()
	for _, try := range []struct{ first, second, want string }{
		{"DELIVRD", "DELIVRD", "delivered"}, {"DELIVRD", "", "sent"}, {"DELIVRD", "ACCEPTD", "sent"}, {"", "", "sent"},
	} {
		l := v.newTimeline(messages.Record{Segments: 2, Status: sms.Sent, SentAt: &now}, messages.History{Segments: []receipts.SegmentRecord{
			{Segment: 1, Receipt: try.first, ReceiptAt: &now}, {Segment: 2, Receipt: try.second, ReceiptAt: &now}}}, nil)
		title := v.lang.T("life." + try.want)
		if last := l.Moments[len(l.Moments)-1]; l.Shown != try.want || last.Title != title {
			t.Errorf("%+v: %s, %+v", try, l.Shown, last)
		}
	}
}

// TestReasonsAreTranslated: our own reasons are in the user's language, carriers' unchanged.
func TestReasonsAreTranslated(t *testing.T) {
	all, err := words.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, language := range all.Languages {
		v := &visit{lang: language}
		for _, reason := range []string{submission.ReasonExpired, submission.ReasonNoReceipt, submission.ReasonNoAnswer, submission.ReasonOptedOut, messages.ReasonCancelled} {
			if v.reason(reason) == reason {
				t.Errorf("%s: %q is shown as it is", language.Tag, reason)
			}
		}
		if got := v.reason("UNDELIV 001"); got != "UNDELIV 001" {
			t.Errorf("%s: a carrier's words become %q", language.Tag, got)
		}
	}
}
