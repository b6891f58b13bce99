package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"intumwa/configs"
	"intumwa/internal/testenv"
)

// freeLoopback is a loopback address that nobody listens on at this moment.
func freeLoopback(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// TestServeDashboard: the role dashboard serves the pages, and its mails go to the mail catcher, whose page shows them.
func TestServeDashboard(t *testing.T) {
	door, smtp, page := freeLoopback(t), freeLoopback(t), freeLoopback(t)
	client, prefix := testenv.Redis(t)
	redisServer := client.Options()
	s := newShell(t, fmt.Sprintf(`
ops: {listen: "127.0.0.1:0"}
dashboard: {listen: %q, public_url: "http://localhost:1", secure_cookies: false}
mail: {server: %q, from: "Intumwa <a@example.com>", tls: none}
database: {url: %q}
redis: {url: "redis://:%s@%s/%d", prefix: %q}
carriers: [{name: leo, default: true, links: [{name: leo-1, address: "127.0.0.1:1", system_id: a}]}]
`, door, smtp, testenv.Database(t), redisServer.Password, redisServer.Addr, redisServer.DB, prefix))
	config, err := configs.Load(s.config, nil)
	if err != nil {
		t.Fatal(err)
	}
	if problems := config.Check(configs.Roles...); len(problems) > 0 {
		t.Fatal(problems)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() {
		ended <- (&mailCatcherCmd{Listen: smtp, Page: page}).Run(ctx, &program{stderr: io.Discard})
	}()
	g := &gateway{config: config, registry: prometheus.NewRegistry(), roles: []string{"dashboard"}, log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	go func() { ended <- g.serve(ctx) }()
	defer func() {
		cancel()
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	}()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		answer, err := http.PostForm("http://"+door+"/sign-up", url.Values{"name": {"Aline"}, "email": {"aline@example.com"}})
		if err == nil {
			text, _ := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			if answer.StatusCode != http.StatusOK || !strings.Contains(string(text), "aline@example.com") { // the page after it
				t.Fatalf("%d %s", answer.StatusCode, text)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		var mails []struct{ To, Text string }
		answer, err := http.Get("http://" + page + "/mails.json")
		if err == nil {
			err = json.NewDecoder(answer.Body).Decode(&mails)
			_ = answer.Body.Close()
		}
		if err == nil && len(mails) > 0 {
			if mails[0].To != "aline@example.com" || !strings.Contains(mails[0].Text, "http://localhost:1/sign-up/") {
				t.Errorf("%+v", mails[0])
			}
			_, token, _ := strings.Cut(mails[0].Text, "http://localhost:1/sign-up/")
			sendsCode(t, "http://"+door, strings.Fields(token)[0])
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no mail: %v, %v", mails, err)
		}
	}
}

// sendsCode: what the pages send is accepted, also where no API is served.
func sendsCode(t *testing.T, base, token string) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser, text := &http.Client{Jar: jar, Timeout: 30 * time.Second}, ""
	for _, form := range []struct {
		path   string
		values url.Values
	}{
		{"/sign-up/" + token, url.Values{"password": {"twelve green bananas"}}},
		{"/company/new", url.Values{"name": {"Isoko"}}},
		{"/test-number", url.Values{"number": {"79123456"}}},
	} {
		answer, err := browser.PostForm(base+form.path, form.values)
		if err != nil {
			t.Fatal(err)
		}
		read, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if text = string(read); answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %s", form.path, answer.StatusCode, text)
		}
	}
	if !strings.Contains(text, "25779123456") {
		t.Errorf("no code was sent:\n%s", text)
	}
}
