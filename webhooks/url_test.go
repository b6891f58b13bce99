package webhooks

import (
	"errors"
	"strings"
	"testing"

	"intumwa/sms"
)

func TestCheckURL(t *testing.T) {
	long := "https://example.com/" + strings.Repeat("a", maxURLLength)
	for _, test := range []struct {
		url              string
		public, anywhere bool // accepted with, without the guard
	}{
		{"https://example.com/hook", true, true},
		{"https://example.com:443/hook?k=v", true, true},
		{"https://example.com.", true, true},
		{"https://xn--bcher-kva.example/", true, true},
		{"https://93.184.216.34/", true, true},
		{"https://[2606:2800:220:1::1]/", true, true},

		{"http://example.com/", false, true},
		{"https://example.com:8443/", false, true},
		{"http://127.0.0.1:8080/", false, true},
		{"https://127.0.0.1/", false, true},
		{"https://10.1.2.3/", false, true},
		{"https://169.254.169.254/latest/meta-data", false, true},
		{"https://100.64.0.1/", false, true},
		{"https://0.0.0.0/", false, true},
		{"https://[::1]/", false, true},
		{"https://[fd00::1]/", false, true},
		{"https://[fe80::1%25eth0]/", false, true},
		{"https://[::ffff:10.0.0.1]/", false, true},
		{"https://[64:ff9b::7f00:1]/", false, true},
		{"https://localhost/", false, true},
		{"https://api.LOCALHOST./", false, true},

		{"", false, false},
		{"example.com/hook", false, false},
		{"/hook", false, false},
		{"https:", false, false},
		{"https:///hook", false, false},
		{"https://:443/", false, false},
		{"https:example.com", false, false},
		{"ftp://example.com/", false, false},
		{"javascript:alert(1)", false, false},
		{"https://user@example.com/", false, false},
		{"https://user:secret@example.com/", false, false},
		{"https://example.com/#part", false, false},
		{"https://exa mple.com/", false, false},
		{"https://example.com/\r\nX: y", false, false},
		{"https://bücher.example/", false, false},
		{"https://a..b/", false, false},
		{"https://" + strings.Repeat("a", 64) + ".com/", false, false},
		{"https://" + strings.Repeat("a.", 127) + "com/", false, false},
		{"https://example.com:port/", false, false},
		{long, false, false},
	} {
		for guard, want := range map[guard]bool{newGuard(false): test.public, newGuard(true): test.anywhere} {
			err := guard.checkURL(test.url)
			if want != (err == nil) {
				t.Errorf("%.60q, guarded %t: %v", test.url, guard.public != nil, err)
			}
			if err != nil && !errors.As(err, new(sms.Refusal)) {
				t.Errorf("%.60q gives %T, not a refusal", test.url, err)
			}
		}
	}
}

func TestGuardJudgesTheDialledAddress(t *testing.T) {
	g := newGuard(false)
	for address, want := range map[string]bool{
		"93.184.216.34:443": true, "[2606:2800:220:1::1]:443": true,
		"93.184.216.34:80": false, "93.184.216.34:22": false,
		"127.0.0.1:443": false, "127.1.2.3:443": false, "10.0.0.1:443": false, "172.16.0.1:443": false,
		"172.31.255.255:443": false, "192.168.1.1:443": false, "169.254.169.254:443": false,
		"100.64.0.1:443": false, "0.0.0.0:443": false, "192.0.0.1:443": false, "198.18.0.1:443": false,
		"224.0.0.1:443": false, "255.255.255.255:443": false, "[::1]:443": false, "[::]:443": false,
		"[fc00::1]:443": false, "[fe80::1]:443": false, "[fec0::1]:443": false, "[ff02::1]:443": false,
		"[::ffff:127.0.0.1]:443": false, "[64:ff9b::a00:1]:443": false, "[2002:7f00:1::]:443": false,
		"[2001:db8::1]:443": false,
	} {
		network := "tcp4"
		if strings.HasPrefix(address, "[") {
			network = "tcp6"
		}
		err := g.control(network, address, nil)
		if want != (err == nil) {
			t.Errorf("%s: %v", address, err)
		}
		if err != nil {
			if result, _ := resultOfError(err); result != resultBlocked {
				t.Errorf("%s is classed %s", address, result)
			}
		}
	}
	if err := newGuard(true).control("tcp4", "127.0.0.1:9", nil); err != nil {
		t.Errorf("allowed private: %v", err)
	}
}
