package smppserver

import (
	"encoding/hex"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

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

// TestTextOf: a text is read in the data_codings that programs send, with its class and its place in a long message;
// what cannot be read is refused with its own status.
func TestTextOf(t *testing.T) {
	latin := hex.EncodeToString([]byte("Caf\xe9"))
	sar := func(reference, total, number string) []smpp.TLV {
		value := func(text string) []byte { b, _ := hex.DecodeString(text); return b }
		return []smpp.TLV{{Tag: smpp.TagSARMessageReference, Value: value(reference)},
			{Tag: smpp.TagSARSegmentSeqnum, Value: value(number)}, {Tag: smpp.TagSARTotalSegments, Value: value(total)}}
	}
	const ucs2 = sms.CodingUCS2
	part := func(number uint8, coding sms.Coding) sms.Part {
		return sms.Part{Reference: 7, Total: 3, Number: number, Coding: coding}
	}
	swapped := new(orders).swappedFor
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
		{"a part with 16 bits", submitted(0x43, 8, "060804010203010041"), "A",
			sms.Part{Reference: 0x102, Total: 3, Number: 1, Wide: true, Coding: ucs2}, -1, 0},
		{"a part that cuts pairs", submitted(0x40, 8, "050003070302"+"df0d0041d83c"), "\U0010DF0DA\U0010D83C", part(2, ucs2),
			-1, 0},
		{"a part that cuts a code unit", submitted(0x40, 8, "050003070302"+"004100"), "A\U00100000", part(2, ucs2), -1, 0},
		{"a part that cuts an escape pair", submitted(0x40, 0, "050003070302"+"411b"), "A\U0010001B", part(2, sms.CodingGSM7),
			-1, 0},
		{"a part in Latin-1", submitted(0x40, 3, "050003070302"+"e7ff40"), "çÿ@", part(2, sms.CodingLatin1), -1, 0},
		{"a part marked as ASCII", submitted(0x40, 1, "050003070302"+"40245f"), "@$_", part(2, sms.CodingGSM7), -1, 0},
		{"a part of GSM 7-bit marked as ASCII", submitted(0x40, 1, "050003070302"+"00021b"), "@$\U0010001B",
			part(2, sms.CodingGSM7), -1, 0},
		{"a part in Latin-1 in data_coding 0", submitted(0x40, 0, "050003070302"+"e7ea21"), "ce!", part(2, sms.CodingGSM7),
			-1, 0},
		{"a part in UTF-8 that cuts characters", submitted(0x40, 0, "050003070302"+"a9c3a9c3"), "é", part(2, sms.CodingGSM7),
			-1, 0},
		{"a part of Cyrillic in data_coding 0", submitted(0x40, 0, "050003070302"+"d0b6"), "", sms.Part{}, -1,
			smpp.StatusInvDataCoding},
		{"a part with a byte order mark", submitted(0x40, 8, "050003080301"+"fffe4100"), "A",
			sms.Part{Reference: 8, Total: 3, Number: 1, Coding: ucs2}, -1, 0},
		{"the next part of it", submitted(0x40, 8, "050003080302"+"4200"), "B",
			sms.Part{Reference: 8, Total: 3, Number: 2, Coding: ucs2}, -1, 0},
		{"a big-endian mark", submitted(0, 8, "feff0041"), "A", sms.Part{}, -1, 0},
		{"a little-endian mark", submitted(0, 8, "fffe4100"), "A", sms.Part{}, -1, 0},
		{"a mark in UTF-8", submitted(0, 0, "efbbbf41c3a9"), "Aé", sms.Part{}, -1, 0},
		{"a mark alone", submitted(0, 8, "feff"), "", sms.Part{}, -1, smpp.StatusInvMsgLen},
		{"a counted NUL", submitted(0, 3, "4100"), "A", sms.Part{}, -1, 0},
		{"a counted NUL in UCS-2", submitted(0, 8, "00410000"), "A", sms.Part{}, -1, 0},
		{"half a counted NUL in UCS-2", submitted(0, 8, "004100"), "A", sms.Part{}, -1, 0},
		{"NULs behind UTF-8", submitted(0, 0, "c3a90000"), "é", sms.Part{}, -1, 0},
		{"a counted NUL in the last part", submitted(0x40, 8, "050003070303"+"004100"), "A", part(3, ucs2), -1, 0},
		{"NULs alone", submitted(0, 3, "0000"), "", sms.Part{}, -1, smpp.StatusInvMsgLen},
		{"an @ at the end", submitted(0, 0, "4100"), "A@", sms.Part{}, -1, 0},
		{"esm_class 0x08", submitted(0x08, 0, "41"), "A", sms.Part{}, -1, 0},
		{"esm_class 0x10", submitted(0x10, 0, "41"), "A", sms.Part{}, -1, 0},
		{"esm_class 0x48", submitted(0x48, 0, "05000307030241"), "A", part(2, sms.CodingGSM7), -1, 0},
		{"sar of zeros", submitted(0, 0, "41", sar("0000", "00", "00")...), "A", sms.Part{}, -1, 0},
		{"the sar reference alone", submitted(0, 0, "41", sar("0102", "02", "02")[:1]...), "A", sms.Part{}, -1, 0},
		{"sar of one part", submitted(0, 0, "41", sar("0102", "01", "01")...), "A", sms.Part{}, -1, 0},
		{"sar in other lengths", submitted(0, 0, "41", sar("07", "0003", "00000002")...), "A", part(2, sms.CodingGSM7), -1,
			0},
		{"part 1 of none", submitted(0, 0, "41", sar("0102", "00", "01")...), "", sms.Part{}, -1, statuses.InvTLV},
		{"sar without a reference", submitted(0, 0, "41", sar("0102", "02", "02")[1:]...), "", sms.Part{}, -1,
			statuses.InvTLV},
		{"a UDH of zeros", submitted(0x40, 0, "05000300000041"), "A", sms.Part{}, -1, 0},
		{"one part in all", submitted(0x40, 0, "05000307010141"), "A", sms.Part{}, -1, 0},
		{"sar", submitted(0, 0, "41", sar("0102", "02", "02")...), "A", sms.Part{Reference: 0x102, Total: 2, Number: 2}, -1,
			0},
		{"an incomplete sar", submitted(0, 0, "41", sar("0102", "02", "02")[:2]...), "", sms.Part{}, -1, statuses.InvTLV},
		{"part 3 of 2", submitted(0, 0, "41", sar("0102", "02", "03")...), "", sms.Part{}, -1, statuses.InvTLV},
		{"part 0", submitted(0x40, 0, "05000307030041"), "", sms.Part{}, -1, smpp.StatusInvESMClass},
		{"ports", submitted(0x40, 4, "060504158200ff41"), "", sms.Part{}, -1, smpp.StatusInvESMClass},
		{"a receipt", submitted(0x04, 0, "41"), "", sms.Part{}, -1, smpp.StatusInvESMClass},
		{"data", submitted(0, 4, "41"), "", sms.Part{}, -1, smpp.StatusInvDataCoding},
		{"8-bit data with a class", submitted(0, 0xF5, "41"), "", sms.Part{}, -1, smpp.StatusInvDataCoding},
		{"nothing", submitted(0, 0, ""), "", sms.Part{}, -1, smpp.StatusInvMsgLen},
		{"a header alone", submitted(0x40, 0, "050003070301"), "", sms.Part{}, -1, smpp.StatusInvMsgLen},
		{"U+0000", submitted(0, 8, "00000041"), "", sms.Part{}, -1, smpp.StatusSubmitFailed},
	} {
		text, form, no := textOf(c.request, false, swapped)
		if no != nil || c.status != 0 {
			if no == nil || no.status != c.status || no.text == "" {
				t.Errorf("%s: %v, want %v", c.name, no, c.status)
			}
			continue
		}
		got, class := sms.Part{}, -1
		if form.Part != nil {
			got = *form.Part
		}
		if form.Class != nil {
			class = int(*form.Class)
		}
		if text != c.text || got != c.part || class != c.class {
			t.Errorf("%s: %q, part %+v, class %d; want %q, %+v, %d", c.name, text, got, class, c.text, c.part, c.class)
		}
	}
	for _, c := range []struct {
		name    string
		request *smpp.Request
		text    string
		part    sms.Part
	}{
		{"ASCII", submitted(0, 0, "40245f00"), "@$_", sms.Part{}},
		{"a part", submitted(0x40, 0, "050003070302"+"4024e7"), "@$ç", part(2, sms.CodingLatin1)},
		{"a part with a class", submitted(0x40, 0x10, "050003070302"+"4024e7"), "@$c", part(2, sms.CodingGSM7)},
		{"data_coding 1", submitted(0, 1, "40"), "@", sms.Part{}},
	} {
		text, form, no := textOf(c.request, true, swapped)
		if no != nil || text != c.text || form.Part != nil && *form.Part != c.part || form.Part == nil && c.part.Total > 0 {
			t.Errorf("a key of Latin-1, %s: %q, %+v, %v", c.name, text, form.Part, no)
		}
	}
}

