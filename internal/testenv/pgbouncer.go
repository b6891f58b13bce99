package testenv

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

// PgBouncer is one of a test, with the configuration that is an operator's example
// (deployments/pgbouncer).
type PgBouncer struct {
	*Server

	port           int
	user, password string // of whom it lets in
	settings       []string
	cert, key      string // files, where it speaks TLS
}

// NewPgBouncer starts one before the database of a URL; its own URL leads to the same
// through it, with the same user and password ("none" where there is none). Settings
// are lines of its configuration, which win over the example's: "pool_mode = session". With
// "client_tls_sslmode = require" it has a certificate for localhost, and its URL insists on TLS.
func NewPgBouncer(t testing.TB, database string, settings ...string) *PgBouncer {
	t.Helper()
	program := Tool(t, "pgbouncer")
	b := &PgBouncer{port: freePort(), settings: settings}
	parsed, err := url.Parse(oneHost(database))
	if err != nil {
		t.Fatal("the database's URL cannot be read") // it may hold a password
	}
	b.user, b.password = parsed.User.Username(), "none"
	if password, has := parsed.User.Password(); has {
		b.password = password
	}
	if slices.Contains(settings, secured) {
		b.cert, b.key = Certificate(t)
	}
	b.Server = newServer(t, func() (*process, error) { return b.startAt(program, database, parsed.Path) })
	return b
}

const secured = "client_tls_sslmode = require"

// Lead has it lead to the database of another URL, as an operator does after a failover:
// sessions of the server before are closed when their transactions end. It lets in whom it
// let in before.
func (b *PgBouncer) Lead(database string) {
	b.t.Helper()
	err := b.configure(b.process.dir, database)
	if err == nil {
		err = b.process.signal(syscall.SIGHUP)
	}
	if err != nil {
		b.t.Fatalf("leading PgBouncer elsewhere: %v", err)
	}
}

func (b *PgBouncer) startAt(program, database, path string) (*process, error) {
	identity, err := unprivileged()
	if err != nil {
		return nil, err
	}
	dir, err := serverDir("intumwa-pgbouncer-", identity)
	if err != nil {
		return nil, err
	}
	if err := b.configure(dir, database); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	through := url.URL{Scheme: "postgres", User: url.UserPassword(b.user, b.password), Path: path,
		Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(b.port)), RawQuery: "sslmode=disable"}
	if b.cert != "" {
		through.RawQuery = "sslmode=require"
	}
	p := &process{
		name: "PgBouncer",
		dir:  dir,
		url:  through.String(),
		command: func() *exec.Cmd {
			cmd := exec.Command(program, filepath.Join(dir, "pgbouncer.ini"))
			cmd.Dir = dir
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: identity}
			return cmd
		},
		stop: syscall.SIGTERM,
		kill: syscall.SIGKILL,
	}
	p.ready = p.takesSessions
	if err := p.start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return p, nil
}

// severalHosts are a URL's first host with what is before it, and the others.
var severalHosts = regexp.MustCompile(`^([a-z]+://(?:[^/?#]*@)?[^/?#,@]*)(,[^/?#@]*)`)

// oneHost leaves the first of several hosts.
func oneHost(database string) string { return severalHosts.ReplaceAllString(database, "$1") }

// configure writes the example with a test's own addresses.
func (b *PgBouncer) configure(dir, database string) error {
	_, here, _, _ := runtime.Caller(0)
	example, err := os.ReadFile(filepath.Join(filepath.Dir(here), "..", "..", "deployments", "pgbouncer", "pgbouncer.ini"))
	if err != nil {
		return fmt.Errorf("reading the example: %w", err)
	}
	config, err := pgx.ParseConfig(oneHost(database))
	if err != nil {
		return errors.New("the database's URL cannot be read")
	}
	text := string(example)
	for name, value := range map[string]string{
		"intumwa":     fmt.Sprintf("host=%s port=%d dbname=%s", config.Host, config.Port, config.Database),
		"listen_port": strconv.Itoa(b.port),
		"auth_file":   filepath.Join(dir, "userlist.txt"),
	} {
		if text, err = withSetting(text, name, value); err != nil {
			return err
		}
	}
	if config.Database != "intumwa" {
		text = strings.Replace(text, "\nintumwa = ", "\n"+config.Database+" = ", 1)
	}
	text += "unix_socket_dir =\n" + strings.Join(b.settings, "\n") + "\n" // the last of a name counts
	identity, err := unprivileged()
	if err != nil {
		return err
	}
	files := map[string]string{"userlist.txt": fmt.Sprintf("%q %q\n", b.user, b.password)}
	for name, from := range map[string]string{"server.crt": b.cert, "server.key": b.key} {
		if from == "" {
			continue
		}
		content, err := os.ReadFile(from)
		if err != nil {
			return fmt.Errorf("reading its certificate: %w", err)
		}
		files[name] = string(content)
	}
	if b.cert != "" {
		text += "client_tls_cert_file = " + filepath.Join(dir, "server.crt") + "\nclient_tls_key_file = " + filepath.Join(dir, "server.key") + "\n"
	}
	files["pgbouncer.ini"] = text
	for name, text := range files {
		path := filepath.Join(dir, name)
		err := os.WriteFile(path, []byte(text), 0o600)
		if err == nil && identity != nil {
			err = os.Chown(path, int(identity.Uid), int(identity.Gid))
		}
		if err != nil {
			return fmt.Errorf("writing its configuration: %w", err)
		}
	}
	return nil
}

// withSetting is an INI file with another value of a name that it has once.
func withSetting(text, name, value string) (string, error) {
	line := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` = .*$`)
	if len(line.FindAllString(text, -1)) != 1 {
		return "", fmt.Errorf("the example does not have %s once", name)
	}
	return line.ReplaceAllLiteralString(text, name+" = "+value), nil
}
