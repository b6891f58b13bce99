package smppserver_test

import (
	"testing"

	"intumwa/accounts/keys"
	"intumwa/smpp"
	"intumwa/sms"
)

// TestLostTake: a receipt that the process has taken without knowing it, because the answer of the database was lost,
// still comes, and once.
func TestLostTake(t *testing.T) {
	w := newBank(t, 10, keys.SMPPLimits{})
	p := w.start()
	c := w.bound(p, func(o *smpp.Options) { o.Mode = smpp.Transmitter })
	c.submit(nil)
	w.finish(sms.Sent, "")
	w.exec(`UPDATE smpp_deliveries SET taken_by = (SELECT process FROM smpp_binds)`)
	receiver := w.bound(p, nil)
	w.until("the receipt", func() bool { return len(receiver.deliveries()) > 0 })
	w.until("its end", func() bool { return w.count(`SELECT count(*) FROM smpp_deliveries`) == 0 })
	if n := len(receiver.deliveries()); n != 1 {
		t.Errorf("it came %d times", n)
	}
}

// TestEndingBindGetsNothing: while a bind ends, the receipts of its messages go to another bind of the key.
func TestEndingBindGetsNothing(t *testing.T) {
	w := newBank(t, 10, keys.SMPPLimits{})
	p := w.start()
	ending := w.raw(p, 0x09)
	ending.ask(pdu(0x04, "\x00\x05\x00ACME\x00\x01\x0125779123456\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x04abcd"))
	other := w.bound(p, nil)
	ending.ask(pdu(0x06, "")) // unbind; the connection stays open
	w.finish(sms.Sent, "")
	w.until("the receipt", func() bool { return len(other.deliveries()) > 0 })
	if n := w.count(`SELECT count(*) FROM smpp_binds`); n != 2 {
		t.Errorf("it waited for the end of the other bind: %d binds", n)
	}
}
