package main

import (
	"bytes"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"intumwa/configs"
	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
	"intumwa/queue"
)

func gaugeIn(t *testing.T, registry *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("nobody registers %s", name)
	return 0
}

// TestRedisUp: a Redis that answers and cannot be written to, or that loses what
// it took, is not up; and it is said when its settings would lose messages.
func TestRedisUp(t *testing.T) {
	server := testenv.NewRedisServer(t)
	client := clientOf(t, optionsOf(t, server))
	var log bytes.Buffer
	registry := prometheus.NewRegistry()
	s := newStores(testenv.Pool(t), queueOn(t, &configs.Redis{URL: configs.URL(server.URL())}), slog.New(slog.NewTextHandler(&log, nil)), registry)
	value := func(name string) float64 { return gaugeIn(t, registry, name) }
	up := func() bool {
		_ = s.ask(t.Context(), s.redis, storesPatience, s.probe)
		return value("intumwa_redis_up") == 1
	}
	for range 2 {
		if !up() {
			t.Fatal("it is well, and not up")
		}
	}
	for name, fault := range map[string][2][]any{
		"full":        {{"CONFIG", "SET", "maxmemory", "1"}, {"CONFIG", "SET", "maxmemory", "0"}},
		"no replicas": {{"CONFIG", "SET", "min-replicas-to-write", "1"}, {"CONFIG", "SET", "min-replicas-to-write", "0"}},
		"a replica":   {{"REPLICAOF", "127.0.0.1", "1"}, {"REPLICAOF", "NO", "ONE"}},
		"emptied":     {{"FLUSHALL"}, {"PING"}},
	} {
		if err := client.Do(t.Context(), fault[0]...).Err(); err != nil {
			t.Fatal(err)
		}
		if err := client.Ping(t.Context()).Err(); err != nil {
			t.Errorf("%s: it does not answer: %v", name, err)
		}
		if up() {
			t.Errorf("%s: it is up", name)
		}
		if err := client.Do(t.Context(), fault[1]...).Err(); err != nil {
			t.Fatal(err)
		}
		if up(); !up() {
			t.Errorf("after %s: it is not up", name)
		}
	}
	for range 2 {
		s.askSettings(t.Context())
	}
	if value("intumwa_redis_settings_ok") != 1 || log.Len() != 0 {
		t.Errorf("its settings are in order: %s", log.String())
	}
	if err := client.ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s.askSettings(t.Context())
	}
	if n := strings.Count(log.String(), "allkeys-lru"); value("intumwa_redis_settings_ok") != 0 || n != 1 {
		t.Errorf("the policy is said %d times: %s", n, log.String())
	}
}

// TestDatabaseUp: a database that answers and cannot commit is down, from the first try to commit until one that works.
func TestDatabaseUp(t *testing.T) {
	database := testenv.Database(t)
	pool, err := postgres.Open(t.Context(), database, postgres.Options{MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	registry := prometheus.NewRegistry()
	var log bytes.Buffer
	s := newStores(pool, nil, slog.New(slog.NewTextHandler(&log, nil)), registry)
	round := 0
	ask := func() float64 {
		s.askDatabase(t.Context(), round)
		round++
		return gaugeIn(t, registry, "intumwa_database_up")
	}
	for range 2 * commitEvery {
		if ask() != 1 {
			t.Fatal("it is well, and down")
		}
	}
	// The session of the pool, as a disk without room would have it: what it is asked it answers.
	if _, err := pool.Exec(t.Context(), "SET temp_file_limit = 64"); err != nil {
		t.Fatal(err)
	}
	for round%commitEvery != 1 {
		ask()
	}
	for range 2 * commitEvery {
		if ask() != 0 {
			t.Fatalf("round %d: it cannot commit, and is up", round)
		}
	}
	if _, err := pool.Exec(t.Context(), "RESET temp_file_limit"); err != nil {
		t.Fatal(err)
	}
	if ask() != 1 {
		t.Error("it commits again, and is down")
	}
	if text := log.String(); strings.Count(text, "\n") != 2 || !strings.Contains(text, "does not commit") || !strings.Contains(text, "commits again") {
		t.Errorf("an outage is a line at its beginning and one at its end, not\n%s", text)
	}
}

// TestRedisModes: the queue works on a single server, on a Cluster of which one
// node is named, and on Sentinel's master, and none of them holds a call longer
// than its context says.
func TestRedisModes(t *testing.T) {
	for name, set := range map[string]func(t *testing.T) (*configs.Redis, *redis.Client){
		"url":      ofURL,
		"cluster":  ofCluster,
		"sentinel": ofSentinel,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config, server := set(t)
			q := queueOn(t, config)
			queueWorks(t, q)
			if err := server.Do(t.Context(), "CLIENT", "PAUSE", "20000", "ALL").Err(); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			if err := q.Push(t.Context(), item()); err == nil || queue.FaultOf(err) != queue.Slow {
				t.Errorf("a server that stands still: %v", err)
			}
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("a server that stands still held a call for %v", took)
			}
		})
	}
}

