package queue

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

const (
	doneIDs         = 1000 // ids in one run of doneScript; Lua can unpack some 8,000
	scriptCompanies = 64   // streams one script run looks at
	// deadConsumer is how long a consumer must have been idle, with nothing
	// pending, before Reclaim forgets it.
	deadConsumer = time.Hour
)

// Take delivers up to max waiting entries of a lane to a consumer; when there
// are none it waits for some, at most for block (0: not at all). In the batch
// lane companies get even shares, in turn. No entries and no error means that
// nothing came.
//
// When ctx ends Take returns its error without having taken anything: entries are
// delivered by a short call of its own, whose answer is always awaited. The caller
// calls Done for every entry that it got, whatever became of it.
func (q *Queue) Take(ctx context.Context, carrier string, lane Lane, consumer string, max int, block time.Duration) ([]Entry, error) {
	if max <= 0 {
		return nil, nil
	}
	deadline := time.Now().Add(block)
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		entries, more, err := q.deliver(context.WithoutCancel(ctx), carrier, lane, consumer, max)
		if err != nil || len(entries) > 0 {
			return entries, err
		}
		if more { // many companies turned out to be empty; some are still unseen
			continue
		}
		left := time.Until(deadline)
		if left <= 0 {
			return nil, nil
		}
		if _, err := q.Wait(ctx, carrier, left, lane); err != nil {
			return nil, err
		}
	}
}

// deliver runs takeScript once.
func (q *Queue) deliver(ctx context.Context, carrier string, lane Lane, consumer string, max int) (entries []Entry, more bool, err error) {
	answers, err := q.run(ctx, takeScript, 0, q.call(carrier, lane, consumer, max))
	if err != nil {
		return nil, false, fmt.Errorf("taking from %s %s: %w", carrier, lane, err)
	}
	answer, err := answers[0].Slice()
	if err != nil {
		return nil, false, fmt.Errorf("reading what was taken from %s %s: %w", carrier, lane, err)
	}
	if len(answer) == 0 {
		return nil, false, &FaultError{Garbled, "taking from " + carrier + ": an empty answer"}
	}
	companies, ok := answer[0].(int64)
	if !ok {
		return nil, false, &FaultError{Garbled, "taking from " + carrier + ": an answer without a count"}
	}
	entries, err = readEntries(carrier, lane, answer[1:])
	return entries, companies > 0, err
}

// readEntries reads what the collect function of the scripts writes.
func readEntries(carrier string, lane Lane, fields []any) ([]Entry, error) {
	const width = 4
	entries := make([]Entry, 0, len(fields)/width)
	for ; len(fields) >= width; fields = fields[width:] {
		var text [width]string
		for i := range text {
			text[i], _ = fields[i].(string)
		}
		message, err := strconv.ParseInt(text[2], 10, 64)
		if err != nil {
			return entries, fmt.Errorf("reading entry %s of %s %s: %w", text[1], carrier, lane, err)
		}
		company, err := strconv.ParseInt(text[3], 10, 64)
		if err != nil {
			return entries, fmt.Errorf("reading entry %s of %s %s: %w", text[1], carrier, lane, err)
		}
		entries = append(entries, Entry{
			Item: Item{MessageID: message, CompanyID: company, Carrier: carrier, Lane: lane},
			ID:   entryID(text[0], text[1]),
		})
	}
	return entries, nil
}

// Done removes entries from a lane for good, in one round trip. Entries that
// are no longer there, because another consumer finished them or Redis was
// emptied, are no error.
func (q *Queue) Done(ctx context.Context, carrier string, lane Lane, ids ...string) error {
	var calls []call
	open := make(map[string]int)
	for _, id := range ids {
		stream, place, err := splitEntryID(id)
		if err != nil {
			return fmt.Errorf("finishing at %s %s: %w", carrier, lane, err)
		}
		at, ok := open[stream]
		if !ok {
			at = len(calls)
			open[stream] = at
			calls = append(calls, q.call(carrier, lane, stream).of(stream))
		}
		calls[at].args = append(calls[at].args, place)
		if len(calls[at].args) >= doneIDs {
			delete(open, stream)
		}
	}
	if len(calls) == 0 {
		return nil
	}
	if _, err := q.run(ctx, doneScript, time.Duration(len(ids))*itemTime, calls...); err != nil {
		return fmt.Errorf("finishing %d entries of %s %s: %w", len(ids), carrier, lane, err)
	}
	return nil
}

// Reclaim hands a consumer up to max entries that were delivered at least
// minIdle ago and never done: their consumer died, or its answer was lost.
// minIdle must exceed the longest time an entry is rightly held. The entries
// count as delivered now.
//
// It also forgets consumers that have been idle for an hour and have nothing
// pending, drops empty streams, and puts a company back into the ring that has
// something waiting and is not there (a key was evicted). Any process may call
// it, from time to time.
func (q *Queue) Reclaim(ctx context.Context, carrier string, lane Lane, consumer string, minIdle time.Duration, max int) ([]Entry, error) {
	companies, err := q.streams(ctx, carrier, lane)
	if err != nil {
		return nil, err
	}
	var entries []Entry
	ctx = context.WithoutCancel(ctx) // as in Take: what is claimed is returned
	for len(companies) > 0 && len(entries) < max {
		n := min(len(companies), scriptCompanies)
		args := []any{consumer, minIdle.Milliseconds(), max - len(entries), q.forget.Milliseconds()}
		for _, company := range companies[:n] {
			args = append(args, company)
		}
		answers, err := q.run(ctx, reclaimScript, 0, q.call(carrier, lane, args...).of(companies[:n]...))
		companies = companies[n:]
		if err != nil {
			return entries, fmt.Errorf("reclaiming from %s %s: %w", carrier, lane, err)
		}
		claimed, err := answers[0].Slice()
		if err != nil {
			return entries, fmt.Errorf("reading what was reclaimed from %s %s: %w", carrier, lane, err)
		}
		more, err := readEntries(carrier, lane, claimed)
		entries = append(entries, more...)
		if err != nil {
			return entries, err
		}
	}
	return entries, nil
}
