package queue

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// group is the one consumer group of every stream.
const group = "dispatch"

// All keys of a carrier carry its name as hash tag, so that a cluster keeps
// them in one slot and scripts may touch them together.
func (q *Queue) laneKey(carrier string, lane Lane) string {
	return q.prefix + ":queue:{" + carrier + "}:" + lane.String()
}

// ringKey: sorted set of the companies with something waiting, by turn.
func (q *Queue) ringKey(carrier string, lane Lane) string { return q.laneKey(carrier, lane) + ":ring" }

// streamsKey: set of the companies that have a stream.
func (q *Queue) streamsKey(carrier string, lane Lane) string {
	return q.laneKey(carrier, lane) + ":streams"
}

// bellKey: list with a token while the ring is not empty.
func (q *Queue) bellKey(carrier string, lane Lane) string { return q.laneKey(carrier, lane) + ":bell" }

// streamPrefix, followed by a company's id, names its stream; entries hold m
// (message id) and c (company id).
func (q *Queue) streamPrefix(carrier string, lane Lane) string {
	return q.laneKey(carrier, lane) + ":stream:"
}

// keys are the first three keys of every script.
func (q *Queue) keys(carrier string, lane Lane) []string {
	return []string{q.ringKey(carrier, lane), q.streamsKey(carrier, lane), q.bellKey(carrier, lane)}
}

// streamOf returns whose stream an item goes into: the single lane has one, 0.
func streamOf(lane Lane, company int64) int64 {
	if lane == Single {
		return 0
	}
	return company
}

// An Entry's ID is its company's stream and its place there: "45/1764000000000-0".
func entryID(stream, place string) string { return stream + "/" + place }

func splitEntryID(id string) (stream, place string, err error) {
	stream, place, ok := strings.Cut(id, "/")
	if !ok || stream == "" || place == "" {
		return "", "", fmt.Errorf("%q is not the id of an entry", id)
	}
	return stream, place, nil
}

// placeTime returns the moment of the Redis clock in a stream id, zero for
// "0-0".
func placeTime(place string) (time.Time, error) {
	text, _, _ := strings.Cut(place, "-")
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("reading the stream id %q: %w", place, err)
	}
	if ms == 0 {
		return time.Time{}, nil
	}
	return time.UnixMilli(ms), nil
}
