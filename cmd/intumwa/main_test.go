package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/configs"
	"intumwa/dispatcher"
	"intumwa/dispatcher/profile"
	"intumwa/dispatcher/setup"
	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
	"intumwa/smpp"
)

// asProgram is the variable that makes the test binary run as intumwa, for tests that
// need a process.
const asProgram = "INTUMWA_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	for _, assignment := range os.Environ() { // no variables of the developer's installation
		name, _, _ := strings.Cut(assignment, "=")
		if strings.HasPrefix(name, "INTUMWA_") && !strings.HasPrefix(name, "INTUMWA_TEST_") {
			_ = os.Unsetenv(name)
		}
	}
	testenv.Parallel(4)
	testenv.Main(m)
}

// shell runs command lines on one configuration file.
type shell struct {
	t      *testing.T
	config string
	open   *pgxpool.Pool // see pool
}

func newShell(t *testing.T, config string) *shell {
	t.Helper()
	path := filepath.Join(t.TempDir(), "intumwa.yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return &shell{t: t, config: path}
}

// newAdmin is a shell on a database of its own, beside which other tests run.
func newAdmin(t *testing.T) *shell {
	t.Helper()
	t.Parallel()
	return newShellOn(t, testenv.Database(t))
}

// newAdminOf is newAdmin with the carrier leo.
func newAdminOf(t *testing.T) *shell {
	t.Helper()
	t.Parallel()
	return newShell(t, fmt.Sprintf(`database: {url: %q}
webhooks: {allow_private: true}
carriers: [{name: leo, default: true, links: [{name: leo-1, address: "127.0.0.1:1", system_id: a, password: b}]}]
`, testenv.Database(t)))
}

func newShellOn(t *testing.T, database string) *shell {
	t.Helper()
	return newShell(t, fmt.Sprintf("database: {url: %q}\nwebhooks: {allow_private: true}\n", database))
}

func (s *shell) run(stdin string, args ...string) (code int, stdout, stderr string) {
	s.t.Helper()
	var out, errs bytes.Buffer
	code = run(s.t.Context(), append(args, "--config", s.config), strings.NewReader(stdin), &out, &errs)
	return code, out.String(), ownVariables.ReplaceAllString(errs.String(), "")
}

// ownVariables matches the warnings about the tests' own variables.
var ownVariables = regexp.MustCompile(`(?m)^intumwa: warning: INTUMWA_TEST_.*\n`)

// admin runs an admin command with --json and expects exactly these keys in its object.
func (s *shell) admin(stdin, keys string, args ...string) map[string]any {
	s.t.Helper()
	code, stdout, stderr := s.run(stdin, append(append([]string{"admin"}, args...), "--json")...)
	if code != exitOK || stderr != "" {
		s.t.Fatalf("%v: exit code %d, stderr %q", args, code, stderr)
	}
	var object map[string]any
	if err := json.Unmarshal([]byte(stdout), &object); err != nil || strings.Count(stdout, "\n") != 1 {
		s.t.Fatalf("%v: not one JSON object on a line: %q (%v)", args, stdout, err)
	}
	want := strings.Fields(keys)
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(object)); !slices.Equal(got, want) {
		s.t.Errorf("%v: keys %v, want %v", args, got, want)
	}
	return object
}

// refused expects a failure whose reason is on stderr, and nothing on stdout.
func (s *shell) refused(reason, stdin string, args ...string) {
	s.t.Helper()
	code, stdout, stderr := s.run(stdin, args...)
	if code == exitOK || stdout != "" || !strings.Contains(stderr, reason) {
		s.t.Errorf("%v: exit code %d, stdout %q, stderr %q, want the reason %q", args, code, stdout, stderr, reason)
	}
}

// number formats a JSON number as an argument.
func number(v any) string { return fmt.Sprint(v) }

// databaseOf is the database of a shell's configuration.
func databaseOf(t *testing.T, s *shell) string {
	t.Helper()
	c, err := configs.Load(s.config, nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(c.Database.URL)
}

// pool connects to that database.
func (s *shell) pool() *pgxpool.Pool {
	s.t.Helper()
	if s.open == nil {
		var err error
		if s.open, err = postgres.Open(s.t.Context(), databaseOf(s.t, s),
			postgres.Options{MaxConns: 4, BatchUpdates: true}); err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(s.open.Close)
	}
	return s.open
}

func (s *shell) exec(statement string, args ...any) {
	s.t.Helper()
	if _, err := s.pool().Exec(s.t.Context(), statement, args...); err != nil {
		s.t.Fatal(err)
	}
}

// holds expects a query's number.
func (s *shell) holds(query string, want int) {
	s.t.Helper()
	var n int
	if err := s.pool().QueryRow(s.t.Context(), query).Scan(&n); err != nil || n != want {
		s.t.Errorf("%s: %d, %v; want %d", query, n, err, want)
	}
}

func TestUsage(t *testing.T) {
	t.Setenv("PATH", "") // no intumwa-dev
	for _, try := range []struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		{[]string{"--help"}, exitOK, "carrier-sim", ""},
		{[]string{"admin", "company", "set", "--help"}, exitOK, "--smart-encoding", ""},
		{nil, exitUsage, "", "intumwa: expected one of"},
		{[]string{"sreve"}, exitUsage, "", "intumwa: unexpected argument sreve"},
		{[]string{"version", "--nonsense"}, exitUsage, "", "intumwa: unknown flag --nonsense"},
		{[]string{"version"}, exitOK, "intumwa " + version, ""},
		{[]string{"config", "sample"}, exitOK, "test_sender: INTUMWATEST", ""},
		{[]string{"carrier-sim", "--fates"}, exitError, "", "the carrier simulator is in intumwa-dev"},
		{[]string{"config", "check", "--config", "/nowhere.yaml"}, exitError, "",
			"there is no configuration file /nowhere.yaml"},
	} {
		var stdout, stderr bytes.Buffer
		code := run(context.Background(), try.args, strings.NewReader(""), &stdout, &stderr)
		if code != try.code || !strings.Contains(stdout.String(), try.stdout) ||
			!strings.Contains(stderr.String(), try.stderr) ||
			try.code != exitOK && stdout.Len() > 0 || try.code == exitOK && stderr.Len() > 0 {
			t.Errorf("%v: exit code %d\nstdout %q\nstderr %q", try.args, code, &stdout, &stderr)
		}
	}
}

