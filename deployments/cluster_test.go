package deployments

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"intumwa/internal/testenv"
	"intumwa/tools/rig"
)

// apiServer is a real API server of Kubernetes with its etcd. No controller runs, so no pod starts.
type apiServer struct {
	*testing.T
	url    string
	client *http.Client
}

// newAPIServer builds tools/apiserver, a module of its own, and starts it.
func newAPIServer(t *testing.T) *apiServer {
	t.Helper()
	etcd, dir, ports := testenv.Tool(t, "etcd"), t.TempDir(), [3]string{}
	for i := range ports {
		ports[i] = rig.FreeAddress()
	}
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	start := func(program string, args ...string) {
		var log bytes.Buffer
		ctx, stop := context.WithCancel(context.Background())
		command := exec.CommandContext(ctx, program, args...)
		command.Dir, command.Stdout, command.Stderr = dir, &log, &log
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			stop()
			_ = command.Wait()
			if t.Failed() {
				t.Logf("%s: %s", filepath.Base(program), log.Bytes()[max(0, log.Len()-2000):])
			}
		})
	}
	program := module(t, "apiserver")
	made, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(made)
	if err != nil {
		t.Fatal(err)
	}
	key := file("key", string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})))
	start(etcd, "--data-dir", filepath.Join(dir, "etcd"), "--listen-client-urls", "http://"+ports[0],
		"--advertise-client-urls", "http://"+ports[0],
		"--listen-peer-urls", "http://"+ports[1], "--initial-advertise-peer-urls", "http://"+ports[1], "--initial-cluster",
		"default=http://"+ports[1])
	host, port, _ := net.SplitHostPort(ports[2])
	start(program, "--etcd-servers", "http://"+ports[0], "--bind-address", host, "--secure-port", port, "--cert-dir", dir,
		"--service-cluster-ip-range", "10.0.0.0/24",
		"--authorization-mode", "AlwaysAllow", "--token-auth-file", file("tokens", "test,admin,1,system:masters\n"),
		"--disable-admission-plugins", "ServiceAccount",
		"--service-account-issuer", "https://"+ports[2], "--service-account-key-file", key,
		"--service-account-signing-key-file", key)
	s := &apiServer{T: t, url: "https://" + ports[2], client: &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}} // it has just made its own certificate
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		if _, code := s.call(http.MethodGet, "/readyz", nil); code == http.StatusOK {
			return s
		}
		if time.Now().After(end) {
			t.Fatal("the API server never answers")
		}
	}
}

// call returns an answer's body and status, or 0 without an answer.
func (s *apiServer) call(method, path string, body []byte) (answer []byte, code int) {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context(), method, s.url+path, bytes.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer test")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/apply-patch+yaml")
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, 0
	}
	defer response.Body.Close()
	answer, _ = io.ReadAll(response.Body)
	return answer, response.StatusCode
}

// apply applies all objects of a chart, as kubectl apply --server-side does; dry: without storing them.
func (s *apiServer) apply(what, manifests string, dry bool) (objects int) {
	s.Helper()
	for _, text := range strings.Split(manifests, "\n---\n") {
		var object struct {
			APIVersion string `yaml:"apiVersion"`
			Kind       string
			Metadata   struct {
				Name        string
				Annotations map[string]string
			}
		}
		if err := yaml.Unmarshal([]byte(text), &object); err != nil {
			s.Fatalf("%s: %v", what, err)
		}
		if object.Kind == "" {
			continue // a comment
		}
		root := "/apis/" + object.APIVersion
		if object.APIVersion == "v1" {
			root = "/api/v1"
		}
		var kinds struct{ Resources []struct{ Name, Kind string } }
		answer, _ := s.call(http.MethodGet, root, nil)
		if err := json.Unmarshal(answer, &kinds); err != nil {
			s.Fatalf("%s: %v: %s", what, err, answer)
		}
		if len(kinds.Resources) == 0 {
			s.Fatalf("%s: %s: %s", what, root, answer)
		}
		plural := ""
		for _, r := range kinds.Resources {
			if r.Kind == object.Kind && !strings.Contains(r.Name, "/") {
				plural = r.Name
			}
		}
		path, query := fmt.Sprintf("%s/namespaces/default/%s/%s", root, plural, object.Metadata.Name),
			"?fieldManager=test&fieldValidation=Strict&force=true"
		if dry {
			query += "&dryRun=All"
		}
		if hook := object.Metadata.Annotations["helm.sh/hook"]; hook != "" { // Helm deletes it before it makes the next one
			_, _ = s.call(http.MethodDelete, path+"?propagationPolicy=Background", nil)
		}
		if answer, code := s.call(http.MethodPatch, path+query, []byte(text)); code != http.StatusOK &&
			code != http.StatusCreated {
			s.Errorf("%s: %s: %d: %s", what, path, code, answer)
		}
		objects++
	}
	return objects
}

// TestChartOnAPIServer: a real API server takes every object of the chart, and an upgrade of it.
func TestChartOnAPIServer(t *testing.T) {
	testenv.Long(t)
	lint, s := module(t, "lint"), newAPIServer(t)
	rendered := func(values ...string) string {
		text, err := chart(t, lint, true, values...)
		if err != nil {
			t.Fatal(text)
		}
		return text
	}
	all := "smppServer: {enabled: true, tls: intumwa-smpp, networks: [196.2.8.0/28]}\nfiles: {secret: " +
		"intumwa-files}\nsecrets: {mail: intumwa-mail}"
	if n := s.apply("a dry run", rendered(all), true); n < 15 {
		t.Errorf("%d objects", n)
	}
	s.apply("installing", rendered(), false)
	s.apply("a dry run of an upgrade", rendered(all+"\nimage: {tag: v9.9.9}\nroles: {api: {replicas: 5}}"), true)
	s.apply("upgrading", rendered(all+"\nimage: {tag: v9.9.9}\nroles: {api: {replicas: 5}}"), false)
}
