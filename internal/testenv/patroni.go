package testenv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/tools/rig"
)

// Patroni is a cluster of one test: PostgreSQL servers under the distribution's Patroni, in strict synchronous mode
// with short times, and one etcd. Its methods are for one goroutine at a time and fail the test if they fail.
type Patroni struct {
	Nodes    []*PatroniNode
	Etcd     *Server
	Programs string // PostgreSQL's folder

	t       testing.TB
	ctl     string // patronictl
	version string // of etcd's interface, as Patroni calls it
	etcd    string // host:port
}

// patroniWithin bounds what Patroni does by itself, on a busy machine too.
const patroniWithin = 3 * time.Minute

// NewPatroni starts a cluster of three nodes. The database is named intumwa and migrated.
func NewPatroni(t testing.TB) *Patroni {
	t.Helper()
	program, ctl, etcd := Tool(t, "patroni"), Tool(t, "patronictl"), Tool(t, "etcd")
	server, err := postgresBinary("initdb")
	if err != nil {
		t.Fatal(err)
	}
	if server, err = filepath.EvalSymlinks(server); err != nil {
		t.Fatal(err)
	}
	c := &Patroni{t: t, ctl: ctl, Programs: filepath.Dir(server)}
	// Up to 3.0.2 a leader that wakes up may take the lock of its successor through version 3
	// (https://github.com/patroni/patroni/pull/2689).
	if text, err := exec.CommandContext(t.Context(), program, "--version").Output(); err != nil {
		t.Fatal(err)
	} else if c.version = "etcd3"; slices.Contains([]string{"3.0.0", "3.0.1", "3.0.2"},
		strings.TrimSpace(strings.TrimPrefix(string(text), "patroni "))) {
		c.version = "etcd"
	}
	c.startEtcd(etcd, rig.FreePort(), rig.FreePort())
	// All end together: a node that lost its leader would otherwise be busy.
	t.Cleanup(func() {
		for _, n := range c.Nodes {
			if t.Failed() && n.Server != nil {
				t.Logf("the log of %s ends with:\n%s", n.Name, n.process.logTail())
			}
			n.remove()
		}
	})
	for i := range 3 {
		n := &PatroniNode{Name: "n" + strconv.Itoa(i+1), port: rig.FreePort(), rest: rig.FreePort()}
		c.Nodes = append(c.Nodes, n)
		c.start(n, program)
	}
	c.Healthy() // earlier, commits wait for a standby
	migrated(t, &Server{t: t, url: c.Leader().url})
	return c
}

// private makes the folder of one program, and a way to run it there.
func (c *Patroni) private(pattern string) (dir string, run func(binary string, args ...string) *exec.Cmd) {
	c.t.Helper()
	identity, err := unprivileged()
	if err != nil {
		c.t.Fatal(err)
	}
	if dir, err = serverDir(pattern, identity); err != nil {
		c.t.Fatal(err)
	}
	return dir, func(binary string, args ...string) *exec.Cmd {
		cmd := exec.Command(binary, args...)
		cmd.Dir = dir
		cmd.Env = []string{"PATH=" + c.Programs + ":" + os.Getenv("PATH"), "HOME=" + dir, "LC_ALL=C.UTF-8", "TZ=UTC"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: identity}
		return cmd
	}
}

func (c *Patroni) startEtcd(program string, clients, peers int) {
	c.t.Helper()
	dir, run := c.private("intumwa-etcd-")
	c.etcd = net.JoinHostPort("127.0.0.1", strconv.Itoa(clients))
	client, peer := "http://"+c.etcd, "http://"+net.JoinHostPort("127.0.0.1", strconv.Itoa(peers))
	p := &process{name: "etcd", dir: dir, stop: syscall.SIGTERM, kill: syscall.SIGKILL, command: func() *exec.Cmd {
		args := []string{"--data-dir", filepath.Join(dir, "data"), "--listen-client-urls", client, "--advertise-client-urls",
			client,
			"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default=" + peer}
		if c.version == "etcd" {
			args = append(args, "--enable-v2")
		}
		return run(program, args...)
	}, ready: func(ctx context.Context) error { return answers(ctx, client+"/health") }}
	if err := p.start(); err != nil {
		c.t.Fatalf("starting etcd: %v", err)
	}
	c.t.Cleanup(p.remove)
	c.Etcd = &Server{t: c.t, process: p}
}

// answers returns nil if a page answers 200.
func answers(ctx context.Context, page string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return fmt.Errorf("asking: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("asking: %w", err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(page + " answers " + response.Status)
	}
	return nil
}

// URL lists all nodes.
func (c *Patroni) URL(password string) string {
	var hosts []string
	for _, n := range c.Nodes {
		hosts = append(hosts, net.JoinHostPort("127.0.0.1", strconv.Itoa(n.port)))
	}
	return fmt.Sprintf("postgres://%s@%s/intumwa?sslmode=disable", url.UserPassword(superuser, password),
		strings.Join(hosts, ","))
}

// Ctl runs patronictl and returns its output.
func (c *Patroni) Ctl(args ...string) string {
	c.t.Helper()
	return c.ctlWith("", args...)
}

func (c *Patroni) ctlWith(input string, args ...string) string {
	c.t.Helper()
	command := exec.CommandContext(c.t.Context(), c.ctl, append([]string{"-c", c.Nodes[0].File}, args...)...)
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8", "PAGER=cat", "HOME=" + os.TempDir()}
	command.Stdin = strings.NewReader(input)
	output, err := command.CombinedOutput()
	if err != nil {
		c.t.Fatalf("patronictl %v: %v\n%s", args, err, output)
	}
	return string(output)
}

// Set changes keys of the cluster's configuration, as "synchronous_mode=false".
func (c *Patroni) Set(keys ...string) {
	c.t.Helper()
	args := []string{"edit-config", "--force"}
	for _, key := range keys {
		args = append(args, "-s", key)
	}
	c.Ctl(args...)
}

// Remove deletes what etcd has about the cluster. No Patroni runs.
func (c *Patroni) Remove() {
	c.t.Helper()
	c.ctlWith("intumwa\nYes I am aware\n", "remove", "intumwa")
}

// Leader is the node that Patroni's REST interface calls the primary; nil: none.
func (c *Patroni) Leader() *PatroniNode {
	for _, n := range c.Nodes {
		if n.is("primary") {
			return n
		}
	}
	return nil
}

// Synchronous is the node for which commits wait.
func (c *Patroni) Synchronous() *PatroniNode {
	c.t.Helper()
	i := slices.IndexFunc(c.Nodes, func(n *PatroniNode) bool { return n.is("synchronous") })
	if i < 0 {
		c.t.Fatal("no node is the synchronous standby")
	}
	return c.Nodes[i]
}

// Healthy waits until one node leads, all others stream from it, and commits wait for one of them.
func (c *Patroni) Healthy() {
	c.t.Helper()
	var last error
	for deadline := time.Now().Add(patroniWithin); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		if last = c.healthy(); last == nil {
			return
		}
	}
	c.t.Fatalf("the cluster is not healthy within %v: %v", patroniWithin, last)
}

func (c *Patroni) healthy() error {
	leader := c.Leader()
	if leader == nil {
		return errors.New("no node leads")
	}
	// PostgreSQL waits for a standby a few seconds before Patroni would promote it.
	if !slices.ContainsFunc(c.Nodes, func(n *PatroniNode) bool { return n.is("synchronous") }) {
		return errors.New("no node is the synchronous standby")
	}
	return connected(leader.url, func(ctx context.Context, conn *pgx.Conn) error {
		var streaming, safe int
		var names string
		if err := conn.QueryRow(ctx, `SELECT count(*) FILTER (WHERE state = 'streaming'),
			count(*) FILTER (WHERE sync_state = 'sync'),
			current_setting('synchronous_standby_names') FROM pg_stat_replication`).Scan(&streaming, &safe, &names); err != nil {
			return fmt.Errorf("looking at the standbys: %w", err)
		}
		if streaming != len(c.Nodes)-1 || safe != 1 || names == "*" {
			state, _ := json.Marshal(map[string]any{"streaming": streaming, "sync": safe, "synchronous_standby_names": names})
			return errors.New(string(state))
		}
		return nil
	})
}

// Failsafe reports whether the leader knows all nodes that may keep it without etcd.
func (c *Patroni) Failsafe() bool {
	c.t.Helper()
	leader := c.Leader()
	if leader == nil {
		return false
	}
	client := http.Client{Timeout: 2 * time.Second}
	response, err := client.Get(leader.page("failsafe"))
	if err != nil {
		return false
	}
	defer response.Body.Close()
	var members map[string]string
	return json.NewDecoder(response.Body).Decode(&members) == nil && len(members) == len(c.Nodes)
}
