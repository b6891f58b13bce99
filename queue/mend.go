package queue

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// mendEvery bounds how often one lane is mended: against whoever writes
	// there without end nothing is won, and the log is spared.
	mendEvery = time.Second
	mendKeys  = 1024 // of a ring, or of a set of streams, that one mending looks at
)

// mend deletes those keys of a lane that hold another type than they should:
// somebody else wrote there. What they held is lost, and pushed again by the
// dispatcher. It answers whether there was one; companies are those whose streams the
// failed call may have touched, besides those that the lane knows.
func (b *Belt) mend(ctx context.Context, carrier string, lane Lane, companies ...string) bool {
	keys := b.keys(carrier, lane)
	b.mu.Lock()
	now := time.Now()
	early := now.Sub(b.mended[keys[0]]) < mendEvery
	if !early {
		b.mended[keys[0]] = now
	}
	b.mu.Unlock()
	if early {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, b.patience)
	defer cancel()
	known, err := b.known(ctx, carrier, lane)
	if err != nil {
		return false
	}
	types := []string{"zset", "set", "list"}
	for _, company := range append(companies, known...) {
		keys, types = append(keys, b.streamPrefix(carrier, lane)+company), append(types, "stream")
	}
	pipe := b.rdb.Pipeline()
	for _, key := range keys {
		pipe.Type(ctx, key)
	}
	answers, err := pipe.Exec(ctx)
	if err != nil {
		return false
	}
	mended := false
	for i, key := range keys {
		is, _ := answers[i].(*redis.StatusCmd)
		if is == nil || is.Val() == types[i] || is.Val() == "none" {
			continue
		}
		b.log.Warn("a key of the belt holds something else; it is deleted, and what was in it is pushed again", "key", key, "type", is.Val())
		if b.rdb.Del(ctx, key).Err() == nil {
			mended = true
		}
	}
	return mended
}

// known are the companies that a lane knows, as far as it can be read.
func (b *Belt) known(ctx context.Context, carrier string, lane Lane) ([]string, error) {
	ring, err := b.rdb.ZRange(ctx, b.ringKey(carrier, lane), 0, mendKeys-1).Result()
	if err != nil && FaultOf(err) != WrongType {
		return nil, fmt.Errorf("reading the ring of %s %s: %w", carrier, lane, err)
	}
	streams, _, err := b.rdb.SScan(ctx, b.streamsKey(carrier, lane), 0, "", mendKeys).Result()
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
func (b *Belt) Reset(ctx context.Context, carrier string, lane Lane) error {
	ctx, cancel := context.WithTimeout(ctx, b.patience)
	defer cancel()
	companies, err := b.known(ctx, carrier, lane)
	if err != nil {
		return err
	}
	pipe := b.rdb.Pipeline()
	for _, company := range companies {
		pipe.Unlink(ctx, b.streamPrefix(carrier, lane)+company)
	}
	for _, key := range b.keys(carrier, lane) {
		pipe.Unlink(ctx, key)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("emptying %s %s: %w", carrier, lane, err)
	}
	return nil
}

// isCompany tells whether a member of a ring or a set of streams is one of ours.
func isCompany(member string) bool {
	_, err := strconv.ParseInt(member, 10, 64)
	return err == nil
}
