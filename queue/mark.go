package queue

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Mark says how far a company's part of a lane has moved.
type Mark struct {
	// Delivered is the moment of the Redis clock before which nothing waits any
	// more: what was pushed earlier has been delivered, or is lost. It is the
	// time of the oldest entry that waits; when none does, of the last delivered.
	Delivered time.Time
	// Empty: nothing waits.
	Empty bool
}

// Lost tells whether a message that was pushed at a moment of the Redis clock,
// and that nobody has claimed, is no longer on the belt: nothing that old waits,
// so it was delivered to a consumer that died before claiming it, or Redis lost
// it. now is the Redis clock when the mark was taken. slack covers the time from
// delivery to claim and the error in pushed; too small a slack only pushes a
// message twice, and the claim sorts that out.
//
// A message that is lost by this reckoning may still be pending under a dead
// consumer's name, and be reclaimed later: again the claim decides.
func (m Mark) Lost(pushed, now time.Time, slack time.Duration) bool {
	if m.Empty {
		return pushed.Before(now.Add(-slack))
	}
	return pushed.Before(m.Delivered.Add(-slack))
}

// Marks are the marks of a lane by company; the single lane has one, under 0.
type Marks map[int64]Mark

// Of answers a company's mark. One that is not in the map has nothing waiting.
func (m Marks) Of(lane Lane, company int64) Mark {
	if mark, ok := m[streamOf(lane, company)]; ok {
		return mark
	}
	return Mark{Empty: true}
}

// Marks answers the marks of every company with something waiting in a lane
// (and always that of the single lane). The dispatcher compares them with the rows
// of Postgres: what is due, unclaimed and Lost is to be pushed again. After a
// FLUSHALL every lane is empty, so everything older than the slack is.
//
// Ask Now before Marks: a message pushed between the two is then judged by the
// earlier clock, and not taken for lost.
func (b *Belt) Marks(ctx context.Context, carrier string, lane Lane) (Marks, error) {
	companies, err := b.members(ctx, carrier, lane, func(ctx context.Context) ([]string, error) {
		return b.rdb.ZRange(ctx, b.ringKey(carrier, lane), 0, -1).Result()
	})
	if err != nil {
		return nil, fmt.Errorf("listing who waits at %s %s: %w", carrier, lane, err)
	}
	if lane == Single {
		companies = []string{"0"}
	}
	looks, err := b.look(ctx, carrier, lane, companies)
	if err != nil {
		return nil, err
	}
	marks := make(Marks, len(looks)+1)
	if lane == Single {
		marks[0] = Mark{Empty: true}
	}
	for _, seen := range looks {
		marks[seen.company] = seen.mark
	}
	return marks, nil
}

// Mark answers the mark of a whole lane: empty when nobody waits, else the
// oldest of its companies' marks.
func (b *Belt) Mark(ctx context.Context, carrier string, lane Lane) (delivered time.Time, empty bool, err error) {
	marks, err := b.Marks(ctx, carrier, lane)
	if err != nil {
		return time.Time{}, false, err
	}
	empty = true
	for _, mark := range marks {
		switch {
		case empty && !mark.Empty:
			delivered, empty = mark.Delivered, false
		case empty && mark.Delivered.After(delivered):
			delivered = mark.Delivered
		case !empty && !mark.Empty && mark.Delivered.Before(delivered):
			delivered = mark.Delivered
		}
	}
	return delivered, empty, nil
}

// Depth answers how many entries of a lane wait, how many are delivered and not
// done, and since when the oldest waits (zero when none does).
func (b *Belt) Depth(ctx context.Context, carrier string, lane Lane) (waiting, pending int64, oldest time.Time, err error) {
	companies, err := b.streams(ctx, carrier, lane)
	if err != nil {
		return 0, 0, time.Time{}, err
	}
	looks, err := b.look(ctx, carrier, lane, companies)
	if err != nil {
		return 0, 0, time.Time{}, err
	}
	for _, seen := range looks {
		waiting += seen.waiting
		pending += seen.pending
		if !seen.mark.Empty && (oldest.IsZero() || seen.mark.Delivered.Before(oldest)) {
			oldest = seen.mark.Delivered
		}
	}
	return waiting, pending, oldest, nil
}

// streams lists the companies that have a stream.
func (b *Belt) streams(ctx context.Context, carrier string, lane Lane) ([]string, error) {
	companies, err := b.members(ctx, carrier, lane, func(ctx context.Context) ([]string, error) {
		return b.rdb.SMembers(ctx, b.streamsKey(carrier, lane)).Result()
	})
	if err != nil {
		return nil, fmt.Errorf("listing the streams of %s %s: %w", carrier, lane, err)
	}
	return companies, nil
}

// members reads the companies in one of a lane's keys; a key of another type is
// mended. What is no company's id is somebody else's, and left out.
func (b *Belt) members(ctx context.Context, carrier string, lane Lane, read func(context.Context) ([]string, error)) ([]string, error) {
	for again := true; ; again = false {
		limited, cancel := context.WithTimeout(ctx, b.patience)
		companies, err := read(limited)
		cancel()
		if err != nil && again && broken(err) && b.mend(ctx, carrier, lane) {
			continue
		}
		return slices.DeleteFunc(companies, func(member string) bool { return !isCompany(member) }), err
	}
}

// look is what there is to see at one company's stream.
type look struct {
	company          int64
	waiting, pending int64
	mark             Mark
}

// look looks at the streams of companies, in one round trip.
func (b *Belt) look(ctx context.Context, carrier string, lane Lane, companies []string) ([]look, error) {
	var calls []call
	for len(companies) > 0 {
		n := min(len(companies), reclaimCompanies)
		args := make([]any, n)
		for i, company := range companies[:n] {
			args[i] = company
		}
		calls = append(calls, b.call(carrier, lane, args...).of(companies[:n]...))
		companies = companies[n:]
	}
	if len(calls) == 0 {
		return nil, nil
	}
	answers, err := b.run(ctx, marksScript, 0, calls...)
	if err != nil {
		return nil, fmt.Errorf("looking at %s %s: %w", carrier, lane, err)
	}
	var looks []look
	for _, answer := range answers {
		fields, err := answer.Slice()
		if err != nil {
			return nil, fmt.Errorf("looking at %s %s: %w", carrier, lane, err)
		}
		const width = 5
		for ; len(fields) >= width; fields = fields[width:] {
			seen, err := readLook(fields)
			if err != nil {
				return nil, fmt.Errorf("looking at %s %s: %w", carrier, lane, err)
			}
			looks = append(looks, seen)
		}
	}
	return looks, nil
}

// readLook reads one company's five fields of marksScript.
func readLook(fields []any) (seen look, err error) {
	company, _ := fields[0].(string)
	if seen.company, err = strconv.ParseInt(company, 10, 64); err != nil {
		return seen, fmt.Errorf("reading a company's id: %w", err)
	}
	seen.waiting, _ = fields[1].(int64)
	seen.pending, _ = fields[2].(int64)
	first, _ := fields[3].(string)
	last, _ := fields[4].(string)
	seen.mark.Empty = first == ""
	if first == "" {
		first = last
	}
	seen.mark.Delivered, err = placeTime(first)
	return seen, err
}
