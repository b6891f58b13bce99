package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/redis/go-redis/v9"

	"intumwa/configs"
	"intumwa/internal/testenv"
	"intumwa/tools/carriersim"
	"intumwa/tools/rig"
)

// safeBuffer is a log that a running process writes.
type safeBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// playCarrier runs a carrier simulator and returns its address. With a password it accepts only the system_id
// demo.
func playCarrier(t *testing.T, name, password string) (*carriersim.Carrier, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	options := carriersim.Options{Name: name, Seed: 7}
	if password != "" {
		options.SystemID, options.Password = "demo", password
	}
	carrier := carriersim.New(options)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = carrier.Serve(ctx, listener)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return carrier, listener.Addr().String()
}

// serve runs the gateway in this process until the test ends, and returns its log.
func (s *shell) serve(roles string) *safeBuffer {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	log, ended := new(safeBuffer), make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"serve", "--roles", roles, "--config", s.config}, strings.NewReader(""), log, log)
	}()
	s.t.Cleanup(func() {
		cancel()
		if code := <-ended; code != exitOK {
			s.t.Errorf("serve ended with %d", code)
		}
		if s.t.Failed() {
			s.t.Logf("log:\n%s", log.String())
		}
	})
	return log
}

// has waits for a text in the log.
func (b *safeBuffer) has(t *testing.T, text string) {
	t.Helper()
	eventually(t, text, func() bool { return strings.Contains(b.String(), text) })
}

// hangUp sends SIGHUP to this process.
func hangUp(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
}

