package smpp

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// rawSubmitFrame writes a submit_sm byte by byte after the specification.
func rawSubmitFrame(m *Submit) []byte {
	b := append([]byte(m.ServiceType), 0, m.SourceTON, m.SourceNPI)
	b = append(append(b, m.Source...), 0, m.DestTON, m.DestNPI)
	b = append(append(b, m.Dest...), 0, m.ESMClass, 0, 0, 0)
	b = append(append(b, m.Validity...), 0, m.RegisteredDelivery, 0, m.DataCoding, 0, byte(len(m.ShortMessage)))
	b = append(b, m.ShortMessage...)
	b = appendTLVs(b, m.TLVs)
	return encodeRaw(packet{rawSubmit, 0, 0, b})
}

func TestEncodeSubmitKeepsCallersMemory(t *testing.T) {
	text := []byte("12345SPARE")
	value := []byte("12345SPARE")
	m := sample()
	m.ShortMessage, m.TLVs = text[:5], []TLV{{0x1401, value[:5]}}
	var f frame
	if err := encodeMessage(&f, cmdSubmitSM, m, true); err != nil {
		t.Fatal(err)
	}
	if string(text) != "12345SPARE" || string(value) != "12345SPARE" {
		t.Errorf("the codec wrote into %q, %q", text, value)
	}
}

func TestSubmitValidation(t *testing.T) {
	for name, change := range map[string]func(*Submit){
		"service_type":     func(m *Submit) { m.ServiceType = "123456" },
		"source_addr":      func(m *Submit) { m.Source = strings.Repeat("1", 21) },
		"destination_addr": func(m *Submit) { m.Dest = "1\x002" },
		"validity_period":  func(m *Submit) { m.Validity = "R" },
		"short_message":    func(m *Submit) { m.ShortMessage = make([]byte, 255) },
		"message_payload":  func(m *Submit) { m.TLVs = []TLV{{TagMessagePayload, []byte("x")}} },
		"TLV 0x0204":       func(m *Submit) { m.TLVs = []TLV{{0x0204, nil}, {0x0204, nil}} },
		"TLV 0x1400":       func(m *Submit) { m.TLVs = []TLV{{0x1400, make([]byte, 65536)}} },
		"TLVs":             func(m *Submit) { m.TLVs = []TLV{{1, make([]byte, 40_000)}, {2, make([]byte, 40_000)}} },
	} {
		m := sample()
		change(m)
		var field *FieldError
		if err := m.validate(); !errors.As(err, &field) || field.Field != name {
			t.Errorf("%s: got %v", name, err)
		}
	}
	m := sample()
	if m.Dest = ""; m.validate() == nil {
		t.Error("no destination was let through")
	}
}

func TestDecodeDelivery(t *testing.T) {
	payload := strings.Repeat("p", maxText)
	udh := "\x05\x00\x03\x01\x02\x01hello"
	for _, c := range []struct {
		name    string
		command command
		body    []byte
		text    string
		tlvs    int
		receipt bool
	}{
		{"plain", cmdDeliverSM, deliverBody(0, 0, "hello"), "hello", 0, false},
		{"empty", cmdDeliverSM, deliverBody(0, 0, ""), "", 0, false},
		{"receipt", cmdDeliverSM, deliverBody(0x04, 0, receiptText), receiptText, 0, true},
		{"UDH stays", cmdDeliverSM, deliverBody(0x40, 0, udh), udh, 0, false},
		{"UDHI without UDH", cmdDeliverSM, deliverBody(0x44, 0, receiptText), receiptText, 0, true},
		{"UDHI and message_payload", cmdDeliverSM, deliverBody(0x40, 0, "", TLV{TagMessagePayload, []byte(udh)}), udh, 0,
			false},
		{"big message_payload", cmdDeliverSM, deliverBody(0x04, 0, "", TLV{TagMessagePayload, []byte(payload)}), payload, 0,
			false},
		{"message_payload beside a text", cmdDeliverSM, deliverBody(0, 0, "hi", TLV{TagMessagePayload, []byte("x")}), "hi", 1,
			false},
		{"vendor TLVs", cmdDeliverSM, deliverBody(0x04, 0, receiptText, TLV{0x1454, []byte("v")}, TLV{0x1418, nil}),
			receiptText, 2, true},
		{"data_sm receipt", cmdDataSM, dataBody(0x04, 0, TLV{TagMessagePayload, []byte(receiptText)}), receiptText, 0, true},
		{"a stray byte behind", cmdDeliverSM, append(deliverBody(0, 0, "hello"), 0), "hello", 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := Reading{}.decode(c.command, c.body, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if string(d.ShortMessage) != c.text || len(d.TLVs) != c.tlvs || (d.Receipt != nil) != c.receipt {
				t.Errorf("got %+v", d)
			}
			if d.Source != "25779000000" || d.Dest != "INTUMWA" || d.SourceTON != 1 || d.DestTON != 5 ||
				d.DataSM != (c.command == cmdDataSM) {
				t.Errorf("got %+v", d)
			}
			if c.receipt && len(c.text) < 1000 && (d.Receipt.ID != "0123456789" || d.Receipt.State != "DELIVRD") {
				t.Errorf("receipt %+v", d.Receipt)
			}
			for i := range len(d.TLVs) - 1 {
				if d.TLVs[i].Tag >= d.TLVs[i+1].Tag {
					t.Error("TLVs are not in order")
				}
			}
		})
	}
}