// FuzzTextOf: any text is read, or refused with a status and an explanation. A part fits in the coding in which it goes
// out.
func FuzzTextOf(f *testing.F) {
	for _, coding := range []uint8{0, 1, 3, 8, 0xF1} {
		f.Add(uint8(0), coding, []byte("A\x1b\xe9\x00"), uint16(7), uint8(0), uint8(0))
		f.Add(uint8(0x40), coding, []byte("\x05\x00\x03\x07\x03\x02\xff\xfeA\x00\xc3"), uint16(0), uint8(0), uint8(0))
		f.Add(uint8(0x48), coding, []byte("\x06\x08\x04\x01\x02\x03\x03\x1b"), uint16(7), uint8(3), uint8(2))
	}
	f.Fuzz(func(t *testing.T, esm, coding uint8, octets []byte, reference uint16, total, number uint8) {
		r := &smpp.Request{ESMClass: esm, DataCoding: coding, ShortMessage: octets, TLVs: []smpp.TLV{
			{Tag: smpp.TagSARMessageReference, Value: []byte{byte(reference >> 8), byte(reference)}},
			{Tag: smpp.TagSARTotalSegments, Value: []byte{total}}, {Tag: smpp.TagSARSegmentSeqnum, Value: []byte{number}}}}
		if esm&esmUDHI != 0 && (len(octets) == 0 || int(octets[0]) >= len(octets)) { // smpp refuses it
			return
		}
		for _, latin1 := range []bool{false, true} {
			text, form, no := textOf(r, latin1, new(orders).swappedFor)
			switch {
			case no != nil && (no.text == "" || no.status == 0), no == nil &&
				(text == "" || !utf8.ValidString(text) || strings.ContainsRune(text, 0)):
				t.Fatalf("%q, %v", text, no)
			case no == nil && form.Part != nil && form.Part.Coding.Text(form.Part.Coding.Octets(text)) != text:
				t.Fatalf("%q goes out as %x", text, form.Part.Coding.Octets(text))
			}
		}
	})
}

