package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"intumwa/internal/testenv"
	"intumwa/smpp/carriersim"
)

// TestSteady: what goes on failing is one line, and then a count, less often the longer it lasts; a change is told at once.
func TestSteady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out safeBuffer
		calm := newSteady(slog.NewTextHandler(&out, nil))
		log := slog.New(calm)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); _ = calm.shared.Run(ctx) }()
		lines := func(what string, want ...string) {
			t.Helper()
			synctest.Wait()
			got := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
			out.reset()
			if len(want) == 0 && len(got) == 1 && got[0] == "" {
				return
			}
			if len(got) != len(want) {
				t.Fatalf("%s: %d lines, want %d:\n%s", what, len(got), len(want), strings.Join(got, "\n"))
			}
			for i := range want {
				if !strings.Contains(got[i], want[i]) {
					t.Errorf("%s: %s, want %s", what, got[i], want[i])
				}
			}
		}
		link := log.With("carrier", "leo", "link", "leo-1")
		down := func(why string) { link.Warn("link is down", "error", errors.New(why), "retry_in", time.Second) }
		for n := range 20 {
			down(fmt.Sprintf("dial tcp 127.0.0.1:%d: refused", n))
			time.Sleep(time.Second)
		}
		lines("one of twenty", "refused")
		down("ESME_RINVPASWD")
		lines("another reason", "ESME_RINVPASWD")
		log.With("carrier", "leo", "link", "leo-2").Warn("link is down", "error", errors.New("x"))
		lines("another link", "leo-2")
		time.Sleep(45 * time.Second)
		lines("the minute is over", "count=19 within=1m0s")
		for range 2 {
			for range 60 {
				down("refused")
				time.Sleep(time.Second + 50*time.Millisecond)
			}
		}
		lines("two minutes later", "error=refused", "count=")
		down("refused")
		link.Info("link is bound")
		lines("it ends", "count=", "link is bound")
		down("refused")
		lines("a beginning at once", "link is down")

		for n := range 5 { // each message's line is its own
			log.Warn("webhook delivery given up", "webhook_id", n)
		}
		lines("of messages", "webhook_id=0", "webhook_id=1", "webhook_id=2", "webhook_id=3", "webhook_id=4")
		for n := range 1000 {
			log.Error("request failed: accepting a message", "path", "/v1/sms", "error", fmt.Errorf("conn %d", n))
		}
		lines("a thousand requests", "conn 0")
		log.Info("PostgreSQL commits again")
		lines("their count", "count=999", "commits again")
		for n := range 3000 { // what is watched is bounded
			log.Warn("w", "company_id", n)
		}
		if n := len(calm.shared.lines); n > steadyKeys {
			t.Errorf("%d lines are watched", n)
		}
		out.reset()
		down("refused")
		cancel()
		<-done
		if text := out.String(); !strings.Contains(text, "count=1") {
			t.Errorf("what was not told is told at the end: %s", text)
		}
	})
}

// TestLogPromises is docs/logs.md as a test: a process that loses its carrier, PostgreSQL and Redis, is asked for much
// meanwhile, and ends.
func TestLogPromises(t *testing.T) {
	t.Parallel()
	database, store := testenv.NewPostgresServer(t), testenv.NewRedisServer(t)
	carrier, smsc := playCarrier(t, "leo")
	api, ops := freeAddress(t), freeAddress(t)
	s := newShell(t, fmt.Sprintf(`
database: {url: %q}
redis: {url: %q}
api: {listen: %q}
ops: {listen: %q}
dashboard: {listen: "127.0.0.1:0"}
log: {format: json}
carriers: [{name: leo, prefixes: ["71"], links: [{name: leo-1, address: %q, system_id: demo, password: demo}]}]
`, database.URL(), store.URL(), api, ops, smsc))
	var log safeBuffer
	process := exec.CommandContext(t.Context(), os.Args[0], "serve", "--config", s.config)
	process.Env = append(os.Environ(), asProgram+"=1")
	process.Stdout, process.Stderr = &log, &log
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	type line struct {
		Level, Msg, Error string
		Count             int
	}
	read := func() (list []line) {
		for text := range strings.Lines(log.String()) {
			var l line
			if strings.HasSuffix(text, "\n") {
				if err := json.Unmarshal([]byte(text), &l); err != nil {
					t.Errorf("a line that is no JSON: %s", text)
				}
				list = append(list, l)
			}
		}
		return list
	}
	count := func(word string) (n int) {
		for _, l := range read() {
			if strings.Contains(l.Msg, word) {
				n++
			}
		}
		return n
	}
	until := func(what string, condition func() bool) {
		t.Helper()
		for end := time.Now().Add(60 * time.Second); !condition(); <-time.After(50 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("not within a minute: %s\n%s", what, log.String())
			}
		}
	}
	post := func(token string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+api+"/v1/sms", strings.NewReader(`{"phone_number":"+25771000000","sender":"A","message":"x"}`))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Accept", "application/json")
		if answer, err := http.DefaultClient.Do(request); err == nil {
			answer.Body.Close()
		}
	}
	until("it is ready", func() bool { return count("ready") == 1 && carrier.Stats().Sessions == 1 })
	began := time.Now().Unix()
	for range 20 {
		post("7|canary1canary1canary1")
	}
	most := int(time.Now().Unix() - began + 1) // one line a second
	until("wrong tokens are told", func() bool { return count("request unauthorized") > 0 })
	if n := count("request unauthorized"); n > most {
		t.Errorf("%d lines of 20 wrong tokens in %d seconds", n, most)
	}
	s.admin("", "link state", "link", "pause", "--name", "leo-1")
	until("it is paused", func() bool { return count("link paused by an operator") == 1 })
	s.admin("", "link state", "link", "resume", "--name", "leo-1")
	until("it is resumed", func() bool { return count("link resumed by an operator") == 1 })

	carrier.Faults(func(f *carriersim.Faults) { f.RefuseConnections = true })
	carrier.DropAll()
	until("the link is down", func() bool { return count("link is down") >= 1 })
	store.Kill()
	database.Kill()
	until("PostgreSQL is missed", func() bool { return count("does not commit") == 1 })
	for end := time.Now().Add(6 * time.Second); time.Now().Before(end); {
		post("7|canary1canary1canary1")
	}
	errorLines := 0
	for _, l := range read() {
		if l.Level == "ERROR" {
			errorLines++
		}
	}
	if errorLines > 12 { // one of each part that misses it
		t.Errorf("%d lines at level error in one outage:\n%s", errorLines, log.String())
	}
	if n := count("link is down"); n > 3 { // at most one for each reason
		t.Errorf("%d times that the link is down:\n%s", n, log.String())
	}
	if n := count("redis: connection error"); n < 1 || n > 3 {
		t.Errorf("%d lines of go-redis", n)
	}
	database.Start()
	store.Start()
	until("PostgreSQL is back", func() bool { return count("PostgreSQL commits again") == 1 })
	carrier.Faults(func(f *carriersim.Faults) { f.RefuseConnections = false })
	until("the link is bound", func() bool { return count("link is bound") == 2 })
	if err := process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := process.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if count("shutting down") != 1 || count("ended") != 1 {
		t.Errorf("a clean end is not told:\n%s", log.String())
	}
	if text := log.String(); strings.Contains(text, "canary1") {
		t.Error("a token is in the log")
	}
}
