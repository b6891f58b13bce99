package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/testenv"
)

// TestBackupSteps: each step of the operators' script fails if the one before has not been done, and says what it did.
func TestBackupSteps(t *testing.T) {
	t.Parallel()
	bash := testenv.Tool(t, "bash")
	server := testenv.NewPostgresServer(t)
	conn, err := pgx.Connect(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	var data, user string
	if err := conn.QueryRow(t.Context(), "SELECT current_setting('data_directory'), current_user").Scan(
		&data, &user); err != nil {
		t.Fatal(err)
	}
	_ = conn.Close(t.Context())
	info, err := os.Stat(data)
	if err != nil {
		t.Fatal(err)
	}
	owner := info.Sys().(*syscall.Stat_t)
	script, err := os.ReadFile("../../deployments/backup/intumwa-backup")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(data)
	backup, backups := filepath.Join(dir, "intumwa-backup"), filepath.Join(dir, "backups")
	owned := func(path, text string) string {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, int(owner.Uid), int(owner.Gid)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	owned(backup, string(script))
	for _, folder := range []string{backups, filepath.Join(backups, "wal")} {
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(folder, int(owner.Uid), int(owner.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	as := func(name string, args ...string) *exec.Cmd {
		command := exec.CommandContext(t.Context(), name, args...)
		command.Dir = dir
		command.Env = append(os.Environ(), "BACKUPS="+backups, "KEEP=1", "PGDATA="+data, "PGHOST="+dir, "PGUSER="+user,
			"PGDATABASE=postgres")
		command.SysProcAttr = &syscall.SysProcAttr{}
		if os.Geteuid() == 0 {
			command.SysProcAttr.Credential = &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}
		}
		return command
	}
	// does runs a step and wants a part of its output.
	does := func(ok bool, want string, step ...string) {
		t.Helper()
		output, err := as(bash, append([]string{backup}, step...)...).CombinedOutput()
		if (err == nil) != ok || !strings.Contains(string(output), want) {
			t.Errorf("%v: %v, want %q in\n%s", step, err, want, output)
		}
	}
	// runs a Patroni of this folder, or of another, while do runs.
	runs := func(folder string, do func()) {
		t.Helper()
		file := owned(filepath.Join(dir, "node.yml"), "postgresql:\n  data_dir: "+folder+"\n")
		patroni := as(owned(filepath.Join(dir, "patroni"), "#!/bin/bash\nread -r\n"), file)
		alive, err := patroni.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := patroni.Start(); err != nil {
			t.Fatal(err)
		}
		do()
		_ = alive.Close()
		_ = patroni.Wait() // it ends with its input
	}

	does(true, "archive_mode is off: what is written from now on cannot be restored", "base")
	found, _ := filepath.Glob(filepath.Join(backups, "base-*"))
	if len(found) != 1 {
		t.Fatalf("base backups: %v", found)
	}
	does(false, "PostgreSQL runs in "+data+": stop it first", "restore")
	does(false, "nothing to finish", "finish")

	server.Stop()
	does(false, "has no base backup that was complete before 2001-", "restore", "2001-01-01 00:00:00+00")
	does(false, "is not a time", "restore", "yesterday at tea")
	// A failed restore has changed nothing; the old data starts, and there is nothing to finish.
	server.Start()
	does(false, "nothing to finish", "finish")
	server.Stop()

	owned(filepath.Join(data, "patroni.dynamic.json"), "{}")
	runs(data, func() { does(false, "stop Patroni on every machine first (docs/patroni.md)", "restore") })
	if entries, _ := filepath.Glob(data + "-lost-*"); len(entries) > 0 {
		t.Errorf("a refused restore left %v", entries)
	}
	owned(filepath.Join(found[0], "patroni.dynamic.json"), "{}")
	runs(filepath.Join(dir, "other"), func() {
		does(true, "Start PostgreSQL by hand, not Patroni (docs/patroni.md), then: intumwa-backup finish", "restore")
	})
	server.Start()
	does(true, "Recovered, on timeline 2", "finish")
	does(false, "nothing to finish", "finish")
	if now, _ := filepath.Glob(filepath.Join(backups, "base-*")); len(now) != 2 {
		t.Errorf("base backups after the restore: %v", now)
	}

	// The oldest go, with the WAL that only they need, and the last one stays.
	wal := func(name string) string { return owned(filepath.Join(backups, "wal", name), "") }
	older, later, history := wal("000000010000000000000000"), wal("0000000100000000000000FF"), wal("00000002.history")
	does(true, filepath.Base(found[0])+" is deleted", "prune")
	does(true, "1 base backups are left", "prune")
	for path, stays := range map[string]bool{found[0]: false, older: false, later: true, history: true} {
		if _, err := os.Stat(path); (err == nil) != stays {
			t.Errorf("%s after prune: %v, and it stays: %v", path, err, stays)
		}
	}
	if now, _ := filepath.Glob(filepath.Join(backups, "base-*")); len(now) != 1 {
		t.Errorf("base backups after prune: %v", now)
	}

	// A standby's base backup is the primary's.
	server.Stop()
	owned(filepath.Join(data, "standby.signal"), "")
	server.Start()
	does(true, "This server is a standby: nothing is done", "base")
	does(true, "This server is a standby: nothing is done", "prune")
	does(false, "nothing to finish", "finish")
}

// TestRestoreLooksForPatroni: without pgrep nobody knows whether Patroni would start the folder, so restore leaves it
// alone.
func TestRestoreLooksForPatroni(t *testing.T) {
	t.Parallel()
	bash, dir := testenv.Tool(t, "bash"), t.TempDir()
	for _, folder := range []string{"bin", "data", "backups/base-20260101T000000Z"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	links := exec.CommandContext(t.Context(), bash, "-ec",
		`for tool in cat chmod cp date grep head mv touch; do ln -s "$(command -v $tool)" bin/; done`)
	if links.Dir = dir; links.Run() != nil {
		t.Fatal("the tools besides pgrep cannot be linked")
	}
	managed := filepath.Join(dir, "data", "patroni.dynamic.json")
	if err := os.WriteFile(managed, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), bash, "../../deployments/backup/intumwa-backup", "restore")
	command.Env = []string{"PATH=" + filepath.Join(dir, "bin"), "BACKUPS=" + filepath.Join(dir, "backups"),
		"PGDATA=" + filepath.Join(dir, "data")}
	output, err := command.CombinedOutput()
	if _, gone := os.Stat(managed); err == nil || gone != nil || !strings.Contains(string(output), "pgrep is missing") {
		t.Errorf("%v, %v, %s", err, gone, output)
	}
}
