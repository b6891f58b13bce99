package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"intumwa/configs"
	"intumwa/internal/testenv"
	"intumwa/sms"
	"intumwa/tools/carriersim"
)

// A failure that goes on is one line a minute with a count. Another link, another reason and a
// failure after a recovery are lines of their own.
func TestRepeatedFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		handler := newRepeats(slog.NewTextHandler(&out, nil))
		log := slog.New(handler)
		wrote := func(step string, want ...string) {
			t.Helper()
			got := slices.Collect(strings.Lines(out.String()))
			out.Reset()
			if len(got) != len(want) {
				t.Fatalf("%s: %d lines, want %d:\n%s", step, len(got), len(want), strings.Join(got, ""))
			}
			for i := range want {
				if !strings.Contains(got[i], want[i]) {
					t.Errorf("%s: %s, want %s", step, got[i], want[i])
				}
			}
		}
		link := log.With("carrier", "leo", "link", "leo-1")
		down := func(why string) { link.Warn("link is down", "error", errors.New(why), "retry_in", time.Second) }
		for n := range 20 {
			down(fmt.Sprintf("dial tcp 127.0.0.1:%d: refused", n))
			time.Sleep(time.Second)
		}
		wrote("twenty times", "refused")
		down("ESME_RINVPASWD")
		wrote("another reason", "ESME_RINVPASWD")
		log.With("carrier", "leo", "link", "leo-2").Warn("link is down", "error", errors.New("x"))
		wrote("another link", "leo-2")
		time.Sleep(time.Minute)
		down("dial tcp 127.0.0.1:7: refused")
		wrote("a minute later", "count=19")
		link.Info("link is bound")
		down("dial tcp 127.0.0.1:7: refused")
		wrote("after a recovery", "link is bound", "link is down")

		for n := range 3 {
			log.Warn("webhook delivery given up", "webhook_id", n)
		}
		wrote("lines about messages", "webhook_id=0", "webhook_id=1", "webhook_id=2")
		for n := range 1000 {
			log.Error("request failed: accepting a message", "path", "/v1/sms", "error", fmt.Errorf("conn %d", n))
		}
		wrote("a thousand requests", "conn 0")
		for n := range 3 * repeatKeys {
			log.Warn("w", "company_id", n)
		}
		if n := len(handler.seen.byKey); n > repeatKeys {
			t.Errorf("%d failures are followed", n)
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

// hostile is a text with all that a terminal obeys: escape sequences in both
// spellings, line ends that would make rows, and what turns a line around.
const hostile = "\x1b[2J\x1b]0;x\a\u009b31m\n99\t2026-01-01\rleo\u2028a\u2029b\u202emoc\u202c\u2066x\u2069\u200f\u061c\x7f\x00"

func obeyedIn(t *testing.T, what, text string) {
	t.Helper()
	if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && sms.IsControl(r) }); i >= 0 {
		t.Errorf("%s: a terminal obeys %q in %q", what, text[i:min(i+10, len(text))], text)
	}
}

