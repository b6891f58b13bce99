package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"intumwa/configs"
	"intumwa/internal/queue"
	"intumwa/internal/testenv"
	"intumwa/tools/rig"
)

// configOf is a set of servers in the configuration.
func configOf(set *testenv.RedisSet) *configs.Redis {
	return &configs.Redis{URL: configs.Secret("redis://:" + set.Password + "@"), Addresses: set.Addresses,
		MasterName:       set.MasterName,
		SentinelPassword: configs.Secret(set.SentinelPassword),
		TLS:              configs.TLS{Enabled: true, CA: set.CA, ServerName: "localhost"}}
}

// TestRedisSets: the queue works over Sentinel and in a Cluster of three with replicas, over TLS, with separate
// passwords for servers and Sentinels. Errors name the cause. A server that hangs delays no call.
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
			for key, wrong := range map[string]struct {
				spoil func(*configs.Redis)
				want  string
			}{
				"password":          {func(c *configs.Redis) { c.URL = "redis://:wrong@" }, "WRONGPASS"},
				"sentinel_password": {func(c *configs.Redis) { c.SentinelPassword = "wrong" }, "WRONGPASS"},
				"master_name":       {func(c *configs.Redis) { c.MasterName = "other" }, "redis.master_name"},
				"tls":               {func(c *configs.Redis) { c.TLS = configs.TLS{} }, ""},
				"tls.ca":            {func(c *configs.Redis) { c.TLS.CA = "" }, "x509"},
			} {
				if set.MasterName == "" && (key == "sentinel_password" || key == "master_name") {
					continue
				}
				config := configOf(set)
				wrong.spoil(config)
				q, err := queueOn(t, config), error(nil)
				eventually(t, key+" is answered", func() bool {
					err = q.Push(t.Context(), item())
					return err == nil || queue.FaultOf(err) != queue.Slow
				})
				if err == nil || !strings.Contains(err.Error(), wrong.want) {
					t.Errorf("%s: %v, want %q", key, err, wrong.want)
				}
			}
			if set.MasterName == "" {
				moves(t, set, q)
			}
			evicts(t, set, q)
			for i := range set.Servers {
				standsStill(t, set.Node(i))
			}
			holdsNoCall(t, q)
		})
	}
}

// TestSilentSentinel: a Sentinel that accepts connections and never answers is skipped, at the first connection and
// later.
func TestSilentSentinel(t *testing.T) {
	t.Parallel()
	server := testenv.NewRedisServer(t)
	master := clientOf(t, optionsOf(t, server))
	host, port, _ := net.SplitHostPort(master.Options().Addr)
	config := &configs.Redis{MasterName: "one"}
	var sentinels []*testenv.Server
	for range 2 {
		sentinel := testenv.NewRedisSentinel(t)
		options := optionsOf(t, sentinel)
		if err := clientOf(t, options).Do(t.Context(), "SENTINEL", "MONITOR", config.MasterName, host, port,
			1).Err(); err != nil {
			t.Fatal(err)
		}
		sentinels = append(sentinels, sentinel)
		config.Addresses = append(config.Addresses, options.Addr)
	}
	short, waiting, err := openRedis(config, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = short.Close(), waiting.Close() }()
	for round, sentinel := range append(sentinels, sentinels...) {
		sentinel.Freeze()
		if err := master.ClientKillByFilter(t.Context(), "TYPE", "normal", "SKIPME", "yes").Err(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		err := short.Ping(ctx).Err()
		for err != nil && ctx.Err() == nil { // the other Sentinel has half a second, which a busy machine may need
			err = short.Ping(ctx).Err()
		}
		if err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		cancel()
		sentinel.Thaw()
	}
}

// TestRedisMoves: the address of Redis leads to another server from now on, and the former one stays and refuses
// commands. The queue works again soon, by calls alone, by pipelines, and with waits.
func TestRedisMoves(t *testing.T) {
	t.Parallel()
	for reply, commands := range map[string][][]any{
		"READONLY":    {{"REPLICAOF", "127.0.0.1", "1"}},
		"MASTERDOWN":  {{"CONFIG", "SET", "replica-serve-stale-data", "no"}, {"REPLICAOF", "127.0.0.1", "1"}},
		"NOREPLICAS":  {{"CONFIG", "SET", "min-replicas-to-write", "1"}},
		"LOADING":     {},
		"CLUSTERDOWN": {},
	} {
		t.Run(reply, func(t *testing.T) {
			t.Parallel()
			former, next := clientOf(t, optionsOf(t, testenv.NewRedisServer(t))),
				clientOf(t, optionsOf(t, testenv.NewRedisServer(t)))
			address := newMoving(t, former.Options().Addr)
			url := *former.Options()
			_, waiting,
				err := openRedis(
				&configs.Redis{URL: configs.Secret("redis://default:" + url.Password + "@" + address.Addr().String())}, 1)
			if err != nil {
				t.Fatal(err)
			}
			short, _,
				err := openRedis(
				&configs.Redis{URL: configs.Secret("redis://default:" + url.Password + "@" + address.Addr().String())}, 1)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _, _ = short.Close(), waiting.Close() })
			q := queue.New(short, queue.Options{Prefix: "test", Waiting: waiting})
			use := func() error {
				_, err := q.Take(t.Context(), "leo", queue.Single, 5, 300*time.Millisecond)
				return errors.Join(err, q.Push(t.Context(), item()), q.Probe(t.Context()),
					q.Empty(t.Context(), "leo", queue.Single))
			}
			if err := use(); err != nil {
				t.Fatal(err)
			}
			for _, command := range commands {
				if err := former.Do(t.Context(), command...).Err(); err != nil {
					t.Fatal(err)
				}
			}
			if len(commands) == 0 {
				address.refuse.Store(new("-" + reply + " not now\r\n"))
			}
			if err := use(); err == nil || !strings.Contains(err.Error(), reply) {
				t.Fatalf("the former server: %v", err)
			}
			if len(commands) == 0 {
				address.refuse.Store(nil)
			}
			moved := time.Now()
			address.to.Store(new(next.Options().Addr))
			for err := use(); err != nil; err = use() {
				if time.Since(moved) > 30*time.Second { // a kept connection never works again
					t.Fatalf("after %v: %v", time.Since(moved), err)
				}
				time.Sleep(100 * time.Millisecond)
			}
		})
	}
}

