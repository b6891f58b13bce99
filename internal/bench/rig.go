package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// rig is everything that is running.
type rig struct {
	o      options
	dir    string
	config string
	api    string // address
	page   string // of the simulated carrier
	sink   *sink

	postgres, redis int // process ids
	children        []*exec.Cmd
	simulator       *exec.Cmd
	gateway         *exec.Cmd

	companies []company
	numbers   int // phone numbers used so far
}

// company is one customer of the gateway.
type company struct {
	token string
}

const (
	startWithin = 30 * time.Second
	endWithin   = 15 * time.Second
)

// newRig starts servers, carrier, gateway and webhook receiver and provisions
// the companies.
func newRig(ctx context.Context, o options) (*rig, error) {
	binary, err := filepath.Abs(o.binary)
	if err != nil {
		return nil, err
	}
	o.binary = binary
	if _, err := os.Stat(binary); err != nil {
		return nil, fmt.Errorf("nothing to measure (make build makes it): %w", err)
	}
	dir, err := os.MkdirTemp("", "intumwa-bench-")
	if err != nil {
		return nil, err
	}
	r := &rig{o: o, dir: dir, config: filepath.Join(dir, "intumwa.yaml")}
	if err := r.start(ctx); err != nil {
		tail := r.logTail()
		r.close()
		return nil, fmt.Errorf("%w\n%s", err, tail)
	}
	return r, nil
}

func (r *rig) start(ctx context.Context) error {
	database, redis, err := r.startServers(ctx)
	if err != nil {
		return err
	}
	if r.sink, err = newSink(); err != nil {
		return err
	}
	smpp, ops := freeAddress(), freeAddress()
	r.api, r.page = freeAddress(), freeAddress()
	type tree = map[string]any
	text, err := json.MarshalIndent(tree{ // JSON is YAML
		"api":       tree{"listen": r.api, "rate_limit_per_minute": 1_000_000_000},
		"ops":       tree{"listen": ops},
		"dashboard": tree{"listen": freeAddress(), "secure_cookies": false},
		"log":       tree{"format": "json"},
		"database":  tree{"url": strings.ReplaceAll(database, "$", "$$")},
		"redis":     tree{"url": strings.ReplaceAll(redis, "$", "$$")},
		"accounts":  tree{"otp_key": "a key of this measurement alone"},
		"webhooks":  tree{"allow_private": true, "encryption_key": strings.Repeat("Q", 43) + "="},
		"carriers": []tree{{"name": "bench", "prefixes": []string{"61"}, "default": true, "message_id_format": "same",
			"links": []tree{{"name": "bench-1", "address": smpp, "system_id": "bench", "password": "bench", "window": r.o.window, "tps": 0}}}},
	}, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(r.config, text, 0o600); err != nil {
		return err
	}
	if _, err := r.run(ctx, "", "migrate"); err != nil {
		return err
	}
	if r.simulator, err = r.spawn("carrier", "carrier-sim", "--no-fates", "--receipt-delay", "0s", "--carrier", "bench="+smpp, "--page", r.page); err != nil {
		return err
	}
	if err := r.provision(ctx); err != nil {
		return err
	}
	if r.gateway, err = r.spawn("gateway", "serve", "--config", r.config); err != nil {
		return err
	}
	return r.await(ctx, "the gateway and its link", func() bool {
		return status("http://"+ops+"/readyz") == http.StatusOK && r.bound() == 1
	})
}

// startServers starts PostgreSQL and Redis and answers their URLs.
func (r *rig) startServers(ctx context.Context) (database, redis string, err error) {
	servers := filepath.Join(r.dir, "servers")
	if out, err := exec.CommandContext(ctx, "scripts/servers.sh", "start", servers).CombinedOutput(); err != nil { //nolint:gosec // our own folder
		return "", "", fmt.Errorf("starting the servers (bench runs at the project's root): %w\n%s", err, out)
	}
	// The file is for a shell to read: let one.
	out, err := exec.CommandContext(ctx, "bash", "-c", //nolint:gosec // our own folder
		`. "$1/servers.env" && printf '%s\n' "$DATABASE_URL" "$REDIS_URL" "$POSTGRES_PID" "$REDIS_PID"`,
		"bash", servers).Output()
	if err != nil {
		return "", "", fmt.Errorf("reading where the servers are: %w", err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != 4 {
		return "", "", fmt.Errorf("reading where the servers are: %d lines", len(lines))
	}
	var errs [2]error
	r.postgres, errs[0] = strconv.Atoi(lines[2])
	r.redis, errs[1] = strconv.Atoi(lines[3])
	return lines[0], lines[1], errors.Join(errs[:]...)
}

// provision makes the companies, two at a time.
func (r *rig) provision(ctx context.Context) error {
	r.companies = make([]company, max(r.o.companies, 1))
	errs := make([]error, len(r.companies))
	next := make(chan int, len(r.companies))
	for i := range r.companies {
		next <- i
	}
	close(next)
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			for i := range next {
				r.companies[i], errs[i] = r.provisionOne(ctx, i)
			}
		})
	}
	workers.Wait()
	return errors.Join(errs...)
}

