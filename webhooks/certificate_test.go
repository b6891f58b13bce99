package webhooks

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log"
	"log/slog"
	"math/big"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// issued is a certificate with its key.
type issued struct {
	*x509.Certificate

	key *ecdsa.PrivateKey
}

// issue makes a certificate; parent nil: it signs itself.
func issue(t *testing.T, name string, authority bool, parent *issued) *issued {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: authority, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	if parent == nil {
		parent = &issued{template, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent.Certificate, &key.PublicKey, parent.key)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &issued{made, key}
}

// TestCertificateFaults: an attempt explains what is wrong with the server's chain, and the log repeats it.
func TestCertificateFaults(t *testing.T) {
	root := issue(t, "Root X1", true, nil)
	first := issue(t, "Intermediate R3", true, root)
	second := issue(t, "Intermediate R4", true, first)
	leaf := issue(t, "hooks.example.com", false, second)
	alone := issue(t, "hooks.example.com", false, nil)
	other := issue(t, "Unrelated", true, nil)
	long := issue(t, "leaf", false, issue(t, strings.Repeat("endless ", 1000), true, nil))
	for name, test := range map[string]struct {
		chain []*issued
		want  string
	}{
		"without the intermediate": {[]*issued{leaf}, "chain is incomplete: the server does not send the intermediate " +
			"certificate of CN=Intermediate R4 "},
		"without the second of two": {[]*issued{leaf, second},
			"chain is incomplete: the server does not send the intermediate certificate of CN=Intermediate R3 "},
		"with an unrelated one": {[]*issued{leaf, other},
			"chain is incomplete: the server does not send the intermediate certificate of CN=Intermediate R4 "},
		"without the root": {[]*issued{leaf, second, first},
			"chain is incomplete: the server does not send the intermediate certificate of CN=Root X1 "},
		"in another order": {[]*issued{leaf, root, first, second},
			"ends at an authority that is not a public one: CN=Root X1"},
		"signed by itself": {[]*issued{alone}, "self-signed"},
		"an endless name":  {[]*issued{long}, "…"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			certificate := tls.Certificate{PrivateKey: test.chain[0].key}
			for _, c := range test.chain {
				certificate.Certificate = append(certificate.Certificate, c.Raw)
			}
			s := httptest.NewUnstartedServer(status(200))
			s.Config.ErrorLog = log.New(io.Discard, "", 0)
			s.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
			s.StartTLS()
			t.Cleanup(s.Close)
			a := attempt(t, quickly(), s.URL)
			if a.Result != resultTLS || !strings.Contains(a.Error, test.want) || len(a.Error) > 400 {
				t.Errorf("%s: %q", a.Result, a.Error)
			}
		})
	}
}

// TestLogNamesTheFault: the line about a failing endpoint has the explanation.
func TestLogNamesTheFault(t *testing.T) {
	var mu sync.Mutex
	var lines strings.Builder
	opts := quickly()
	opts.Log = slog.New(slog.NewTextHandler(writer(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return lines.Write(p)
	}), nil))
	w := New(batchPool(t), opts)
	setEndpoint(t, w, 1, selfSigned(t))
	run(t, w)
	enqueue(t, w, 1, 1, 1)
	w.Kick()
	inState(t, w, 1, StateFailed)
	mu.Lock()
	defer mu.Unlock()
	if !strings.Contains(lines.String(), "event=webhook_call_failed") ||
		!strings.Contains(lines.String(), `error="the certificate is self-signed`) {
		t.Error(lines.String())
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }
