package main

import (
	"fmt"
	"strings"
	"testing"

	"intumwa/internal/testenv"
)

// TestPoolerSetUpWrongly: whoever starts, migrates or checks says by which key a pooler
// takes sessions away that are needed, or that two keys lead to two databases, and does
// nothing else; set up rightly, all of them work.
func TestPoolerSetUpWrongly(t *testing.T) {
	t.Parallel()
	database, other := testenv.Database(t), testenv.Database(t)
	const dropping = "ignore_startup_parameters = statement_timeout, lock_timeout, idle_in_transaction_session_timeout, tcp_keepalives_idle, " +
		"tcp_keepalives_interval, tcp_keepalives_count, jit, enable_seqscan, enable_hashjoin, enable_mergejoin"
	plain, lax := testenv.NewPgBouncer(t, database), testenv.NewPgBouncer(t, database, dropping)
	statements := testenv.NewPgBouncer(t, database, "pool_mode = statement")
	rdb, prefix := testenv.Redis(t)
	for name, c := range map[string]struct {
		url, sessions string
		row           string // of config check: which says why
		why           []string
		starts        bool // migrate has nothing against it
	}{
		"no session_url": {plain.URL(), "", "database",
			[]string{"database.url: ", "a pooler (PgBouncer) in between", "unsupported startup parameter", "let database.session_url lead to PostgreSQL itself"}, false},
		"no session_url, settings dropped": {lax.URL(), "", "database",
			[]string{"database.url: ", "it is in transaction mode", "let database.session_url lead to PostgreSQL itself"}, false},
		"both through it": {plain.URL(), plain.URL(), "database.session_url",
			[]string{"database.session_url: ", "a pooler (PgBouncer) in between", "it must lead to PostgreSQL itself"}, false},
		"both through it, settings dropped": {lax.URL(), lax.URL(), "database.session_url",
			[]string{"database.session_url: ", "it is in transaction mode", "it must lead to PostgreSQL itself"}, false},
		"two databases": {plain.URL(), other, "database.session_url",
			[]string{"database.session_url and database.url: they lead to different databases"}, true},
		"a session for each statement": {statements.URL(), database, "database",
			[]string{"database.url: ", "statement pooling mode"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShell(t, fmt.Sprintf("database: {url: %q, session_url: %q}\nredis: {url: %q, prefix: %q}\napi: {listen: %q}\nops: {listen: %q}\n"+
				"carriers: [{name: leo, default: true, links: [{name: leo-1, address: '127.0.0.1:1', system_id: s, password: p}]}]\n",
				c.url, c.sessions, redisURL(rdb), prefix, freeAddress(t), freeAddress(t)))
			for command, args := range map[string][]string{"serve": {"serve", "--roles", "api"}, "migrate": {"migrate"}, "config check": {"config", "check", "--connect", "--roles", "api"}} {
				code, stdout, stderr := s.run("", args...)
				if command == "migrate" && c.starts {
					if code != exitOK {
						t.Errorf("migrate: exit code %d\n%s", code, stderr)
					}
					continue
				}
				said := stderr
				if command == "config check" {
					said = ""
					for line := range strings.Lines(stdout) {
						if strings.HasPrefix(line, c.row+": ") {
							said = line
						}
					}
					if !strings.Contains(said, ": reached, and NOT fit: ") {
						t.Errorf("config check says nothing of %s:\n%s", c.row, stdout)
					}
				}
				if code != exitError {
					t.Errorf("%s: exit code %d, want %d", command, code, exitError)
				}
				for _, why := range c.why {
					if !strings.Contains(said, why) {
						t.Errorf("%s does not say %q:\n%s", command, why, said)
					}
				}
			}
		})
	}

	t.Run("set up rightly", func(t *testing.T) {
		t.Parallel()
		s := newShell(t, fmt.Sprintf("database: {url: %q, session_url: %q}\nredis: {url: %q, prefix: %q}\n"+
			"carriers: [{name: leo, default: true, links: [{name: leo-1, address: '127.0.0.1:1', system_id: s, password: p}]}]\n",
			plain.URL(), database, redisURL(rdb), prefix))
		code, stdout, stderr := s.run("", "config", "check", "--connect", "--roles", "api")
		for _, line := range []string{"database: through the pooler, PostgreSQL ", "database.session_url: leaves us sessions of our own, in the database of database.url\n"} {
			if code != exitOK || !strings.Contains(stdout, line) {
				t.Errorf("config check: exit code %d, want %q in\n%s%s", code, line, stdout, stderr)
			}
		}
		if code, stdout, stderr := s.run("", "migrate"); code != exitOK || !strings.HasPrefix(stdout, "nothing to do") {
			t.Errorf("migrate: exit code %d\n%s%s", code, stdout, stderr)
		}
		if code, _, stderr := s.run("", "admin", "links"); code != exitOK {
			t.Errorf("admin links: exit code %d\n%s", code, stderr)
		}
	})
}
