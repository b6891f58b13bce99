package sms_test

import (
	"testing"

	"intumwa/sms"
)

// TestFromCarrier: every form in which carriers write a national number gives the same number, and nothing else does.
func TestFromCarrier(t *testing.T) {
	for _, address := range []string{"79123456", "079123456", "+079123456", "25779123456", "+25779123456", "0025779123456",
		"00025779123456", "025779123456",
		"257079123456", "+257079123456", "00257079123456", "+0025779123456", "257 79 12 34 56", "+257-79-12-34-56",
		"(257) 79.12.34.56",
		" 79123456 ", "\u200e+25779123456", "257\u00a079123456", "257\u201179123456", "+257 (0)79 12 34 56"} {
		if got, ok := sms.FromCarrier(address); !ok || got != "+25779123456" {
			t.Errorf("%q is %q, %v", address, got, ok)
		}
	}
	for _, address := range []string{"", "8080", "ACME", "+79123456", "0079123456", "0067612345", "+67612345", "+8080",
		"250788123456", "0788123456", "788123456", "2577912345",
		"257791234567", "2570791234567", "0000025779123456", "7912345x", "hidden", "257", "00000000", "+", "٧٩١٢٣٤٥٦"} {
		if got, ok := sms.FromCarrier(address); ok {
			t.Errorf("%q is %q", address, got)
		}
	}
}
