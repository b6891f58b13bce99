package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"intumwa/configs"
	"intumwa/sms"
)

// A failure that continues is one line a minute with a count. Another link, another reason and
// a failure after a recovery get lines of their own.
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

// hostile has what a terminal obeys: escape sequences in both forms, line ends that would
// make rows, and bidirectional overrides.
const hostile = "\x1b[2J\x1b]0;x\a\u009b31m\n99\t2026-01-01\rleo\u2028a\u2029b\u202emoc\u202c\u2066x\u2069\u200f\u061c\x7f\x00"

func obeyedIn(t *testing.T, what, text string) {
	t.Helper()
	if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && sms.IsControl(r) }); i >= 0 {
		t.Errorf("%s: a terminal obeys %q in %q", what, text[i:min(i+10, len(text))], text)
	}
}

// TestControlCharactersAreEscaped: in tables, JSON, errors and both forms of the log. The
// values of JSON do not change.
func TestControlCharactersAreEscaped(t *testing.T) {
	type row struct {
		ID   int     `json:"id"`
		Text string  `json:"text"`
		More *string `json:"more"`
	}
	text := hostile
	rows := []row{{1, hostile, &text}, {2, "Muraho, ça va? \u4f60\u597d", nil}}
	var table, one, lined bytes.Buffer
	if err := printHuman(&table, views(rows, func(r row) object { return objectOf(r) })); err != nil {
		t.Fatal(err)
	}
	if err := printHuman(&one, objectOf(rows[0])); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(table.String(), "\n"); n != 3 {
		t.Errorf("a table of two rows has %d lines:\n%s", n, table.String())
	}
	if n := strings.Count(one.String(), "\n"); n != 3 {
		t.Errorf("an object of three keys has %d lines:\n%s", n, one.String())
	}
	if !strings.Contains(table.String(), `\x1b[2J`) || !strings.Contains(table.String(), `\u009b31m\n99\t2026`) ||
		!strings.Contains(table.String(), `\u202emoc`) {
		t.Errorf("it is not shown as such:\n%s", table.String())
	}
	if !strings.Contains(table.String(), "Muraho, ça va? \u4f60\u597d") {
		t.Errorf("a text is changed:\n%s", table.String())
	}
	if got := sms.Printable("a\xffb\xc2"); got != `a\xffb\xc2` {
		t.Errorf("invalid UTF-8 is shown as %s", got)
	}
	if err := printJSON(&lined, rows); err != nil {
		t.Fatal(err)
	}
	var back []row
	if err := json.Unmarshal(lined.Bytes(), &back); err != nil || back[0].Text != hostile ||
		back[1].Text != rows[1].Text || strings.Count(lined.String(), "\n") != 1 {
		t.Errorf("JSON: %+v, %v", back, err)
	}
	var indented bytes.Buffer
	if err := printHuman(&indented, []any{deep{object{{"sender", hostile}}}}); err != nil { // as report invoice does
		t.Fatal(err)
	}
	for what, text := range map[string]string{"table": table.String(), "object": one.String(), "JSON": lined.String(),
		"message": indented.String(),
		"error":   lines(fmt.Errorf("%s", hostile))} {
		obeyedIn(t, what, text)
	}
	for _, format := range []string{"json", "text"} {
		var out bytes.Buffer
		log := newLog(&out, configs.Log{Level: "info", Format: format})
		log.Info("msg "+hostile, "key "+hostile, hostile, "error", fmt.Errorf("%s", hostile))
		obeyedIn(t, "log "+format, out.String())
		if n := strings.Count(out.String(), "\n"); n != 1 {
			t.Errorf("log %s: one record is %d lines: %q", format, n, out.String())
		}
	}
}
