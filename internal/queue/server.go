package queue

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// oldestServer is the oldest version that is tested.
var oldestServer = [2]int{6, 2}

// ErrEvicts means that a server evicts keys when its memory is full. Evicted entries are pushed again late, and the
// counters of rate limits are lost.
var ErrEvicts = errors.New("redis drops keys when its memory is full: set maxmemory-policy noeviction on every node")

// Evicts returns ErrEvicts, wrapped with the policy, when a reachable server has another maxmemory-policy than
// noeviction. In a cluster it checks every node, also replicas, which may become masters. Servers that are unreachable
// or forbid INFO are not an error.
func (q *Queue) Evicts(ctx context.Context) error {
	found := ""
	_ = q.eachServer(ctx, func(facts facts) { found = cmp.Or(facts.evicts(), found) })
	if found != "" {
		return fmt.Errorf("%w (a node has %s)", ErrEvicts, found)
	}
	return nil
}

// CheckServer reads every node's settings. It returns warnings for settings that lose entries or prevent the queue from
// working; an error means that a server did not respond, and the warnings are those of the others.
func (q *Queue) CheckServer(ctx context.Context) (warnings []string, err error) {
	_, cluster := q.rdb.(*redis.ClusterClient)
	err = q.eachServer(ctx, func(facts facts) {
		for _, warning := range facts.warnings(cluster) {
			if !slices.Contains(warnings, warning) {
				warnings = append(warnings, warning)
			}
		}
	})
	return warnings, err
}

// eachServer calls do with each server's INFO, one call at a time.
func (q *Queue) eachServer(ctx context.Context, do func(facts)) error {
	var mu sync.Mutex // a cluster's nodes are queried concurrently
	read := func(ctx context.Context, client redis.Cmdable) error {
		info, err := client.Info(ctx).Result()
		if err != nil {
			return fmt.Errorf("reading the settings of redis: %w", err)
		}
		mu.Lock()
		defer mu.Unlock()
		do(factsOf(info))
		return nil
	}
	if cluster, ok := q.rdb.(*redis.ClusterClient); ok {
		return cluster.ForEachShard(ctx, func(ctx context.Context, client *redis.Client) error { return read(ctx, client) })
	}
	return read(ctx, q.rdb)
}

// facts are the lines of INFO.
type facts map[string]string

func factsOf(info string) facts {
	facts := make(facts)
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			facts[name] = value
		}
	}
	return facts
}

// evicts returns the policy by which the server evicts keys; "" for none, or if it is not reported.
func (facts facts) evicts() string {
	if policy := facts["maxmemory_policy"]; policy != "noeviction" {
		return policy
	}
	return ""
}

// warnings returns a server's; one of a cluster may be a replica.
func (facts facts) warnings(cluster bool) []string {
	var warnings []string
	if policy := facts.evicts(); policy != "" {
		warnings = append(warnings, fmt.Sprintf("maxmemory-policy is %s: when memory runs out redis will drop queued "+
			"messages, which are then delayed, and counters of rate limits; set noeviction, without which no process "+
			"starts again", policy))
	}
	if version := facts["redis_version"]; version != "" && olderThan(version, oldestServer) {
		warnings = append(warnings, fmt.Sprintf("redis is version %s: %d.%d or newer is needed", version, oldestServer[0],
			oldestServer[1]))
	}
	if role := facts["role"]; role != "" && role != "master" && !cluster {
		warnings = append(warnings, fmt.Sprintf("redis is a %s: it cannot be written to", role))
	}
	if facts["aof_enabled"] == "0" {
		warnings = append(warnings, "appendonly is off: a restart of redis empties the queue, which is then refilled from "+
			"the database")
	}
	return warnings
}

func olderThan(version string, oldest [2]int) bool {
	var has [2]int
	n, _ := fmt.Sscanf(version, "%d.%d", &has[0], &has[1])
	return n == len(has) && slices.Compare(has[:], oldest[:]) < 0
}

// probeLife is how long a probe's key stays after the last probe.
const probeLife = 5 * time.Minute

// Probe writes to a key of this Queue alone. It returns an error when it cannot, or when the previous call's text is
// gone: a server that responds but refuses or loses writes counts as failed.
func (q *Queue) Probe(ctx context.Context) error {
	q.probing.Lock()
	defer q.probing.Unlock()
	ctx, cancel := context.WithTimeout(ctx, q.patience)
	defer cancel()
	before, next := q.probed, rand.Text()
	q.probed = ""
	if before != "" {
		found, err := q.rdb.Get(ctx, q.probe).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return fmt.Errorf("reading the probe: %w", err)
		}
		if found != before {
			return &FaultError{Lost, "what was written to redis is gone"}
		}
	}
	if err := q.rdb.Set(ctx, q.probe, next, probeLife).Err(); err != nil {
		return fmt.Errorf("writing the probe: %w", err)
	}
	q.probed = next
	return nil
}