// A truncated deliver_sm is an error with no invented field, unless it is a receipt with
// its id and state, or a text from a handset: that counts up to its end.
func TestDecodeTruncatedDelivery(t *testing.T) {
	for _, text := range []string{receiptText, "stat:DELIVRD err:000 id:0123456789 text:", "id:0123456789 stat:DELIVRD"} {
		for _, esm := range []byte{0, 4} {
			whole, taken := deliverBody(esm, 0, text), 0
			for n := range whole {
				d, err := Reading{}.decode(cmdDeliverSM, whole[:n], time.Now())
				switch {
				case err != nil:
				case esm == 0 && d.broken != nil && d.Receipt == nil && n > len(whole)-len(text) &&
					strings.HasPrefix(text, string(d.ShortMessage)):
				case d.broken == nil, d.Receipt == nil, d.Receipt.ID != "0123456789", d.Receipt.State != "DELIVRD":
					t.Fatalf("%d of %d bytes: %+v", n, len(whole), d)
				default:
					taken++
				}
			}
			if want := !strings.HasSuffix(text, "DELIVRD"); (taken > 0) != want {
				t.Errorf("esm_class %d, %q: %d cut ones were taken", esm, text, taken)
			}
		}
	}
}

// TestDecodeBrokenDelivery: a receipt with an id and a state is accepted whatever follows
// is broken; one without them is refused. Only TLVs before the break count.
func TestDecodeBrokenDelivery(t *testing.T) {
	id, state := TLV{TagReceiptedMessageID, []byte("0123456789\x00")}, TLV{TagMessageState, []byte{2}}
	cut := func(body []byte) []byte { return append(body, 0x14, 0x01, 0, 50, 1, 2, 3) }
	longer := func(body []byte, text string, by int) []byte { // sm_length exceeds the text
		body[len(body)-len(text)-1] += byte(by)
		return body
	}
	for _, c := range []struct {
		name    string
		command command
		body    []byte
		status  Status // 0: accepted
		tlvs    int
	}{
		{"TLV behind a text", cmdDeliverSM, cut(deliverBody(4, 0, receiptText)), 0, 0},
		{"TLV behind TLVs", cmdDeliverSM, cut(deliverBody(4, 0, "", id, state)), 0, 2},
		{"TLV in data_sm", cmdDataSM, cut(dataBody(4, 0, id, state)), 0, 2},
		{"TLV behind message_payload", cmdDataSM, cut(dataBody(4, 0, TLV{TagMessagePayload, []byte(receiptText)})), 0, 0},
		{"TLV, an intermediate notification", cmdDeliverSM, cut(deliverBody(0x20, 0, receiptText)), 0, 0},
		{"TLV, no id", cmdDeliverSM, cut(deliverBody(4, 0, "stat:DELIVRD", state)), StatusInvOptStream, 0},
		{"TLV, no state", cmdDeliverSM, cut(deliverBody(4, 0, "", id)), StatusInvOptStream, 0},
		{"the TLV that has the id", cmdDeliverSM, append(deliverBody(4, 0, "", state), 0, 0x1E, 0, 9, '0', '1'),
			StatusInvOptStream, 0},
		{"sm_length", cmdDeliverSM, longer(deliverBody(4, 0, receiptText), receiptText, 40), 0, 0},
		{"sm_length, the id may be cut", cmdDeliverSM, longer(deliverBody(4, 0, "stat:DELIVRD id:01"), "stat:DELIVRD id:01",
			1), StatusInvCmdLen, 0},
		{"sm_length, TLVs in its reach", cmdDeliverSM, append(longer(deliverBody(4, 0, receiptText), receiptText, 40), 0,
			0x1E, 0, 2, '9', 0), 0, 0},
		{"sm_length, UCS-2", cmdDeliverSM, longer(deliverBody(4, 8, wide("id:0123456789 stat:DELIVRD err:")),
			wide("id:0123456789 stat:DELIVRD err:"), 7), 0, 0},
		{"no sm_length", cmdDeliverSM, deliverBody(4, 0, "")[:len(deliverBody(4, 0, ""))-1], StatusInvCmdLen, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := Reading{}.decode(c.command, c.body, time.Now())
			if c.status != 0 {
				var bad *decodeError
				if !errors.As(err, &bad) || bad.status != c.status {
					t.Errorf("%+v, %v", d, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d.broken == nil || d.Receipt.ID != "0123456789" || d.Receipt.State != "DELIVRD" || len(d.TLVs) != c.tlvs {
				t.Errorf("got %+v, receipt %+v", d, d.Receipt)
			}
		})
	}
}

// A receipt in a broken PDU is delivered, answered and counted as malformed.
func TestBrokenReceiptIsTaken(t *testing.T) {
	t.Parallel()
	reg, got := prometheus.NewRegistry(), make(chan *Delivery, 1)
	_, p, _ := newBound(t, func(o *Options) {
		o.Metrics, o.Deliver = NewMetrics(reg), func(d *Delivery) { got <- d; d.Respond(StatusOK) }
	})
	p.send(rawDeliver, 0, 7, append(deliverBody(4, 0, receiptText), 0x14, 0x01, 0, 50, 1, 2, 3)...)
	if resp := p.expect(rawDeliverResp); resp.status != 0 || resp.sequence != 7 {
		t.Fatalf("answered %+v", resp)
	}
	if d := <-got; d.Receipt == nil || d.Receipt.ID != "0123456789" {
		t.Errorf("got %+v", d)
	}
	if n := series(t, reg)["intumwa_smpp_malformed_pdus_total{}"]; n != 1 {
		t.Errorf("%v are counted", n)
	}
}

func FuzzDelivery(f *testing.F) {
	f.Add(false, deliverBody(4, 0, receiptText))
	f.Add(false, deliverBody(0x44, 8, "", TLV{TagMessagePayload, []byte(receiptText)}))
	f.Add(true, dataBody(4, 0, TLV{TagReceiptedMessageID, []byte("1\x00")}, TLV{TagMessageState, []byte{2}}))
	f.Add(false, []byte("\x00\x00\x00\x00"))
	f.Add(false, append(deliverBody(4, 0, receiptText, TLV{TagMessageState, []byte{2}}), 0x14, 0x01, 0, 50, 1, 2, 3))
	f.Add(false, deliverBody(4, 0, receiptText)[:120])
	f.Fuzz(func(t *testing.T, data bool, body []byte) {
		cmd := cmdDeliverSM
		if data {
			cmd = cmdDataSM
		}
		before := bytes.Clone(body)
		d, err := Reading{}.decode(cmd, body, time.Now())
		if !bytes.Equal(before, body) {
			t.Fatal("decoding changed the bytes")
		}
		if err != nil {
			var bad *decodeError
			if !errors.As(err, &bad) || bad.status == StatusOK {
				t.Fatalf("%v: nothing to answer it with", err)
			}
			return
		}
		if d.broken != nil && d.broken.status != StatusOK &&
			(d.Receipt == nil || d.Receipt.ID == "" || d.Receipt.State == "") && (d.Receipt != nil || len(d.ShortMessage) == 0) {
			t.Errorf("%v, and neither a receipt nor a text: %+v", d.broken, d)
		}
		size := len(d.ShortMessage) + len(d.Source) + len(d.Dest) + len(d.ServiceType)
		for _, v := range d.TLVs {
			size += len(v.Value)
		}
		if size > len(body) {
			t.Errorf("%d bytes out of %d", size, len(body))
		}
	})
}

func BenchmarkEncodeSubmit(b *testing.B) {
	m := sample()
	m.ESMClass = 0x40
	var f frame
	b.ReportAllocs()
	for b.Loop() {
		if err := m.validate(); err != nil {
			b.Fatal(err)
		}
		if err := encodeMessage(&f, cmdSubmitSM, m, true); err != nil {
			b.Fatal(err)
		}
	}
}

func decodeReceipt(t testing.TB) func() {
	body := deliverBody(4, 0, receiptText, TLV{TagReceiptedMessageID, []byte("0123456789\x00")},
		TLV{TagMessageState, []byte{2}})
	return func() {
		d, err := Reading{}.decode(cmdDeliverSM, body, time.Time{})
		if err != nil || d.Receipt == nil {
			t.Fatal(err)
		}
	}
}

func BenchmarkDecodeReceipt(b *testing.B) {
	decode := decodeReceipt(b)
	b.ReportAllocs()
	for b.Loop() {
		decode()
	}
}

// TestDecodeAllocatesLittle: a receipt takes ten allocations; the codec took 44.
func TestDecodeAllocatesLittle(t *testing.T) {
	if n := testing.AllocsPerRun(100, decodeReceipt(t)); n > 12 {
		t.Errorf("%.0f allocations a receipt", n)
	}
}