// moving is the address of a server, and later of another one. Its connections stay at their first server.
type moving struct {
	net.Listener
	to     atomic.Pointer[string]
	refuse atomic.Pointer[string] // what connections that exist by then answer from then on to each write
}

func newMoving(t *testing.T, to string) *moving {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &moving{Listener: l}
	m.to.Store(&to)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			go m.relay(from, *m.to.Load())
		}
	}()
	return m
}

// relay copies both ways. Once the address has refused on this connection it always does.
func (m *moving) relay(from net.Conn, address string) {
	defer from.Close()
	to, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer to.Close()
	go func() { _, _ = io.Copy(from, to); _ = from.Close() }()
	buffer := make([]byte, 1<<16)
	refuses := ""
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if text := m.refuse.Load(); text != nil {
			refuses = *text
		}
		if refuses != "" { // one answer for each command of a pipeline
			_, err = io.WriteString(from, strings.Repeat(refuses, max(1, strings.Count("\n"+string(buffer[:n]), "\n*"))))
		} else {
			_, err = to.Write(buffer[:n])
		}
		if err != nil {
			return
		}
	}
}

// TestRedisURL: the queue works on a server given by URL. A server that hangs delays no call.
func TestRedisURL(t *testing.T) {
	t.Parallel()
	server := testenv.NewRedisServer(t)
	q := queueOn(t, &configs.Redis{URL: configs.Secret(server.URL())})
	queueWorks(t, q)
	standsStill(t, clientOf(t, optionsOf(t, server)))
	holdsNoCall(t, q)
}

func standsStill(t *testing.T, server *redis.Client) {
	t.Helper()
	if err := server.Do(t.Context(), "CLIENT", "PAUSE", "20000", "ALL").Err(); err != nil {
		t.Fatal(err)
	}
}

func holdsNoCall(t *testing.T, q *queue.Queue) {
	t.Helper()
	start := time.Now()
	if err := q.Push(t.Context(), item()); err == nil || queue.FaultOf(err) != queue.Slow {
		t.Errorf("a server that stands still: %v", err)
	}
	if took := time.Since(start); took > 15*time.Second {
		t.Errorf("a server that stands still held up a call for %v", took)
	}
}

// TestRedisOptions: the timeouts are the same for URL, Sentinel and Cluster.
func TestRedisOptions(t *testing.T) {
	for _, config := range []*configs.Redis{
		{URL: "redis://u:p@h:1/2?pool_size=7"}, {URL: "rediss://h:1"}, {URL: "unix:///run/redis.sock"},
		{Addresses: []string{"h:1"}}, {Addresses: []string{"h:1"}, MasterName: "m", TLS: configs.TLS{Enabled: true}},
	} {
		o, err := redisOptions(config)
		if err != nil {
			t.Fatal(err)
		}
		if !o.ContextTimeoutEnabled || o.ReadTimeout != redisPatience || o.DialTimeout != redisPatience {
			t.Errorf("%v: %+v", config, o)
		}
		if secure := o.TLSConfig != nil; secure != (config.TLS.Enabled || strings.HasPrefix(string(config.URL), "rediss")) {
			t.Errorf("%v: TLS %v", config, secure)
		}
	}
	o, err := redisOptions(&configs.Redis{URL: "redis://u:p@h:1/2?pool_size=7"})
	if err != nil || o.DB != 2 || o.Username != "u" || o.Password != "p" || o.PoolSize != 7 || o.Addr != "h:1" {
		t.Errorf("%+v, %v", o, err)
	}
	if _, err := redisOptions(&configs.Redis{URL: "redis://u:geheim@h:x"}); err == nil ||
		strings.Contains(err.Error(), "geheim") {
		t.Errorf("%v", err)
	}
	if _, err := redisOptions(&configs.Redis{Addresses: []string{"h:1"},
		TLS: configs.TLS{Enabled: true, CA: "/nowhere"}}); err == nil {
		t.Error("a file that is not there")
	}
}

