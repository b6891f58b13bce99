package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"intumwa/configs"
	"intumwa/internal/testenv"
	"intumwa/smpp/carriersim"
)

// TestOneMessageInTheLog follows a message by its ULID from the request to the
// webhook, and sees that neither its text nor its number nor a secret is told
// (docs/logs.md).
func TestOneMessageInTheLog(t *testing.T) {
	carrier := carriersim.New(carriersim.Options{})
	line, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	serving := make(chan error, 2)
	go func() { serving <- carrier.Serve(ctx, line) }()
	sink := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer sink.Close()

	door, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := door.Addr().String()
	_ = door.Close()
	client, prefix := testenv.Redis(t)
	redisServer := client.Options()
	s := newShell(t, fmt.Sprintf(`
api: {listen: %q}
ops: {listen: "127.0.0.1:0"}
dashboard: {listen: "127.0.0.1:0"}
database: {url: %q}
redis: {url: "redis://:%s@%s/%d", prefix: %q}
webhooks: {allow_private: true}
carriers: [{name: leo, default: true, links: [{name: leo-1, address: %q, system_id: a, password: canary}]}]
`, address, testenv.Database(t), redisServer.Password, redisServer.Addr, redisServer.DB, prefix, line.Addr()))
	s.admin("correct horse", "user_id email", "user", "create", "--email", "a@example.com", "--name", "A", "--password-stdin")
	company := number(s.admin("", "company_id credits", "company", "create", "--owner", "a@example.com", "--name", "A", "--approved", "--credits", "9")["company_id"])
	s.admin("", "sender_id name approved", "sender", "create", "--company", company, "--name", "INFO", "--approved")
	hook := s.admin("", "company_id url secret active", "webhook", "set", "--company", company, "--url", sink.URL)
	token := fmt.Sprint(s.admin("", "token_id token", "token", "create", "--user", "a@example.com", "--name", "t")["token"])

	config, err := configs.Load(s.config, nil)
	if err != nil {
		t.Fatal(err)
	}
	reader, writer := io.Pipe()
	g := &gateway{config: config, registry: prometheus.NewRegistry(), roles: []string{"api", "dispatcher", "webhooks"},
		log: slog.New(slog.NewJSONHandler(writer, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	go func() {
		err := g.serve(ctx)
		_ = writer.Close()
		serving <- err
	}()
	defer func() {
		cancel()
		_, _ = io.Copy(io.Discard, reader)
		for range 2 {
			if err := <-serving; err != nil {
				t.Error(err)
			}
		}
	}()

	var id string
	var story, all []string
	deadline := time.AfterFunc(5*time.Minute, cancel) // who stops it in a debugger takes his time
	defer deadline.Stop()
	want := []string{"message accepted", "segment answered", "receipt", "message sent", "webhook attempt"}
	for lines := bufio.NewScanner(reader); len(story) < len(want) && lines.Scan(); {
		var entry struct{ Msg, ID string }
		if err := json.Unmarshal(lines.Bytes(), &entry); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		all = append(all, lines.Text())
		switch {
		case entry.Msg == "ready":
			go func() {
				body := []byte(`{"phone_number":"+25779123400","sender":"INFO","message":"a secret text"}`)
				request, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/v1/sms", bytes.NewReader(body))
				request.Header.Set("Authorization", "Bearer "+token)
				request.Header.Set("Content-Type", "application/json")
				if answer, err := http.DefaultClient.Do(request); err == nil {
					_ = answer.Body.Close()
				}
			}()
		case entry.Msg == want[0]:
			id = entry.ID
			fallthrough
		case id != "" && entry.ID == id:
			story = append(story, entry.Msg)
		}
	}
	slices.Sort(story) // an answer and its receipt are written by the same hand, the webhook's line by another
	slices.Sort(want)
	if !slices.Equal(story, want) {
		t.Errorf("the story of %s is %q, want %q:\n%s", id, story, want, strings.Join(all, "\n"))
	}
	for _, line := range all {
		for _, canary := range []string{"secret text", "79123400", "canary", fmt.Sprint(hook["secret"]), token} {
			if strings.Contains(line, canary) {
				t.Errorf("the log tells %q: %s", canary, line)
			}
		}
	}
}
