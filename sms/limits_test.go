package sms

import "testing"

func TestValidSender(t *testing.T) {
	for name, want := range map[string]bool{"A": true, "ISOKO": true, "z09AZaz": true, "ELEVENCHARS": true, "": false,
		"TWELVECHARSX": false, "ISO KO": false,
		" ISOKO": false, "ISO-KO": false, "É": false, "ISOKO\n": false, "A\x00": false, "٣": false} {
		if ValidSender(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}
