package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"intumwa/tools/rig"
)

// The carriers of the drill. One has two links, one has no traffic.
const (
	lumitel = "lumitel"
	leo     = "leo"
	onatel  = "onatel"
	smart   = "smart" // without traffic
)

// stage is the running system.
type stage struct {
	o         options
	config    string
	programs  []*rig.Program
	gateway   *rig.Program
	database  *rig.Relay
	redis     *rig.Relay
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
	if s.database, err = rig.NewRelay("unix", filepath.Join(database.Query().Get("host"), ".s.PGSQL.5432"),
		nil); err != nil {
		return nil, err
	}
	redis, err := url.Parse(o.redisURL)
	if err != nil || redis.Host == "" {
		return nil, errors.New("REDIS_URL has to name a server: start the drill with scripts/drill.sh")
	}
	if s.redis, err = rig.NewRelay("tcp", redis.Host, nil); err != nil {
		return nil, err
	}
	for i := range s.sinks {
		if s.sinks[i], err = newSink(ctx); err != nil {
			return nil, err
		}
	}
	redis.Host = s.redis.Address()
	api, ops, page := rig.FreeAddress(), rig.FreeAddress(), rig.FreeAddress()
	s.apiURL, s.opsURL, s.simURL = "http://"+api, "http://"+ops, "http://"+page
	smsc := map[string]string{}
	for _, name := range []string{"lumitel", "leo-a", "leo-b", "onatel", "smart"} {
		smsc[name] = rig.FreeAddress()
	}

	s.config = filepath.Join(o.dir, "intumwa.yaml")
	databaseURL := "postgres://" + database.User.String() + "@" + s.database.Address() + database.Path + "?sslmode=disable"
	if err := os.WriteFile(s.config, []byte(gatewayConfig(api, ops, databaseURL, redis.String(), smsc)),
		0o600); err != nil {
		return nil, fmt.Errorf("writing the configuration: %w", err)
	}
	sim := []string{"carrier-sim", "--page", page, "--no-fates", "--system-id", "drill", "--password", "drill",
		"--resp-delay", "10ms"}
	for name, address := range smsc {
		sim = append(sim, "--carrier", name+"="+address)
	}
	if _, err = s.start("carriers", o.intumwa, sim...); err != nil {
		return nil, err
	}
	if err = s.provision(ctx); err != nil {
		return nil, err
	}
	if err = s.startGateway(ctx); err != nil {
		return nil, err
	}
	if s.watch, err = s.startPrometheus(ctx, rig.FreeAddress(), ops); err != nil {
		return nil, err
	}
	s.load = startLoad(ctx, s.apiURL, s.companies, o.rate)
	return s, nil
}

func gatewayConfig(api, ops, database, redis string, smsc map[string]string) string {
	link := func(name, address, more string) string {
		return fmt.Sprintf("      - {name: %s, address: %q, system_id: drill, password: drill, window: 10, tps: 50, "+
			"enquire_link: 5s%s}\n", name, address, more)
	}
	return "api: {listen: " + fmt.Sprintf("%q", api) + ", rate_limit_per_minute: 100000}\n" +
		"ops: {listen: " + fmt.Sprintf("%q", ops) + "}\n" +
		"dashboard: {listen: \"127.0.0.1:0\"}\n" +
		"log: {format: json}\n" +
		"database: {url: " + fmt.Sprintf("%q", database) + ", require_archive: false}\n" +
		"redis: {url: " + fmt.Sprintf("%q", redis) + ", prefix: drill}\n" +
		"webhooks: {allow_private: true, retry_delays: [2s, 5s, 10s]}\n" +
		"carriers:\n" +
		"  - name: lumitel\n    prefixes: [\"61\"]\n    links:\n" + link("lumitel-1", smsc["lumitel"], "") +
		"  - name: leo\n    prefixes: [\"71\"]\n    links:\n" + link("leo-1", smsc["leo-a"], "") +
		link("leo-2", smsc["leo-b"], "") +
		"  - name: onatel\n    prefixes: [\"77\"]\n    links:\n" + link("onatel-1", smsc["onatel"], "") +
		"  - name: smart\n    prefixes: [\"75\"]\n    links:\n" + link("smart-1", smsc["smart"], "")
}

// provision makes two companies, each with a webhook endpoint.
func (s *stage) provision(ctx context.Context) error {
	program := rig.Intumwa{Binary: s.o.intumwa, Config: s.config}
	if _, err := program.Run(ctx, "", "migrate"); err != nil {
		return err
	}
	for i := range s.companies {
		token, err := program.Company(ctx, fmt.Sprintf("drill%d@example.com", i), "DRILL", s.sinks[i].url)
		if err != nil {
			return err
		}
		s.companies[i] = token
	}
	return nil
}

// startGateway starts the gateway and waits until it is ready.
func (s *stage) startGateway(ctx context.Context) (err error) {
	if s.gateway, err = s.start("gateway", s.o.intumwa, "serve", "--config", s.config); err != nil {
		return err
	}
	return s.await(ctx, "the gateway", 60*time.Second, func() bool { return rig.Answers(ctx, s.opsURL+"/readyz") })
}

func (s *stage) restartGateway(ctx context.Context) error {
	s.gateway.Stop()
	return s.startGateway(ctx)
}

// reload appends more to the gateway's configuration and reloads it.
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
	return s.gateway.Reload()
}

// added marks what reload adds.
const added = "# added\n"

// carrier sends a command to a simulated SMSC: faults, or drop.
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
		output, _ := io.ReadAll(answer.Body)
		return fmt.Errorf("carrier %s, %s %s: %s %s", name, verb, body, answer.Status, output)
	}
	return nil
}

// start starts a program whose log is in the drill's folder.
func (s *stage) start(name, path string, args ...string) (*rig.Program, error) {
	p, err := rig.Start(filepath.Join(s.o.dir, name+".log"), path, args...)
	if err == nil {
		s.programs = append(s.programs, p)
	}
	return p, err
}

func (s *stage) await(ctx context.Context, what string, patience time.Duration, there func() bool) error {
	var died error
	err := rig.Poll(ctx, patience, 200*time.Millisecond, func() bool {
		died = s.alive()
		return died != nil || there()
	})
	if err != nil {
		err = fmt.Errorf("%s did not come: %w; the logs are in %s", what, err, s.o.dir)
	}
	return cmp.Or(died, err)
}

// alive fails when a program has ended.
func (s *stage) alive() error {
	for _, p := range s.programs {
		if p.Died() {
			return fmt.Errorf("a program has ended unexpectedly; its log is %s", p.Log())
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
		s.programs[i].Stop()
	}
	for _, k := range s.sinks {
		if k != nil {
			k.close()
		}
	}
	for _, p := range []*rig.Relay{s.database, s.redis} {
		if p != nil {
			p.Close()
		}
	}
}
