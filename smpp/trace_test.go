package smpp

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"
)

// TestTraceRedacts: a trace has no text, no whole number and no password, whatever
// esm_class is.
func TestTraceRedacts(t *testing.T) {
	submit := sample()
	submit.Source, submit.Dest = "79111222", "25761000001"
	submit.ShortMessage = []byte("ibanga rikomeye cane")
	submit.ESMClass = 0x40 // no UDH follows: the text must not be shown as one
	submit.TLVs = []TLV{{Tag: TagUserMessageReference, Value: []byte{0x12, 0x34}}, {Tag: 0x1401, Value: []byte("ibanga")}}
	var f frame
	if err := encodeMessage(&f, cmdSubmitSM, submit, true); err != nil {
		t.Fatal(err)
	}
	bind, err := encodeBind(&Options{Account: Account{SystemID: "intumwa", Password: "canary"}, SystemType: "x"},
		asTransceiver, 1)
	if err != nil {
		t.Fatal(err)
	}
	broken := appendPDU(nil, header{cmdDeliverSM, StatusOK, 9}, []byte("ibanga")...)
	for name, raw := range map[string][]byte{"submit": f, "bind": bind, "broken": broken} {
		text, err := json.Marshal(describe(tracedBytes{time.Now(), true, raw}))
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{"ibanga", "6962616e6761", "25761000001", "79111222", "canary"} {
			if strings.Contains(string(text), secret) {
				t.Errorf("%s shows %q: %s", name, secret, text)
			}
		}
	}
	pdu := describe(tracedBytes{time.Now(), true, f})
	if pdu.Source.Address != "7911**22" || pdu.Destination.Address != "25761****01" || *pdu.TextOctets != 20 ||
		pdu.UDH != "" ||
		len(pdu.TLVs) != 2 || pdu.TLVs[0].Value != "1234" || pdu.TLVs[1].Value != "" || pdu.TLVs[1].Octets != 6 {
		t.Errorf("a submit_sm is shown as %+v", pdu)
	}
}

// TestMaskAddress: names and short codes remain; numbers lose their middle, whatever is
// between their digits.
func TestMaskAddress(t *testing.T) {
	for address, want := range map[string]string{"DEMO": "DEMO", "7979": "7979", "": "", "+25761000001": "+25761****01",
		"25761000001": "25761****01",
		"1234567":     "123**67", "12345678": "1234**78", "123456789": "12345**89", "INFO2026": "INFO2026",
		"7-9-7-9-1-1":     "7-9-7-9-1-1",
		"+257 79 123 456": "+257 79 *** *56", "tel:+25779123400": "tel:+25779****00", "257-79123400": "257-79****00",
		"25779123400\n": "25779****00\ufffd", "\x1b[2J7979": "\ufffd[2J7979",
		"\u009b\u202eDEMO\x7f": "\ufffd\ufffdDEMO\ufffd",
		"25\xff779123400":      "25\ufffd779****00", "٢٥٧٧٩١٢٣٤٠٠": "٢٥٧٧٩****٠٠"} {
		if got := maskAddress(address); got != want {
			t.Errorf("%q is shown as %q, want %q", address, got, want)
		}
	}
}

// TestTrace: several clients can trace one link. A slow one gets the number of PDUs that it
// missed; tracing stops with the last client.
func TestTrace(t *testing.T) {
	t.Parallel()
	c := newCarrier(t)
	b, stop := run(t, options(c.ln.Addr().String()))
	defer stop()
	p := c.bound()
	waitBound(t, b)
	ctx, cancel := context.WithCancel(t.Context())
	seen, ended := make(chan TracedPDU, 4096), make(chan error, 2)
	release := make(chan struct{})
	go func() {
		ended <- b.Trace(ctx, func(pdu TracedPDU) error { seen <- pdu; return nil })
	}()
	go func() { // a slow one
		ended <- b.Trace(ctx, func(pdu TracedPDU) error { <-release; seen <- pdu; return nil })
	}()
	until(t, "both look", func() bool { list := b.tracers.list.Load(); return list != nil && len(*list) == 2 })
	for i := range uint32(traceBacklog + 100) {
		p.send(uint32(cmdEnquireLink), 0, i+100)
		if p.next().command != uint32(cmdEnquireLinkResp) {
			t.Fatal("no enquire_link_resp")
		}
	}
	close(release)
	dropped := 0
	for dropped == 0 {
		select {
		case pdu := <-seen:
			dropped += pdu.Dropped
			if pdu.Command != "enquire_link" && pdu.Command != "enquire_link_resp" || pdu.Octets != 16 {
				t.Fatalf("shown: %+v", pdu)
			}
			if len(seen) == 0 && dropped == 0 { // the next PDU carries the number of lost ones
				p.send(uint32(cmdEnquireLink), 0, 50)
				p.next()
			}
		case <-time.After(10 * time.Second):
			t.Fatal("no client got the number of missing PDUs")
		}
	}
	cancel()
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if b.tracers.list.Load() != nil {
		t.Error("somebody looks still")
	}
	gone := errors.New("gone")
	go func() { ended <- b.Trace(t.Context(), func(TracedPDU) error { return gone }) }()
	// A PDU of the bind's own may end it before anybody sees it look.
	until(t, "one looks", func() bool { return b.tracers.list.Load() != nil || len(ended) > 0 })
	p.send(uint32(cmdEnquireLink), 0, 7)
	if err := <-ended; !errors.Is(err, gone) {
		t.Errorf("a trace whose reader has gone ended with %v", err)
	}
}

// FuzzTrace: no PDU, whole or broken, makes the trace panic or show a whole number.
func FuzzTrace(f *testing.F) {
	var submit frame
	if err := encodeMessage(&submit, cmdSubmitSM, sample(), true); err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(submit))
	f.Add(appendPDU(nil, header{cmdDeliverSM, StatusOK, 1},
		[]byte("\x00\x01\x01257\x00\x05\x00DEMO\x00\x44\x00\x00\x00\x00\x00\x00\x00\x00\x02ab")...))
	f.Add(appendPDU(nil, header{cmdDeliverSM, StatusOK, 1},
		[]byte("\x00\x01\x01+257 79 123 456\n\x00\x05\x00\x9bDEMO\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x40id:1 "+
			"stat:DELIVRD err:0")...))
	f.Add(appendPDU(nil, header{cmdSubmitSMResp, StatusOK, 1}, 'a', 0, 4, 40, 0, 1, 90))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) < headerLength {
			return
		}
		pdu := describe(tracedBytes{time.Now(), true, raw})
		for _, a := range []*TracedAddress{pdu.Source, pdu.Destination} {
			if a == nil {
				continue
			}
			shown := strings.Map(func(r rune) rune {
				if unicode.IsDigit(r) {
					return '0'
				}
				return -1
			}, a.Address)
			if len(shown) > 7 {
				t.Errorf("shown: %q", a.Address)
			}
		}
	})
}
