package queue

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// oldestServer is the first version with all that the scripts use: XAUTOCLAIM
// and exclusive ranges.
var oldestServer = [2]int{6, 2}

// CheckServer asks every master how it is set up. It returns warnings for what
// would make the queue lose entries or never work; an error means that the
// server could not be asked.
func (q *Queue) CheckServer(ctx context.Context) (warnings []string, err error) {
	var mu sync.Mutex // a cluster's masters are asked at once
	check := func(ctx context.Context, client redis.Cmdable) error {
		info, err := client.Info(ctx).Result()
		if err != nil {
			return fmt.Errorf("asking redis how it is set up: %w", err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, warning := range warningsOf(info) {
			if !slices.Contains(warnings, warning) {
				warnings = append(warnings, warning)
			}
		}
		return nil
	}
	if cluster, ok := q.rdb.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(ctx, func(ctx context.Context, client *redis.Client) error { return check(ctx, client) })
	} else {
		err = check(ctx, q.rdb)
	}
	return warnings, err
}

// warningsOf reads the answer of INFO.
func warningsOf(info string) []string {
	facts := make(map[string]string)
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			facts[name] = value
		}
	}
	var warnings []string
	if policy := facts["maxmemory_policy"]; policy != "" && policy != "noeviction" {
		warnings = append(warnings, fmt.Sprintf("maxmemory-policy is %s: when memory runs out redis will drop queued messages, which are then delayed; set noeviction", policy))
	}
	if version := facts["redis_version"]; version != "" && olderThan(version, oldestServer) {
		warnings = append(warnings, fmt.Sprintf("redis is version %s: %d.%d or newer is needed", version, oldestServer[0], oldestServer[1]))
	}
	if role := facts["role"]; role != "" && role != "master" {
		warnings = append(warnings, fmt.Sprintf("redis is a %s: it cannot be written to", role))
	}
	if facts["aof_enabled"] == "0" {
		warnings = append(warnings, "appendonly is off: a restart of redis empties the queue, which is then refilled from the database")
	}
	return warnings
}

func olderThan(version string, oldest [2]int) bool {
	parts := strings.SplitN(version, ".", 3)
	for i, least := range oldest {
		if i >= len(parts) {
			return false
		}
		n, err := strconv.Atoi(parts[i])
		if err != nil || n > least {
			return false
		}
		if n < least {
			return true
		}
	}
	return false
}