// TestReload: at SIGHUP a running process applies changed carriers and keeps
// unchanged binds; a file with a mistake changes nothing. Links of a new
// carrier can be traced, and its MO messages listed.
//
// Source: rule choices 7.11, 7.12.
func TestReload(t *testing.T) {
	leo, leoAt := playCarrier(t, "leo", "")
	lumitel, lumitelAt := playCarrier(t, "lumitel", "")
	rdb, prefix := testenv.Redis(t)
	base := fmt.Sprintf("database: {url: %q}\nredis: {url: %q, prefix: %q}\napi: {listen: %q}\nops: {listen: "+
		"%q}\ndashboard: {listen: %q}\naccounts: {otp_key: 0123456789abcdef0123456789abcdef}\n",
		testenv.Database(t), redisURL(rdb), prefix, rig.FreeAddress(), rig.FreeAddress(), rig.FreeAddress())
	carrier := func(name, address, prefixes string, tps int) string {
		return fmt.Sprintf("  - {name: %s, prefixes: [%s], links: [{name: %s-1, address: %q, system_id: demo, password: "+
			"demo, tps: %d}]}\n", name, prefixes, name, address, tps)
	}
	s := newShell(t, base+"carriers:\n"+carrier("leo", leoAt, `"71"`, 100))
	write := func(config string) {
		t.Helper()
		if err := os.WriteFile(s.config, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	log := s.serve(strings.Join(configs.Roles, ","))
	log.has(t, "event=ready")
	eventually(t, "leo is bound", func() bool { return leo.Stats().Sessions == 1 })

	// A second carrier, and another rate for the first.
	write(base + "carriers:\n" + carrier("leo", leoAt, `"71"`, 50) + carrier("lumitel", lumitelAt, `"61", "63"`, 100))
	hangUp(t)
	eventually(t, "lumitel is bound", func() bool { return lumitel.Stats().Sessions == 1 })
	log.has(t, "event=configuration_reloaded")
	if n := leo.Stats().Binds; n != 1 {
		t.Errorf("leo was bound %d times", n)
	}
	// A file with mistakes changes nothing; all of them are logged.
	write(base + "carriers:\n" + carrier("leo", leoAt, `"7x"`, -1))
	hangUp(t)
	log.has(t, "event=reload_refused")
	for _, mistake := range []string{"carriers[0].prefixes[0]", "carriers[0].links[0].tps"} {
		if !strings.Contains(log.String(), mistake) {
			t.Errorf("the log does not name %s", mistake)
		}
	}
	// Keys that need a restart are logged.
	write(strings.Replace(base, "otp_key: 0123456789abcdef0123456789abcdef",
		"otp_key: 0123456789abcdef0123456789abcdef, test_quota: 9", 1) + "carriers:\n" +
		carrier("lumitel", lumitelAt, `"61", "63"`, 100))
	hangUp(t)
	eventually(t, "leo is gone", func() bool { return leo.Stats().Sessions == 0 && leo.Stats().Unbinds == 1 })
	log.has(t, "accounts.test_quota")
	if st := lumitel.Stats(); st.Sessions != 1 || st.Binds != 1 {
		t.Errorf("lumitel has %d sessions after %d binds", st.Sessions, st.Binds)
	}

	eventually(t, "the links are listed", func() bool {
		code, out, _ := s.run("", "admin", "links", "--json")
		return code == exitOK && strings.Contains(out, `"lumitel-1"`) && !strings.Contains(out, `"leo-1"`)
	})
	// The link is paused and resumed; resume prints the true state at once.
	s.admin("", "link state", "link", "pause", "--name", "lumitel-1")
	pool := s.pool()
	eventually(t, "its dispatcher reports the pause", func() (paused bool) {
		err := pool.QueryRow(t.Context(), `select state = 'paused' from links where name = 'lumitel-1'`).Scan(&paused)
		return err == nil && paused
	})
	if got := s.admin("", "link state", "link", "resume", "--name", "lumitel-1"); got["state"] != "bound" {
		t.Errorf("resume: %v", got)
	}
	if _, out, _ := s.run("", "admin", "links", "--json"); !strings.Contains(out, `"state":"bound"`) {
		t.Errorf("links after resume: %s", out)
	}

	// A trace of the link, and MO messages.
	traced := make(chan string, 1)
	go func() {
		_, out, _ := s.run("", "admin", "link", "trace", "--name", "lumitel-1", "--seconds", "2")
		traced <- out
	}()
	var out string
	for tracing := true; tracing; { // "traced" is logged before the trace begins
		if err := lumitel.SendMO(carriersim.MO{From: "25761000001", To: "DEMO", Text: "Yego ni meza"}); err != nil {
			t.Fatal(err)
		}
		select {
		case out = <-traced:
			tracing = false
		case <-time.After(100 * time.Millisecond):
		}
	}
	lines := bufio.NewScanner(strings.NewReader(out))
	commands := map[string]bool{}
	for lines.Scan() {
		var pdu struct{ Command string }
		if err := json.Unmarshal(lines.Bytes(), &pdu); err != nil {
			t.Errorf("a line of the trace: %v", err)
		}
		commands[pdu.Command] = true
	}
	if !commands["deliver_sm"] || !commands["deliver_sm_resp"] || strings.Contains(out, "Yego") ||
		strings.Contains(out, "25761000001") {
		t.Errorf("the trace is %s", out)
	}
	s.refused("no such link", "", "admin", "link", "trace", "--name", "leo-1")
	s.refused("seconds must be", "", "admin", "link", "trace", "--name", "lumitel-1", "--seconds", "100000")
	code, out, _ := s.run("", "admin", "inbound", "--limit", "5", "--json")
	if code != exitOK || !strings.Contains(out, `"message":"Yego ni meza"`) ||
		!strings.Contains(out, `"from":"25761000001"`) {
		t.Errorf("admin inbound: %d %s", code, out)
	}
}

// TestHangupDuringStart: a SIGHUP during the start does not end the process and is
// handled once it is up.
func TestHangupDuringStart(t *testing.T) {
	database, err := pgx.ParseConfig(testenv.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	server, err := net.Listen("tcp", "127.0.0.1:0") // in front of the database; the process connects for its migrations
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	through := url.URL{Scheme: "postgres", User: url.UserPassword(database.User, database.Password),
		Host: server.Addr().String(),
		Path: "/" + database.Database, RawQuery: "sslmode=disable"}
	rdb, prefix := testenv.Redis(t)
	s := newShell(t, fmt.Sprintf(`
database: {url: %q}
redis: {url: %q, prefix: %q}
api: {listen: "127.0.0.1:0"}
ops: {listen: "127.0.0.1:0"}
dashboard: {listen: "127.0.0.1:0"}
carriers: [{name: leo, links: [{name: leo-1, address: "127.0.0.1:1", system_id: demo}]}]
`, through.String(), redisURL(rdb), prefix))

	var log safeBuffer
	process := exec.CommandContext(t.Context(), os.Args[0], "serve", "--config", s.config)
	process.Env = append(os.Environ(), asProgram+"=1")
	process.Stdout, process.Stderr = &log, &log
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- process.Wait(); server.Close() }()

	knock, err := server.Accept()
	if err != nil {
		t.Fatalf("it ended before: %v\n%s", <-ended, log.String())
	}
	if err := process.Process.Signal(syscall.SIGHUP); err != nil {
		t.Error(err)
	}
	go func() {
		for client, err := knock, error(nil); err == nil; client, err = server.Accept() {
			go connect(client, database)
		}
	}()
	eventually(t, "it is reloaded", func() bool {
		select {
		case err := <-ended:
			t.Fatalf("it ended: %v\n%s", err, log.String())
		default:
		}
		return strings.Contains(log.String(), "event=ready") && strings.Contains(log.String(), "event=configuration_reloaded")
	})
	if err := process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v\n%s", err, log.String())
	}
}

// connect relays between a client and the database until one of them closes.
func connect(client net.Conn, database *pgx.ConnConfig) {
	defer client.Close()
	network, address := pgconn.NetworkAddress(database.Host, database.Port)
	server, err := net.Dial(network, address)
	if err != nil {
		return
	}
	defer server.Close()
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		go func() {
			_, _ = io.Copy(way[0], way[1])
			done <- struct{}{}
		}()
	}
	<-done
}

