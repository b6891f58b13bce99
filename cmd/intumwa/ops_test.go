package main

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
)

// TestReady: ready once everything is up, also on the schema of the next
// release, and not on an older one.
func TestReady(t *testing.T) {
	pool := testenv.Pool(t)
	o := newOps(pool, func() error { return nil }, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	get := func(path string) int {
		w := httptest.NewRecorder()
		o.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code
	}
	if get("/readyz") != http.StatusServiceUnavailable || get("/healthz") != http.StatusOK {
		t.Error("ready before it serves, or not alive")
	}
	o.serving.Store(true)
	if get("/readyz") != http.StatusOK {
		t.Error("not ready")
	}
	change := func(statement string) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	change(`INSERT INTO intumwa_schema (version_id, is_applied) VALUES (99999, true)`)
	if get("/readyz") != http.StatusOK {
		t.Error("not ready on the schema of the next release")
	}
	change(`ALTER TABLE outbox RENAME TO elsewhere`)
	if get("/readyz") != http.StatusServiceUnavailable {
		t.Error("ready without a table of ours")
	}
	change(`ALTER TABLE elsewhere RENAME TO outbox`)
	change(`DELETE FROM intumwa_schema WHERE version_id > 1`)
	if get("/readyz") != http.StatusServiceUnavailable {
		t.Error("ready on an old schema")
	}
	if get("/metrics") != http.StatusOK || get("/nothing") != http.StatusNotFound {
		t.Error("the other paths")
	}
}

// TestReadyCommits: a process is ready while PostgreSQL commits. It is not while PostgreSQL
// only answers.
func TestReadyCommits(t *testing.T) {
	t.Parallel()
	server := testenv.NewPostgresServer(t)
	pool, err := postgres.Open(t.Context(), server.URL(), postgres.Options{MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	registry := prometheus.NewRegistry()
	watched := newStores(pool, nil, slog.New(slog.DiscardHandler), registry)
	o := newOps(pool, watched.commits, registry, slog.New(slog.DiscardHandler))
	o.serving.Store(true)
	ready := func(want int, why string) {
		t.Helper()
		w := httptest.NewRecorder()
		o.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		if w.Code != want || !strings.Contains(w.Body.String(), why) {
			t.Errorf("%d %s, want %d and %q", w.Code, w.Body, want, why)
		}
	}
	session := func(statement string) func() {
		return func() {
			t.Helper()
			if _, err := pool.Exec(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
	}
	watched.askDatabase(t.Context(), 0)
	ready(http.StatusOK, "")
	standby := testenv.NewStandby(t, server)
	for _, fault := range []struct {
		why         string
		begin, over func()
	}{
		{"temporary file size exceeds", session("SET temp_file_limit = 64"), session("RESET temp_file_limit")}, // what a full disk fails
		{"read only", session("SET default_transaction_read_only = on"), session("RESET default_transaction_read_only")},
		{"deadline exceeded", standby.Away, standby.Back},
	} {
		fault.begin()
		watched.askDatabase(t.Context(), 0)
		ready(http.StatusServiceUnavailable, fault.why)
		fault.over()
		watched.askDatabase(t.Context(), 1) // after a failure every round commits
		ready(http.StatusOK, "")
	}
}
