package vault

import (
	"strings"
	"testing"
)

func TestVault(t *testing.T) {
	const secret = "whsec_SW50dW13YSBleGFtcGxlIHNlY3JldCwgMzIgYnl0ZXM="
	locked, other, plain := New(&[32]byte{1}, "company"), New(&[32]byte{2}, "company"), New(nil, "company")
	sealed := locked.Seal(7, secret)
	if strings.Contains(sealed, secret[6:20]) || sealed == locked.Seal(7, secret) {
		t.Error("a sealed secret shows itself or repeats")
	}
	if got, err := locked.Open(7, sealed); got != secret || err != nil {
		t.Errorf("opening: %q, %v", got, err)
	}
	if got, err := locked.Open(7, plain.Seal(7, secret)); got != secret || err != nil {
		t.Errorf("opening one stored in plain: %q, %v", got, err)
	}
	for name, try := range map[string]func() (string, error){
		"another row's":  func() (string, error) { return locked.Open(8, sealed) },
		"another kind's": func() (string, error) { return New(&[32]byte{1}, "user").Open(7, sealed) },
		"not base64":     func() (string, error) { return locked.Open(7, Prefix+"!") },
		"too short":      func() (string, error) { return locked.Open(7, Prefix+"AA") },
		"another key":    func() (string, error) { return other.Open(7, sealed) },
		"no key":         func() (string, error) { return plain.Open(7, sealed) },
		"cut short":      func() (string, error) { return locked.Open(7, sealed[:14]) },
		"changed":        func() (string, error) { return locked.Open(7, sealed[:30]+"AAAA"+sealed[34:]) },
	} {
		if got, err := try(); err == nil || got != "" {
			t.Errorf("%s: opened", name)
		}
	}
}
