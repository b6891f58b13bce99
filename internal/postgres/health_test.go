package postgres_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
)

// TestHealthChecks: each aspect is bad from its limit on, and named.
func TestHealthChecks(t *testing.T) {
	t.Parallel()
	for check, c := range map[string]struct {
		change func(*postgres.Health)
		want   string
	}{
		"":                           {func(*postgres.Health) {}, ""},
		"xid age":                    {func(h *postgres.Health) { h.XIDAge++ }, "500000001 transactions"},
		"oldest transaction":         {func(h *postgres.Health) { h.Oldest += time.Second }, "1h0m1s: pid 7"},
		"inactive replication slots": {func(h *postgres.Health) { h.Slots = []string{"a", "b"} }, "a; b"},
		"autovacuum off":             {func(h *postgres.Health) { h.Unvacuumed = []string{"segments"} }, "segments"},
		"collation mismatches":       {func(h *postgres.Health) { h.Collations = []string{"fr"} }, "fr"},
	} {
		h := postgres.Health{XIDAge: postgres.XIDAgeMost, Oldest: postgres.OldestMost, OldestName: "pid 7"}
		c.change(&h)
		for _, p := range h.Checks() {
			if p.Bad != (p.Check == check) || p.Bad && p.Found != c.want {
				t.Errorf("%q: %+v, want %q", check, p, c.want)
			}
		}
	}
}

// TestReadHealth: what a real server tells.
func TestReadHealth(t *testing.T) {
	t.Parallel()
	pool := open(t, testenv.Patient(testenv.NewPostgresServer(t).URL()), postgres.Options{})
	h, err := postgres.ReadHealth(t.Context(), pool)
	if err != nil || h.XIDAge <= 0 || h.Oldest > time.Minute || len(h.Slots)+len(h.Unvacuumed)+len(h.Collations) > 0 {
		t.Fatalf("%+v, %v", h, err)
	}
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	time.Sleep(20 * time.Millisecond) // its age
	for _, statement := range []string{
		`SELECT pg_create_physical_replication_slot('forgotten', true)`,
		`ALTER TABLE inbound SET (autovacuum_enabled = off)`,
		`ALTER SYSTEM SET track_counts = off`,
		`SELECT pg_reload_conf()`,
		`CREATE TABLE sorted (name text COLLATE "fr-x-icu" UNIQUE)`,
		`UPDATE pg_collation SET collversion = '1' WHERE collname = 'fr-x-icu'`,
		`UPDATE pg_collation SET collversion = '1' WHERE collname = 'de-x-icu'`, // no index has it
		`UPDATE pg_database SET datcollversion = '0.1' WHERE datname = current_database()`,
	} {
		if _, err := pool.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if h, err = postgres.ReadHealth(t.Context(), pool); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(h.Unvacuumed, "track_counts") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%+v", h)
		}
	}
	all := strings.Join(slices.Concat(h.Slots, h.Unvacuumed, h.Collations), "; ")
	for _, want := range []string{"forgotten, ", " of WAL", "inbound", "fr-x-icu: built with 1, now ",
		"C: built with 0.1, now unknown"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not in %s", want, all)
		}
	}
	if strings.Contains(all, "de-x-icu") || h.Oldest < 20*time.Millisecond ||
		!strings.Contains(h.OldestName, "idle in transaction") {
		t.Errorf("%v %s; %s", h.Oldest, h.OldestName, all)
	}
}