// moves migrates a carrier's slot to another node while its queue is used. Calls in
// between may fail; afterwards every pushed message can be taken.
func moves(t *testing.T, set *testenv.RedisSet, q *queue.Queue) {
	t.Helper()
	var items []queue.Item
	for company := range int64(20) {
		items = append(items, queue.Item{MessageID: company + 1, CompanyID: company + 1, Carrier: "leo", Lane: queue.Batch})
	}
	if err := q.Push(t.Context(), items); err != nil {
		t.Fatal(err)
	}
	set.Move(t.Context(), "test:queue:{leo}", func() {
		_ = q.Push(t.Context(), items[:5])
		_, _ = q.Take(t.Context(), "leo", queue.Batch, 3, 0)
	})
	// A message that a script missed meanwhile is hidden until its company's next push.
	for i := range items {
		items[i].MessageID += 50
	}
	if err := q.Push(t.Context(), items); err != nil {
		t.Fatal(err)
	}
	taken, err := q.Take(t.Context(), "leo", queue.Batch, 1000, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range items {
		if !slices.Contains(taken, item.MessageID) {
			t.Errorf("message %d is not on the queue", item.MessageID)
		}
	}
}

// evicts checks that any node with an eviction policy is found. Sentinel reveals only the
// master.
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
		if err := refuseEvicting(t.Context(), q); !errors.Is(err, queue.ErrEvicts) ||
			!strings.Contains(err.Error(), "volatile-ttl") {
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

// TestEvictingRedisIsRefused: no process starts on a Redis that evicts keys, and `config
// check --connect` reports it. An absent Redis does not prevent a start.
func TestEvictingRedisIsRefused(t *testing.T) {
	t.Parallel()
	server := testenv.NewRedisServer(t, "--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru")
	database := testenv.Database(t)
	config := func(redis string) string {
		return fmt.Sprintf("database: {url: %q}\nredis: {url: %q}\napi: {listen: %q}\nops: {listen: %q}\ncarriers: [{name: "+
			"leo, default: true, links: [{name: leo-1, address: '127.0.0.1:1', system_id: s, password: p}]}]\n",
			database, redis, rig.FreeAddress(), rig.FreeAddress())
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
	newShell(t, config(server.URL())).serve("api").has(t, "event=ready")
}

func optionsOf(t *testing.T, server *testenv.Server) *redis.Options {
	t.Helper()
	options, err := redis.ParseURL(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	return options
}

func clientOf(t *testing.T, options *redis.Options) *redis.Client {
	t.Helper()
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func queueOn(t *testing.T, config *configs.Redis) *queue.Queue {
	t.Helper()
	short, waiting, err := openRedis(config, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = short.Close(), waiting.Close() })
	return queue.New(short, queue.Options{Prefix: "test", Waiting: waiting})
}

func item() []queue.Item {
	return []queue.Item{{MessageID: 1, CompanyID: 1, Carrier: "lumitel", Lane: queue.Batch}}
}

// queueWorks sends a message over every path of the queue.
func queueWorks(t *testing.T, q *queue.Queue) {
	t.Helper()
	ctx := t.Context()
	for range 3 { // connecting with TLS has a second, which a busy machine may need
		eventually(t, "the queue is reached", func() bool { return q.Probe(ctx) == nil })
	}
	if _, err := q.CheckServer(ctx); err != nil {
		t.Error(err)
	}
	if err := q.Push(ctx, item()); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Oldest(ctx, "lumitel", queue.Batch); err != nil {
		t.Error(err)
	}
	if got, err := q.Take(ctx, "lumitel", queue.Batch, 5, time.Second); err != nil || len(got) != 1 {
		t.Errorf("took %v, %v", got, err)
	}
	if got, err := q.Take(ctx, "lumitel", queue.Batch, 5, time.Second); err != nil || len(got) != 0 {
		t.Errorf("waited for %v, %v", got, err)
	}
	if err := q.Empty(ctx, "lumitel", queue.Batch); err != nil {
		t.Error(err)
	}
}