func (o *orders) swappedFor(p sms.Part, marked bool) bool {
	return o.swapped(order{1, "", p.Reference, p.Total}, marked)
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
			t.Errorf("%q %q: %v, %v; want %v, %v", c.schedule, c.validity, after(got.SendAt), after(got.ExpireAt), c.send,
				c.expire)
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
		{true, "", stateDelivered, "000"}, {false, "UNDELIV 034", stateUndeliv, "034"},
		{false, "EXPIRED 000", stateExpired, "000"}, {false, "expired", stateExpired, "000"},
		{false, "no_receipt", stateUnknown, "000"}, {false, "no_answer", stateUnknown, "000"},
		{false, "cancelled", stateDeleted, "000"}, {false, "opted_out", stateRejected, "000"},
		{false, "carrier_closed", stateRejected, "000"},
		{false, "ESME_RINVDSTADR", stateRejected, "000"}, {false, "0x00000401", stateRejected, "000"},
		{false, "REJECTD 12a", stateRejected, "000"}, {false, "ODD 1004", stateUndeliv, "004"},
	} {
		at := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
		d := binds.Delivery{Number: "+25779123456", Address: "ACME", Sent: &c.sent, Reason: c.reason, SubmittedAt: at,
			At: at.Add(time.Minute)}
		d.Echo = []byte("\x02\x04\x00\x02\x01\x02\x02\x0a\x00\x02\x1f\x90")
		m := deliver(&d, false)
		want := "id:" + d.ULID.String() + " sub:001 dlvrd:00" + map[bool]string{true: "1", false: "0"}[c.sent] +
			" submit date:2603011000 done date:2603011001 stat:" + c.state.word + " err:" + c.err + " text:"
		if string(m.ShortMessage) != want || m.ESMClass != 4 || m.Source != "25779123456" || m.SourceTON != 1 ||
			m.Dest != "ACME" || m.DestTON != 5 {
			t.Errorf("%s: %+v\n%s, want\n%s", c.reason, m, m.ShortMessage, want)
		}
		if len(m.TLVs) != 5 || m.TLVs[3].Tag != 0x0204 || string(m.TLVs[4].Value) != "\x1f\x90" ||
			m.TLVs[1].Value[0] != c.state.value || string(m.TLVs[0].Value) != d.ULID.String()+"\x00" {
			t.Errorf("%s: %v", c.reason, m.TLVs)
		}
	}
	mo := deliver(&binds.Delivery{Number: "+25779123456", Address: "8080", Body: strings.Repeat("é", 255)}, false)
	if mo.ESMClass != 0 || mo.DestTON != 3 || len(mo.ShortMessage) != 0 || len(mo.TLVs) != 1 ||
		len(mo.TLVs[0].Value) != 255 {
		t.Errorf("a long MO: %+v", mo)
	}
}

// TestBucket: a burst of one longest message passes at once, then the rate holds; the parts of a message that has begun
// are not cut off, however full the bucket is.
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
	s := New(Deps{}, Options{})
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
	if err := s.renew(t.Context()); err != nil { // without a bind
		t.Error(err)
	}
	if s.bucketOf(1) != nil {
		t.Error("a full bucket is kept")
	}
}

// TestLateAnswer: an answer to a deliver_sm that had counted as unanswered ends the delivery, and without answers the
// pauses between its attempts grow.
func TestLateAnswer(t *testing.T) {
	s := New(Deps{}, Options{})
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
