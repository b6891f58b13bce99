package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"intumwa/configs"
	"intumwa/internal/testenv"
	"intumwa/tools/mailcatcher"
	"intumwa/tools/rig"
)

// TestRolesOnOneMachine: every role runs as a process of its own with one configuration, as its unit starts it. A trace
// finds the dispatcher without its address.
func TestRolesOnOneMachine(t *testing.T) {
	t.Parallel()
	carrier, smsc := playCarrier(t, "leo", "")
	rdb, prefix := testenv.Redis(t)
	at := map[string]string{}
	for _, role := range configs.Roles {
		at[role] = rig.FreeAddress()
	}
	s := newShell(t, fmt.Sprintf(`
database: {url: %q}
redis: {url: %q, prefix: %q}
api: {listen: %q}
ops: {listen: %q}
dashboard: {listen: "127.0.0.1:0"}
carriers: [{name: leo, prefixes: ["71"], links: [{name: leo-1, address: %q, system_id: demo, password: demo, `+
		`enquire_link: 1s}]}]
`, testenv.Database(t), redisURL(rdb), prefix, rig.FreeAddress(), at["dispatcher"], smsc))
	var log safeBuffer
	for _, role := range configs.Roles {
		if code, _, stderr := s.run("", "config", "check", "--roles", role); code != exitOK { // what its unit does first
			t.Fatalf("config check --roles %s: %s", role, stderr)
		}
		process := exec.Command(os.Args[0], "serve", "--roles", role, "--config", s.config)
		process.Env = append(os.Environ(), asProgram+"=1", "INTUMWA_OPS_LISTEN="+at[role])
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
		eventually(t, role+" is ready", func() bool {
			answer, err := http.Get("http://" + address + "/readyz")
			if err == nil {
				answer.Body.Close()
			}
			return err == nil && answer.StatusCode == http.StatusOK
		})
	}
	eventually(t, "leo is bound", func() bool { return carrier.Stats().Sessions > 0 })
	code, out, stderr := s.run("", "admin", "link", "trace", "--name", "leo-1", "--seconds", "3")
	if code != exitOK || !strings.Contains(out, "enquire_link") {
		t.Errorf("trace: %d %q %q", code, out, stderr)
	}
	s.refused("--ops names the operators' listener", "", "admin", "link", "trace", "--name", "leo-1", "--ops",
		"http://"+at["api"])
	s.refused("it serves no links", "", "admin", "link", "trace", "--name", "leo-1", "--ops", "http://"+at["api"])
}