func (r *rig) provisionOne(ctx context.Context, i int) (company, error) {
	email := fmt.Sprintf("bench%d@example.com", i)
	if _, err := r.admin(ctx, "a password of no use\n", "user", "create", "--email", email, "--name", "Bench", "--password-stdin"); err != nil {
		return company{}, err
	}
	made, err := r.admin(ctx, "", "company", "create", "--owner", email, "--name", "Bench", "--approved", "--verified", "--credits", "1000000000")
	if err != nil {
		return company{}, err
	}
	id := fmt.Sprintf("%.0f", made["company_id"])
	if _, err := r.admin(ctx, "", "sender", "create", "--company", id, "--name", "BENCH", "--approved"); err != nil {
		return company{}, err
	}
	if _, err := r.admin(ctx, "", "webhook", "set", "--company", id, "--url", "http://"+r.sink.address()+"/", "--active=true"); err != nil {
		return company{}, err
	}
	token, err := r.admin(ctx, "", "token", "create", "--user", email, "--name", "bench")
	if err != nil {
		return company{}, err
	}
	secret, _ := token["token"].(string)
	return company{token: secret}, nil
}

// admin runs an operator's command and answers its JSON.
func (r *rig) admin(ctx context.Context, stdin string, args ...string) (map[string]any, error) {
	out, err := r.run(ctx, stdin, append(append([]string{"admin"}, args...), "--json")...)
	if err != nil {
		return nil, err
	}
	var answer map[string]any
	if err := json.Unmarshal(out, &answer); err != nil {
		return nil, fmt.Errorf("reading the answer of admin %s: %w", args[0], err)
	}
	return answer, nil
}

func (r *rig) run(ctx context.Context, stdin string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, r.o.binary, append(args, "--config", r.config)...) //nolint:gosec // the program to measure
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return nil, fmt.Errorf("intumwa %s: %w", strings.Join(args[:min(len(args), 3)], " "), err)
	}
	return out, nil
}

// spawn starts a process that is ended by close.
func (r *rig) spawn(name string, args ...string) (*exec.Cmd, error) {
	log, err := os.Create(filepath.Join(r.dir, name+".log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(r.o.binary, args...) //nolint:gosec,noctx // the program to measure; close ends it in good order
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C reaches bench alone
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	r.children = append(r.children, cmd)
	return cmd, nil
}

// close ends what was started, the last first, and deletes its folder.
func (r *rig) close() {
	for i := len(r.children) - 1; i >= 0; i-- {
		cmd := r.children[i]
		_ = cmd.Process.Signal(syscall.SIGTERM)
		force := time.AfterFunc(endWithin, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait() // how it ended is in its log
		force.Stop()
	}
	r.children = nil
	if r.sink != nil {
		r.sink.close()
	}
	verb := "remove"
	if r.o.keep {
		verb = "stop"
		fmt.Fprintln(os.Stderr, "bench: data and logs are in", r.dir)
	}
	out, err := exec.Command("scripts/servers.sh", verb, filepath.Join(r.dir, "servers")).CombinedOutput() //nolint:gosec,noctx // our own folder; it must end
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: ending the servers: %v\n%s", err, out)
		return
	}
	if !r.o.keep {
		_ = os.RemoveAll(r.dir)
	}
}

// logTail is what the gateway said last.
func (r *rig) logTail() string {
	const most = 3000
	text, err := os.ReadFile(filepath.Join(r.dir, "gateway.log"))
	if err != nil {
		return ""
	}
	return string(text[max(0, len(text)-most):])
}

// await polls until something is so.
func (r *rig) await(ctx context.Context, what string, so func() bool) error {
	deadline := time.Now().Add(startWithin)
	for !so() {
		if time.Now().After(deadline) {
			return fmt.Errorf("%s did not come up within %v", what, startWithin)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// bound is how many sessions the carrier has.
func (r *rig) bound() int {
	var stats struct {
		Sessions int `json:"sessions"`
	}
	if r.carrier("/stats.json", &stats) != nil {
		return 0
	}
	return stats.Sessions
}

// carrier asks the simulated carrier.
func (r *rig) carrier(path string, answer any) error {
	response, err := http.Get("http://" + r.page + path) //nolint:noctx // a local page
	if err != nil {
		return fmt.Errorf("asking the carrier: %w", err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(bufio.NewReader(response.Body)).Decode(answer); err != nil {
		return fmt.Errorf("reading what the carrier received: %w", err)
	}
	return nil
}

// forget empties the carrier's record.
func (r *rig) forget() error {
	response, err := http.Post("http://"+r.page+"/reset", "", nil) //nolint:noctx // a local page
	if err != nil {
		return fmt.Errorf("emptying the carrier's record: %w", err)
	}
	return response.Body.Close()
}

func status(url string) int {
	response, err := http.Get(url) //nolint:gosec,noctx // our own
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// freeAddress is a loopback address that nobody listens on, below the range of
// outgoing connections.
func freeAddress() string {
	for {
		at := net.JoinHostPort("127.0.0.1", strconv.Itoa(10_000+rand.IntN(20_000)))
		if listener, err := net.Listen("tcp", at); err == nil { //nolint:noctx // closed at once
			_ = listener.Close()
			return at
		}
	}
}
