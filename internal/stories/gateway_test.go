package stories

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"intumwa/tools/rig"
)

// gateway is a process of the product.
type gateway struct {
	w     *world
	name  string
	roles string // "" = all
	extra tree
	build string   // a binary other than the one under test; "" none
	args  []string // its own

	config, log string // files
	api, ops    string // addresses
	dashboard   string
	cmd         *exec.Cmd // nil: not running
	ended       chan struct{}
	dismiss     func() // ends the guard, which kills the process if the test binary dies
}

const (
	readyWithin = time.Minute
	endWithin   = time.Minute // a gateway ends after 9.5 s at most (rule choices 11.2, TestTerminationGrace)
)

func newGateway(w *world, name string, extra tree) *gateway {
	g := &gateway{w: w, name: name, extra: tree{}.over(extra),
		config: filepath.Join(w.dir, name+".yaml"), log: filepath.Join(w.dir, name+".log")}
	g.roles, _ = g.extra["roles"].(string)
	delete(g.extra, "roles")
	if own, named := g.extra["name"].(string); named {
		g.name = own
		g.config, g.log = filepath.Join(w.dir, own+".yaml"), filepath.Join(w.dir, own+".log")
		delete(g.extra, "name")
	}
	g.configure()
	w.t.Cleanup(func() { g.kill() })
	return g
}

// configure writes the configuration with new ports. (JSON is YAML.)
func (g *gateway) configure() {
	g.w.t.Helper()
	g.api, g.ops, g.dashboard = rig.FreeAddress(), rig.FreeAddress(), rig.FreeAddress()
	var carriers []tree
	for _, c := range g.w.carriers {
		carriers = append(carriers, c.section())
	}
	config := tree{
		"api":            tree{"listen": g.api, "rate_limit_per_minute": 10_000_000},
		"ops":            tree{"listen": g.ops},
		"dashboard":      tree{"listen": g.dashboard, "public_url": "http://localhost"},
		"log":            tree{"format": "json"},
		"database":       tree{"url": g.w.database},
		"redis":          g.w.redisSection(),
		"accounts":       tree{"otp_key": "a key of this world alone, for codes"},
		"webhooks":       tree{"allow_private": true},
		"encryption_key": strings.Repeat("Q", 43) + "=",
		"carriers":       carriers,
	}.over(g.extra)
	text, err := json.MarshalIndent(config, "", "  ")
	if err == nil {
		err = os.WriteFile(g.config, text, 0o600)
	}
	if err != nil {
		g.w.t.Fatalf("writing the configuration: %v", err)
	}
}

// start runs the process and returns when it is ready.
func (g *gateway) start() {
	g.w.t.Helper()
	for range 5 { // another process may take a port in between
		g.launch()
		if g.awaitReady() {
			return
		}
		g.configure()
	}
	g.w.t.Fatalf("%s found no free ports", g.name)
}

func (g *gateway) launch() {
	g.w.t.Helper()
	log, err := os.OpenFile(g.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		g.w.t.Fatal(err)
	}
	defer log.Close()
	args := []string{"serve", "--config", g.config}
	if g.roles != "" {
		args = append(args, "--roles", g.roles)
	}
	args = append(args, g.args...)
	cmd := exec.Command(cmp.Or(g.build, built.get(g.w.t)), args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = rig.Environment(), log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		g.w.t.Fatalf("starting %s: %v", g.name, err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // the exit code is in the state
		close(ended)
	}()
	g.cmd, g.ended = cmd, ended
	g.dismiss = guard(g.w, cmd.Process.Pid)
}

// awaitReady returns false if the process ended because a port was taken.
func (g *gateway) awaitReady() bool {
	g.w.t.Helper()
	ready := g.w.comesTrue(readyWithin, func() bool { return g.hasEnded() || g.isReady() })
	if ready && !g.hasEnded() {
		return true
	}
	ended := g.hasEnded()
	g.kill()
	if ended && strings.Contains(g.logTail(), "address already in use") {
		return false
	}
	g.w.t.Fatalf("%s is not ready (ended: %v); its log ends with:\n%s", g.name, ended, g.logTail())
	return false
}

func (g *gateway) isReady() bool {
	response, err := g.w.client.Get("http://" + g.ops + "/readyz")
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

func (g *gateway) hasEnded() bool {
	select {
	case <-g.ended:
		return true
	default:
		return false
	}
}

// process is the gateway's process id.
func (g *gateway) process() string { return strconv.Itoa(g.cmd.Process.Pid) }

// kill sends SIGKILL.
func (g *gateway) kill() {
	if g.cmd == nil {
		return
	}
	_ = g.cmd.Process.Kill()
	<-g.ended
	g.dismiss()
	g.cmd = nil
}

// guard kills the process if the test binary dies.
func guard(w *world, pid int) (dismiss func()) {
	w.t.Helper()
	dismiss, err := rig.Guard(`kill -9 "$1" 2>/dev/null`, strconv.Itoa(pid))
	if err != nil {
		w.t.Fatal(err)
	}
	return dismiss
}

// terminate sends SIGTERM and expects a clean exit.
func (g *gateway) terminate() {
	g.w.t.Helper()
	if code := g.ends(); code != 0 {
		g.w.t.Errorf("%s ended with code %d after SIGTERM, want 0", g.name, code)
	}
}

// ends sends SIGTERM and returns the exit code.
func (g *gateway) ends() (code int) {
	g.w.t.Helper()
	_ = g.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-g.ended:
	case <-time.After(endWithin):
		g.w.t.Errorf("%s still runs %v after SIGTERM", g.name, endWithin)
		_ = g.cmd.Process.Signal(syscall.SIGQUIT) // its goroutines go to the log
		<-g.ended
	}
	code = g.cmd.ProcessState.ExitCode()
	g.dismiss()
	g.cmd = nil
	return code
}

func (g *gateway) logText() []byte {
	text, err := os.ReadFile(g.log)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		g.w.t.Errorf("reading the log of %s: %v", g.name, err)
	}
	return text
}

func (g *gateway) logTail() string {
	const most = 4000
	text := g.logText()
	return string(text[max(0, len(text)-most):])
}