// TestRedisOverTLS: with a certificate of one's own authority; one of another is
// refused.
func TestRedisOverTLS(t *testing.T) {
	t.Parallel()
	cert, key := testenv.Certificate(t)
	_, port, _ := net.SplitHostPort(freeAddress(t))
	server := testenv.NewRedisServer(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert,
		"--tls-auth-clients", "no")
	_ = optionsOf(t, server)
	for name, config := range map[string]*configs.Redis{
		"rediss":    {URL: configs.URL("rediss://localhost:" + port + "/0"), TLS: configs.TLS{Enabled: true, CA: configs.Path(cert)}},
		"addresses": {Addresses: []configs.Address{configs.Address("localhost:" + port)}, TLS: configs.TLS{Enabled: true, CA: configs.Path(cert)}},
		"by name":   {URL: configs.URL("redis://127.0.0.1:" + port + "/0"), TLS: configs.TLS{Enabled: true, CA: configs.Path(cert), ServerName: "localhost"}},
	} {
		options, err := redisOptions(config)
		if err != nil {
			t.Fatal(err)
		}
		options.IsClusterMode = false // the server is none; the certificate is what is asked about
		client := redis.NewUniversalClient(options)
		if err := client.Ping(t.Context()).Err(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		_ = client.Close()
		config.TLS.CA = ""
		if options, err = redisOptions(config); err != nil {
			t.Fatal(err)
		}
		options.IsClusterMode = false
		client = redis.NewUniversalClient(options)
		if err := client.Ping(t.Context()).Err(); err == nil || !strings.Contains(err.Error(), "x509") {
			t.Errorf("%s: an unknown authority: %v", name, err)
		}
		_ = client.Close()
	}
	if _, err := redisOptions(&configs.Redis{Addresses: []configs.Address{"h:1"}, TLS: configs.TLS{Enabled: true, CA: "/nowhere"}}); err == nil {
		t.Error("a file that is not there")
	}
}

// TestRedisOptions: whatever names the servers, the rest is the same.
func TestRedisOptions(t *testing.T) {
	for _, config := range []*configs.Redis{
		{URL: "redis://u:p@h:1/2?pool_size=7"}, {URL: "rediss://h:1"}, {URL: "unix:///run/redis.sock"},
		{Addresses: []configs.Address{"h:1"}}, {Addresses: []configs.Address{"h:1"}, MasterName: "m", TLS: configs.TLS{Enabled: true}},
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
		short, waiting, err := openRedis(config, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, client := range []redis.UniversalClient{short, waiting} {
			_, isCluster := client.(*redis.ClusterClient)
			if isCluster != (len(config.Addresses) > 0 && config.MasterName == "") {
				t.Errorf("%v: %T", config, client)
			}
			_ = client.Close()
		}
	}
	o, err := redisOptions(&configs.Redis{URL: "redis://u:p@h:1/2?pool_size=7"})
	if err != nil || o.DB != 2 || o.Username != "u" || o.Password != "p" || o.PoolSize != 7 || o.Addrs[0] != "h:1" {
		t.Errorf("%+v, %v", o, err)
	}
	if _, err := redisOptions(&configs.Redis{URL: "redis://u:geheim@h:x"}); err == nil || strings.Contains(err.Error(), "geheim") {
		t.Errorf("%v", err)
	}
}

func ofURL(t *testing.T) (*configs.Redis, *redis.Client) {
	server := testenv.NewRedisServer(t)
	return &configs.Redis{URL: configs.URL(server.URL())}, clientOf(t, optionsOf(t, server))
}

func ofCluster(t *testing.T) (*configs.Redis, *redis.Client) {
	server := testenv.NewRedisServer(t, "--cluster-enabled", "yes")
	options := optionsOf(t, server)
	client := clientOf(t, options)
	if err := client.Do(t.Context(), "CLUSTER", "ADDSLOTSRANGE", 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(30 * time.Second); ; {
		info, err := client.ClusterInfo(t.Context()).Result()
		if err == nil && strings.Contains(info, "cluster_state:ok") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the cluster is not whole: %s, %v", info, err)
		}
		<-time.After(20 * time.Millisecond)
	}
	return &configs.Redis{Addresses: []configs.Address{configs.Address(options.Addr)}}, client
}

func ofSentinel(t *testing.T) (*configs.Redis, *redis.Client) {
	master := optionsOf(t, testenv.NewRedisServer(t))
	sentinel := optionsOf(t, testenv.NewRedisSentinel(t))
	host, port, err := net.SplitHostPort(master.Addr)
	if err != nil {
		t.Fatal(err)
	}
	if err := clientOf(t, sentinel).Do(t.Context(), "SENTINEL", "MONITOR", "mymaster", host, port, 1).Err(); err != nil {
		t.Fatal(err)
	}
	return &configs.Redis{Addresses: []configs.Address{configs.Address(sentinel.Addr)}, MasterName: "mymaster"}, clientOf(t, master)
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

// queueWorks sends a message over every way of the queue.
func queueWorks(t *testing.T, q *queue.Queue) {
	t.Helper()
	ctx := t.Context()
	for range 3 {
		for _, carrier := range []string{"lumitel", "leo", "onatel"} { // slots of their own
			if err := q.Probe(ctx, carrier); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := q.CheckServer(ctx); err != nil {
		t.Error(err)
	}
	if err := q.Push(ctx, item()); err != nil {
		t.Fatal(err)
	}
	if rung, err := q.Wait(ctx, "lumitel", time.Second, queue.Single, queue.Batch); err != nil || !rung {
		t.Errorf("rung %v, %v", rung, err)
	}
	marks, err := q.Watermarks(ctx, "lumitel", queue.Batch)
	if err != nil || len(marks) != 1 {
		t.Errorf("marks %v, %v", marks, err)
	}
	entries, err := q.Take(ctx, "lumitel", queue.Batch, "me", 5, 0)
	if err != nil || len(entries) != 1 {
		t.Fatalf("took %v, %v", entries, err)
	}
	if again, err := q.Reclaim(ctx, "lumitel", queue.Batch, "heir", 0, 5); err != nil || len(again) != 1 {
		t.Errorf("reclaimed %v, %v", again, err)
	}
	if err := q.Done(ctx, "lumitel", queue.Batch, entries[0].ID); err != nil {
		t.Error(err)
	}
	if err := q.Reset(ctx, "lumitel", queue.Batch); err != nil {
		t.Error(err)
	}
}
