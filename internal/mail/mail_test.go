package mail

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"intumwa/tools/mailcatcher"
)

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// run runs a part until the test ends.
func run(t *testing.T, part func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- part(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestSend: a mail arrives unchanged, and the mail catcher's page shows it.
func TestSend(t *testing.T) {
	catcher, smtp, web := mailcatcher.New(), listen(t), listen(t)
	run(t, func(ctx context.Context) error { return catcher.ServeSMTP(ctx, smtp) })
	run(t, func(ctx context.Context) error { return catcher.ServePage(ctx, web) })
	m, err := New(Options{Server: smtp.Addr().String(), From: "Intumwa <no-reply@example.com>", TLS: Plain})
	if err != nil {
		t.Fatal(err)
	}
	run(t, m.Run)
	text := "Amahoro, c’est prêt :\n\nhttps://example.com/sign-up/" + strings.Repeat("x", 100) + "\n\n=2E <b>\n"
	m.Send(Message{Kind: "test", To: "aline@example.com", Subject: "Votre clé\r\nBcc: other@example.com", Text: text})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	got, err := catcher.Wait(ctx, "aline@example.com", 0)
	if err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(got.Text) != strings.TrimSpace(text) || !strings.HasPrefix(got.Subject, "Votre clé") ||
		len(catcher.Mails()) != 1 {
		t.Errorf("%+v", got)
	}
	response, err := http.Get("http://" + web.Addr().String() + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	page, _ := io.ReadAll(response.Body)
	if !strings.Contains(string(page), `<a href="https://example.com/sign-up/xxx`) ||
		strings.Contains(string(page), "<b>") {
		t.Errorf("%s", page)
	}
}

// TestLogs: a mail is tried four times; its address and text are not logged.
func TestLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines bytes.Buffer
		log := slog.New(slog.NewTextHandler(&lines, nil))
		m, err := New(Options{Log: log})
		if err != nil {
			t.Fatal(err)
		}
		mail := Message{Kind: "test", To: "canary@example.com", Subject: "canary", Text: "canary"}
		m.Send(mail)
		if !strings.Contains(lines.String(), "not sent") {
			t.Errorf("without a server: %s", &lines)
		}
		closed := listen(t)
		closed.Close()
		if m, err = New(Options{Server: closed.Addr().String(), From: "a@example.com", TLS: Plain, Log: log}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = m.Run(ctx) })
		m.Send(mail)
		mail.To = "canary\r\nRCPT TO:<b@example.com>"
		m.Send(mail)
		time.Sleep(10 * time.Minute)
		cancel()
		running.Wait()
		if again, given := strings.Count(lines.String(), "trying again later"),
			strings.Count(lines.String(), "given up"); again != 3 || given != 2 || len(m.places) != 0 {
			t.Errorf("%d mails are kept:\n%s", len(m.places), &lines)
		}
		for range maxWaiting + 1 {
			m.Send(mail)
		}
		if strings.Contains(lines.String(), "canary") || !strings.Contains(lines.String(), "too many wait") {
			t.Errorf("%s", &lines)
		}
	})
}

func TestOptions(t *testing.T) {
	for _, o := range []Options{{Server: "mail.example.com"}, {Server: "mail.example.com:25"},
		{Server: "mail.example.com:25", From: "x"}} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}

// TestDeliver: the callback of a stored mail runs once the mail is done.
func TestDeliver(t *testing.T) {
	catcher, smtp, closed := mailcatcher.New(), listen(t), listen(t)
	run(t, func(ctx context.Context) error { return catcher.ServeSMTP(ctx, smtp) })
	closed.Close()
	good := Message{Kind: "test", To: "aline@example.com", Subject: "a", Text: "b"}
	bad := Message{Kind: "test", To: "invalid", Subject: "a", Text: "b"}
	for name, try := range map[string]struct {
		server  string
		message Message
		last    bool
		done    bool
		result  string // metric label; empty: nothing yet
	}{
		"no server":  {"", good, false, true, "unconfigured"},
		"taken":      {smtp.Addr().String(), good, false, true, "sent"},
		"no address": {smtp.Addr().String(), bad, false, true, "failed"},
		"away":       {closed.Addr().String(), good, false, false, ""},
		"given up":   {closed.Addr().String(), good, true, true, "failed"},
	} {
		registry := prometheus.NewRegistry()
		m, err := New(Options{Server: try.server, From: "Intumwa <no-reply@example.com>", TLS: Plain, Metrics: registry})
		if err != nil {
			t.Fatal(err)
		}
		if done := m.Deliver(t.Context(), try.message, 1, try.last); done != try.done {
			t.Errorf("%s: done is %v", name, done)
		}
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, each := range families[0].GetMetric() {
			result, n := each.GetLabel()[0].GetValue(), each.GetCounter().GetValue()
			if n != 0 && result != try.result || n != 1 && result == try.result {
				t.Errorf("%s: %v %s", name, n, result)
			}
		}
	}
	if len(catcher.Mails()) != 1 {
		t.Errorf("%d mails came", len(catcher.Mails()))
	}
}
