package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"intumwa/configs"
	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
	"intumwa/tools/rig"
)

// TestStatus: every check is shown; one that needs attention has its runbook, and the command
// fails.
func TestStatus(t *testing.T) {
	t.Parallel()
	server := testenv.NewPostgresServer(t)
	pool, err := postgres.Open(t.Context(), server.URL(), postgres.Options{MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	rdb, prefix := testenv.Redis(t)
	const config = "database: {url: %q, require_archive: %v}\nredis: {url: %q, prefix: %q}\n"
	s := newShell(t, fmt.Sprintf(config, server.URL(), false, redisURL(rdb), prefix))
	exec := func(statement string, args ...any) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), statement, args...); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	// shows wants attention for exactly these checks, with their pages.
	shows := func(attention map[string]string) map[string]adminCheck {
		t.Helper()
		code, stdout, stderr := s.run("", "admin", "status", "--json")
		var list []adminCheck
		if err := json.Unmarshal([]byte(stdout), &list); err != nil {
			t.Fatalf("%v\n%s%s", err, stdout, stderr)
		}
		found := map[string]adminCheck{}
		for _, c := range list {
			found[c.Check] = c
			if page := attention[c.Check]; c.OK != (page == "") || c.Runbook != page {
				t.Errorf("%+v, want the page %q", c, page)
			}
		}
		for check := range attention {
			if found[check].Check == "" {
				t.Errorf("there is no check %q in\n%s", check, stdout)
			}
		}
		if (code == exitError) != (len(attention) > 0) {
			t.Errorf("exit code %d, %s", code, stderr)
		}
		return found
	}
	// A dispatcher and its links, as they report themselves.
	exec(`INSERT INTO dispatchers (id, name) VALUES (1, 'one')`)
	exec(`INSERT INTO links (name, carrier, state) VALUES ('leo-1', 'leo', 'bound'), ('leo-2', 'leo', 'bound')`)
	exec(`INSERT INTO leases (name, holder) SELECT 'link ' || links.name, dispatchers.id FROM links, dispatchers`)
	// From alive to dead they report themselves without a pause, however slow the machine is.
	silence := func() {}
	alive := func() {
		ctx, stop := context.WithCancel(t.Context())
		const report = `WITH d AS (UPDATE dispatchers SET seen_at = clock_timestamp() + interval '3 seconds') UPDATE links
			SET updated_at = now() + interval '10 seconds'`
		exec(report)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for ctx.Err() == nil {
				select {
				case <-ctx.Done():
				case <-time.After(500 * time.Millisecond):
					_, _ = pool.Exec(ctx, report) // the next check shows it
				}
			}
		}()
		silence()
		silence = func() { stop(); <-done }
	}
	dead := func() {
		silence()
		silence = func() {}
		exec(`UPDATE dispatchers SET seen_at = now() - interval '1 minute'`)
		exec(`UPDATE links SET updated_at = now() - interval '1 minute'`)
	}
	defer func() { silence() }()
	alive()
	healthy := shows(nil)
	for check, want := range map[string]string{"postgresql": ", the primary", "commit": "ends", "standby": "none",
		"archive": "archive_mode is off: a restore loses", "clock": "", "schema": "",
		"redis": "Redis answers", "dispatchers": "1 alive", "links": "2 of 2 bound", "waiting": "nothing",
		"xid age":            " transactions",
		"oldest transaction": "", "inactive replication slots": "none", "autovacuum off": "nowhere",
		"collation mismatches": "none"} {
		if got, there := healthy[check]; !there || !strings.Contains(got.Found, want) {
			t.Errorf("%s: %+v, want %q", check, got, want)
		}
	}
	if len(healthy) != 15 {
		t.Errorf("%d checks: %v", len(healthy), healthy)
	}

	exec(`SELECT pg_create_physical_replication_slot('forgotten', true)`)
	exec(`ALTER TABLE inbound SET (autovacuum_enabled = off)`)
	exec(`UPDATE pg_database SET datcollversion = '0.1' WHERE datname = current_database()`)
	care := shows(map[string]string{"inactive replication slots": pageCare, "autovacuum off": pageCare,
		"collation mismatches": pageCare})
	if got := care["autovacuum off"].Found + care["inactive replication slots"].Found +
		care["collation mismatches"].Found; !strings.HasPrefix(got, "inboundforgotten, ") ||
		!strings.Contains(got, "built with 0.1") {
		t.Error(got)
	}
	c := new(configs.Config)
	c.Database.URL = configs.Secret(server.URL())
	if line, err := tryDatabase(t.Context(), c); err != nil || !strings.Contains(line, "collation mismatches: ") {
		// config check --connect
		t.Errorf("%s, %v", line, err)
	}
	exec(`SELECT pg_drop_replication_slot('forgotten')`)
	exec(`ALTER TABLE inbound RESET (autovacuum_enabled)`)
	exec(`UPDATE pg_database SET datcollversion = NULL WHERE datname = current_database()`)

	exec(`WITH u AS (INSERT INTO users (email, name, password_hash) VALUES ('a@example.com', 'A', 'x') RETURNING id),
		c AS (INSERT INTO companies (owner_id, name) SELECT id, 'C' FROM u RETURNING id),
		s AS (INSERT INTO senders (company_id, name) SELECT id, 'ISOKO' FROM c RETURNING id, company_id)
		INSERT INTO sender_carriers (sender_id, company_id, carrier, state, changed_at) SELECT id, company_id, n, 'sent',
			now() - n::int * interval '5 days' FROM s, unnest('{1,2}'::text[]) n`)
	if got := shows(nil)["senders"]; !strings.HasPrefix(
		got.Found, "2 wait for a carrier, 1 of them for more than a week") {
		t.Errorf("%+v", got)
	}
	exec(`UPDATE links SET state = 'down', last_error = 'bind_transceiver: ESME_RINVPASWD' WHERE name = 'leo-1'`)
	exec(`INSERT INTO links (name, carrier, state, paused) VALUES ('leo-3', 'leo', 'bound', true)`)
	// no dispatcher holds it
	exec(`INSERT INTO links (name, carrier, state, last_error) VALUES ('leo-4', 'leo', 'bound', 'connection refused')`)
	exec(`INSERT INTO backlogs (carrier, lane, messages, oldest_at, due_at) VALUES ('leo', 0, 7, now() - interval '1 hour',
		now() - interval '2 minutes'),
		('leo', 1, 70, now() - interval '1 hour', now() - interval '2 minutes'), ('lumitel', 0, 1, now(), now())`)
	alive()
	found := shows(map[string]string{"link leo-1": pageLink, "link leo-3": pageLink, "link leo-4": pageLink,
		"waiting leo single": pageQueue})
	if got := found["waiting leo single"].Found; !strings.HasPrefix(got, "7 messages, the oldest accepted at ") ||
		!strings.Contains(got, ", due for 2m") {
		t.Errorf("what waits: %s", got)
	}
	exec(`DELETE FROM backlogs`)
	exec(`UPDATE links SET paused = false`)
	dead()
	shows(map[string]string{"dispatchers": pageGateway, "link leo-1": pageLink, "link leo-2": pageLink,
		"link leo-3": pageLink, "link leo-4": pageLink})
	exec(`DELETE FROM links WHERE name <> 'leo-2'`)
	exec(`INSERT INTO retired_carriers VALUES ('smart', NULL), ('econet', 'leo')`) // the configuration does not have leo
	alive()
	if found := shows(map[string]string{"retired econet": pageCloses}); !strings.HasSuffix(found["retired smart"].Found,
		"no carrier takes over") {
		t.Errorf("retired: %+v", found)
	}
	exec(`DELETE FROM retired_carriers`)
	dead()

	// The human form has the page below its line.
	_, stdout, _ := s.run("", "admin", "status")
	if !regexp.MustCompile(`(?m)^ATTENTION  dispatchers +none is alive: no message is carried\n +` + pageGateway +
		"$").MatchString(stdout) {
		t.Errorf("the table is\n%s", stdout)
	}

	// No archive, where one is required.
	s = newShell(t, fmt.Sprintf(config, server.URL(), true, redisURL(rdb), prefix))
	alive()
	shows(map[string]string{"archive": pageDisk})

	// The archive fails.
	dead()
	exec(`ALTER SYSTEM SET archive_mode = on`)
	exec(`ALTER SYSTEM SET archive_command = 'false'`)
	server.Stop()
	server.Start()
	pool.Reset()
	exec(`CREATE TABLE written (id int)`)
	exec(`SELECT pg_switch_wal()`)
	failures := 0
	for end := time.Now().Add(time.Minute); failures == 0; <-time.After(20 * time.Millisecond) {
		if err := pool.QueryRow(t.Context(), `SELECT failed_count FROM pg_stat_archiver`).Scan(&failures); err != nil ||
			time.Now().After(end) {
			t.Fatalf("the archive does not fail: %v", err)
		}
	}
	alive()
	shows(map[string]string{"archive": pageDisk})
	exec(`ALTER SYSTEM SET archive_command = 'test -f %p'`)
	exec(`SELECT pg_reload_conf()`)
	for end, failing := time.Now().Add(2*time.Minute), true; failing; <-time.After(20 * time.Millisecond) {
		archive, err := postgres.ReadArchive(t.Context(), pool)
		if failing = archive.Failing; err != nil || time.Now().After(end) {
			t.Fatalf("the archive fails still: %+v, %v", archive, err)
		}
	}

	// The standby is away, so no dispatcher renews its lease.
	dead()
	standby := testenv.NewStandby(t, server)
	standby.Away()
	found = shows(map[string]string{"commit": pageStandby, "standby": pageStandby, "dispatchers": pageGateway,
		"link leo-2": pageLink})
	if got := found["commit"].Found; !strings.Contains(got, "a commit waits for a standby: absent") {
		t.Errorf("commit: %s", got)
	}
	standby.Back()

	// PostgreSQL and Redis are away.
	server.Stop()
	s = newShell(t, fmt.Sprintf("database: {url: %q}\nredis: {url: 'redis://%s/0'}\n", server.URL(), rig.FreeAddress()))
	if found := shows(map[string]string{"postgresql": pageStore, "redis": pageRedis}); len(found) != 2 {
		t.Errorf("without the stores: %v", found)
	}
}

// TestPagesExist: every page of the manual that the program names exists.
func TestPagesExist(t *testing.T) {
	named := regexp.MustCompile(`docs/[a-z/-]+\.md`)
	for _, folder := range []string{".", "../../internal/postgres"} {
		files, err := filepath.Glob(folder + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatal(folder, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, page := range named.FindAllString(string(text), -1) {
				if _, err := os.Stat("../../" + page); err != nil {
					t.Errorf("%s names %s: %v", file, page, err)
				}
			}
		}
	}
}
