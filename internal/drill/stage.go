package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// The carriers of the drill. One has two links, one has no traffic.
const (
	lumitel = "lumitel"
	leo     = "leo"
	onatel  = "onatel"
	smart   = "smart" // quiet
)

// stage is everything that runs.
type stage struct {
	o         options
	config    string
	programs  []*program
	gateway   *program
	database  *proxy
	redis     *proxy
	sinks     [2]*sink
	load      *load
	watch     *prometheus
	apiURL    string
	opsURL    string
	simURL    string
	companies [2]string // tokens
}

// newStage starts servers, carriers, gateway, Prometheus and load.
func newStage(ctx context.Context, o options) (s *stage, err error) {
	s = &stage{o: o}
	defer func() {
		if err != nil {
			s.end()
		}
	}()
	database, err := url.Parse(o.databaseURL)
	if err != nil || database.Query().Get("host") == "" {
		return nil, errors.New("DATABASE_URL has to name a socket: start the drill with scripts/drill.sh")
	}
	if s.database, err = newProxy(ctx, "unix", filepath.Join(database.Query().Get("host"), ".s.PGSQL.5432")); err != nil {
		return nil, err
	}
	redis, err := url.Parse(o.redisURL)
	if err != nil || redis.Host == "" {
		return nil, errors.New("REDIS_URL has to name a server: start the drill with scripts/drill.sh")
	}
	if s.redis, err = newProxy(ctx, "tcp", redis.Host); err != nil {
		return nil, err
	}
	for i := range s.sinks {
		if s.sinks[i], err = newSink(ctx); err != nil {
			return nil, err
		}
	}
	redis.Host = s.redis.address
	ports, err := freePorts(ctx, 9)
	if err != nil {
		return nil, err
	}
	at := func(i int) string { return fmt.Sprintf("127.0.0.1:%d", ports[i]) }
	s.apiURL, s.opsURL, s.simURL = "http://"+at(0), "http://"+at(1), "http://"+at(2)
	smsc := map[string]string{"lumitel": at(3), "leo-a": at(4), "leo-b": at(5), "onatel": at(6), "smart": at(7)}

	s.config = filepath.Join(o.dir, "intumwa.yaml")
	databaseURL := "postgres://" + database.User.String() + "@" + s.database.address + database.Path + "?sslmode=disable"
	if err := os.WriteFile(s.config, []byte(gatewayConfig(at(0), at(1), databaseURL, redis.String(), smsc)), 0o600); err != nil {
		return nil, fmt.Errorf("writing the configuration: %w", err)
	}
	sim := []string{"carrier-sim", "--page", at(2), "--no-fates", "--system-id", "drill", "--password", "drill", "--resp-delay", "10ms"}
	for name, address := range smsc {
		sim = append(sim, "--carrier", name+"="+address)
	}
	if _, err = s.start(ctx, "carriers", o.intumwa, sim...); err != nil {
		return nil, err
	}
	if err = s.provision(ctx); err != nil {
		return nil, err
	}
	if err = s.startGateway(ctx); err != nil {
		return nil, err
	}
	if s.watch, err = s.startPrometheus(ctx, at(8), at(1)); err != nil {
		return nil, err
	}
	s.load = startLoad(ctx, s.apiURL, s.companies, o.rate)
	return s, nil
}

func gatewayConfig(api, ops, database, redis string, smsc map[string]string) string {
	link := func(name, address, more string) string {
		return fmt.Sprintf("      - {name: %s, address: %q, system_id: drill, password: drill, window: 10, tps: 50, enquire_link: 5s%s}\n", name, address, more)
	}
	return "api: {listen: " + fmt.Sprintf("%q", api) + ", rate_limit_per_minute: 100000}\n" +
		"ops: {listen: " + fmt.Sprintf("%q", ops) + "}\n" +
		"dashboard: {listen: \"127.0.0.1:0\"}\n" +
		"log: {format: json}\n" +
		"database: {url: " + fmt.Sprintf("%q", database) + "}\n" +
		"redis: {url: " + fmt.Sprintf("%q", redis) + ", prefix: drill}\n" +
		"webhooks: {allow_private: true, retry_delays: [2s, 5s, 10s]}\n" +
		"carriers:\n" +
		"  - name: lumitel\n    prefixes: [\"61\"]\n    links:\n" + link("lumitel-1", smsc["lumitel"], "") +
		"  - name: leo\n    prefixes: [\"71\"]\n    links:\n" + link("leo-1", smsc["leo-a"], "") + link("leo-2", smsc["leo-b"], "") +
		"  - name: onatel\n    prefixes: [\"77\"]\n    links:\n" + link("onatel-1", smsc["onatel"], "") +
		"  - name: smart\n    prefixes: [\"75\"]\n    links:\n" + link("smart-1", smsc["smart"], "")
}

// provision makes two companies, each with a webhook endpoint.
func (s *stage) provision(ctx context.Context) error {
	if _, err := s.run(ctx, "", "migrate"); err != nil {
		return err
	}
	for i := range s.companies {
		email := fmt.Sprintf("drill%d@example.com", i)
		if _, err := s.admin(ctx, "drill\n", "user", "create", "--email", email, "--name", "Drill", "--password-stdin"); err != nil {
			return err
		}
		company, err := s.admin(ctx, "", "company", "create", "--owner", email, "--name", "Drill", "--approved", "--verified", "--credits", "10000000")
		if err != nil {
			return err
		}
		id := fmt.Sprint(company["company_id"])
		if _, err := s.admin(ctx, "", "sender", "create", "--company", id, "--name", "DRILL", "--approved"); err != nil {
			return err
		}
		if _, err := s.admin(ctx, "", "webhook", "set", "--company", id, "--url", s.sinks[i].url, "--active=true"); err != nil {
			return err
		}
		token, err := s.admin(ctx, "", "token", "create", "--user", email, "--name", "drill")
		if err != nil {
			return err
		}
		s.companies[i] = fmt.Sprint(token["token"])
	}
	return nil
}

