package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/jackc/pgx/v5"

	"intumwa/dispatcher"
	"intumwa/internal/testenv"
	"intumwa/tools/rig"
)

// substitutes replace programs of docs/backup.md that cannot run in tests.
var substitutes = map[string]string{
	"install": `for f; do case " $* $f in" in *" -d "*" $BACKUPS"*) mkdir -p "$f" ;; esac; done`,
	"runuser": `AS=$2; shift 3; export AS; exec "$@"`,
	"psql":    asPostgres,
}

// asPostgres runs a PostgreSQL client as peer authentication would: for the user postgres
// only.
const asPostgres = `[ "$AS" = postgres ] || { echo "FATAL:  Peer authentication failed" >&2; exit 2; }; ` +
	`PATH=${PATH#*:} exec "${0##*/}" "$@"`

// block is a fenced block of the manual.
type block struct {
	page, text string
	line       int
}

// blocks reads all of them, without the indentation of list items.
func blocks(t *testing.T) (list []block) {
	t.Helper()
	docs := os.DirFS("../../docs")
	err := fs.WalkDir(docs, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".md") || strings.HasPrefix(path, "rules/") {
			return err
		}
		page, err := fs.ReadFile(docs, path)
		if err != nil {
			return err
		}
		var open *block
		indent := ""
		n := 0
		for line := range strings.Lines(string(page)) {
			n++
			trimmed := strings.TrimLeft(line, " ")
			switch {
			case strings.HasPrefix(trimmed, "```") && open == nil:
				indent = line[:len(line)-len(trimmed)]
				open = &block{page: path, line: n}
				if kind := strings.TrimSpace(strings.TrimPrefix(trimmed, "```")); kind != "" {
					open.page = "" // a block with a language has no commands
				}
			case strings.HasPrefix(trimmed, "```"):
				if open.page != "" {
					list = append(list, *open)
				}
				open = nil
			case open != nil:
				open.text += strings.TrimPrefix(line, indent)
			}
		}
		if open != nil {
			t.Errorf("%s: a block does not end", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Both match a command of ours in text; a quoted or braced part is one word.
var (
	named    = regexp.MustCompile("`(?:intumwa +)?((?:admin|config|migrate|serve|version)(?: [^`]*)?)`")
	shown    = regexp.MustCompile(`(?m)(?:^|[|;&(]) *intumwa +((?:admin|config|migrate|serve|version)\b[^#|;&)<>\n]*)`)
	together = regexp.MustCompile(`'[^'\n]*'|"[^"\n]*"|\{\{[^}]*\}\}`)
)

// swallowed is a command of README that a wrapped line has moved into the comment of another.
var swallowed = regexp.MustCompile(`(?m)^ {4}.*#.*\bbin/intumwa`)

// TestManualNamesCommands: every command and flag in the manual, the change log and the alerts exists, and shellcheck
// accepts every block of commands.
func TestManualNamesCommands(t *testing.T) {
	t.Parallel()
	shellcheck := testenv.Tool(t, "shellcheck")
	parser, err := kong.New(new(commands))
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	check := func(where, line string) {
		lines++
		if err := exists(parser.Model.Node, strings.Fields(together.ReplaceAllString(line, "X"))); err != nil {
			t.Errorf("%s: %q: %v", where, line, err)
		}
	}
	pages := []string{"../../README.md", "../../CHANGELOG.md", "../../CONTRIBUTING.md"}
	for _, pattern := range []string{"../../docs/*.md", "../../docs/runbooks/*.md",
		"../../deployments/prometheus/rules/*.yaml"} {
		found, _ := filepath.Glob(pattern)
		pages = append(pages, found...)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if line := swallowed.Find(text); line != nil {
			t.Errorf("%s: a comment holds a command: %s", page, line)
		}
		for _, found := range named.FindAllStringSubmatch(string(text), -1) {
			check(page, found[1])
		}
	}
	for _, b := range blocks(t) {
		for _, found := range shown.FindAllStringSubmatch(together.ReplaceAllString(b.text, "X"), -1) {
			check(b.page, found[1])
		}
		command := exec.CommandContext(t.Context(), shellcheck, "--shell=bash", "--severity=warning", "-")
		command.Stdin = strings.NewReader(b.text)
		if output, err := command.CombinedOutput(); err != nil {
			t.Errorf("%s:%d: %s", b.page, b.line, output)
		}
	}
	if lines < 150 {
		t.Errorf("%d commands: they are read wrongly", lines)
	}
}

// statement is SQL that a block of the manual passes to psql.
var statement = regexp.MustCompile(`(?s)\bpsql\b[^"\n]*?((?:-c "[^"]*"\s*)+)`)

// TestManualStatements: every SQL statement of the manual is valid on our schema.
func TestManualStatements(t *testing.T) {
	t.Parallel()
	conn, err := testenv.Pool(t).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	statements := 0
	for _, b := range blocks(t) {
		for _, found := range statement.FindAllStringSubmatch(b.text, -1) {
			for _, sql := range regexp.MustCompile(`"([^"]*)"`).FindAllStringSubmatch(found[1], -1) {
				statements++
				if _, err := conn.Conn().Prepare(t.Context(), "", sql[1]); err != nil {
					t.Errorf("%s:%d: %s: %v", b.page, b.line, sql[1], err)
				}
			}
		}
	}
	if statements < 30 {
		t.Errorf("%d statements: they are read wrongly", statements)
	}
}

// TestLinkColumnsAreExplained: docs/carriers.md explains each column of `admin links`.
func TestLinkColumnsAreExplained(t *testing.T) {
	page, err := os.ReadFile("../../docs/carriers.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[dispatcher.LinkState]()) {
		column, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if row := regexp.MustCompile("(?m)^- (?:`\\w+`, )*`" + column + "`(?:, `\\w+`)*: .{10}"); !row.Match(page) {
			t.Errorf("no row explains %s", column)
		}
	}
}

// exists follows a command line, whose last words may be arguments, down from a node.
func exists(node *kong.Node, words []string) error {
	flags := append([]*kong.Flag{}, node.Flags...)
	for i := 0; i < len(words); i++ {
		word := words[i]
		if word == "…" || word == "..." {
			continue
		}
		if name, isFlag := strings.CutPrefix(word, "--"); isFlag {
			name, value, given := strings.Cut(name, "=")
			at := slices.IndexFunc(flags, func(f *kong.Flag) bool { return f.Name == name })
			if at < 0 {
				return fmt.Errorf("no flag --%s", name)
			}
			if !given && !flags[at].IsBool() && i+1 < len(words) {
				i++
				value = words[i]
			}
			values := []string{value}
			if flags[at].IsSlice() {
				values = strings.Split(value, ",")
			}
			for _, value := range values {
				if enum := flags[at].EnumMap(); flags[at].Enum == "" || value == "" || enum[value] {
					continue
				}
				return fmt.Errorf("--%s is never %q", name, value)
			}
			continue
		}
		next := slices.IndexFunc(node.Children, func(n *kong.Node) bool { return n.Name == word })
		switch {
		case next >= 0:
			node = node.Children[next]
			flags = append(flags, node.Flags...)
			if node.DefaultCmd != nil {
				flags = append(flags, node.DefaultCmd.Flags...)
			}
		case len(node.Positional) == 0 && (node.DefaultCmd == nil || len(node.DefaultCmd.Positional) == 0):
			return fmt.Errorf("no command %q", word)
		}
	}
	return nil
}

// programs makes a folder with intumwa and the substitutes.
func programs(t *testing.T, s *shell) string {
	t.Helper()
	dir := t.TempDir()
	put := func(name, script string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/bash\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, script := range substitutes {
		put(name, script)
	}
	backup, err := os.ReadFile("../../deployments/backup/intumwa-backup")
	if err != nil {
		t.Fatal(err)
	}
	put("intumwa-backup", string(backup))
	put("intumwa", fmt.Sprintf("export %s=1\nexec %q \"$@\"", asProgram, os.Args[0]))
	return dir
}

// notHere are programs of the runbooks with no useful result in tests.
var notHere = []string{"journalctl", "systemctl", "systemd-run", "timedatectl", "redis-cli", "curl", "ping", "ss", "ip",
	"openssl", "top", "dmesg"}

// refusedCommand matches the errors of a command that cannot work, from the shell, PostgreSQL or
// intumwa.
var refusedCommand = regexp.MustCompile(
	`authentication failed|command not found|syntax error|ERROR: |FATAL: |unexpected argument|unknown flag|No such file`)

// TestRunbookCommands: each runbook's commands run as root after the prologue: psql as the user postgres by peer
// authentication, and intumwa with its configuration.
func TestRunbookCommands(t *testing.T) {
	testenv.Long(t)
	bash := testenv.Tool(t, "bash")
	database := testenv.Database(t)
	server, err := pgx.ParseConfig(database)
	if err != nil {
		t.Fatal(err)
	}
	s := newShell(t, fmt.Sprintf("database: {url: %q}\nredis: {url: 'redis://%s/0'}\n", database, rig.FreeAddress()))
	shims := programs(t, s)
	for name, script := range map[string]string{"pg_dump": asPostgres} {
		if err := os.WriteFile(filepath.Join(shims, name), []byte("#!/bin/bash\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range notHere {
		if err := os.WriteFile(filepath.Join(shims, name), []byte("#!/bin/bash\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	places := strings.NewReplacer("/var/run/postgresql", server.Host, "PGPORT=5432", fmt.Sprintf("PGPORT=%d", server.Port),
		"PGDATABASE=intumwa", "PGDATABASE="+server.Database,
		"-d intumwa", "-d "+server.Database, "/var/lib/postgresql", "/", " /backup", " /", "/root/", dir+"/",
		"/etc/intumwa/secrets.env", dir+"/none", "--id ID", "--id 1")
	environment := append(os.Environ(), "PATH="+shims+":"+os.Getenv("PATH"), "INTUMWA_CONFIG="+s.config,
		"PGUSER="+server.User, "PGPASSWORD="+server.Password)
	prologue, pages := "", map[string]bool{}
	for _, b := range blocks(t) {
		switch {
		case b.page == "runbooks/README.md":
			if strings.Contains(b.text, "psql()") {
				prologue = b.text
			}
			continue
		case !strings.HasPrefix(b.page, "runbooks/"), pages[b.page]: // the first block of a page is the immediate action
			continue
		}
		pages[b.page] = true
		t.Run(strings.TrimSuffix(filepath.Base(b.page), ".md"), func(t *testing.T) {
			t.Parallel()
			command := exec.CommandContext(t.Context(), bash, "-c", places.Replace(prologue+b.text))
			command.Dir, command.Env = dir, environment
			if output, _ := command.CombinedOutput(); refusedCommand.Match(output) {
				t.Errorf("%s\nprints\n%s", b.text, output)
			}
		})
	}
	if prologue == "" || len(pages) < 25 {
		t.Errorf("prologue %q, %d pages", prologue, len(pages))
	}
}

// TestRestoreByTheManual runs docs/backup.md block by block on a server of its own. The restored database has the
// latest message and reuses no message_id.
func TestRestoreByTheManual(t *testing.T) {
	t.Parallel()
	bash := testenv.Tool(t, "bash")
	server := testenv.NewPostgresServer(t)
	ctx := t.Context()
	connect := func() *pgx.Conn {
		t.Helper()
		conn, err := pgx.Connect(ctx, server.URL())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		return conn
	}
	conn := connect()
	var data string
	if err := conn.QueryRow(ctx, "SELECT current_setting('data_directory')").Scan(&data); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(ctx, "CREATE ROLE postgres SUPERUSER LOGIN REPLICATION"); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(data)
	if err != nil {
		t.Fatal(err)
	}
	owner := info.Sys().(*syscall.Stat_t)
	dir := filepath.Dir(data)
	pid, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	postgres, err := os.Readlink("/proc/" + strings.Fields(string(pid))[0] + "/exe")
	if err != nil {
		t.Fatal(err)
	}
	insert := func(conn *pgx.Conn) (id int64) {
		t.Helper()
		if err := conn.QueryRow(ctx, `INSERT INTO messages (ulid, company_id, user_id, phone_number, sender, body, encoding,
			segments, test, carrier, status)
			VALUES (gen_random_uuid(), 1, 1, '+25771000001', 'S', 'x', 0, 1, true, 'leo', 1) RETURNING id`).Scan(
			&id); err != nil {
			t.Fatal(err)
		}
		return id
	}
	s := newShell(t, fmt.Sprintf("database: {url: %q}\n", server.URL()))
	shims := programs(t, s)
	for folder := shims; folder != os.TempDir() && folder != "/"; folder = filepath.Dir(folder) {
		// PostgreSQL's user must reach it
		_ = os.Chmod(folder, 0o755)
	}
	// The service manager's commands for this server.
	control := fmt.Sprintf("%q -D %q -w -t 60 -l %q -o \"-k %s -h ''\"", filepath.Join(filepath.Dir(postgres), "pg_ctl"),
		data, filepath.Join(dir, "server.log"), dir)
	manager := "#!/bin/bash\ncase \"$2\" in postgresql) ;; *) exit 0 ;; esac\n[ \"$1\" = start ] || " + control +
		" -m fast stop\n[ \"$1\" = stop ] || " + control + " start >/dev/null\n"
	if err := os.WriteFile(filepath.Join(shims, "systemctl"), []byte(manager), 0o755); err != nil {
		t.Fatal(err)
	}
	_ = conn.Close(ctx)
	server.Stop()
	environment := append(os.Environ(), "PATH="+shims+":"+os.Getenv("PATH"), "INTUMWA_CONFIG="+s.config, "PGHOST="+dir,
		"PGUSER=postgres", "BACKUPS="+filepath.Join(dir, "backup"))
	places := strings.NewReplacer("/var/lib/postgresql/15/main", data, "/backup", filepath.Join(dir, "backup"))
	sh := func(script string) {
		t.Helper()
		limited, done := context.WithTimeout(ctx, 2*time.Minute)
		defer done()
		command := exec.CommandContext(limited, bash, "-euo", "pipefail", "-c", places.Replace(script))
		command.Dir, command.Env = dir, environment
		if os.Geteuid() == 0 && !strings.HasPrefix(script, "intumwa ") { // PostgreSQL's user
			command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}}
		}
		output, err := command.CombinedOutput()
		if err != nil {
			log, _ := os.ReadFile(filepath.Join(dir, "server.log"))
			t.Fatalf("%v\n%s\nprints\n%s\nand PostgreSQL\n%s", err, script, output, log[max(0, len(log)-1500):])
		}
	}
	find := func(word string) string {
		t.Helper()
		for _, b := range blocks(t) {
			if b.page == "backup.md" && strings.Contains(b.text, word) {
				return b.text
			}
		}
		t.Fatalf("backup.md has no block with %s", word)
		return ""
	}
	sh("systemctl start postgresql")
	defer func() {
		stop := exec.Command(bash, "-c", "exec systemctl stop postgresql")
		stop.Env = environment
		if os.Geteuid() == 0 {
			stop.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}}
		}
		if output, err := stop.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, output)
		}
	}()
	sh(find("alter system set archive_mode"))
	conn = connect()
	insert(conn)
	// The lost server had a synchronous standby. This one does not reload its settings: only the restored server waits
	// for it.
	if _, err := conn.Exec(ctx, `ALTER SYSTEM SET synchronous_standby_names = 'gone'`); err != nil {
		t.Fatal(err)
	}
	sh(find("intumwa-backup base"))
	last := insert(conn) // after the backup, before the disaster: only the WAL has it
	_ = conn.Close(ctx)

	sh(find("intumwa-backup finish"))
	sh(find("intumwa admin restored"))
	sh(find("KEEP=2 intumwa-backup prune")) // the base backups of both servers stay
	conn = connect()
	var there bool
	if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM messages WHERE id = $1)`, last).Scan(&there); err != nil ||
		!there {
		t.Errorf("the last message is gone: %v", err)
	}
	if next := insert(conn); next < last+10_000_000 {
		t.Errorf("after the restore the next message is %d; until then up to %d were given out, and perhaps more", next, last)
	}
	_ = conn.Close(ctx)
	t.Run("to a moment", func(t *testing.T) {
		testenv.Long(t)
		// To an earlier moment: recovery stops there and continues from there. A base backup is older by a second.
		time.Sleep(1100 * time.Millisecond)
		var moment string
		conn = connect()
		if err := conn.QueryRow(ctx, `SELECT clock_timestamp()::text`).Scan(&moment); err != nil {
			t.Fatal(err)
		}
		gone := insert(conn)
		var later, timeline string
		if err := conn.QueryRow(ctx, `SELECT clock_timestamp()::text, timeline_id::text FROM pg_control_checkpoint()`).Scan(
			&later, &timeline); err != nil {
			t.Fatal(err)
		}
		insert(conn) // a later commit, at which recovery finds the target time
		_ = conn.Close(ctx)
		earlier := strings.ReplaceAll(find("intumwa-backup restore '"), "2026-03-01 08:00:00+02", moment)
		restore := func(line string) {
			t.Helper()
			sh(strings.Replace(find("intumwa-backup finish"),
				"PGDATA=/var/lib/postgresql/15/main runuser -u postgres -- intumwa-backup restore &&\n", strings.TrimSpace(line)+
					" &&\n", 1))
		}
		restore(earlier)
		conn = connect()
		if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM messages WHERE id = $1)`, gone).Scan(&there); err != nil ||
			there {
			t.Errorf("what came after the moment is there: %v", err)
		}
		if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_file_settings WHERE name LIKE 'recovery_target%'
			OR name = 'restore_command')`).Scan(&there); err != nil || there {
			t.Errorf("the recovery's settings are left behind: %v", err)
		}
		_ = conn.Close(ctx)
		// The target was too early: what came after is on the timeline that this restore left.
		restore(strings.NewReplacer("2026-03-01 08:20:00+02", later, "' 1\n", "' "+timeline+"\n").Replace(
			find("08:20:00+02")))
		conn = connect()
		if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM messages WHERE id = $1)`, gone).Scan(&there); err != nil ||
			!there {
			t.Errorf("what came before the later moment is not there: %v", err)
		}
	})
}
