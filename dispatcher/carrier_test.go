package dispatcher

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	"intumwa/smpp"
	"intumwa/sms"
)

func TestMeaning(t *testing.T) {
	c := Carrier{States: map[string]sms.Status{"ACCEPTD": sms.Pending, "UNKNOWN": sms.Failed, "OK": sms.Sent}}
	for state, want := range map[string]sms.Status{
		"DELIVRD": sms.Sent, "UNDELIV": sms.Failed, "EXPIRED": sms.Failed, "REJECTD": sms.Failed, "DELETED": sms.Failed, "SKIPPED": sms.Failed,
		"ACCEPTD": sms.Pending, "UNKNOWN": sms.Failed, "OK": sms.Sent,
		"ENROUTE": sms.Pending, "SCHEDULED": sms.Pending, "BUFFRED": sms.Pending, "": sms.Pending, "delivrd": sms.Pending,
	} {
		if status, final := c.meaning(state); status != want || final != (want != sms.Pending) {
			t.Errorf("%q means %v, final %v; want %v", state, status, final, want)
		}
	}
	plain := Carrier{}
	if status, final := plain.meaning("ACCEPTD"); status != sms.Sent || !final {
		t.Errorf("ACCEPTD by default: %v, %v", status, final)
	}
	if _, final := plain.meaning("UNKNOWN"); final {
		t.Error("UNKNOWN by default is final")
	}
}

// TestClass: the class of every status (rule carriers 3.9). A carrier may override it.
func TestClass(t *testing.T) {
	classes := map[smpp.Class][]smpp.Status{
		smpp.ClassPermanent:  {0x01, 0x0A, 0x61, 0x62, 0x65, 0x66},
		smpp.ClassUnroutable: {0x0B},
		smpp.ClassThrottled:  {0x14, 0x58},
		smpp.ClassSession:    {0x04},
		smpp.ClassConfiguration: {0x02, 0x03, 0x06, 0x07, 0x15, 0x33, 0x34, 0x40, 0x42, 0x43, 0x44, 0x48, 0x49, 0x50, 0x51, 0x53, 0x54, 0x55, 0x63,
			0xC0, 0xC1, 0xC2, 0xC3, 0xC4, 0x104},
	}
	want := map[smpp.Status]smpp.Class{}
	for status := smpp.Status(1); status <= 0x4FF; status++ {
		want[status] = smpp.ClassTemporary
	}
	for class, list := range classes {
		for _, status := range list {
			want[status] = class
		}
	}
	for status, class := range want {
		if got := (&Carrier{}).class(status); got != class {
			t.Errorf("%v is %v, want %v", status, got, class)
		}
	}
	c := Carrier{Classes: map[smpp.Status]smpp.Class{0x0B: smpp.ClassTemporary, 0x401: smpp.ClassPermanent}}
	if c.class(0x0B) != smpp.ClassTemporary || c.class(0x401) != smpp.ClassPermanent || c.class(0x402) != smpp.ClassTemporary {
		t.Error("the carrier's own classes do not count")
	}
}

// TestLinkEqual: a link whose TLS files are reread with the same content is the same
// link, so a reload keeps its bind.
func TestLinkEqual(t *testing.T) {
	link := func(change func(*tls.Config)) *Link {
		l := &Link{Options: smpp.Options{Name: "l", TLS: &tls.Config{RootCAs: x509.NewCertPool(), Certificates: []tls.Certificate{{Certificate: [][]byte{{1}}}}}}}
		change(l.TLS)
		return l
	}
	one := link(func(*tls.Config) {})
	if !one.equal(link(func(*tls.Config) {})) {
		t.Error("two links with the same files differ")
	}
	for name, change := range map[string]func(*tls.Config){
		"another certificate": func(c *tls.Config) { c.Certificates[0].Certificate[0][0] = 2 },
		"another name":        func(c *tls.Config) { c.ServerName = "smsc.example" },
		"another authority":   func(c *tls.Config) { c.RootCAs.AddCert(&x509.Certificate{Raw: []byte{1}}) },
	} {
		if one.equal(link(change)) {
			t.Errorf("%s makes the same link", name)
		}
	}
	if one.equal(&Link{Options: smpp.Options{Name: "l"}}) {
		t.Error("a link without TLS is the same")
	}
}

// TestRetryDelay: doubles from RetryMin to RetryMax, with jitter within these
// bounds. rule choices 7.2
func TestRetryDelay(t *testing.T) {
	c := Carrier{Name: "c"}
	if err := c.defaults(); err != nil {
		t.Fatal(err)
	}
	for attempt, want := range map[int]time.Duration{
		0: time.Second, 1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 6: 32 * time.Second, 7: time.Minute, 19: time.Minute, 20: time.Minute, 1 << 40: time.Minute,
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
	if err := c.defaults(); err != nil || c.OnReceiptTimeout != sms.Failed || c.ReceiptTimeout != time.Hour || c.RetryMin != time.Second ||
		c.RetryMax != time.Minute || c.FailoverAfter != 10*time.Second {
		t.Errorf("%+v, %v", c, err)
	}
	kept := Carrier{Name: "c", OnReceiptTimeout: sms.Sent, ReceiptTimeout: 2, RetryMin: 3, RetryMax: 4, FailoverAfter: 5}
	if err := kept.defaults(); err != nil || kept.OnReceiptTimeout != sms.Sent || kept.ReceiptTimeout != 2 || kept.RetryMin != 3 || kept.RetryMax != 4 || kept.FailoverAfter != 5 {
		t.Errorf("%+v, %v", kept, err)
	}
	for hold, taken := range map[time.Duration]bool{40 * time.Second: false, 41 * time.Second: true} {
		c := Carrier{Name: "c", Links: []Link{{Options: smpp.Options{UnknownHold: hold}}}}
		if err := c.defaults(); (err == nil) != taken {
			t.Errorf("unknown_hold %s, and a dead session found out after 40s: %v", hold, err)
		}
	}
	if err := (&Carrier{}).defaults(); err == nil {
		t.Error("a carrier without a name was taken")
	}
}
