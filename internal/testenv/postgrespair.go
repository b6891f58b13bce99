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

	"intumwa/tools/rig"
)

// PostgresPair is a PostgreSQL server of one test with a synchronous standby. Its methods
// are for one goroutine at a time and fail the test if they fail.
type PostgresPair struct {
	Primary, Standby *Server

	t     testing.TB
	ports [2]int
	made  int
}

// NewPostgresPair starts both. The database is named intumwa and migrated.
func NewPostgresPair(t testing.TB) *PostgresPair {
	t.Helper()
	p := &PostgresPair{t: t, ports: [2]int{rig.FreePort(), rig.FreePort()}}
	// Both end together, after their users: a standby made during the test may be the
	// primary by then, and its own cleanup would run too early.
	t.Cleanup(func() {
		for _, s := range []*Server{p.Primary, p.Standby} {
			if s != nil {
				s.process.remove()
			}
		}
	})
	p.Primary = p.start(postgresNode{port: p.ports[0]})
	migrated(t, &Server{t: t, url: p.Primary.url})
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

// URL lists both servers in their original order.
func (p *PostgresPair) URL(password string) string {
	var hosts []string
	for _, port := range p.ports {
		hosts = append(hosts, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	}
	return fmt.Sprintf("postgres://%s@%s/intumwa?sslmode=disable", url.UserPassword(superuser, password),
		strings.Join(hosts, ","))
}

// Crash kills every process of the primary with SIGKILL.
func (p *PostgresPair) Crash() {
	p.t.Helper()
	if err := p.Primary.process.crash(); err != nil {
		p.t.Fatalf("killing the primary: %v", err)
	}
}

// Promote makes the standby the primary, without a standby of its own, and returns when
// it accepts writes. The old primary becomes Standby and follows no server.
func (p *PostgresPair) Promote() {
	p.t.Helper()
	if err := execute(p.Standby.url, "SELECT pg_promote()"); err != nil {
		p.t.Fatalf("promoting the standby: %v", err)
	}
	p.Primary, p.Standby = p.Standby, p.Primary
}

// exec runs statements on the primary.
func (p *PostgresPair) exec(statements ...string) {
	p.t.Helper()
	for _, statement := range statements {
		if err := execute(p.Primary.url, statement); err != nil {
			p.t.Fatalf("%s: %v", statement, err)
		}
	}
}

// Follow replaces the old standby with a new one, and makes the primary's commits wait
// for it.
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
	p.exec("ALTER SYSTEM SET synchronous_standby_names = '"+name+"'", "SELECT pg_reload_conf()")
	p.until("SELECT EXISTS (SELECT FROM pg_stat_replication WHERE application_name = $1 AND sync_state = 'sync')", name)
}

// until waits until a query on the primary returns true.
func (p *PostgresPair) until(query string, args ...any) {
	p.t.Helper()
	if err := connected(p.Primary.url, func(ctx context.Context, conn *pgx.Conn) (err error) {
		for holds := false; !holds && err == nil; time.Sleep(20 * time.Millisecond) {
			err = conn.QueryRow(ctx, query, args...).Scan(&holds)
		}
		return err
	}); err != nil {
		p.t.Fatalf("waiting for the standby: %v", err)
	}
}
