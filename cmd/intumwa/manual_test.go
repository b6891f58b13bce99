package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/jackc/pgx/v5"
	ulids "github.com/oklog/ulid/v2"

	"intumwa/internal/testenv"
)

// stand are the programs of the manual that cannot work where tests run, with the reason, and what stands for them. Whatever
// else a command block names is run as it stands.
var stand = map[string]struct{ reason, script string }{
	"systemctl":   {"no systemd runs here; the unit has a test of its own", `exit 0`},
	"systemd-run": {"no systemd runs here", `while [ "$1" != intumwa ]; do case $1 in EnvironmentFile=-*) ;; EnvironmentFile=*) test -e "${1#*=}" ;; esac || exit 1; shift; done; exec "$@"`},
	"redis-cli":   {"the Redis here is the tests' own", `PATH=${PATH#*:} exec redis-cli -u "$REDIS" "$@"`},
	"journalctl":  {"no systemd runs here; the texts that are looked for are those of the source", `cat "$SOURCE_TEXTS"`},
	"kubectl":     {"no cluster is here; the manifests have tests of their own", `exit 0`},
	"docker":      {"no docker is here", `exit 0`},
	"make":        {"it would build, and play faults for half an hour", `exit 0`},
	"install":     {"it would install on this machine; the files that it takes have to be there", `for f; do case " $* $f" in *" -d "*" ${ETC:-none}/"*|*" -d "*" ${BACKUPS:-none}"*) mkdir -p "$f" ;; esac; case $f in deployments/*) test -e "$ROOT/$f" || exit 1 ;; esac; done`},
	"chgrp":       {"the group is not here", `exit 0`},
	"useradd":     {"it would make a user of this machine", `exit 0`},
	"runuser":     {"the server here is the tests' own, and so is its user", `AS=$2; shift 3; export AS; exec "$@"`},
	"psql":        {"Debian's PostgreSQL lets nobody but postgres in", asPostgres},
	"pg_dump":     {"Debian's PostgreSQL lets nobody but postgres in", asPostgres},
	"createuser":  {"it asks for a password at a terminal", `exit 0`},
	"createdb":    {"the database is there", `[ "$AS" = postgres ]`},
	"nginx":       {"no nginx is here", `exit 0`},
	"ping":        {"raw sockets may be forbidden", `exit 0`},
	"ip":          {"iproute2 may be missing", `exit 0`},
	"ss":          {"iproute2 may be missing", `exit 0`},
}

// asPostgres runs a client of PostgreSQL for those whom peer authentication lets in.
const asPostgres = `[ "$AS" = postgres ] || { echo "FATAL:  Peer authentication failed" >&2; exit 2; }; PATH=${PATH#*:} exec "${0##*/}" "$@"`

// elsewhere are blocks that another test runs, by a line of theirs.
var elsewhere = map[string]string{
	"intumwa-backup base":                       "TestRestoreByTheManual",
	"intumwa-backup restore":                    "TestRestoreByTheManual",
	"intumwa admin restored":                    "it wants no dispatcher to run; TestRestoreByTheManual",
	"-d 'host=PRIMARY user=replicator":          "testenv.NewPostgresPair makes a standby so",
	"-d 'host=STANDBY user=replicator":          "PostgresPair.Follow makes a new standby so",
	"select pg_promote()":                       "TestPostgresFailsOver promotes a real standby",
	"synchronous_standby_names = 'NAME'":        "the server here has no standby: every commit would wait; TestRequireStandby sets it",
	"alter system set archive_mode":             "TestRestoreByTheManual",
	"cp deployments/compose/env.example":        "no docker is here; TestCompose reads the file",
	"openssl s_client -connect":                 "this SMSC speaks no TLS; TestConnect's does",
	"curl -v https://HOST/":                     "it calls a customer's server",
	"http://127.0.0.1:9090/debug/pprof/profile": "ten seconds of a profile",
}

// block is a fenced block of the manual.
type block struct {
	page, text string
	line       int
}

