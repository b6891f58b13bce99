package stories

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"intumwa/internal/testenv"
	"intumwa/tools/rig"
)

// backups are base backups and the WAL archive of a story's PostgreSQL, made by the
// operators' script.
type backups struct {
	w            *world
	folder, data string
	archive      string // archive_command
	environment  []string
	owner        *syscall.Credential // nil: the tests' own user
}

// backupsOf installs the operators' script for the PostgreSQL server with this data folder, whose socket is beside it.
func (w *world) backupsOf(data, port string) *backups {
	w.t.Helper()
	b := &backups{w: w, data: data, folder: filepath.Join(filepath.Dir(data), "backups")}
	info, err := os.Stat(b.data)
	if err != nil {
		w.t.Fatal(err)
	}
	owner := info.Sys().(*syscall.Stat_t)
	if os.Geteuid() == 0 {
		b.owner = &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}
	}
	script, err := os.ReadFile("../../deployments/backup/intumwa-backup")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, folder := range []string{b.folder, filepath.Join(b.folder, "wal")} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			w.t.Fatal(err)
		}
	}
	program := filepath.Join(b.folder, "intumwa-backup")
	if err := os.WriteFile(program, script, 0o755); err != nil {
		w.t.Fatal(err)
	}
	for _, path := range []string{b.folder, filepath.Join(b.folder, "wal"), program} {
		if err := os.Chown(path, int(owner.Uid), int(owner.Gid)); err != nil {
			w.t.Fatal(err)
		}
	}
	b.archive = "BACKUPS=" + b.folder + " " + program + " archive %p %f"
	b.environment = append(rig.Environment(), "BACKUPS="+b.folder, "PGDATA="+b.data, "PGHOST="+filepath.Dir(b.data),
		"PGPORT="+port, "PGUSER="+scalar[string](w, `SELECT current_user`), "PGDATABASE=postgres")
	return b
}

// keepsBackups starts the WAL archive of the story's own PostgreSQL server.
func (w *world) keepsBackups() *backups {
	w.t.Helper()
	b := w.backupsOf(scalar[string](w, `SELECT current_setting('data_directory')`),
		scalar[string](w, `SELECT current_setting('port')`))
	for _, setting := range []string{"archive_mode = on", "archive_command = '" + b.archive + "'"} {
		if _, err := w.pool.Exec(w.t.Context(), "ALTER SYSTEM SET "+setting); err != nil {
			w.t.Fatal(err)
		}
	}
	w.postgresServer.Stop()
	w.postgresServer.Start()
	w.pool.Reset()
	return b
}

// does runs the operators' script.
func (b *backups) does(verb ...string) {
	b.w.t.Helper()
	output, err := b.tries(testenv.Tool(b.w.t, "bash"), append([]string{filepath.Join(b.folder, "intumwa-backup")},
		verb...)...)
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(filepath.Dir(b.data), "log"))
		b.w.t.Fatalf("intumwa-backup %v: %v\n%s\nand PostgreSQL\n%s", verb, err, output, log[max(0, len(log)-3000):])
	}
	b.w.t.Logf("intumwa-backup %s: %s", strings.Join(verb, " "), strings.TrimSpace(output))
}

// refuses runs a step that must fail with this text.
func (b *backups) refuses(want string, verb ...string) {
	b.w.t.Helper()
	output, err := b.tries(testenv.Tool(b.w.t, "bash"), append([]string{filepath.Join(b.folder, "intumwa-backup")},
		verb...)...)
	if err == nil || !strings.Contains(output, want) {
		b.w.t.Errorf("intumwa-backup %v: %v, want %q in\n%s", verb, err, want, output)
	}
}

// tries runs a program as PostgreSQL's user.
func (b *backups) tries(name string, args ...string) (output string, err error) {
	b.w.t.Helper()
	command := exec.CommandContext(b.w.t.Context(), name, args...)
	command.Dir, command.Env = b.folder, b.environment
	command.SysProcAttr = &syscall.SysProcAttr{Credential: b.owner}
	text, err := command.CombinedOutput()
	return string(text), err
}

// archived waits until the current WAL is in the archive.
func (b *backups) archived() {
	b.w.t.Helper()
	file := scalar[string](b.w, `SELECT pg_walfile_name(pg_switch_wal())`)
	b.w.eventually(30*time.Second, "the log is archived", func() bool {
		_, err := os.Stat(filepath.Join(b.folder, "wal", file))
		return err == nil
	})
}
