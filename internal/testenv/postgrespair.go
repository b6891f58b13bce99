package testenv

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
)

// PostgresPair is a PostgreSQL server of one test with a standby that every commit waits
// for. Its methods are for one goroutine at a time and fail the test when they cannot
// do what they say.
type PostgresPair struct {
	Primary, Standby *Server

	t     testing.TB
	ports [2]int
	made  int
}

// NewPostgresPair starts both. The database is named intumwa, and migrated.
func NewPostgresPair(t testing.TB) *PostgresPair {
	t.Helper()
	p := &PostgresPair{t: t}
	p.ports[0] = freePort()
	for p.ports[1] = freePort(); p.ports[1] == p.ports[0]; {
		p.ports[1] = freePort()
	}
	// Together, and when what uses them is over: one that was made amid the test would go
	// before, and may be the primary by then.
	t.Cleanup(func() {
		for _, s := range []*Server{p.Primary, p.Standby} {
			if s != nil {
				s.process.remove()
			}
		}
	})
	p.Primary = p.start(postgresNode{port: p.ports[0]})
	if err := execute(p.Primary.url, "CREATE DATABASE intumwa"); err != nil {
		t.Fatalf("making the database: %v", err)
	}
	ctx, cancel := within()
	defer cancel()
	if _, err := postgres.Migrate(ctx, inDatabase(p.Primary.url, "intumwa")); err != nil {
		t.Fatalf("migrating the database: %v", err)
	}
	p.Follow()
	return p
}

func (p *PostgresPair) start(node postgresNode) *Server {
	p.t.Helper()
	process, err := node.start()
	if err != nil {
		p.t.Fatalf("starting a private server: %v", err)
	}
	return &Server{t: p.t, process: process, url: process.url}
}

// URL leads to both, in the order in which they were made first.
func (p *PostgresPair) URL(password string) string {
	var hosts []string
	for _, port := range p.ports {
		hosts = append(hosts, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	}
	return fmt.Sprintf("postgres://%s@%s/intumwa?sslmode=disable", url.UserPassword(superuser, password), strings.Join(hosts, ","))
}

// Crash is kill -9 to every process of the primary.
func (p *PostgresPair) Crash() {
	p.t.Helper()
	if err := p.Primary.process.crash(); err != nil {
		p.t.Fatalf("killing the primary: %v", err)
	}
}

// Promote makes the standby the primary, which waits for no standby, and returns when it
// can be written to. The old primary is the Standby from now on, and follows nobody.
func (p *PostgresPair) Promote() {
	p.t.Helper()
	if err := execute(p.Standby.url, "SELECT pg_promote()"); err != nil {
		p.t.Fatalf("promoting the standby: %v", err)
	}
	p.Primary, p.Standby = p.Standby, p.Primary
}

// Unsynchronized has no commit wait for the standby any more.
func (p *PostgresPair) Unsynchronized() {
	p.t.Helper()
	p.tell("ALTER SYSTEM SET synchronous_standby_names = ''", "SELECT pg_reload_conf()")
}

// CatchUp waits until the standby keeps all that the primary has written by now.
func (p *PostgresPair) CatchUp() {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, p.Primary.url)
	if err != nil {
		p.t.Fatalf("asking the primary: %v", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var end string
	if err := conn.QueryRow(ctx, `SELECT pg_current_wal_lsn()::text`).Scan(&end); err != nil {
		p.t.Fatalf("asking the primary: %v", err)
	}
	for kept := false; !kept; time.Sleep(10 * time.Millisecond) {
		if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_stat_replication WHERE flush_lsn >= $1::text::pg_lsn)`, end).Scan(&kept); err != nil {
			p.t.Fatalf("the standby does not catch up: %v", err)
		}
	}
}

// FallBehind freezes the standby, and sees to it that nothing more of what the primary
// writes is on its way there.
func (p *PostgresPair) FallBehind() {
	p.t.Helper()
	p.Standby.Freeze()
	p.tell("SELECT pg_terminate_backend(pid) FROM pg_stat_replication")
}

// tell has the primary run statements.
func (p *PostgresPair) tell(statements ...string) {
	p.t.Helper()
	for _, statement := range statements {
		if err := execute(p.Primary.url, statement); err != nil {
			p.t.Fatalf("%s: %v", statement, err)
		}
	}
}

// Follow makes a new standby in place of the old one, which is ended, and has every
// commit of the primary wait for it.
func (p *PostgresPair) Follow() {
	p.t.Helper()
	at := p.ports[1]
	if p.Standby != nil {
		p.Standby.process.remove()
		if strings.Contains(p.Primary.url, "port="+strconv.Itoa(at)) {
			at = p.ports[0]
		}
	}
	p.made++
	name := "standby_" + strconv.Itoa(p.made)
	p.Standby = p.start(postgresNode{port: at, of: p.Primary.url, name: name})
	for _, statement := range []string{"ALTER SYSTEM SET synchronous_standby_names = '" + name + "'", "SELECT pg_reload_conf()"} {
		if err := execute(p.Primary.url, statement); err != nil {
			p.t.Fatalf("having commits wait for the standby: %v", err)
		}
	}
	ctx, cancel := within()
	defer cancel()
	conn, err := pgx.Connect(ctx, p.Primary.url)
	if err != nil {
		p.t.Fatalf("asking for the standby: %v", err)
	}
	defer conn.Close(ctx)
	for state := ""; state != "sync"; time.Sleep(20 * time.Millisecond) {
		if err := conn.QueryRow(ctx, "SELECT coalesce(max(sync_state), '') FROM pg_stat_replication WHERE application_name = $1", name).Scan(&state); err != nil {
			p.t.Fatalf("asking for the standby: %v", err)
		}
	}
}
