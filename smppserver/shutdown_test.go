package smppserver_test

import (
	"testing"
	"time"

	"intumwa/accounts/keys"
	"intumwa/sms"
)

// TestShutdownWithFrozenClient: a program that answers nothing does not take the process's time to end.
func TestShutdownWithFrozenClient(t *testing.T) {
	w := newBank(t, 10, keys.SMPPLimits{})
	p := w.start()
	frozen := w.raw(p, 0x09)
	frozen.ask(pdu(0x04, "\x00\x05\x00ACME\x00\x01\x0125779123456\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x04abcd"))
	w.finish(sms.Sent, "")
	w.until("the receipt is on its way", func() bool {
		return w.count(`SELECT count(*) FROM smpp_deliveries WHERE taken_by IS NOT NULL`) == 1
	})
	began := time.Now()
	p.stop()
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the end took %s", took)
	}
}
