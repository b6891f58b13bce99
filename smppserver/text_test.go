package smppserver

import (
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"intumwa/smpp"
	"intumwa/smppserver/binds"
	"intumwa/smppserver/statuses"
	"intumwa/sms"
)

// submitted returns a submit_sm with an esm_class, a data_coding and a text in hexadecimal.
func submitted(esm, coding uint8, text string, tlvs ...smpp.TLV) *smpp.Request {
	octets, _ := hex.DecodeString(text)
	return &smpp.Request{ESMClass: esm, DataCoding: coding, ShortMessage: octets, TLVs: tlvs}
}

// TestTextOf: a text is read in the data_codings that programs send, with its class and its place in a long message; what
// cannot be read is refused with its own status.
func TestTextOf(t *testing.T) {
	latin := hex.EncodeToString([]byte("Caf\xe9"))
	sar := func(reference, total, number string) []smpp.TLV {
		value := func(text string) []byte { b, _ := hex.DecodeString(text); return b }
		return []smpp.TLV{{Tag: smpp.TagSARMessageReference, Value: value(reference)}, {Tag: smpp.TagSARSegmentSeqnum, Value: value(number)}, {Tag: smpp.TagSARTotalSegments, Value: value(total)}}
	}
	for _, c := range []struct {
		name    string
		request *smpp.Request
		text    string
		part    sms.Part
		class   int // -1: none
		status  smpp.Status
	}{
		{"GSM 7-bit", submitted(0, 0, "00416d61686f726f1b65"), "@Amahoro€", sms.Part{}, -1, 0},
		{"Latin-1 in data_coding 0", submitted(0, 0, latin), "Café", sms.Part{}, -1, 0},
		{"UTF-8 in data_coding 0", submitted(0, 0, hex.EncodeToString([]byte("Café"))), "Café", sms.Part{}, -1, 0},
		{"ASCII", submitted(0, 1, "4040"), "@@", sms.Part{}, -1, 0},
		{"GSM 7-bit marked as ASCII", submitted(0, 1, "4300001b65"), "C@@€", sms.Part{}, -1, 0},
		{"Latin-1", submitted(0, 3, latin), "Café", sms.Part{}, -1, 0},
		{"UCS-2", submitted(0, 8, "0041d83cdf0d"), "A🌍", sms.Part{}, -1, 0},
		{"a class", submitted(0, 0x10, "41"), "A", sms.Part{}, 0, 0},
		{"the other form of a class", submitted(0, 0xF1, "41"), "A", sms.Part{}, 1, 0},
		{"a class in UCS-2", submitted(0, 0x18, "0041"), "A", sms.Part{}, 0, 0},
		{"a part", submitted(0x40, 0, "05000307030241"), "A", sms.Part{Reference: 7, Total: 3, Number: 2}, -1, 0},
		{"a part with 16 bits", submitted(0x43, 8, "060804010203010041"), "A", sms.Part{Reference: 0x102, Total: 3, Number: 1}, -1, 0},
		{"a part that cuts pairs", submitted(0x40, 8, "050003070302"+"df0d0041d83c"), "\U0010DF0DA\U0010D83C", sms.Part{Reference: 7, Total: 3, Number: 2}, -1, 0},
		{"one part in all", submitted(0x40, 0, "05000307010141"), "A", sms.Part{}, -1, 0},
		{"sar", submitted(0, 0, "41", sar("0102", "02", "02")...), "A", sms.Part{Reference: 0x102, Total: 2, Number: 2}, -1, 0},
		{"an incomplete sar", submitted(0, 0, "41", sar("0102", "02", "02")[:2]...), "", sms.Part{}, -1, statuses.InvTLV},
		{"part 3 of 2", submitted(0, 0, "41", sar("0102", "02", "03")...), "", sms.Part{}, -1, statuses.InvTLV},
		{"part 0", submitted(0x40, 0, "05000307030041"), "", sms.Part{}, -1, smpp.StatusInvESMClass},
		{"ports", submitted(0x40, 4, "060504158200ff41"), "", sms.Part{}, -1, smpp.StatusInvESMClass},
		{"a receipt", submitted(0x04, 0, "41"), "", sms.Part{}, -1, smpp.StatusInvESMClass},
		{"data", submitted(0, 4, "41"), "", sms.Part{}, -1, smpp.StatusInvDataCoding},
		{"8-bit data with a class", submitted(0, 0xF5, "41"), "", sms.Part{}, -1, smpp.StatusInvDataCoding},
		{"nothing", submitted(0, 0, ""), "", sms.Part{}, -1, smpp.StatusInvMsgLen},
		{"a header alone", submitted(0x40, 0, "050003070301"), "", sms.Part{}, -1, smpp.StatusInvMsgLen},
		{"U+0000", submitted(0, 8, "0000"), "", sms.Part{}, -1, smpp.StatusSubmitFailed},
	} {
		text, form, no := textOf(c.request)
		if no != nil || c.status != 0 {
			if no == nil || no.status != c.status || no.text == "" {
				t.Errorf("%s: %v, want %v", c.name, no, c.status)
			}
			continue
		}
		part, class := sms.Part{}, -1
		if form.Part != nil {
			part = *form.Part
		}
		if form.Class != nil {
			class = int(*form.Class)
		}
		if text != c.text || part != c.part || class != c.class {
			t.Errorf("%s: %q, part %+v, class %d; want %q, %+v, %d", c.name, text, part, class, c.text, c.part, c.class)
		}
	}
}

