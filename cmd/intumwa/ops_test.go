package main

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"intumwa/internal/testenv"
)

// TestReady: ready once everything is up, also on a newer schema, but not on an older
// one.
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
	change(`INSERT INTO intumwa_schema (version_id) VALUES (99999)`)
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