// serveRole serves one role with a mail server until the test ends, and returns its shell and the mails.
func serveRole(t *testing.T, role, door string) (*shell, *mailcatcher.Catcher) {
	t.Helper()
	catcher := mailcatcher.New()
	smtp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	client, prefix := testenv.Redis(t)
	redisServer := client.Options()
	s := newShell(t, fmt.Sprintf(`
ops: {listen: "127.0.0.1:0"}
dashboard: {listen: %q, public_url: "http://localhost:1"}
mail: {url: "smtp://%s", from: "Intumwa <a@example.com>"}
database: {url: %q}
redis: {url: "redis://:%s@%s/%d", prefix: %q}
carriers: [{name: leo, default: true, links: [{name: leo-1, address: "127.0.0.1:1", system_id: a}]}]
`, door, smtp.Addr(), testenv.Database(t), redisServer.Password, redisServer.Addr, redisServer.DB, prefix))
	config, err := configs.Load(s.config, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- catcher.ServeSMTP(ctx, smtp) }()
	g := &gateway{config: config, registry: prometheus.NewRegistry(), roles: []string{role},
		log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	go func() { ended <- g.serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
	return s, catcher
}

// firstMail returns the first mail to an address.
func firstMail(t *testing.T, catcher *mailcatcher.Catcher, to string) mailcatcher.Mail {
	t.Helper()
	limited, done := context.WithTimeout(t.Context(), 30*time.Second)
	defer done()
	mail, err := catcher.Wait(limited, to, 0)
	if err != nil {
		t.Fatal(err)
	}
	return mail
}

// TestServeWebhooks: the role webhooks sends the further parts of campaigns and the mails to owners, and counts for the
// charts. No dashboard runs.
func TestServeWebhooks(t *testing.T) {
	t.Parallel()
	s, catcher := serveRole(t, "webhooks", rig.FreeAddress())
	s.exec(`insert into users (email, name, password_hash, language) values ('a@example.com', 'A', 'none', 'en')`)
	s.admin("", "company_id credits", "company", "create", "--owner", "a@example.com", "--name", "A", "--credits", "7",
		"--verified")
	s.exec(`insert into senders (company_id, name, country, approved) values (1, 'ISOKO', 'BI', true)`)
	if code, _, stderr := s.run("", "admin", "company", "set", "--id", "1", "--approved"); code != exitOK {
		t.Fatal(stderr)
	}
	if mail := firstMail(t, catcher, "a@example.com"); !strings.Contains(mail.Text, "http://localhost:1/") {
		t.Errorf("%+v", mail)
	}
	s.exec(`with begun as (insert into campaigns (ulid, company_id, name, sender, template, taken_until)
		values ('019a0000-0000-7000-8000-000000000001', 1, 'x', 'ISOKO', 'Hi', now()) returning ulid),
			rows as (insert into campaign_rows (campaign, n, line, number, variables, segments, ucs2, opted_out, repeated)
				select ulid, n, n, '+2577900000' || n, '{}', 1, false, false, false from begun, generate_series(1, 3) n)
		insert into batches (ulid, company_id, user_id, kind, sender, recipients_count, item_count, awaited)
			select ulid, 1, 1, 'template', 'ISOKO', 1, 1, 2 from begun`)
	eventually(t, "the rest is accepted, charged and counted", func() (done bool) {
		if err := s.pool().QueryRow(t.Context(), `select (select count(*) from messages where body = 'Hi') = 2
			and (select credits from balances) = 5
			and not exists (select from campaigns) and exists (select from tallies)`).Scan(&done); err != nil {
			t.Fatal(err)
		}
		return done
	})
}

// TestServeDashboard: the role dashboard serves the pages, and its e-mails reach the mail catcher.
func TestServeDashboard(t *testing.T) {
	t.Parallel()
	door := rig.FreeAddress()
	_, catcher := serveRole(t, "dashboard", door)
	eventually(t, "the pages are served", func() bool {
		answer, err := http.PostForm("http://"+door+"/sign-up", url.Values{"name": {"Aline"}, "email": {"aline@example.com"}})
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		if answer.StatusCode != http.StatusOK || answer.Request.URL.Path != "/sent" {
			t.Fatalf("%d %s", answer.StatusCode, text)
		}
		return true
	})
	mail := firstMail(t, catcher, "aline@example.com")
	_, token, found := strings.Cut(mail.Text, "http://localhost:1/sign-up/")
	if !found {
		t.Fatalf("%+v", mail)
	}
	sendsCode(t, "http://"+door, strings.Fields(token)[0])
}

// sendsCode: the dashboard can send without the role api: the code of a test number, and the example of a new key, once
// for two clicks.
func sendsCode(t *testing.T, base, token string) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar, Timeout: 30 * time.Second}
	post := func(path string, values url.Values) string {
		answer, err := browser.PostForm(base+path, values)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		if answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %s", path, answer.StatusCode, text)
		}
		return string(text)
	}
	post("/sign-up/"+token, url.Values{"password": {"twelve green bananas"}})
	post("/company/new", url.Values{"name": {"Isoko"}})
	if text := post("/test-number", url.Values{"number": {"79123456"}}); !strings.Contains(text, "25779123456") {
		t.Errorf("no code was sent:\n%s", text)
	}
	text, run := post("/keys", url.Values{"name": {"Till"}}), url.Values{}
	for _, field := range regexp.MustCompile(`name="(made|number|key)" value="([^"]*)"`).FindAllStringSubmatch(text, -1) {
		run.Set(field[1], html.UnescapeString(field[2]))
	}
	ids := map[string]bool{}
	for range 2 {
		text = html.UnescapeString(post("/keys/run", run))
		ids[regexp.MustCompile(`"id": "[0-9A-Z]{26}"`).FindString(text)] = true
		if !strings.Contains(text, "HTTP 200") || !strings.Contains(text, `"status": "queued"`) ||
			!strings.Contains(text, `"to": "+25701000001"`) || len(ids) != 1 {
			t.Errorf("the example was not sent once (%v):\n%s", ids, text)
		}
	}
}

// TestOneMessageInTheLog follows a message by its ULID from the request to the webhook.
// The log has neither its text nor its number nor a secret (docs/logs.md).
func TestOneMessageInTheLog(t *testing.T) {
	t.Parallel()
	_, smsc := playCarrier(t, "leo", "")
	ctx, cancel := context.WithCancel(t.Context())
	serving := make(chan error, 1)
	sink := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer sink.Close()

	address := rig.FreeAddress()
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
`, address, testenv.Database(t), redisServer.Password, redisServer.Addr, redisServer.DB, prefix, smsc))
	s.admin("correct horse", "user_id email", "user", "create", "--email", "a@example.com", "--name", "A",
		"--password-stdin")
	company := number(s.admin("", "company_id credits", "company", "create", "--owner", "a@example.com", "--name", "A",
		"--approved", "--credits", "9")["company_id"])
	s.admin("", "sender_id name approved", "sender", "create", "--company", company, "--name", "INFO", "--approved")
	hook := s.admin("", "company_id url secret active", "webhook", "set", "--company", company, "--url", sink.URL)
	token := fmt.Sprint(s.admin("", "token_id token", "token", "create", "--user", "a@example.com", "--name",
		"t")["token"])

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
		if err := <-serving; err != nil {
			t.Error(err)
		}
	}()

	var id string
	var story, all []string
	deadline := time.AfterFunc(5*time.Minute, cancel) // long enough for a debugger
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
	slices.Sort(story) // the response and its receipt share a goroutine, the webhook's line does not
	slices.Sort(want)
	if !slices.Equal(story, want) {
		t.Errorf("the story of %s is %q, want %q:\n%s", id, story, want, strings.Join(all, "\n"))
	}
	for _, line := range all {
		for _, canary := range []string{"secret text", "79123400", "canary", fmt.Sprint(hook["secret"]), token} {
			if strings.Contains(line, canary) {
				t.Errorf("the log contains %q: %s", canary, line)
			}
		}
	}
}
