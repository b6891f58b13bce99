package deployments

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"intumwa/internal/testenv"
)

// TestProxy: nginx accepts the example apart from names and ports, sets its own X-Forwarded-For, keeps the Host, and
// refuses an oversized body.
func TestProxy(t *testing.T) {
	nginx := testenv.Tool(t, "nginx")
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, r.Header.Get("X-Forwarded-For")+" "+r.Host)
	}))
	defer behind.Close()
	dir := t.TempDir()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"api.example.com"},
		NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"fullchain.pem": {Type: "CERTIFICATE", Bytes: der},
		"privkey.pem": {Type: "PRIVATE KEY", Bytes: key}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	example, err := os.ReadFile("proxy/nginx.conf")
	if err != nil {
		t.Fatal(err)
	}
	free := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		return l.Addr().String()
	}
	front := free()
	server := strings.NewReplacer("listen 443 ssl;", "listen "+front+" ssl;", "listen [::]:443 ssl;", "", "listen 80;",
		"listen "+free()+";", "listen [::]:80;", "",
		"/etc/ssl/intumwa", dir, "127.0.0.1:8080", behind.Listener.Addr().String(), "127.0.0.1:8081",
		behind.Listener.Addr().String()).Replace(string(example))
	whole := "daemon off; error_log stderr; pid " + dir + "/pid;\nevents {}\nhttp {\naccess_log off;\n"
	for _, folder := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		whole += folder + "_temp_path " + dir + "/" + folder + ";\n"
	}
	if os.Geteuid() == 0 {
		whole = "user root;\n" + whole
	}
	config := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(config, []byte(whole+server+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if output, err := exec.CommandContext(t.Context(), nginx, "-t", "-c", config, "-p",
		dir).CombinedOutput(); err != nil || strings.Contains(string(output), "[warn]") {
		t.Fatalf("%v: %s", err, output)
	}
	ctx, stop := context.WithCancel(context.Background())
	process := exec.CommandContext(ctx, nginx, "-c", config, "-p", dir)
	process.Cancel = func() error { return process.Process.Signal(os.Interrupt) }
	process.WaitDelay = 10 * time.Second
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { stop(); _ = process.Wait() }()

	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, ServerName: "api.example.com"}}, Timeout: 20 * time.Second}
	defer client.CloseIdleConnections()
	host := "api.example.com"
	post := func(body io.Reader, length int64) (int, string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+front+"/v1/sms", body)
		if err != nil {
			t.Fatal(err)
		}
		request.Host, request.ContentLength = host, length
		request.Header.Set("X-Forwarded-For", "203.0.113.9")
		answer, err := client.Do(request)
		if err != nil {
			return 0, err.Error()
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(text)
	}
	for end := time.Now().Add(30 * time.Second); ; <-time.After(50 * time.Millisecond) {
		code, text := post(strings.NewReader("{}"), 2)
		if code == http.StatusOK {
			if text != "127.0.0.1 api.example.com" {
				t.Errorf("the gateway hears of %q", text)
			}
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d %s", code, text)
		}
	}
	// On another port the Origin has it, so the Host must too.
	host = "api.example.com:8443"
	if code, text := post(strings.NewReader("{}"), 2); code != http.StatusOK || text != "127.0.0.1 "+host {
		t.Errorf("on another port: %d, and the gateway hears of %q", code, text)
	}
	if code, text := post(strings.NewReader(strings.Repeat("x", 17<<20)),
		17<<20); code != http.StatusRequestEntityTooLarge && !strings.Contains(text, "broken pipe") &&
		!strings.Contains(text, "reset") {
		t.Errorf("17 MiB are answered %d", code)
	}
}

// TestAnotherProxy: the list for other proxies has each header that the example sets. Without X-Forwarded-Proto, /docs
// prints http:// addresses (api/pages.go).
func TestAnotherProxy(t *testing.T) {
	example, err := os.ReadFile("proxy/nginx.conf")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/machines.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(page), "## Another proxy")
	list, _, _ = strings.Cut(list, "\n## ")
	headers := map[string]bool{}
	for _, set := range regexp.MustCompile(`proxy_set_header ([A-Z][\w-]+) `).FindAllSubmatch(example, -1) {
		headers[string(set[1])] = true
	}
	delete(headers, "Connection")
	for header := range headers {
		if !strings.Contains(list, header) {
			t.Errorf("the list does not have %s", header)
		}
	}
	if len(headers) < 3 {
		t.Errorf("the example sets %v", headers)
	}
}
