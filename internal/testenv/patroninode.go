package testenv

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// PatroniNode is a PostgreSQL server with its Patroni. The embedded Server is Patroni: with Stop it also stops
// PostgreSQL; Freeze and Thaw are for both.
type PatroniNode struct {
	*Server
	Name string
	Data string // PostgreSQL's folder
	File string // Patroni's configuration

	port, rest int
}

// patroniFile is a node's configuration: etcd's interface, name, REST port, PostgreSQL's port, folder, programs,
// superuser, etcd.
const patroniFile = `scope: intumwa
name: %[2]s
%[1]s: {hosts: '%[8]s'}
restapi: {listen: '127.0.0.1:%[3]d', connect_address: '127.0.0.1:%[3]d'}
bootstrap:
  dcs:
    ttl: 20
    loop_wait: 5
    retry_timeout: 5
    synchronous_mode: true
    synchronous_mode_strict: true
    postgresql:
      use_pg_rewind: true
      parameters:
        max_connections: 200
        wal_retrieve_retry_interval: 500ms
        wal_keep_size: 512MB
        fsync: 'off'
  initdb: [{encoding: UTF8}, no-locale, data-checksums]
postgresql:
  listen: 127.0.0.1:%[4]d
  connect_address: 127.0.0.1:%[4]d
  data_dir: %[5]s/data
  bin_dir: %[6]s
  pgpass: %[5]s/pgpass
  authentication: {superuser: {username: %[7]s, password: none}, replication: {username: replicator, password: none}}
  parameters: {unix_socket_directories: %[5]s}
  pg_hba: [local all all trust, local replication all trust, host all all 127.0.0.1/32 trust, host replication all ` +
	`127.0.0.1/32 trust]
`

func (c *Patroni) start(n *PatroniNode, program string) {
	c.t.Helper()
	dir, run := c.private("intumwa-patroni-")
	n.Data, n.File = filepath.Join(dir, "data"), filepath.Join(dir, "patroni.yml")
	text := fmt.Sprintf(patroniFile, c.version, n.Name, n.rest, n.port, dir, c.Programs, superuser, c.etcd)
	if err := os.WriteFile(n.File, []byte(text), 0o644); err != nil { //nolint:gosec // another user reads it
		c.t.Fatal(err)
	}
	address := url.URL{Scheme: "postgres", User: url.User(superuser), Path: "/postgres",
		RawQuery: url.Values{"host": {"127.0.0.1"}, "port": {strconv.Itoa(n.port)}}.Encode()}
	p := &process{name: "Patroni", dir: dir, url: address.String(), stop: syscall.SIGTERM, kill: syscall.SIGTERM,
		command: func() *exec.Cmd { return run(program, n.File) }, beside: n.postmaster}
	p.ready = p.takesSessions
	n.Server = &Server{t: c.t, process: p, url: p.url}
	if err := p.start(); err != nil {
		c.t.Fatalf("starting a node of Patroni: %v", err)
	}
}

// postmaster is PostgreSQL's process, which is not a child of Patroni's; none: it does not run.
func (n *PatroniNode) postmaster() []int {
	text, err := os.ReadFile(filepath.Join(n.Data, "postmaster.pid"))
	if err != nil {
		return nil
	}
	pid, err := strconv.Atoi(strings.TrimSpace(strings.SplitN(string(text), "\n", 2)[0]))
	if err != nil {
		return nil
	}
	line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil || !strings.Contains(string(line), n.Data) {
		return nil // a file that a crash left
	}
	return []int{pid}
}

// Port is PostgreSQL's.
func (n *PatroniNode) Port() string { return strconv.Itoa(n.port) }

// Crash kills Patroni and PostgreSQL with SIGKILL.
func (n *PatroniNode) Crash() {
	n.t.Helper()
	if err := n.process.crash(); err != nil {
		n.t.Fatalf("killing a node of Patroni: %v", err)
	}
}

func (n *PatroniNode) remove() {
	if n.Server == nil {
		return
	}
	if n.process.running != nil {
		_ = n.process.crash() // it may be frozen or gone
	}
	n.process.remove()
}

// is reports whether a node has a role: /primary, /replica and /synchronous are for load balancers.
func (n *PatroniNode) is(role string) bool {
	ctx, cancel := context.WithTimeout(n.t.Context(), 2*time.Second)
	defer cancel()
	return answers(ctx, n.page(role)) == nil
}

// page is one of Patroni's REST interface.
func (n *PatroniNode) page(name string) string {
	return "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(n.rest)) + "/" + name
}
