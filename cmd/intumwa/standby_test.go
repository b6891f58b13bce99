package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
)

// TestRequireStandby: a missing required standby shows in `config check --connect`,
// readiness, a metric, and one log line.
func TestRequireStandby(t *testing.T) {
	t.Parallel()
	pair := testenv.NewPostgresPair(t)
	url := pair.URL("none")
	pool, err := postgres.Open(t.Context(), url, postgres.Options{MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	rdb, prefix := testenv.Redis(t)
	config := fmt.Sprintf("database: {url: %q, require_standby: true}\nredis: {url: %q, prefix: %q}\ncarriers: [{name: "+
		"leo, default: true, links: [{name: leo-1, address: '127.0.0.1:1', system_id: s, password: p}]}]\n",
		url, redisURL(rdb), prefix)
	registry := prometheus.NewRegistry()
	var log bytes.Buffer
	watched := newStores(pool, nil, slog.New(slog.NewTextHandler(&log, nil)), registry)
	watched.standby = true
	ready := newOps(pool, watched.commits, registry, slog.New(slog.DiscardHandler))
	ready.standby = true
	ready.serving.Store(true)
	watched.probeDatabase(t.Context(), 0)

	reports := func(holds bool, why string) {
		t.Helper()
		code, stdout, stderr := newShell(t, config).run("", "config", "check", "--connect", "--roles", "api")
		want, exit, gauge := "; each commit is on a standby before it is answered\n", exitOK, 1.0
		if !holds {
			want, exit, gauge = "database: reached, and NOT fit: database.require_standby does not hold: "+why, exitError, 0
		}
		if code != exit || !strings.Contains(stdout, want) {
			t.Errorf("config check --connect: exit code %d, want %d and %q in\n%s%s", code, exit, want, stdout, stderr)
		}
		answer := httptest.NewRecorder()
		ready.ServeHTTP(answer, httptest.NewRequest("GET", "/readyz", nil))
		if body := answer.Body.String(); answer.Code != 200 || strings.Contains(body, why) == holds {
			t.Errorf("readiness: %d %s, and it holds: %v", answer.Code, body, holds)
		}
		for range 2 {
			watched.checkStandby(t.Context())
		}
		if got := gaugeIn(t, registry, "intumwa_database_standby_ok"); got != gauge {
			t.Errorf("the gauge is %v, want %v", got, gauge)
		}
	}
	const why = "synchronous_standby_names is empty: no commit waits for a standby"
	reports(true, why)
	standbys := setStandbys(t, pool)
	name := standbys("")
	reports(false, why)
	standbys(name)
	reports(true, why)
	if lines := strings.Count(log.String(), "\n"); lines != 2 ||
		!strings.Contains(log.String(), "event=standby_missing") || !strings.Contains(log.String(), "event=standby_back") {
		t.Errorf("a loss is a line at its beginning and one at its end, not\n%s", log.String())
	}
}

// TestRequireArchive: a missing or failing archive shows in the metrics, and in one log line at its beginning and one
// at its end.
func TestRequireArchive(t *testing.T) {
	t.Parallel()
	server := testenv.NewPostgresServer(t)
	pool, err := postgres.Open(t.Context(), server.URL(), postgres.Options{MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	registry := prometheus.NewRegistry()
	var log bytes.Buffer
	watched := newStores(pool, nil, slog.New(slog.NewTextHandler(&log, nil)), registry)
	looks := func(required bool, ok, age, failures float64) {
		t.Helper()
		watched.archive = required
		for range 2 {
			watched.checkArchive(t.Context())
		}
		got := []float64{gaugeIn(t, registry, "intumwa_database_archive_ok"),
			gaugeIn(t, registry, "intumwa_database_archive_age_seconds"),
			gaugeIn(t, registry, "intumwa_database_archive_failures_total")}
		if got[0] != ok || (got[1] > 0) != (age > 0) || (got[2] > 0) != (failures > 0) {
			t.Errorf("required %v: ok, age, failures are %v, want %v %v %v", required, got, ok, age, failures)
		}
	}
	set := func(name, value string) {
		t.Helper()
		for _, statement := range []string{"ALTER SYSTEM SET " + name + " = '" + value + "'", "SELECT pg_reload_conf()"} {
			if _, err := pool.Exec(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
	}
	until := func(query string) {
		t.Helper()
		for end, holds := time.Now().Add(2*time.Minute), false; !holds; <-time.After(20 * time.Millisecond) {
			if err := pool.QueryRow(t.Context(), query).Scan(&holds); err != nil || time.Now().After(end) {
				t.Fatalf("%s: %v", query, err)
			}
		}
	}
	looks(false, 1, 0, 0)
	looks(true, 0, 0, 0) // off
	set("archive_mode", "on")
	set("archive_command", "false")
	server.Stop()
	server.Start()
	pool.Reset()
	if _,
		err := pool.Exec(t.Context(), `SELECT pg_logical_emit_message(true, 'written', ''), pg_switch_wal()`); err != nil {
		t.Fatal(err)
	}
	until(`SELECT failed_count > 0 FROM pg_stat_archiver`)
	looks(true, 0, 1, 1)
	set("archive_command", "test -f %p")
	until(`SELECT coalesce(last_archived_time > last_failed_time, false) FROM pg_stat_archiver`)
	pool.Reset()
	looks(true, 1, 1, 1)
	if lines := strings.Count(log.String(), "\n"); lines != 2 ||
		!strings.Contains(log.String(), "event=archive_missing") || !strings.Contains(log.String(), "event=archive_back") {
		t.Errorf("the log is\n%s", log.String())
	}
}

// setStandbys makes commits wait for the named standby and returns the previous setting. It
// replaces the pool's connections, which would notice the setting late.
func setStandbys(t *testing.T, pool *pgxpool.Pool) func(name string) (before string) {
	return func(name string) (before string) {
		t.Helper()
		conn, err := pgx.ConnectConfig(t.Context(), pool.Config().ConnConfig)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		show := func() (value string) {
			if err := conn.QueryRow(t.Context(), "SHOW synchronous_standby_names").Scan(&value); err != nil {
				t.Fatal(err)
			}
			return value
		}
		before = show()
		for _, statement := range []string{"ALTER SYSTEM SET synchronous_standby_names = '" + name + "'",
			"SELECT pg_reload_conf()"} {
			if _, err := conn.Exec(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		for end := time.Now().Add(30 * time.Second); show() != name; <-time.After(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("it is %q still", show())
			}
		}
		pool.Reset()
		return before
	}
}

// TestStandbyAway: while commits wait for an absent synchronous standby, a command that would change something fails
// with the standby's name and the page, and changes nothing. A command that reads works.
func TestStandbyAway(t *testing.T) {
	t.Parallel()
	server := testenv.NewPostgresServer(t)
	pool, err := postgres.Open(t.Context(), server.URL(), postgres.Options{MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err := pool.Exec(t.Context(), `CREATE DATABASE blank TEMPLATE template0`); err != nil {
		t.Fatal(err)
	}
	rdb, prefix := testenv.Redis(t)
	config := "database: {url: %q}\nredis: {url: %q, prefix: %q}\ncarriers: [{name: leo, default: true, links: [{name: " +
		"leo-1, address: '127.0.0.1:1', system_id: s, password: p}]}]\n"
	s := newShell(t, fmt.Sprintf(config, server.URL(), redisURL(rdb), prefix))
	company := s.mustCompany("a@example.com")
	testenv.NewStandby(t, server).Away()

	const why = "a commit waits for a standby: absent (synchronous_standby_names)"
	ends := func(s *shell, code int, args ...string) (stdout, stderr string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // a hang fails the test
		defer cancel()
		var out, errs bytes.Buffer
		if got := run(ctx, append(args, "--config", s.config), strings.NewReader(""), &out, &errs); got != code ||
			ctx.Err() != nil {
			t.Errorf("%v: exit code %d, %v\n%s%s", args, got, ctx.Err(), &out, &errs)
		}
		if printed := out.String() + errs.String(); !strings.Contains(printed, why) ||
			!strings.Contains(printed, "docs/runbooks/standby-missing.md") {
			t.Errorf("%v does not name the standby or the page:\n%s", args, printed)
		}
		return out.String(), errs.String()
	}
	for _, args := range [][]string{
		{"admin", "credits", "add", "--company", company, "--amount", "5", "--note", "N"},
		{"admin", "company", "cancel", "--id", company},
	} {
		if _, stderr := ends(s, exitError, args...); !strings.Contains(stderr, "Nothing was changed") {
			t.Errorf("%v: %s", args, stderr)
		}
	}
	var state string
	if err := pool.QueryRow(t.Context(), `SELECT concat_ws(' ', (SELECT credits FROM balances), (SELECT count(*)
		FROM audit_log))`).Scan(&state); err != nil || state != "7 1" {
		t.Errorf("credits, acts: %s, %v; want them as they were", state, err)
	}
	if stdout, _ := ends(s, exitOK, "admin", "company", "list", "--json"); !strings.Contains(
		stdout, `"company_id":`+company) {
		t.Errorf("a command that reads prints %s", stdout)
	}
	blank := strings.Replace(server.URL(), "/intumwa?", "/blank?", 1)
	if _, stderr := ends(newShell(t, fmt.Sprintf(config, blank, redisURL(rdb), prefix)), exitError,
		"migrate"); !strings.Contains(stderr, "Nothing was changed") {
		t.Errorf("migrate: %s", stderr)
	}
}