// TestScheduleOf: times in both forms; a wrong one is refused by the field's status.
func TestScheduleOf(t *testing.T) {
	now := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		schedule, validity string
		send, expire       time.Duration // after now; 0: none
		status             smpp.Status
	}{
		{"", "", 0, 0, 0},
		{"260301140000008+", "", 2 * time.Hour, 0, 0}, // two hours east
		{"260301080000016-", "", 2 * time.Hour, 0, 0},
		{"000000020000000R", "", 2 * time.Hour, 0, 0},
		{"260301090000000+", "", 0, 0, 0}, // past: at once
		{"", "000000000500000R", 0, 5 * time.Minute, 0},
		{"000000010000000R", "000000000500000R", time.Hour, 65 * time.Minute, 0},
		{"", "260302100000000+", 0, 24 * time.Hour, 0},
		{"", "991231235959000+", 0, 72 * time.Hour, 0}, // the longest
		{"260501100000000+", "", 0, 0, smpp.StatusInvSchedule},
		{"260230100000000+", "", 0, 0, smpp.StatusInvSchedule},
		{"26030110000000+", "", 0, 0, smpp.StatusInvSchedule},
		{"2603011000000 0+", "", 0, 0, smpp.StatusInvSchedule},
		{"260301100000000Z", "", 0, 0, smpp.StatusInvSchedule},
		{"", "260301090000000+", 0, 0, smpp.StatusInvExpiry},
		{"", "000000000000000R", 0, 0, smpp.StatusInvExpiry},
		{"", "soon", 0, 0, smpp.StatusInvExpiry},
	} {
		got, no := scheduleOf(&smpp.Request{Schedule: c.schedule, Validity: c.validity}, now)
		if no != nil || c.status != 0 {
			if no == nil || no.status != c.status {
				t.Errorf("%q %q: %v, want %v", c.schedule, c.validity, no, c.status)
			}
			continue
		}
		after := func(at time.Time) time.Duration {
			if at.IsZero() {
				return 0
			}
			return at.Sub(now)
		}
		if after(got.SendAt) != c.send || after(got.ExpireAt) != c.expire {
			t.Errorf("%q %q: %v, %v; want %v, %v", c.schedule, c.validity, after(got.SendAt), after(got.ExpireAt), c.send, c.expire)
		}
	}
}