// TestWhatTerminalsObey: it stands written out in tables, JSON, errors and both
// forms of the log, and the values of JSON stay what they are.
func TestWhatTerminalsObey(t *testing.T) {
	type row struct {
		ID   int     `json:"id"`
		Text string  `json:"text"`
		More *string `json:"more"`
	}
	text := hostile
	rows := []row{{1, hostile, &text}, {2, "Muraho, ça va? \u4f60\u597d", nil}}
	var table, one, lined bytes.Buffer
	if err := printHuman(&table, rows); err != nil {
		t.Fatal(err)
	}
	if err := printHuman(&one, rows[0]); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(table.String(), "\n"); n != 3 {
		t.Errorf("a table of two rows has %d lines:\n%s", n, table.String())
	}
	if n := strings.Count(one.String(), "\n"); n != 3 {
		t.Errorf("an object of three keys has %d lines:\n%s", n, one.String())
	}
	if !strings.Contains(table.String(), `\x1b[2J`) || !strings.Contains(table.String(), `\u009b31m\n99\t2026`) || !strings.Contains(table.String(), `\u202emoc`) {
		t.Errorf("it is not shown as such:\n%s", table.String())
	}
	if !strings.Contains(table.String(), "Muraho, ça va? \u4f60\u597d") {
		t.Errorf("a text is changed:\n%s", table.String())
	}
	if got := sms.Printable("a\xffb\xc2"); got != `a\xffb\xc2` {
		t.Errorf("octets that are no UTF-8 are shown as %s", got)
	}
	if err := printJSON(&lined, rows); err != nil {
		t.Fatal(err)
	}
	var back []row
	if err := json.Unmarshal(lined.Bytes(), &back); err != nil || back[0].Text != hostile || back[1].Text != rows[1].Text || strings.Count(lined.String(), "\n") != 1 {
		t.Errorf("JSON says %+v, %v", back, err)
	}
	var indented bytes.Buffer
	if err := (adminMessage{Sender: hostile}).human(&indented); err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{"table": table.String(), "object": one.String(), "JSON": lined.String(), "message": indented.String(),
		"error": lines(fmt.Errorf("%s", hostile))} {
		obeyedIn(t, what, text)
	}
	for _, format := range []string{"json", "text"} {
		var out bytes.Buffer
		log := newLog(&out, configs.Log{Format: configs.Word[configs.LogFormat]{Is: configs.LogFormat(format)}})
		log.Info("msg "+hostile, "key "+hostile, hostile, "error", fmt.Errorf("%s", hostile))
		obeyedIn(t, "log "+format, out.String())
		if n := strings.Count(out.String(), "\n"); n != 1 {
			t.Errorf("log %s: one record is %d lines: %q", format, n, out.String())
		}
	}
}

// TestInboundOfHostileHandset: what a handset sends through a carrier comes to
// the operator's terminal as one row, written out.
func TestInboundOfHostileHandset(t *testing.T) {
	carrier := carriersim.New(carriersim.Options{})
	line, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	serving := make(chan error, 2)
	go func() { serving <- carrier.Serve(ctx, line) }()
	client, prefix := testenv.Redis(t)
	redisServer := client.Options()
	s := newShell(t, fmt.Sprintf(`
api: {listen: "127.0.0.1:0"}
ops: {listen: "127.0.0.1:0"}
dashboard: {listen: "127.0.0.1:0"}
database: {url: %q}
redis: {url: "redis://:%s@%s/%d", prefix: %q}
carriers: [{name: leo, default: true, links: [{name: leo-1, address: %q, system_id: a, password: b}]}]
`, testenv.Database(t), redisServer.Password, redisServer.Addr, redisServer.DB, prefix, line.Addr()))
	config, err := configs.Load(s.config, nil)
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{config: config, registry: prometheus.NewRegistry(), roles: []string{"dispatcher"}, log: slog.New(slog.DiscardHandler)}
	go func() { serving <- g.serve(ctx) }()
	defer func() {
		cancel()
		for range 2 {
			if err := <-serving; err != nil {
				t.Error(err)
			}
		}
	}()
	text := "\x1b[2J\n7  2026-11-22T00:00:00Z  leo  leo-1  0  INFO  forged\u202e\u009b1m"
	send := func() bool {
		return carrier.SendMO(carriersim.MO{From: "2577\x1b[1m", To: "INFO\n", Text: text}) == nil
	}
	awaited(t, "a session", send)
	var table string
	awaited(t, "the message", func() bool {
		_, table, _ = s.run("", "admin", "inbound")
		return strings.Contains(table, "forged")
	})
	obeyedIn(t, "admin inbound", table)
	if n := strings.Count(table, "\n"); n != 2 {
		t.Errorf("one message is %d lines:\n%s", n, table)
	}
	code, out, _ := s.run("", "admin", "inbound", "--json")
	obeyedIn(t, "admin inbound --json", out)
	var list []adminInbound
	if err := json.Unmarshal([]byte(out), &list); code != exitOK || err != nil || len(list) != 1 || list[0].Message == nil || *list[0].Message != text {
		t.Errorf("%s (%v)", out, err)
	}
}

func awaited(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !condition(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never came: %s", what)
		}
	}
}
