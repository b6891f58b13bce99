package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"intumwa/configs"
	"intumwa/internal/testenv"
)

// TestRolesOnOneMachine: every role is a process of its own, on one machine, with one configuration; the dispatcher's links
// are traced without saying where it is.
func TestRolesOnOneMachine(t *testing.T) {
	t.Parallel()
	carrier, smsc := playCarrier(t, "leo")
	rdb, prefix := testenv.Redis(t)
	at := map[string]string{}
	var roles []string
	for _, role := range configs.Roles {
		at[role] = freeAddress(t)
		roles = append(roles, fmt.Sprintf("%s: %q", role, at[role]))
	}
	s := newShell(t, fmt.Sprintf(`
database: {url: %q}
redis: {url: %q, prefix: %q}
api: {listen: %q}
ops: {listen: %q, roles: {%s}}
dashboard: {listen: "127.0.0.1:0"}
carriers: [{name: leo, prefixes: ["71"], links: [{name: leo-1, address: %q, system_id: demo, password: demo, enquire_link: 1s}]}]
`, testenv.Database(t), redisURL(rdb), prefix, freeAddress(t), freeAddress(t), strings.Join(roles, ", "), smsc))
	var log safeBuffer
	for _, role := range configs.Roles {
		process := exec.Command(os.Args[0], "serve", "--roles", role, "--config", s.config)
		process.Env = append(os.Environ(), asProgram+"=1")
		process.Stdout, process.Stderr = &log, &log
		if err := process.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = process.Process.Signal(syscall.SIGTERM)
			if err := process.Wait(); err != nil {
				t.Errorf("%s ended with %v\n%s", role, err, log.String())
			}
		})
	}
	for role, address := range at {
		for end := time.Now().Add(60 * time.Second); ; <-time.After(50 * time.Millisecond) {
			answer, err := http.Get("http://" + address + "/readyz")
			if err == nil {
				answer.Body.Close()
			}
			if err == nil && answer.StatusCode == http.StatusOK {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%s is not ready: %v\n%s", role, err, log.String())
			}
		}
	}
	for end := time.Now().Add(60 * time.Second); carrier.Stats().Sessions == 0; <-time.After(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not bound:\n%s", log.String())
		}
	}
	code, out, stderr := s.run("", "admin", "link", "trace", "--name", "leo-1", "--seconds", "3")
	if code != exitOK || !strings.Contains(out, "enquire_link") {
		t.Errorf("trace: %d %q %q", code, out, stderr)
	}
	s.refused("--ops names the operators' listener", "", "admin", "link", "trace", "--name", "leo-1", "--ops", "http://"+at["api"])
	s.refused("it serves no links", "", "admin", "link", "trace", "--name", "leo-1", "--ops", "http://"+at["api"])
}

func TestOpsOfRoles(t *testing.T) {
	for text, want := range map[string]string{
		"ops: {roles: {api: '127.0.0.1:9090'}}":                         "ops.roles.api (line 1): is the same as ops.listen",
		"ops: {roles: {api: 'h:1', webhooks: 'h:1'}}":                   "ops.roles.webhooks (line 1): is the same as ops.roles.api",
		"ops: {roles: {apis: 'h:1'}}":                                   "ops.roles.apis (line 1): must be one of api, dispatcher, webhooks, dashboard",
		"ops: {roles: {api: h}}":                                        "ops.roles.api (line 1): must be host:port",
		"ops: {roles: {dashboard: '127.0.0.1:8081'}}":                   "ops.roles.dashboard (line 1): is the same as dashboard.listen",
		"ops: {roles: {api: '127.0.0.1:9471', dispatcher: 'h:9472'}}\n": "",
	} {
		path := newShell(t, text).config
		c, err := configs.Load(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		said := configs.Problems(c.Check(configs.Roles...)).Error()
		if want == "" && strings.Contains(said, "ops.") || !strings.Contains(said, want) {
			t.Errorf("%s: %s", text, said)
		}
		if want == "" && (c.Ops.ListenFor("api") != "127.0.0.1:9471" || c.Ops.ListenFor("api", "dispatcher") != "127.0.0.1:9090" || c.Ops.ListenFor("webhooks") != "127.0.0.1:9090") {
			t.Error("the wrong one")
		}
	}
}
