package queue

// All keys of a carrier have its name as hash tag: a cluster keeps them in one slot, where scripts may use them together.
func (q *Queue) laneKey(carrier string, lane Lane) string {
	return q.prefix + ":queue:{" + carrier + "}:" + lane.String()
}

// ringKey is the sorted set of companies with waiting messages, by turn.
func (q *Queue) ringKey(carrier string, lane Lane) string { return q.laneKey(carrier, lane) + ":ring" }

// bellKey is a list with a token while the ring is not empty.
func (q *Queue) bellKey(carrier string, lane Lane) string { return q.laneKey(carrier, lane) + ":bell" }

// emptiedKey exists for a short time after the lane was emptied.
func (q *Queue) emptiedKey(carrier string, lane Lane) string {
	return q.laneKey(carrier, lane) + ":emptied"
}

// streamPrefix, followed by a company's id, names its stream; an entry has m, a message's id.
func (q *Queue) streamPrefix(carrier string, lane Lane) string {
	return q.laneKey(carrier, lane) + ":stream:"
}
