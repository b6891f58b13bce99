package queue

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Watermark says how far consumers have come with a company's messages of a lane.
type Watermark struct {
	// Delivered is the moment of the Redis clock before which nothing waits any
	// more: what was pushed earlier has been delivered, or is lost. It is the
	// time of the oldest entry that waits; when none does, of the last delivered.
	Delivered time.Time
	// Empty: nothing waits.
	Empty bool
}

// Watermarks returns the watermark of every company with something waiting in a
// lane; the single lane has one, under 0, always. A company that is not in the
// map has nothing waiting.
//
// The dispatcher compares them with the rows of Postgres. What was pushed before
// Delivered (or, where nothing waits, before now) and nobody has claimed is no
// longer in the queue: it was delivered to a consumer that died before claiming
// it, or Redis lost it. It is to be pushed again. That may push a message twice,
// or one that is still pending under a dead consumer's name; then the claim
// decides.
//
// Ask Now before Watermarks: a message pushed between the two is then judged by
// the earlier clock, and not taken for lost.
func (q *Queue) Watermarks(ctx context.Context, carrier string, lane Lane) (map[int64]Watermark, error) {
	companies, err := q.members(ctx, carrier, lane, func(ctx context.Context) ([]string, error) {
		return q.rdb.ZRange(ctx, q.ringKey(carrier, lane), 0, -1).Result()
	})
	if err != nil {
		return nil, fmt.Errorf("listing who waits at %s %s: %w", carrier, lane, err)
	}
	marks := make(map[int64]Watermark, len(companies)+1)
	if lane == Single {
		companies = []string{"0"}
		marks[0] = Watermark{Empty: true}
	}
	if err := q.readWatermarks(ctx, carrier, lane, companies, marks); err != nil {
		return nil, fmt.Errorf("reading the watermarks of %s %s: %w", carrier, lane, err)
	}
	return marks, nil
}

// streams lists the companies that have a stream.
func (q *Queue) streams(ctx context.Context, carrier string, lane Lane) ([]string, error) {
	companies, err := q.members(ctx, carrier, lane, func(ctx context.Context) ([]string, error) {
		return q.rdb.SMembers(ctx, q.streamsKey(carrier, lane)).Result()
	})
	if err != nil {
		return nil, fmt.Errorf("listing the streams of %s %s: %w", carrier, lane, err)
	}
	return companies, nil
}

// members reads the companies in one of a lane's keys; a key of another type is
// repaired. Members that are no company's id are left out.
func (q *Queue) members(ctx context.Context, carrier string, lane Lane, read func(context.Context) ([]string, error)) ([]string, error) {
	for again := true; ; again = false {
		limited, cancel := context.WithTimeout(ctx, q.patience)
		companies, err := read(limited)
		cancel()
		if err != nil && again && broken(err) && q.repair(ctx, carrier, lane) {
			continue
		}
		return slices.DeleteFunc(companies, func(member string) bool { return !isCompany(member) }), err
	}
}

// readWatermarks adds those of the companies that have a stream, in one round
// trip.
func (q *Queue) readWatermarks(ctx context.Context, carrier string, lane Lane, companies []string, marks map[int64]Watermark) error {
	var calls []call
	for len(companies) > 0 {
		n := min(len(companies), scriptCompanies)
		args := make([]any, n)
		for i, company := range companies[:n] {
			args[i] = company
		}
		calls = append(calls, q.call(carrier, lane, args...).of(companies[:n]...))
		companies = companies[n:]
	}
	if len(calls) == 0 {
		return nil
	}
	answers, err := q.run(ctx, watermarksScript, 0, calls...)
	if err != nil {
		return err
	}
	for _, answer := range answers {
		fields, err := answer.Slice()
		if err != nil {
			return fmt.Errorf("an answer that is no list: %w", err)
		}
		const width = 3
		for ; len(fields) >= width; fields = fields[width:] {
			company, mark, err := readWatermark(fields)
			if err != nil {
				return err
			}
			marks[company] = mark
		}
	}
	return nil
}

// readWatermark reads one company's three fields of watermarksScript.
func readWatermark(fields []any) (company int64, mark Watermark, err error) {
	id, _ := fields[0].(string)
	if company, err = strconv.ParseInt(id, 10, 64); err != nil {
		return 0, mark, fmt.Errorf("reading a company's id: %w", err)
	}
	first, _ := fields[1].(string)
	last, _ := fields[2].(string)
	if mark.Empty = first == ""; mark.Empty {
		first = last
	}
	mark.Delivered, err = placeTime(first)
	return company, mark, err
}
