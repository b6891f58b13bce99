package queue

import (
	"context"
	"time"
)

// ForgetAfter sets how long a consumer without pending entries is remembered.
func (q *Queue) ForgetAfter(d time.Duration) { q.forget = d }

// Depth returns how many entries of a lane wait, how many are delivered and not
// done, and since when the oldest waits (zero when none does).
func (q *Queue) Depth(ctx context.Context, carrier string, lane Lane) (waiting, pending int64, oldest time.Time, err error) {
	companies, err := q.streams(ctx, carrier, lane)
	if err != nil {
		return 0, 0, time.Time{}, err
	}
	for _, company := range companies {
		stream := q.streamPrefix(carrier, lane) + company
		groups, err := q.rdb.XInfoGroups(ctx, stream).Result()
		if err != nil || len(groups) != 1 {
			return 0, 0, time.Time{}, err
		}
		behind, err := q.rdb.XRange(ctx, stream, "("+groups[0].LastDeliveredID, "+").Result()
		if err != nil {
			return 0, 0, time.Time{}, err
		}
		waiting, pending = waiting+int64(len(behind)), pending+groups[0].Pending
		if len(behind) == 0 {
			continue
		}
		first, err := placeTime(behind[0].ID)
		if err != nil {
			return 0, 0, time.Time{}, err
		}
		if oldest.IsZero() || first.Before(oldest) {
			oldest = first
		}
	}
	return waiting, pending, oldest, nil
}
