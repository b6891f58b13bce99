package statistics

import (
	"cmp"
	"slices"
)

// Add adds another count to q, whose properties stay.
func (q *Quality) Add(other *Quality) {
	q.Waiting, q.AtCarrier, q.Sent, q.Failed = q.Waiting+other.Waiting, q.AtCarrier+other.AtCarrier, q.Sent+other.Sent,
		q.Failed+other.Failed
	q.Segments, q.Credits = q.Segments+other.Segments, q.Credits+other.Credits
	q.ToCarrier.add(other.ToCarrier)
	q.ToReceipt.add(other.ToReceipt)
	for _, r := range other.Reasons {
		at := slices.IndexFunc(q.Reasons, func(known Reason) bool { return known.Reason == r.Reason })
		if at < 0 {
			at, q.Reasons = len(q.Reasons), append(q.Reasons, Reason{Reason: r.Reason})
		}
		q.Reasons[at].Messages += r.Messages
	}
	slices.SortFunc(q.Reasons, func(a, b Reason) int {
		return cmp.Or(cmp.Compare(b.Messages, a.Messages), cmp.Compare(a.Reason, b.Reason))
	})
}

// Because is the number of messages that failed for a reason.
func (q *Quality) Because(reason string) (n int64) {
	for _, r := range q.Reasons {
		if r.Reason == reason {
			n += r.Messages
		}
	}
	return n
}