func (s *stage) admin(ctx context.Context, stdin string, args ...string) (map[string]any, error) {
	said, err := s.run(ctx, stdin, append([]string{"admin", "--json"}, args...)...)
	if err != nil {
		return nil, err
	}
	answer := map[string]any{}
	decoder := json.NewDecoder(bytes.NewReader(said))
	decoder.UseNumber()
	if err := decoder.Decode(&answer); err != nil {
		return nil, fmt.Errorf("admin %s answered %q: %w", strings.Join(args, " "), said, err)
	}
	return answer, nil
}

func (s *stage) run(ctx context.Context, stdin string, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, s.o.intumwa, append(args, "--config", s.config)...) //nolint:gosec // the program under test
	command.Stdin = strings.NewReader(stdin)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	said, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("intumwa %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return said, nil
}

// startGateway starts it and waits until it is ready.
func (s *stage) startGateway(ctx context.Context) (err error) {
	if s.gateway, err = s.start(ctx, "gateway", s.o.intumwa, "serve", "--config", s.config); err != nil {
		return err
	}
	return s.await(ctx, "the gateway", 60*time.Second, func() bool { return answers(ctx, s.opsURL+"/readyz") })
}

func (s *stage) restartGateway(ctx context.Context) error {
	s.gateway.stop()
	return s.startGateway(ctx)
}

// reload has the gateway read its configuration again, with more at its end.
func (s *stage) reload(more string) error {
	text, err := os.ReadFile(s.config)
	if err != nil {
		return fmt.Errorf("reading the configuration: %w", err)
	}
	whole, _, _ := strings.Cut(string(text), added)
	if more != "" {
		whole += added + more
	}
	if err := os.WriteFile(s.config, []byte(whole), 0o600); err != nil { //nolint:gosec // the drill's own folder
		return fmt.Errorf("writing the configuration: %w", err)
	}
	return s.gateway.command.Process.Signal(syscall.SIGHUP)
}

// added begins what reload adds.
const added = "# added\n"

// carrier asks a simulated SMSC for something: faults, or drop.
func (s *stage) carrier(ctx context.Context, name, verb, body string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.simURL+"/"+name+"/"+verb, strings.NewReader(body))
	if err != nil {
		return fmt.Errorf("asking carrier %s: %w", name, err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("asking carrier %s: %w", name, err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode >= 300 {
		said, _ := io.ReadAll(answer.Body)
		return fmt.Errorf("carrier %s, %s %s: %s %s", name, verb, body, answer.Status, said)
	}
	return nil
}

func (s *stage) await(ctx context.Context, what string, patience time.Duration, there func() bool) error {
	for deadline := time.Now().Add(patience); !there(); {
		if time.Now().After(deadline) {
			return fmt.Errorf("%s did not come within %s; the logs are in %s", what, patience, s.o.dir)
		}
		if err := s.alive(); err != nil {
			return err
		}
		if err := rest(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// alive fails when a program has ended by itself.
func (s *stage) alive() error {
	for _, p := range s.programs {
		if p.ended() {
			return fmt.Errorf("%s has ended by itself; its log is %s", p.name, p.log.Name())
		}
	}
	return nil
}

// end stops everything, the last started first.
func (s *stage) end() {
	if s.load != nil {
		s.load.stop()
	}
	for i := len(s.programs) - 1; i >= 0; i-- {
		s.programs[i].stop()
	}
	for _, k := range s.sinks {
		if k != nil {
			k.close()
		}
	}
	for _, p := range []*proxy{s.database, s.redis} {
		if p != nil {
			p.close()
		}
	}
}

// program is a child process.
type program struct {
	name    string
	command *exec.Cmd
	log     *os.File
	done    chan struct{}
	told    bool
}

func (s *stage) start(ctx context.Context, name, path string, args ...string) (*program, error) {
	log, err := os.OpenFile(filepath.Join(s.o.dir, name+".log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", name, err)
	}
	p := &program{name: name, log: log, done: make(chan struct{})}
	p.command = exec.CommandContext(context.WithoutCancel(ctx), path, args...) //nolint:gosec // our own programs
	p.command.Stdout, p.command.Stderr = log, log
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C reaches the drill alone
	if err := p.command.Start(); err != nil {
		_ = log.Close()
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		_ = p.command.Wait()
		close(p.done)
	}()
	s.programs = append(s.programs, p)
	return p, nil
}

func (p *program) ended() bool {
	select {
	case <-p.done:
		return !p.told
	default:
		return false
	}
}

func (p *program) stop() {
	p.told = true
	_ = p.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(20 * time.Second):
		_ = p.command.Process.Kill()
		<-p.done
	}
	_ = p.log.Close()
}

// freePorts are n loopback ports that nobody listens on at this moment.
func freePorts(ctx context.Context, n int) ([]int, error) {
	ports := make([]int, n)
	for i := range ports {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("looking for a free port: %w", err)
		}
		defer func() { _ = listener.Close() }() // all are open until all are found
		ports[i] = listener.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}

func answers(ctx context.Context, address string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