// TestReceipt: the text and the parameters of a receipt say the same; our own parser reads it.
func TestReceipt(t *testing.T) {
	for _, c := range []struct {
		sent   bool
		reason string
		state  state
		err    string
	}{
		{true, "", stateDelivered, "000"}, {false, "UNDELIV 034", stateUndeliv, "034"}, {false, "EXPIRED 000", stateExpired, "000"}, {false, "expired", stateExpired, "000"},
		{false, "no_receipt", stateUnknown, "000"}, {false, "no_answer", stateUnknown, "000"}, {false, "cancelled", stateDeleted, "000"}, {false, "opted_out", stateRejected, "000"}, {false, "carrier_closed", stateRejected, "000"},
		{false, "ESME_RINVDSTADR", stateRejected, "000"}, {false, "0x00000401", stateRejected, "000"}, {false, "REJECTD 12a", stateRejected, "000"}, {false, "ODD 1004", stateUndeliv, "004"},
	} {
		at := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
		d := binds.Delivery{Number: "+25779123456", Address: "ACME", Sent: &c.sent, Reason: c.reason, SubmittedAt: at, At: at.Add(time.Minute)}
		m := deliver(&d)
		want := "id:" + d.ULID.String() + " sub:001 dlvrd:00" + map[bool]string{true: "1", false: "0"}[c.sent] +
			" submit date:2603011000 done date:2603011001 stat:" + c.state.word + " err:" + c.err + " text:"
		if string(m.ShortMessage) != want || m.ESMClass != 4 || m.Source != "25779123456" || m.SourceTON != 1 || m.Dest != "ACME" || m.DestTON != 5 {
			t.Errorf("%s: %+v\n%s, want\n%s", c.reason, m, m.ShortMessage, want)
		}
		if len(m.TLVs) != 3 || m.TLVs[1].Value[0] != c.state.value || string(m.TLVs[0].Value) != d.ULID.String()+"\x00" {
			t.Errorf("%s: %v", c.reason, m.TLVs)
		}
	}
	mo := deliver(&binds.Delivery{Number: "+25779123456", Address: "8080", Body: strings.Repeat("é", 255)})
	if mo.ESMClass != 0 || mo.DestTON != 3 || len(mo.ShortMessage) != 0 || len(mo.TLVs) != 1 || len(mo.TLVs[0].Value) != 255 {
		t.Errorf("a long MO: %+v", mo)
	}
}

// TestBucket: a burst of one longest message passes at once, then the rate holds; the parts of a message that has begun are
// not cut off, however full the bucket is.
func TestBucket(t *testing.T) {
	now := time.Unix(0, 0)
	b := new(bucket)
	b.set(20, now)
	passed := 0
	for range 1000 {
		if b.take(1, false, now) {
			passed++
		}
	}
	if passed != sms.MaxSegments {
		t.Errorf("%d pass at once, want %d", passed, sms.MaxSegments)
	}
	further := 0
	for range 1000 {
		if b.take(1, true, now) {
			further++
		}
	}
	if further != sms.MaxSegments {
		t.Errorf("%d further parts pass, want %d", further, sms.MaxSegments)
	}
	if b.take(1, false, now.Add(12*time.Second)) { // 240 of the debt of 255
		t.Error("a message passes in debt")
	}
	if !b.take(3, false, now.Add(13*time.Second)) || b.take(1, false, now.Add(13*time.Second)) == false {
		t.Error("a message of several segments does not pass with something left, or leaves no room as long as there is")
	}
}

// TestBucketOutlivesBinds: a key that unbinds and binds again does not begin with a new burst.
func TestBucketOutlivesBinds(t *testing.T) {
	s := New(Rooms{}, Options{})
	now := time.Now()
	b := new(bucket)
	b.set(20, now.Add(-time.Minute))
	s.keys[1] = b
	b.take(200, false, now)
	s.apply(nil, nil, nil, nil)
	if s.bucketOf(1) != b {
		t.Error("a bucket that is not full is forgotten with the last bind")
	}
	b.giveBack(200)
	s.apply(nil, nil, nil, nil)
	if s.bucketOf(1) != nil {
		t.Error("a full bucket is kept")
	}
}

// TestLateAnswer: an answer to a deliver_sm that had counted as unanswered ends the delivery, and without answers the pauses
// between its attempts grow.
func TestLateAnswer(t *testing.T) {
	s := New(Rooms{}, Options{})
	s.courier.late(1, smpp.Result{Outcome: smpp.Accepted})
	s.courier.late(2, smpp.Result{Outcome: smpp.Rejected, Status: smpp.StatusInvDstAddr})
	s.courier.late(3, smpp.Result{Outcome: smpp.Rejected, Status: smpp.StatusMsgQueueFull})
	if over := s.courier.over; len(over) != 2 || !over[0].Done || over[0].ID != 1 || over[1].ID != 2 {
		t.Errorf("%+v", over)
	}
	silent := smpp.Result{Outcome: smpp.NoAnswer}
	first, later := s.courier.outcome(&binds.Delivery{}, silent), s.courier.outcome(&binds.Delivery{Tries: 50}, silent)
	if first.Again != againSilent || later.Again != againLongest {
		t.Errorf("pauses of %s and %s", first.Again, later.Again)
	}
}
