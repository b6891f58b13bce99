package queue

// All keys of a carrier carry its name as hash tag, so that a cluster keeps
// them in one slot and scripts may touch them together.
func (q *Queue) laneKey(carrier string, lane Lane) string {
	return q.prefix + ":queue:{" + carrier + "}:" + lane.String()
}

// ringKey: sorted set of the companies with something waiting, by turn.
func (q *Queue) ringKey(carrier string, lane Lane) string { return q.laneKey(carrier, lane) + ":ring" }

// bellKey: list with a token while the ring is not empty.
func (q *Queue) bellKey(carrier string, lane Lane) string { return q.laneKey(carrier, lane) + ":bell" }

// emptiedKey is there for a moment after the lane was emptied.
func (q *Queue) emptiedKey(carrier string, lane Lane) string {
	return q.laneKey(carrier, lane) + ":emptied"
}

// streamPrefix, followed by a company's id, names its stream; an entry holds m,
// a message's id.
func (q *Queue) streamPrefix(carrier string, lane Lane) string {
	return q.laneKey(carrier, lane) + ":stream:"
}

// streamOf returns whose stream an item goes into: the single lane has one, 0.
func streamOf(lane Lane, company int64) int64 {
	if lane == Single {
		return 0
	}
	return company
}