// blocks are all of them, without the spaces that an item of a list sets before them.
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
					open.page = "" // a language: no commands
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

// literals are the texts of the product's source, of which log lines are made.
func literals(t *testing.T) string {
	t.Helper()
	quoted := regexp.MustCompile(`"(?:[^"\\\n]|\\.)*"`)
	var out strings.Builder
	tree := os.DirFS("../..")
	err := fs.WalkDir(tree, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := fs.ReadFile(tree, path)
		for _, literal := range quoted.FindAll(text, -1) {
			out.Write(append(literal, '\n'))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// named matches a command of ours as texts quote it, shown one in a block; what is between quotes or braces is one word.
var (
	named    = regexp.MustCompile("`(?:intumwa +)?((?:admin|config|migrate|serve|version)(?: [^`]*)?)`")
	shown    = regexp.MustCompile(`(?m)(?:^|[|;&(]) *intumwa +((?:admin|config|migrate|serve|version)\b[^#|;&)<>\n]*)`)
	together = regexp.MustCompile(`'[^'\n]*'|"[^"\n]*"|\{\{[^}]*\}\}`)
)

// TestManualNamesCommands: every command and flag of ours that the manual, the change log and the alerts name exists.
func TestManualNamesCommands(t *testing.T) {
	t.Parallel()
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
	for _, pattern := range []string{"../../docs/*.md", "../../docs/runbooks/*.md", "../../deployments/prometheus/rules/*.yaml"} {
		found, _ := filepath.Glob(pattern)
		pages = append(pages, found...)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range named.FindAllStringSubmatch(string(text), -1) {
			check(page, found[1])
		}
	}
	for _, b := range blocks(t) {
		for _, found := range shown.FindAllStringSubmatch(together.ReplaceAllString(b.text, "X"), -1) {
			check(b.page, found[1])
		}
	}
	if lines < 150 {
		t.Errorf("%d commands: they are read wrongly", lines)
	}
}

// exists follows the words of a command line, of which the end may be left out, down from a node.
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
			if enum := flags[at].EnumMap(); flags[at].Enum != "" && value != "" && !enum[value] {
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

// TestManualCommands runs every command block of the manual and the runbooks, as written, against a gateway with one
// message.
func TestManualCommands(t *testing.T) {
	t.Parallel()
	bash, shellcheck := testenv.Tool(t, "bash"), testenv.Tool(t, "shellcheck")
	list := blocks(t)
	if len(list) < 35 {
		t.Fatalf("%d blocks: they are read wrongly", len(list))
	}
	carrier, smsc := playCarrier(t, "lumitel")
	server := testenv.NewPostgresServer(t)
	rdb := testenv.NewRedisServer(t)
	ops, api := freeAddress(t), freeAddress(t)
	user := slices.IndexFunc(list, func(b block) bool { return strings.Contains(b.text, "acl setuser gateway") })
	if user < 0 {
		t.Fatal("no page makes a user of Redis")
	}
	s := newShell(t, fmt.Sprintf(`
database: {url: %q}
redis: {url: %q, username: gateway, password: PASSWORD}
api: {listen: %q}
ops: {listen: %q}
dashboard: {listen: "127.0.0.1:0"}
log: {level: debug}
carriers: [{name: lumitel, prefixes: ["61"], links: [{name: lumitel-1, address: %q, system_id: demo, password: demo}]}]
`, server.URL(), rdb.URL(), api, ops, smsc))
	shims, etc := programs(t, s), t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(etc, "secrets"), 0o700), os.WriteFile(filepath.Join(etc, "secrets", "redis"), []byte("PASSWORD"), 0o600)); err != nil {
		t.Fatal(err)
	}
	environment := append(os.Environ(), "PATH="+shims+":"+os.Getenv("PATH"), "INTUMWA_CONFIG="+s.config, "REDIS="+rdb.URL())
	makes := exec.CommandContext(t.Context(), bash, "-euo", "pipefail", "-c", strings.ReplaceAll(list[user].text, "/etc/intumwa/", etc+"/"))
	if makes.Env = environment; makes.Run() != nil {
		t.Fatal("the user of Redis cannot be made")
	}
	var log safeBuffer
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, []string{"serve", "--config", s.config}, strings.NewReader(""), &log, &log) }()
	defer func() { cancel(); <-ended }()
	for end := time.Now().Add(30 * time.Second); !strings.Contains(log.String(), "msg=ready") || carrier.Stats().Sessions == 0; <-time.After(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not ready:\n%s", log.String())
		}
	}
	s.admin("correct horse", "user_id email", "user", "create", "--email", "first@example.com", "--name", "A", "--password-stdin")
	company := number(s.admin("", "company_id credits", "company", "create", "--owner", "first@example.com", "--name", "A", "--approved", "--credits", "7")["company_id"])
	s.admin("", "sender_id name approved", "sender", "create", "--company", company, "--name", "FIRST", "--approved")
	token := s.admin("", "token_id token", "token", "create", "--user", "first@example.com", "--name", "t")["token"].(string)
	ulid := send(t, api, token, "FIRST")

	database, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	const batch = "01J9ZK8V5QW3T2N7R4C6H0B1DN"
	admin, err := pgx.Connect(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(context.Background())
	if _, err := admin.Exec(t.Context(), "CREATE ROLE postgres SUPERUSER LOGIN"); err != nil { // who the pages' psql is
		t.Fatal(err)
	}
	if _, err := admin.Exec(t.Context(), `INSERT INTO batches (ulid, company_id, user_id, kind, sender, recipients_count, item_count) VALUES ($1, $2::text::bigint, 1, 'bulk', 'FIRST', 1, 1)`,
		[16]byte(ulids.MustParse(batch)), company); err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	texts := filepath.Join(t.TempDir(), "texts")
	if err := os.WriteFile(texts, []byte(literals(t)+log.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	host, _, _ := net.SplitHostPort(smsc)
	config, err := os.ReadFile(s.config)
	if err != nil {
		t.Fatal(err)
	}
	names := strings.NewReplacer("LINK", "lumitel-1", "ULID", ulid, "01J9ZK8V5QW3T2N7R4C6H0B1DM", ulid, "01M7…", ulid, "CARRIER", "lumitel",
		"SMSC-ADDRESS", smsc, "SMSC-HOST", host, "HEXADECIMAL", "1fffffffffffffffff", "DECIMAL", "36893488147419103231", "http://127.0.0.1:9090", "http://"+ops,
		"/etc/intumwa/", etc+"/", "--seconds 60", "--seconds 1", "--seconds 10", "--seconds 1", "/var/lib/postgresql", "/tmp",
		"create role intumwa", "create role manual", "--company ID", "--company "+company, "--id ID", "--id "+company, "BATCH", batch, "--sender ACME", "--sender FIRST")
	environment = append(environment, "PGHOST="+database.Query().Get("host"), "PGUSER=postgres",
		"SOURCE_TEXTS="+texts, "ROOT="+root, "ETC="+etc)
	for _, b := range list {
		check := exec.CommandContext(t.Context(), shellcheck, "--shell=bash", "--severity=warning", "-")
		check.Stdin = strings.NewReader(b.text)
		if said, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s:%d: %s", b.page, b.line, said)
		}
		if why := left(b.text); why != "" {
			t.Logf("%s:%d is not run here: %s", b.page, b.line, why)
			continue
		}
		script := names.Replace(b.text)
		// What the manual has typed in: the first two are asked for at a terminal.
		script = strings.ReplaceAll(script, "--password-stdin", "--password-stdin <<<'correct horse battery'")
		script = strings.ReplaceAll(script, "--company 1 ", `--company "$(intumwa admin --json company list | sed -E 's/.*"company_id":([0-9]+).*/\1/')" `)
		limited, done := context.WithTimeout(t.Context(), time.Minute)
		command := exec.CommandContext(limited, bash, "-euo", "pipefail", "-c", script)
		command.Dir, command.Env = root, environment
		said, err := command.CombinedOutput()
		done()
		if err != nil {
			t.Errorf("%s:%d: %v\n%s\nsays\n%s", b.page, b.line, err, script, said)
		}
		// A block may have written the sample over it, as the manual wants.
		if err := os.WriteFile(s.config, config, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if said := regexp.MustCompile(`(?m)^.*(?:redis queue is not usable|NOPERM|NOAUTH|WRONGPASS).*$`).FindString(log.String()); said != "" {
		t.Errorf("the user that runbooks/redis-down.md makes is not enough: %s", said)
	}
	for word := range elsewhere {
		found := false
		for _, b := range list {
			found = found || strings.Contains(b.text, word)
		}
		if !found {
			t.Errorf("no block has %q any more", word)
		}
	}
}

func left(text string) string {
	for word, why := range elsewhere {
		if strings.Contains(text, word) {
			return why
		}
	}
	return ""
}

// programs makes a folder with the gateway under its name and what stands for the programs that are not here.
func programs(t *testing.T, s *shell) string {
	t.Helper()
	dir := t.TempDir()
	put := func(name, script string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/bash\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, it := range stand {
		if it.script != "" {
			put(name, it.script)
		}
	}
	backup, err := os.ReadFile("../../deployments/backup/intumwa-backup")
	if err != nil {
		t.Fatal(err)
	}
	put("intumwa-backup", string(backup))
	put("intumwa", fmt.Sprintf("export %s=1\nexec %q \"$@\"", asProgram, os.Args[0]))
	return dir
}

// send sends one message and answers its ULID.
func send(t *testing.T, api, token, sender string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+api+"/v1/sms",
		strings.NewReader(fmt.Sprintf(`{"phone_number":"+25761000000","sender":%q,"message":"Amahoro"}`, sender)))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": "application/json"} {
		request.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var sent struct{ ID string }
	if err := json.NewDecoder(answer.Body).Decode(&sent); err != nil || sent.ID == "" {
		t.Fatalf("%s, %v", answer.Status, err)
	}
	return sent.ID
}

// TestRestoreByTheManual: docs/backup.md, block by block, on a server of its own: after it the latest message is there, and
// no message_id comes a second time.
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
		if err := conn.QueryRow(ctx, `INSERT INTO messages (ulid, company_id, user_id, phone_number, sender, body, encoding, segments, test, carrier, status)
			VALUES (gen_random_uuid(), 1, 1, '+25771000001', 'S', 'x', 0, 1, true, 'leo', 1) RETURNING id`).Scan(&id); err != nil {
			t.Fatal(err)
		}
		return id
	}
	s := newShell(t, fmt.Sprintf("database: {url: %q}\n", server.URL()))
	shims := programs(t, s)
	for folder := shims; folder != os.TempDir() && folder != "/"; folder = filepath.Dir(folder) { // PostgreSQL's user goes there
		_ = os.Chmod(folder, 0o755)
	}
	// The server of this machine, for its service's manager.
	control := fmt.Sprintf("%q -D %q -w -t 60 -l %q -o \"-k %s -h ''\"", filepath.Join(filepath.Dir(postgres), "pg_ctl"), data, filepath.Join(dir, "server.log"), dir)
	manager := "#!/bin/bash\ncase \"$2\" in postgresql) ;; *) exit 0 ;; esac\n[ \"$1\" = start ] || " + control + " -m fast stop\n[ \"$1\" = stop ] || " + control + " start >/dev/null\n"
	if err := os.WriteFile(filepath.Join(shims, "systemctl"), []byte(manager), 0o755); err != nil {
		t.Fatal(err)
	}
	_ = conn.Close(ctx)
	server.Stop()
	environment := append(os.Environ(), "PATH="+shims+":"+os.Getenv("PATH"), "INTUMWA_CONFIG="+s.config, "PGHOST="+dir, "PGUSER=postgres", "BACKUPS="+filepath.Join(dir, "backup"))
	places := strings.NewReplacer("/var/lib/postgresql/15/main", data, "/backup", filepath.Join(dir, "backup"))
	sh := func(script string) {
		t.Helper()
		limited, done := context.WithTimeout(ctx, 2*time.Minute)
		defer done()
		command := exec.CommandContext(limited, bash, "-euo", "pipefail", "-c", places.Replace(script))
		command.Dir, command.Env = dir, environment
		if os.Geteuid() == 0 && !strings.HasPrefix(script, "intumwa ") { // as whom PostgreSQL runs
			command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}}
		}
		said, err := command.CombinedOutput()
		if err != nil {
			log, _ := os.ReadFile(filepath.Join(dir, "server.log"))
			t.Fatalf("%v\n%s\nsays\n%s\nand PostgreSQL\n%s", err, script, said, log[max(0, len(log)-1500):])
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
		if said, err := stop.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, said)
		}
	}()
	sh(find("alter system set archive_mode"))
	conn = connect()
	insert(conn)
	// It had a synchronous standby. This server does not read its settings again: only what is restored waits for that one.
	if _, err := conn.Exec(ctx, `ALTER SYSTEM SET synchronous_standby_names = 'gone'`); err != nil {
		t.Fatal(err)
	}
	sh(find("intumwa-backup base"))
	last := insert(conn) // after the backup, before the disaster: only its log has it
	_ = conn.Close(ctx)

	sh(find("intumwa-backup finish"))
	sh(find("intumwa admin restored"))
	conn = connect()
	var there bool
	if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM messages WHERE id = $1)`, last).Scan(&there); err != nil || !there {
		t.Errorf("the last message is gone: %v", err)
	}
	if next := insert(conn); next < last+10_000_000 {
		t.Errorf("after the restore the next message is %d; until then up to %d were given out, and perhaps more", next, last)
	}
	_ = conn.Close(ctx)
	// To a moment before: it has to stop there and go on from there. A base backup is older than that by a second.
	time.Sleep(1100 * time.Millisecond)
	var moment string
	conn = connect()
	if err := conn.QueryRow(ctx, `SELECT clock_timestamp()::text`).Scan(&moment); err != nil {
		t.Fatal(err)
	}
	gone := insert(conn)
	var later, timeline string
	if err := conn.QueryRow(ctx, `SELECT clock_timestamp()::text, timeline_id::text FROM pg_control_checkpoint()`).Scan(&later, &timeline); err != nil {
		t.Fatal(err)
	}
	insert(conn) // a commit behind it, at which the recovery sees that the time has come
	_ = conn.Close(ctx)
	earlier := strings.ReplaceAll(find("intumwa-backup restore '"), "2026-03-01 08:00:00+02", moment)
	restore := func(line string) {
		t.Helper()
		sh(strings.Replace(find("intumwa-backup finish"), "PGDATA=/var/lib/postgresql/15/main runuser -u postgres -- intumwa-backup restore\n", line, 1))
	}
	restore(earlier)
	conn = connect()
	if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM messages WHERE id = $1)`, gone).Scan(&there); err != nil || there {
		t.Errorf("what came after the moment is there: %v", err)
	}
	if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_file_settings WHERE name LIKE 'recovery_target%' OR name = 'restore_command')`).Scan(&there); err != nil || there {
		t.Errorf("the recovery's settings are left behind: %v", err)
	}
	_ = conn.Close(ctx)
	// That was too far back: what came between is on the timeline that this restore has left.
	restore(strings.NewReplacer("2026-03-01 08:20:00+02", later, "' 1\n", "' "+timeline+"\n").Replace(find("08:20:00+02")))
	conn = connect()
	if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM messages WHERE id = $1)`, gone).Scan(&there); err != nil || !there {
		t.Errorf("what came before the later moment is not there: %v", err)
	}
}
