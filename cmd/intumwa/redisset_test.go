package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"intumwa/configs"
	"intumwa/internal/testenv"
	"intumwa/queue"
)

// configOf is a set of servers in the configuration.
func configOf(set *testenv.RedisSet) *configs.Redis {
	config := &configs.Redis{MasterName: set.MasterName, Password: configs.Secret(set.Password), SentinelPassword: configs.Secret(set.SentinelPassword),
		TLS: configs.TLS{Enabled: true, CA: configs.Path(set.CA), ServerName: "localhost"}}
	for _, address := range set.Addresses {
		config.Addresses = append(config.Addresses, configs.Address(address))
	}
	return config
}

// TestRedisSets: the queue works over Sentinel and in a Cluster of three with
// replicas, over TLS and with the servers' and the Sentinels' own passwords; with a
// wrong one it says so. Both clients have the same bounds.
func TestRedisSets(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB) *testenv.RedisSet{
		"sentinel": testenv.NewRedisSentinels,
		"cluster":  func(t testing.TB) *testenv.RedisSet { return testenv.NewRedisCluster(t, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := start(t)
			q := queueOn(t, configOf(set))
			queueWorks(t, q)
			for key, spoil := range map[string]func(*configs.Redis){
				"password":          func(c *configs.Redis) { c.Password = "wrong" },
				"sentinel_password": func(c *configs.Redis) { c.SentinelPassword = "wrong" },
				"tls":               func(c *configs.Redis) { c.TLS = configs.TLS{} },
			} {
				if key == "sentinel_password" && set.MasterName == "" {
					continue
				}
				wrong := configOf(set)
				spoil(wrong)
				err := queueOn(t, wrong).Push(t.Context(), item())
				if err == nil {
					t.Errorf("%s: it was not needed", key)
				} else if fault := queue.FaultOf(err); strings.HasSuffix(key, "password") && fault != queue.Forbidden {
					t.Errorf("%s: %s, want %s: %v", key, fault, queue.Forbidden, err)
				}
			}
			if set.MasterName == "" {
				moves(t, set, q)
			}
			evicts(t, set, q)
		})
	}
}

// moves has the slot of a carrier go to another node while its queue is used: what is
// pushed and taken meanwhile fails, or does not, and never hinders a key from coming.
func moves(t *testing.T, set *testenv.RedisSet, q *queue.Queue) {
	t.Helper()
	for round := range int64(3) {
		var items []queue.Item
		for company := range int64(20) {
			items = append(items, queue.Item{MessageID: round*100 + company + 1, CompanyID: company + 1, Carrier: "leo", Lane: queue.Batch})
		}
		if err := q.Push(t.Context(), items); err != nil {
			t.Fatal(err)
		}
		set.Move(t.Context(), "test:queue:{leo}", func() {
			_ = q.Push(t.Context(), items[:5])
			_, _ = q.Take(t.Context(), "leo", queue.Batch, "me", 3, 0)
		})
		seen := map[int64]bool{}
		for _, again := range []time.Duration{0, time.Nanosecond} {
			taken, err := q.Take(t.Context(), "leo", queue.Batch, "me", 1000, again)
			if err != nil {
				t.Fatal(err)
			}
			pending, err := q.Reclaim(t.Context(), "leo", queue.Batch, "heir", 0, 1000)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range append(taken, pending...) {
				seen[e.MessageID] = true
			}
		}
		for _, item := range items {
			if !seen[item.MessageID] {
				t.Errorf("round %d: message %d is not on the queue any more", round, item.MessageID)
			}
		}
		if err := q.Reset(t.Context(), "leo", queue.Batch); err != nil {
			t.Fatal(err)
		}
	}
}

// evicts asks whether a node that drops keys is found, whichever it is. Sentinel tells
// of none but the master.
func evicts(t *testing.T, set *testenv.RedisSet, q *queue.Queue) {
	t.Helper()
	if err := refuseEvicting(t.Context(), q); err != nil {
		t.Errorf("none of them evicts: %v", err)
	}
	for i := range set.Servers {
		if set.MasterName != "" && i > 0 {
			break
		}
		setPolicy(t, set.Node(i), "volatile-ttl")
		if err := refuseEvicting(t.Context(), q); !errors.Is(err, queue.ErrEvicts) || !strings.Contains(err.Error(), "volatile-ttl") {
			t.Errorf("server %d evicts: %v", i, err)
		}
		setPolicy(t, set.Node(i), "noeviction")
	}
	if err := refuseEvicting(t.Context(), q); err != nil {
		t.Errorf("none of them evicts any more: %v", err)
	}
}

func setPolicy(t *testing.T, node *redis.Client, policy string) {
	t.Helper()
	if err := node.ConfigSet(t.Context(), "maxmemory-policy", policy).Err(); err != nil {
		t.Fatal(err)
	}
}

// TestEvictingRedisIsRefused: no process starts on a Redis that drops what it holds,
// and `config check --connect` says so; one that is away stops no start.
func TestEvictingRedisIsRefused(t *testing.T) {
	t.Parallel()
	server := testenv.NewRedisServer(t, "--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru")
	database := testenv.Database(t)
	config := func(redis string) string {
		return fmt.Sprintf("database: {url: %q}\nredis: {url: %q}\napi: {listen: %q}\nops: {listen: %q}\ncarriers: [{name: leo, default: true, links: [{name: leo-1, address: '127.0.0.1:1', system_id: s, password: p}]}]\n",
			database, redis, freeAddress(t), freeAddress(t))
	}
	const want = "set maxmemory-policy noeviction on every node (a node has allkeys-lru)"
	code, _, stderr := newShell(t, config(server.URL())).run("", "serve", "--roles", "api")
	if code != exitError || !strings.Contains(stderr, want) {
		t.Errorf("serve: exit code %d, want %d and %q in\n%s", code, exitError, want, stderr)
	}
	code, stdout, _ := newShell(t, config(server.URL())).run("", "config", "check", "--connect", "--roles", "api")
	if code != exitError || !strings.Contains(stdout, "redis: reached, and NOT fit: ") || !strings.Contains(stdout, want) {
		t.Errorf("config check --connect: exit code %d, want %d and %q in\n%s", code, exitError, want, stdout)
	}

	server.Stop()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var log safeBuffer
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"serve", "--roles", "api", "--config", newShell(t, config(server.URL())).config}, strings.NewReader(""), &log, &log)
	}()
	for end := time.Now().Add(time.Minute); !strings.Contains(log.String(), "msg=ready"); <-time.After(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it does not start without Redis:\n%s", log.String())
		}
	}
	cancel()
	if code := <-ended; code != exitOK {
		t.Errorf("exit code %d\n%s", code, log.String())
	}
}
