package dashboard

import (
	"testing"
	"time"

	"intumwa/dashboard/words"
	"intumwa/messages"
	"intumwa/messages/receipts"
)

// TestTimelineOfHeldSegment: a segment of which it is not recorded that it was submitted is not shown as taken by the carrier.
func TestTimelineOfHeldSegment(t *testing.T) {
	all, err := words.Load()
	if err != nil {
		t.Fatal(err)
	}
	v := &visit{lang: all.Match("en")}
	l := v.newTimeline(messages.Record{Segments: 1, Carrier: "leo"}, messages.History{
		Segments: []receipts.SegmentRecord{{Segment: 1, Carrier: "leo", CarrierID: "?75", SubmittedAt: time.Now()}},
	}, nil)
	if last := l.Moments[len(l.Moments)-1]; last.Title != v.lang.T("life.unanswered") || last.Kind != "wait" {
		t.Errorf("the timeline ends with %+v", last)
	}
}
