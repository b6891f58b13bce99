package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"intumwa/internal/testenv"
	"intumwa/smpp/carriersim"
)

// TestReloadTakesSecrets: a link's password that changed in its file is used at the next reload, at once, although the
// wrong one before has the link wait for minutes; and a reload that is refused shows in a metric until one is not.
func TestReloadTakesSecrets(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	carrier := carriersim.New(carriersim.Options{Name: "leo", Seed: 7, SystemID: "demo", Password: "right"})
	serving, stop := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() { defer close(served); _ = carrier.Serve(serving, listener) }()
	defer func() { stop(); <-served }()

	password := filepath.Join(t.TempDir(), "leo-1")
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(password, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("wrong\n")
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	opsAt := port.Addr().String()
	port.Close()
	rdb, prefix := testenv.Redis(t)
	s := newShell(t, fmt.Sprintf(`
database: {url: %q}
redis: {url: %q, prefix: %q}
ops: {listen: %q}
carriers: [{name: leo, prefixes: ["71"], links: [{name: leo-1, address: %q, system_id: demo, password_file: %q}]}]
`, testenv.Database(t), redisURL(rdb), prefix, opsAt, listener.Addr(), password))
	ctx, cancel := context.WithCancel(t.Context())
	var log safeBuffer
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"serve", "--roles", "dispatcher", "--config", s.config}, strings.NewReader(""), &log, &log)
	}()
	defer func() { cancel(); <-ended }()
	until := func(what string, condition func() bool) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); !condition(); <-time.After(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("not within 30 s: %s\n%s", what, log.String())
			}
		}
	}
	metric := func(line string) bool {
		answer, err := http.Get("http://" + opsAt + "/metrics")
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		return strings.Contains(string(text), "\n"+line+"\n")
	}
	hangUp := func() {
		t.Helper()
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	until("its bind is refused", func() bool { return strings.Contains(log.String(), "ESME_RINVPASWD") })
	put("right\n")
	hangUp()
	until("it is bound", func() bool { return carrier.Stats().Sessions == 1 })
	until("the key is named", func() bool { return strings.Contains(log.String(), "carriers[0].links[0].password") })
	until("all is well", func() bool { return metric("intumwa_config_reload_ok 1") })

	if err := os.Remove(password); err != nil {
		t.Fatal(err)
	}
	hangUp()
	until("the reload is refused", func() bool { return metric("intumwa_config_reload_ok 0") })
	if text := log.String(); !strings.Contains(text, "reading the file: no such file") || strings.Contains(text, "right") {
		t.Errorf("the log says\n%s", text)
	}
	put("right")
	hangUp()
	until("all is well again", func() bool { return metric("intumwa_config_reload_ok 1") })
	if n := carrier.Stats().Sessions; n != 1 {
		t.Errorf("%d sessions", n)
	}
}
