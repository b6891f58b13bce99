package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"intumwa/configs"
	"intumwa/internal/testenv"
	"intumwa/smpp/carriersim"

	"intumwa/sms"
)

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