func TestConfigCheck(t *testing.T) {
	if code, stdout, stderr := newShell(t, configs.Sample).run("", "config", "check"); code != exitOK ||
		!strings.Contains(stdout, "is sound") ||
		strings.Count(stderr, "\n") != 2 || !strings.HasPrefix(stderr, "intumwa: warning: accounts.otp_key (line ") ||
		!strings.Contains(stderr, "\nintumwa: warning: encryption_key (line ") {
		t.Errorf("the sample: %d %q %q", code, stdout, stderr)
	}
	// Unknown keys and invalid values are reported together.
	code, stdout, stderr := newShell(t, "api: {listn: x, listen: y}\ncarriers: [{name: a, links: []}]\n").run(
		"", "config", "check")
	if code != exitError || stdout != "" {
		t.Errorf("exit code %d, stdout %q", code, stdout)
	}
	for _, want := range []string{
		"api.listn (line 1): unknown key\n",
		"api.listen (line 1): must be host:port",
		"database.url: is required\n",
		"redis.url: is required",
		"carriers[0].links (line 2): needs at least one item\n",
	} {
		if !strings.Contains(stderr, want) {
			t.Errorf("%q is missing:\n%s", want, stderr)
		}
	}
	newShell(t, "a: [").refused("line 1", "", "config", "check")

	t.Setenv("INTUMWA_API_LISTN", "x")
	if code, _, stderr := newShell(t, configs.Sample).run("", "config", "check"); code != exitOK ||
		!strings.Contains(stderr, "warning: INTUMWA_API_LISTN") {
		t.Errorf("a misspelt variable: %d %q", code, stderr)
	}
}

// TestStaticTags: config check and the dispatcher refuse the same tags.
func TestStaticTags(t *testing.T) {
	d, err := dispatcher.New(nil, nil, nil, nil, setup.Options{})
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for tag := range 1 << 16 {
		c := configs.Carrier{Name: "leo", TLVs: map[string]string{fmt.Sprint(tag): "abc"}, UserReference: true}
		_, checked := c.StaticTLVs()
		served := d.Check(
			[]setup.Carrier{{Name: "leo", Profile: profile.Profile{TLVs: []smpp.TLV{{Tag: uint16(tag), Value: []byte("abc")}}}}})
		if (checked == nil) != (served == nil) {
			t.Errorf("%#04x: config check: %v, serve: %v", tag, checked, served)
		}
		if served != nil {
			refused++
		}
	}
	if refused == 0 {
		t.Error("none is refused")
	}
}

func TestMigrate(t *testing.T) {
	s := newAdmin(t)
	conn, err := pgx.Connect(t.Context(), databaseOf(t, s))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), `drop schema public cascade; create schema public`); err != nil {
		t.Fatal(err)
	}
	create := []string{"admin", "user", "create", "--email", "a@example.com", "--name", "A", "--password-stdin"}
	s.refused("schema", "secret", create...)
	for _, want := range []string{"the schema is migrated to version ", "nothing to do: the schema is at version "} {
		if code, stdout, stderr := s.run("", "migrate"); code != exitOK || !strings.HasPrefix(stdout, want) {
			t.Fatalf("migrate: %d %q %q, want %s", code, stdout, stderr, want)
		}
	}
	if code, _, stderr := s.run("secret", create...); code != exitOK {
		t.Errorf("after migrate: %d %q", code, stderr)
	}
	newShell(t, "redis: {prefix: x}").refused("database.url: is required", "", "migrate")
	newShell(t, "database: {url: 'postgres://u:canary@127.0.0.1:1/d'}").refused("opening the database", "", "admin",
		"links")
}

// The file's path and its keys can come from the environment.
func TestConfigFromTheEnvironment(t *testing.T) {
	s := newShell(t, "database: {url: 'postgres://nowhere:1/d'}")
	t.Setenv("INTUMWA_CONFIG", s.config)
	t.Setenv("INTUMWA_DATABASE_URL", testenv.Database(t))
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"admin", "links", "--json"}, strings.NewReader(""), &stdout,
		&stderr); code != exitOK {
		t.Errorf("%s", fmt.Sprint(code, stdout.String(), stderr.String()))
	}
}
