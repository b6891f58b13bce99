package setup

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	"intumwa/smpp"
	"intumwa/sms"
)

// TestLinkEqual: a link whose TLS files are reread with the same content is the same
// link, so a reload keeps its bind.
func TestLinkEqual(t *testing.T) {
	link := func(change func(*tls.Config)) *Link {
		l := &Link{Options: smpp.Options{Name: "l",
			TLS: &tls.Config{RootCAs: x509.NewCertPool(), Certificates: []tls.Certificate{{Certificate: [][]byte{{1}}}}}}}
		change(l.TLS)
		return l
	}
	one := link(func(*tls.Config) {})
	if !one.Equal(link(func(*tls.Config) {})) {
		t.Error("two links with the same files differ")
	}
	for name, change := range map[string]func(*tls.Config){
		"another certificate": func(c *tls.Config) { c.Certificates[0].Certificate[0][0] = 2 },
		"another name":        func(c *tls.Config) { c.ServerName = "smsc.example" },
		"another authority":   func(c *tls.Config) { c.RootCAs.AddCert(&x509.Certificate{Raw: []byte{1}}) },
	} {
		if one.Equal(link(change)) {
			t.Errorf("%s makes the same link", name)
		}
	}
	if one.Equal(&Link{Options: smpp.Options{Name: "l"}}) {
		t.Error("a link without TLS is the same")
	}
}

// TestRetryDelay: doubles from RetryMin to RetryMax, with jitter within these
// bounds. rule choices 7.2
func TestRetryDelay(t *testing.T) {
	c := Carrier{Name: "c"}
	if err := c.Defaults(); err != nil {
		t.Fatal(err)
	}
	for attempt, want := range map[int]time.Duration{
		0: time.Second, 1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 6: 32 * time.Second, 7: time.Minute,
		19: time.Minute, 20: time.Minute, 1 << 40: time.Minute,
	} {
		for _, random := range []float64{0, 0.5, 0.999999} {
			got := c.retryDelay(attempt, random)
			jittered := min(max(time.Duration(float64(want)*(0.75+random/2)), time.Second), time.Minute)
			if got != jittered {
				t.Errorf("attempt %d, random %v: %v, want %v", attempt, random, got, jittered)
			}
		}
	}
	if a, b := c.retryDelay(4, 0), c.retryDelay(4, 0.9); a == b {
		t.Error("no jitter")
	}
	odd := Carrier{RetryMin: time.Minute, RetryMax: time.Second}
	if got := odd.retryDelay(3, 0.5); got != time.Second {
		t.Errorf("a minimum above the maximum: %v", got)
	}
}

func TestCarrierDefaults(t *testing.T) {
	c := Carrier{Name: "c"}
	if err := c.Defaults(); err != nil || c.OnReceiptTimeout != sms.Failed || c.ReceiptTimeout != time.Hour ||
		c.RetryMin != time.Second ||
		c.RetryMax != time.Minute || c.FailoverAfter != 10*time.Second {
		t.Errorf("%+v, %v", c, err)
	}
	kept := Carrier{Name: "c", OnReceiptTimeout: sms.Sent, ReceiptTimeout: 2, RetryMin: 3, RetryMax: 4, FailoverAfter: 5}
	if err := kept.Defaults(); err != nil || kept.OnReceiptTimeout != sms.Sent || kept.ReceiptTimeout != 2 ||
		kept.RetryMin != 3 || kept.RetryMax != 4 || kept.FailoverAfter != 5 {
		t.Errorf("%+v, %v", kept, err)
	}
	for hold, taken := range map[time.Duration]bool{40 * time.Second: false, 41 * time.Second: true} {
		c := Carrier{Name: "c", Links: []Link{{Options: smpp.Options{UnknownHold: hold}}}}
		if err := c.Defaults(); (err == nil) != taken {
			t.Errorf("unknown_hold %s, and a dead session found out after 40s: %v", hold, err)
		}
	}
	if err := (&Carrier{}).Defaults(); err == nil {
		t.Error("a carrier without a name was taken")
	}
}
