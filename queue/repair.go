package queue

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// repairInterval bounds how often one lane is repaired: against somebody who
	// keeps writing there it does not help, and would fill the log.
	repairInterval = time.Second
	repairKeys     = 1024 // of a ring, or of a set of streams, that one repair looks at
)

// repair deletes those keys of a lane that hold another type than they should:
// somebody else wrote there. What they held is lost, and pushed again by the
// dispatcher. It returns whether there was one; companies are those whose streams the
// failed call may have touched, besides those that the lane knows.
func (q *Queue) repair(ctx context.Context, carrier string, lane Lane, companies ...string) bool {
	keys := q.keys(carrier, lane)
	q.mu.Lock()
	now := time.Now()
	early := now.Sub(q.repaired[keys[0]]) < repairInterval
	if !early {
		q.repaired[keys[0]] = now
	}
	q.mu.Unlock()
	if early {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, q.patience)
	defer cancel()
	known, err := q.known(ctx, carrier, lane)
	if err != nil {
		return false
	}
	types := []string{"zset", "set", "list"}
	for _, company := range append(companies, known...) {
		keys, types = append(keys, q.streamPrefix(carrier, lane)+company), append(types, "stream")
	}
	pipe := q.rdb.Pipeline()
	for _, key := range keys {
		pipe.Type(ctx, key)
	}
	answers, err := pipe.Exec(ctx)
	if err != nil {
		return false
	}
	repaired := false
	for i, key := range keys {
		is, _ := answers[i].(*redis.StatusCmd)
		if is == nil || is.Val() == types[i] || is.Val() == "none" {
			continue
		}
		q.log.Warn("a redis key of the queue has the wrong type; it was deleted, and what it held is pushed again", "key", key, "type", is.Val())
		if q.rdb.Del(ctx, key).Err() == nil {
			repaired = true
		}
	}
	return repaired
}

// known are the companies that a lane knows, as far as it can be read.
func (q *Queue) known(ctx context.Context, carrier string, lane Lane) ([]string, error) {
	ring, err := q.rdb.ZRange(ctx, q.ringKey(carrier, lane), 0, repairKeys-1).Result()
	if err != nil && FaultOf(err) != WrongType {
		return nil, fmt.Errorf("reading the ring of %s %s: %w", carrier, lane, err)
	}
	streams, _, err := q.rdb.SScan(ctx, q.streamsKey(carrier, lane), 0, "", repairKeys).Result()
	if err != nil && FaultOf(err) != WrongType {
		return nil, fmt.Errorf("listing the streams of %s %s: %w", carrier, lane, err)
	}
	companies := append(ring, streams...)
	if lane == Single {
		companies = append(companies, "0")
	}
	return companies, nil
}

// Reset empties a lane, whatever stands there: it is for a lane that has shown
// again and again that it cannot be trusted. Nothing is lost by it that the
// dispatcher does not push again.
func (q *Queue) Reset(ctx context.Context, carrier string, lane Lane) error {
	ctx, cancel := context.WithTimeout(ctx, q.patience)
	defer cancel()
	companies, err := q.known(ctx, carrier, lane)
	if err != nil {
		return err
	}
	pipe := q.rdb.Pipeline()
	for _, company := range companies {
		pipe.Unlink(ctx, q.streamPrefix(carrier, lane)+company)
	}
	for _, key := range q.keys(carrier, lane) {
		pipe.Unlink(ctx, key)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("emptying %s %s: %w", carrier, lane, err)
	}
	return nil
}

// isCompany reports whether a member of a ring or a set of streams is one of ours.
func isCompany(member string) bool {
	_, err := strconv.ParseInt(member, 10, 64)
	return err == nil
}
