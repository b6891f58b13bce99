package smpp

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"
)

// testCA signs the tests' certificates.
type testCA struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newTestCA(t *testing.T) *testCA {
	ca := &testCA{t: t}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test CA"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	ca.key, ca.cert = ca.sign(template, template, nil)
	return ca
}

func (ca *testCA) sign(template, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*ecdsa.PrivateKey,
	*x509.Certificate) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		ca.t.Fatal(err)
	}
	if signer == nil {
		signer = key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		ca.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		ca.t.Fatal(err)
	}
	return key, cert
}

// certificate issues one for a server or a client.
func (ca *testCA) certificate(name string) tls.Certificate {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if ip := net.ParseIP(name); ip != nil {
		template.DNSNames, template.IPAddresses = nil, []net.IP{ip}
	}
	key, cert := ca.sign(template, ca.cert, ca.key)
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
}

func (ca *testCA) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	return pool
}

func TestTLS(t *testing.T) {
	t.Parallel()
	ca, other := newTestCA(t), newTestCA(t)
	ours := []tls.Certificate{ca.certificate("intumwa")}
	for _, c := range []struct {
		name   string
		server tls.Certificate
		client *tls.Config
		demand tls.ClientAuthType
		fails  string
	}{
		{"by address", ca.certificate("127.0.0.1"), &tls.Config{RootCAs: ca.pool()}, tls.NoClientCert, ""},
		{"by name", ca.certificate("smsc.example"), &tls.Config{RootCAs: ca.pool(), ServerName: "smsc.example"},
			tls.NoClientCert, ""},
		{"wrong name", ca.certificate("smsc.example"), &tls.Config{RootCAs: ca.pool()}, tls.NoClientCert, "TLS handshake"},
		{"wrong CA", other.certificate("127.0.0.1"), &tls.Config{RootCAs: ca.pool()}, tls.NoClientCert, "TLS handshake"},
		{"our certificate", ca.certificate("127.0.0.1"), &tls.Config{RootCAs: ca.pool(), Certificates: ours},
			tls.RequireAndVerifyClientCert, ""},
		{"no certificate of ours", ca.certificate("127.0.0.1"), &tls.Config{RootCAs: ca.pool()},
			tls.RequireAndVerifyClientCert, "certificate required"},
	} {
		t.Run(c.name, func(t *testing.T) {
			sim := newCarrier(t)
			o := options(sim.ln.Addr().String())
			o.TLS = c.client
			b, stop := run(t, o)
			raw := sim.accept()
			secure := tls.Server(raw.conn, &tls.Config{Certificates: []tls.Certificate{c.server}, ClientAuth: c.demand,
				ClientCAs: ca.pool()})
			p := newPeer(t, secure)
			if c.fails != "" {
				_ = secure.Handshake()
				until(t, "refused", func() bool { return strings.Contains(b.Snapshot().LastError, c.fails) })
				return
			}
			p.acceptBind()
			waitBound(t, b)
			if got := secure.ConnectionState().Version; got < tls.VersionTLS12 {
				t.Errorf("version %#x", got)
			}
			if left := time.Until(b.certificateExpiry()); left < 50*time.Minute || left > 70*time.Minute {
				t.Errorf("certificate ends in %s", left)
			}
			results := submit(t, b)
			p.accepted(p.expect(rawSubmit), "sealed")
			if r := result(t, results); r.MessageID != "sealed" {
				t.Errorf("got %+v", r)
			}
			serving := p.serve(p.polite)
			stop()
			serving.Wait()
		})
	}
}

func TestTLSToPlainPort(t *testing.T) {
	t.Parallel()
	c := newCarrier(t)
	o := options(c.ln.Addr().String())
	o.TLS = &tls.Config{}
	o.DialTimeout = 200 * time.Millisecond
	b, _ := run(t, o)
	c.accept() // and never answer
	until(t, "handshake timeout", func() bool { return strings.Contains(b.Snapshot().LastError, "TLS handshake") })
}