func redisURL(rdb *redis.Client) string {
	o := rdb.Options()
	if o.Network == "unix" {
		return "unix://" + o.Addr + fmt.Sprintf("?db=%d", o.DB)
	}
	whose := ""
	if o.Password != "" { // redis-cli sends an empty user as a name
		whose = "default:" + o.Password + "@"
	}
	return fmt.Sprintf("redis://%s%s/%d", whose, o.Addr, o.DB)
}

// TestReloadReadsSecrets: a reload uses a link's changed password file at once, although the link was waiting minutes
// after the wrong one, and even while the database is away. A metric shows a refused reload until one succeeds.
func TestReloadReadsSecrets(t *testing.T) {
	carrier, smsc := playCarrier(t, "leo", "right")
	password := filepath.Join(t.TempDir(), "leo-1")
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(password, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("wrong\n")
	opsAt := rig.FreeAddress()
	rdb, prefix := testenv.Redis(t)
	database := testenv.NewPostgresServer(t)
	s := newShell(t, fmt.Sprintf(`
database: {url: %q}
redis: {url: %q, prefix: %q}
ops: {listen: %q}
carriers: [{name: leo, prefixes: ["71"], links: [{name: leo-1, address: %q, system_id: demo, password: "${file:%s}"}]}]
`, database.URL(), redisURL(rdb), prefix, opsAt, smsc, password))
	log := s.serve("dispatcher")
	metric := func(line string) bool {
		answer, err := http.Get("http://" + opsAt + "/metrics")
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		return strings.Contains(string(text), "\n"+line+"\n")
	}
	log.has(t, "ESME_RINVPASWD")
	database.Kill()
	put("right\n")
	hangUp(t)
	log.has(t, "event=configuration_reloaded")
	database.Start()
	eventually(t, "it is bound", func() bool { return carrier.Stats().Sessions == 1 })
	log.has(t, "carriers[0].links[0].password")
	eventually(t, "all is well", func() bool { return metric("intumwa_config_reload_ok 1") })

	if err := os.Remove(password); err != nil {
		t.Fatal(err)
	}
	hangUp(t)
	eventually(t, "the reload is refused", func() bool { return metric("intumwa_config_reload_ok 0") })
	log.has(t, "reading the file: no such file")
	if text := log.String(); strings.Contains(text, "right") {
		t.Errorf("the log has\n%s", text)
	}
	put("right")
	hangUp(t)
	eventually(t, "all is well again", func() bool { return metric("intumwa_config_reload_ok 1") })
	if n := carrier.Stats().Sessions; n != 1 {
		t.Errorf("%d sessions", n)
	}
}
