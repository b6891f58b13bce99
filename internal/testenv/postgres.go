package testenv

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// superuser owns everything in a private PostgreSQL server.
const superuser = "intumwa"

// postgresNode describes one PostgreSQL server.
type postgresNode struct {
	port int    // 0: it listens only on a socket in its own directory
	of   string // URL of the primary of this standby; "" none
	name string // application_name at its primary
}

// startPostgres starts a private PostgreSQL server that listens only on a socket in its
// own directory.
func startPostgres() (*process, error) { return postgresNode{}.start() }

func (n postgresNode) start() (*process, error) {
	server, err := postgresBinary("postgres")
	if err != nil {
		return nil, err
	}
	identity, err := unprivileged()
	if err != nil {
		return nil, err
	}
	dir, err := serverDir("intumwa-pg-", identity)
	if err != nil {
		return nil, err
	}
	run := func(binary string, args ...string) *exec.Cmd {
		cmd := exec.Command(binary, args...)
		cmd.Dir = dir
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: identity}
		return cmd
	}
	data := filepath.Join(dir, "data")
	maker, args := "initdb", []string{"-D", data, "-U", superuser, "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"}
	if n.of != "" {
		maker, args = "pg_basebackup", []string{"-D", data, "-d", n.of + "&application_name=" + n.name, "-X", "stream", "-c",
			"fast", "-R", "--no-sync"}
	}
	if maker, err = postgresBinary(maker); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if out, err := run(maker, args...).CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("making a PostgreSQL data directory: %w\n%s", err, out), os.RemoveAll(dir))
	}
	if n.of != "" {
		// A promoted standby has no standby, so its commits must not wait for one.
		if err := appendLine(filepath.Join(data, "postgresql.auto.conf"), "synchronous_standby_names = ''"); err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
	}
	whole := url.URL{Scheme: "postgres", User: url.User(superuser), Path: "/postgres",
		RawQuery: url.Values{"host": {dir}}.Encode()}
	listen := []string{"-h", ""}
	if n.port != 0 {
		whole.RawQuery = url.Values{"host": {"127.0.0.1"}, "port": {strconv.Itoa(n.port)}}.Encode()
		listen = []string{"-h", "127.0.0.1", "-p", strconv.Itoa(n.port), "-c", "wal_keep_size=512MB", "-c", "hot_standby=on"}
	}
	p := &process{
		name: "PostgreSQL",
		dir:  dir,
		url:  whole.String(),
		command: func() *exec.Cmd {
			return run(server, append([]string{"-D", data, "-k", dir,
				"-c", "max_connections=400", "-c", "fsync=off", "-c", "max_wal_size=2GB"}, listen...)...)
		},
		stop: syscall.SIGINT,  // fast shutdown
		kill: syscall.SIGQUIT, // immediate shutdown: no checkpoint, recovery at the next start
	}
	p.ready = p.takesSessions
	if err := p.start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return p, nil
}

// takesSessions reports whether a PostgreSQL server, or a proxy of one, is ready.
func (p *process) takesSessions(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, p.url)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	return conn.Close(ctx)
}

func appendLine(file, line string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("setting up a server: %w", err)
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

// serverDir is a private directory, owned by the server's user, with a name that is short
// enough for a socket.
func serverDir(pattern string, identity *syscall.Credential) (string, error) {
	parent := os.TempDir()
	if len(parent) > 60 { // a socket's path ends at 103 bytes on some systems
		parent = "/tmp"
	}
	dir, err := os.MkdirTemp(parent, pattern)
	if err != nil {
		return "", fmt.Errorf("making a server's directory: %w", err)
	}
	if identity != nil {
		if err := os.Chown(dir, int(identity.Uid), int(identity.Gid)); err != nil {
			return "", errors.Join(fmt.Errorf("giving a server its directory: %w", err), os.RemoveAll(dir))
		}
	}
	return dir, nil
}

// unprivileged is PostgreSQL's user when the tests run as root, which PostgreSQL refuses;
// nil otherwise.
func unprivileged() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		account, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.ParseUint(account.Uid, 10, 32)
		gid, errGID := strconv.ParseUint(account.Gid, 10, 32)
		if err := errors.Join(errUID, errGID); err != nil {
			return nil, fmt.Errorf("reading the ids of user %s: %w", name, err)
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("PostgreSQL cannot run as root and there is no user postgres or nobody")
}

// postgresBinary finds a server program in PATH or in Debian's and Ubuntu's folders,
// newest version first.
func postgresBinary(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	found, newest := "", 0
	candidates, _ := filepath.Glob(filepath.Join("/usr/lib/postgresql/*/bin", name)) // fails on a bad pattern only
	for _, path := range candidates {
		version, err := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
		if err == nil && version > newest {
			found, newest = path, version
		}
	}
	if found == "" {
		return "", fmt.Errorf("%s not found in PATH nor under /usr/lib/postgresql: run scripts/deps.sh", name)
	}
	return found, nil
}

// within bounds an administrative statement of a test.
func within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), time.Minute)
}
