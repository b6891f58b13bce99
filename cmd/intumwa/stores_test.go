package main

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"intumwa/configs"
	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
)

func gaugeIn(t *testing.T, registry *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			m := family.GetMetric()[0]
			return m.GetGauge().GetValue() + m.GetCounter().GetValue() // one of the two
		}
	}
	t.Fatalf("%s is not registered", name)
	return 0
}

// TestRedisUp: a Redis that answers but rejects writes or loses them is down; settings
// that would lose messages are logged.
func TestRedisUp(t *testing.T) {
	t.Parallel()
	server := testenv.NewRedisServer(t)
	client := clientOf(t, optionsOf(t, server))
	var log bytes.Buffer
	registry := prometheus.NewRegistry()
	s := newStores(testenv.Pool(t), queueOn(t, &configs.Redis{URL: configs.Secret(server.URL())}),
		slog.New(slog.NewTextHandler(&log, nil)), registry)
	value := func(name string) float64 { return gaugeIn(t, registry, name) }
	up := func() bool {
		_ = s.probe(t.Context(), s.redis, storesPatience, s.queue.Probe)
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
		s.checkSettings(t.Context())
	}
	if value("intumwa_redis_settings_ok") != 1 || log.Len() != 0 {
		t.Errorf("its settings are in order: %s", log.String())
	}
	if err := client.ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s.checkSettings(t.Context())
	}
	if n := strings.Count(log.String(), "allkeys-lru"); value("intumwa_redis_settings_ok") != 0 || n != 1 {
		t.Errorf("the policy is logged %d times: %s", n, log.String())
	}
}

// TestDatabaseUp: a database that answers but cannot commit is down, from the first failed commit until one works. No
// process is ready meanwhile.
func TestDatabaseUp(t *testing.T) {
	t.Parallel()
	database := testenv.Database(t)
	pool, err := postgres.Open(t.Context(), database, postgres.Options{MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	registry := prometheus.NewRegistry()
	var log bytes.Buffer
	s := newStores(pool, nil, slog.New(slog.NewTextHandler(&log, nil)), registry)
	ops := newOps(pool, s.commits, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	ops.serving.Store(true)
	round := 0
	up := func() float64 {
		t.Helper()
		s.probeDatabase(t.Context(), round)
		round++
		up, answer := gaugeIn(t, registry, "intumwa_database_up"), httptest.NewRecorder()
		ops.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		if want := map[float64]int{0: http.StatusServiceUnavailable, 1: http.StatusOK}[up]; answer.Code != want || up == 0 &&
			!strings.Contains(answer.Body.String(), "temporary file size exceeds") {
			t.Errorf("round %d: readiness is %d %s, want %d", round, answer.Code, answer.Body, want)
		}
		return up
	}
	for range 2 * commitEvery {
		if up() != 1 {
			t.Fatal("PostgreSQL commits, but is down")
		}
	}
	// The session of a full disk: reads work.
	if _, err := pool.Exec(t.Context(), "SET temp_file_limit = 64"); err != nil {
		t.Fatal(err)
	}
	for round%commitEvery != 1 {
		up()
	}
	for range 2 * commitEvery {
		if up() != 0 {
			t.Fatalf("round %d: it cannot commit, but is up", round)
		}
	}
	if _, err := pool.Exec(t.Context(), "RESET temp_file_limit"); err != nil {
		t.Fatal(err)
	}
	if up() != 1 {
		t.Error("it commits again, but is down")
	}
	if text := log.String(); strings.Count(text, "\n") != 2 || !strings.Contains(text, "event=database_down") ||
		!strings.Contains(text, "event=database_back") {
		t.Errorf("an outage is a line at its beginning and one at its end, not\n%s", text)
	}
}
