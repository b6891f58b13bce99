package messages_test

import (
	"testing"

	"intumwa/messages/receipts"
	"intumwa/sms"
)

// TestSegments: a message is sent when all its segments are and failed when one is, however the results are grouped.
// fault 30
func TestSegments(t *testing.T) {
	d := newHotStore(t)
	ids := d.pending(3, segments(3))
	parts := func(message int, keys ...string) (segments []receipts.Segment) {
		for i, key := range keys {
			segments = append(segments, accepted(ids[message], key, segment(i+1, 3)))
		}
		return segments
	}
	settledAs(t, d.settle(parts(0, "a", "b", "c"), receipt("b", "DELIVRD")), sms.Sent)
	settledAs(t, d.settle(nil, receipt("c", "DELIVRD"), receipt("b", "DELIVRD")), sms.Sent)
	settledAs(t, d.settle(nil, receipt("a", "DELIVRD")), sms.Sent, ids[0])

	// All in one transaction, and before the last response.
	settledAs(t, d.settle(parts(1, "d", "e"), receipt("d", "DELIVRD"), receipt("e", "DELIVRD"), receipt("f", "DELIVRD")),
		sms.Sent)
	last := accepted(ids[1], "f", segment(3, 3))
	settledAs(t, d.settle([]receipts.Segment{last}), sms.Sent, ids[1])

	s := d.settle(parts(2, "g", "h", "i"), receipt("g", "DELIVRD"), receipt("h", "UNDELIV"), receipt("i", "DELIVRD"))
	settledAs(t, s, sms.Failed, ids[2])
	if _, reason := d.status(ids[2]); reason != "UNDELIV 027" {
		t.Errorf("reason %q", reason)
	}

	// A segment that was sent twice counts once.
	twice := d.pending(1, segments(2))
	settledAs(t, d.settle([]receipts.Segment{accepted(twice[0], "j", segment(1, 2)),
		accepted(twice[0], "k", segment(1, 2))},
		receipt("j", "DELIVRD"), receipt("k", "DELIVRD")), sms.Sent)
	settledAs(t, d.settle([]receipts.Segment{accepted(twice[0], "l", segment(2, 2))}, receipt("l", "DELIVRD")), sms.Sent,
		twice[0])
}
