package carriersim

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"time"
)

const umr = "\x02\x04\x00\x02\x12\x34" // user_message_reference 0x1234

// sm is a submit_sm under construction. It is encoded by hand to test the decoder
// independently.
type sm struct {
	service, to, from  string
	srcTON, srcNPI     byte
	dstTON, dstNPI     byte
	esm, pid, priority byte
	schedule, validity string
	registered         byte
	replace, coding    byte
	defaultID          byte
	text               string // bytes
	length             int    // sm_length, if wrong
	tlvs               string
}

func usual(to, text string) sm {
	return sm{to: to, from: "DEMO", srcTON: 5, dstTON: 1, dstNPI: 1, registered: 1, text: text}
}

func (m sm) body() []byte {
	var b bytes.Buffer
	b.WriteString(m.service + "\x00")
	b.Write([]byte{m.srcTON, m.srcNPI})
	b.WriteString(m.from + "\x00")
	b.Write([]byte{m.dstTON, m.dstNPI})
	b.WriteString(m.to + "\x00")
	b.Write([]byte{m.esm, m.pid, m.priority})
	b.WriteString(m.schedule + "\x00" + m.validity + "\x00")
	length := len(m.text)
	if m.length > 0 {
		length = m.length
	}
	b.Write([]byte{m.registered, m.replace, m.coding, m.defaultID, byte(length)})
	b.WriteString(m.text + m.tlvs)
	return b.Bytes()
}

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// TestStrict has one row per error of a submit_sm.
func TestStrict(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*sm)
		want   Status
	}{
		"nothing":                     {func(*sm) {}, OK},
		"numeric source":              {func(m *sm) { m.srcTON, m.srcNPI, m.from = 1, 1, "25779000000" }, OK},
		"short code":                  {func(m *sm) { m.srcTON, m.srcNPI, m.from = 3, 0, "1234" }, OK},
		"service_type long":           {func(m *sm) { m.service = "WAPPUS" }, InvalidService},
		"service_type binary":         {func(m *sm) { m.service = "\x01" }, InvalidService},
		"source long":                 {func(m *sm) { m.srcTON, m.from = 1, strings.Repeat("1", 21) }, InvalidSource},
		"source of 12 letters":        {func(m *sm) { m.from = "ABCDEFGHIJKL" }, InvalidSource},
		"source empty":                {func(m *sm) { m.from = "" }, InvalidSource},
		"source NPI":                  {func(m *sm) { m.srcNPI = 1 }, InvalidSourceNPI},
		"source NPI reserved":         {func(m *sm) { m.srcNPI = 2 }, InvalidSourceNPI},
		"source TON reserved":         {func(m *sm) { m.srcTON, m.from = 7, "1" }, InvalidSourceTON},
		"letters in a numeric source": {func(m *sm) { m.srcTON = 1 }, InvalidSource},
		"destination with +":          {func(m *sm) { m.to = "+25779000000" }, InvalidDest},
		"destination empty":           {func(m *sm) { m.to = "" }, InvalidDest},
		"destination national":        {func(m *sm) { m.to = "079000" }, InvalidDest},
		"destination TON":             {func(m *sm) { m.dstTON = 5 }, InvalidDestTON},
		"destination NPI":             {func(m *sm) { m.dstNPI = 7 }, InvalidDestNPI},
		"esm_class a receipt's":       {func(m *sm) { m.esm = 4 }, InvalidESMClass},
		"UDH without its bit":         {func(m *sm) { m.text = "\x05\x00\x03\x01\x02\x01a" }, InvalidESMClass},
		"UDH bit without UDH":         {func(m *sm) { m.esm, m.text = 0x40, "\x7fabc" }, InvalidLength},
		"UDH bit without text":        {func(m *sm) { m.esm, m.text = 0x40, "" }, InvalidLength},
		"UDH element cut":             {func(m *sm) { m.esm, m.text = 0x40, "\x02\x00\x03a" }, InvalidLength},
		"UDH element short":           {func(m *sm) { m.esm, m.text = 0x40, "\x04\x00\x02\x01\x01a" }, InvalidLength},
		"segment 0":                   {func(m *sm) { m.esm, m.text = 0x40, "\x05\x00\x03\x01\x02\x00a" }, InvalidLength},
		"segment 3 of 2":              {func(m *sm) { m.esm, m.text = 0x40, "\x05\x00\x03\x01\x02\x03a" }, InvalidLength},
		"segment with UDH": {func(m *sm) {
			m.esm, m.text = 0x40, "\x05\x00\x03\x01\x02\x02"+
				strings.Repeat("a", 153)
		}, OK},
		"segment of 154": {func(m *sm) {
			m.esm, m.text = 0x40, "\x05\x00\x03\x01\x02\x02"+
				strings.Repeat("a", 154)
		}, InvalidLength},
		"16-bit segment of 152": {func(m *sm) {
			m.esm, m.text = 0x40, "\x06\x08\x04\x01\x01\x02\x02"+
				strings.Repeat("a", 152)
		}, OK},
		"16-bit segment of 153": {func(m *sm) {
			m.esm, m.text = 0x40, "\x06\x08\x04\x01\x01\x02\x02"+
				strings.Repeat("a", 153)
		}, InvalidLength},
		"priority":                     {func(m *sm) { m.priority = 4 }, InvalidPriority},
		"registered_delivery 3":        {func(m *sm) { m.registered = 3 }, InvalidRegistered},
		"registered_delivery reserved": {func(m *sm) { m.registered = 0x21 }, InvalidRegistered},
		"replace_if_present":           {func(m *sm) { m.replace = 2 }, InvalidReplace},
		"default message":              {func(m *sm) { m.defaultID = 255 }, InvalidDefaultMsg},
		"data_coding":                  {func(m *sm) { m.coding = 11 }, InvalidDataCoding},
		"validity relative":            {func(m *sm) { m.validity = "000001000000000R" }, OK},
		"validity absolute":            {func(m *sm) { m.validity = "260504120100000+" }, OK},
		"validity absolute, offset":    {func(m *sm) { m.validity = "260504140100008+" }, OK},
		"validity over":                {func(m *sm) { m.validity = "260504115900000+" }, InvalidExpiry},
		"validity over, offset":        {func(m *sm) { m.validity = "260504135900008+" }, InvalidExpiry},
		"validity short":               {func(m *sm) { m.validity = "000001000000" }, InvalidExpiry},
		"validity long":                {func(m *sm) { m.validity = "000001000000000RR" }, InvalidExpiry},
		"validity letters":             {func(m *sm) { m.validity = "0000010000000x0R" }, InvalidExpiry},
		"validity of 48 hours":         {func(m *sm) { m.validity = "000000480000000R" }, InvalidExpiry},
		"validity with tenths":         {func(m *sm) { m.validity = "000001000000100R" }, InvalidExpiry},
		"validity of nothing":          {func(m *sm) { m.validity = "000000000000000R" }, InvalidExpiry},
		"validity on 31 April":         {func(m *sm) { m.validity = "270431000000000+" }, InvalidExpiry},
		"validity in month 13":         {func(m *sm) { m.validity = "271301000000000+" }, InvalidExpiry},
		"validity without sign":        {func(m *sm) { m.validity = "270401000000000Z" }, InvalidExpiry},
		"schedule":                     {func(m *sm) { m.schedule = "tomorrow" }, InvalidSchedule},
		"160 septets":                  {func(m *sm) { m.text = strings.Repeat("a", 160) }, OK},
		"161 septets":                  {func(m *sm) { m.text = strings.Repeat("a", 161) }, InvalidLength},
		"an byte":                      {func(m *sm) { m.text = "caf\xe9" }, InvalidLength},
		"cut escape":                   {func(m *sm) { m.text = "a\x1b" }, InvalidLength},
		"cut escape in a part":         {func(m *sm) { m.esm, m.text = 0x40, "\x05\x00\x03\x01\x02\x01a\x1b" }, OK},
		"UCS-2 part of cut pairs": {func(m *sm) {
			m.esm, m.coding, m.text = 0x40, 8,
				"\x05\x00\x03\x01\x02\x01\xde\x00\x00a\xd8\x3d"
		}, OK},
		"Latin-1 part of 153": {func(m *sm) {
			m.esm, m.coding, m.text = 0x40, 3, "\x05\x00\x03\x01\x02\x01"+
				strings.Repeat("\xe9", 153)
		}, OK},
		"Latin-1 part of 154": {func(m *sm) {
			m.esm, m.coding, m.text = 0x40, 3, "\x05\x00\x03\x01\x02\x01"+
				strings.Repeat("\xe9", 154)
		}, InvalidLength},
		"unknown escape":                {func(m *sm) { m.text = "a\x1ba" }, InvalidLength},
		"escape":                        {func(m *sm) { m.text = "a\x1b\x65" }, OK},
		"UCS-2":                         {func(m *sm) { m.coding, m.text = 8, "\xd8\x3d\xde\x00" }, OK},
		"UCS-2 odd":                     {func(m *sm) { m.coding, m.text = 8, "\x00a\x00" }, InvalidLength},
		"UCS-2 of 142":                  {func(m *sm) { m.coding, m.text = 8, strings.Repeat("\x00a", 71) }, InvalidLength},
		"UCS-2 cut pair":                {func(m *sm) { m.coding, m.text = 8, "\x00a\xd8\x3d" }, InvalidLength},
		"UCS-2 begins in a pair":        {func(m *sm) { m.coding, m.text = 8, "\xde\x00\x00a" }, InvalidLength},
		"UCS-2 lone high":               {func(m *sm) { m.coding, m.text = 8, "\xd8\x3d\x00a" }, InvalidLength},
		"ASCII":                         {func(m *sm) { m.coding, m.text = 1, "\xe9" }, InvalidLength},
		"Latin-1 of 141":                {func(m *sm) { m.coding, m.text = 3, strings.Repeat("\xe9", 141) }, InvalidLength},
		"255 bytes":                     {func(m *sm) { m.coding, m.text = 0xF4, strings.Repeat("a", 255) }, InvalidLength},
		"sm_length over the end":        {func(m *sm) { m.length = 50 }, InvalidCommandLen},
		"sm_length short":               {func(m *sm) { m.text, m.length = "aaaaaa", 5 }, InvalidTLVStream},
		"user_message_reference":        {func(m *sm) { m.tlvs = umr }, OK},
		"user_message_reference, bytes": {func(m *sm) { m.tlvs = "\x02\x04\x00\x01\x01" }, InvalidTLVLength},
		"TLV twice":                     {func(m *sm) { m.tlvs = umr + umr }, InvalidTLVStream},
		"TLV cut":                       {func(m *sm) { m.tlvs = umr[:5] }, InvalidTLVStream},
		"TLV of a receipt":              {func(m *sm) { m.tlvs = "\x04\x27\x00\x01\x02" }, InvalidTLVStream},
		"TLV of a vendor":               {func(m *sm) { m.tlvs = "\x14\x00\x00\x01\x02" }, OK},
		"payload":                       {func(m *sm) { m.text, m.tlvs = "", "\x04\x24\x00\x02hi" }, OK},
		"payload beside text":           {func(m *sm) { m.tlvs = "\x04\x24\x00\x02hi" }, InvalidTLVStream},
		"sar": {func(m *sm) {
			m.tlvs = "\x02\x0c\x00\x02\x00\x01\x02\x0e\x00\x01\x02\x02\x0f\x00\x01\x01"
		}, OK},
		"sar in part": {func(m *sm) { m.tlvs = "\x02\x0c\x00\x02\x00\x01" }, InvalidTLVStream},
		"sar 3 of 2": {func(m *sm) {
			m.tlvs = "\x02\x0c\x00\x02\x00\x01\x02\x0e\x00\x01\x02\x02\x0f\x00\x01\x03"
		}, InvalidTLVValue},
		"sar and UDH": {func(m *sm) {
			m.esm, m.text = 0x40, "\x05\x00\x03\x01\x02\x01a"
			m.tlvs = "\x02\x0c\x00\x02\x00\x01\x02\x0e\x00\x01\x02\x02\x0f\x00\x01\x01"
		}, InvalidTLVStream},
	} {
		s := usual("25779000000", "hello")
		row.change(&s)
		var m submit
		decodeSubmit(s.body(), &m, GSM7, noon)
		got := m.refusal()
		if got != row.want {
			t.Errorf("%s: %s, want %s (%v)", name, got, row.want, m.breaches)
		}
	}
}

// TestCut: a body that is truncated at any length is refused.
func TestCut(t *testing.T) {
	body := usual("25779000000", "hello").body()
	for n := range body {
		var m submit
		decodeSubmit(body[:n], &m, GSM7, noon)
		if m.complete || len(m.breaches) != 1 || m.breaches[0].status != InvalidCommandLen {
			t.Errorf("%d bytes: %+v", n, m.breaches)
		}
	}
}

func TestAlphabets(t *testing.T) {
	if n := len(gsmDefault); n != 128 {
		t.Fatalf("%d characters in the default alphabet", n)
	}
	for _, row := range []struct {
		raw      string
		coding   byte
		alphabet Alphabet
		want     string
	}{
		{"\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x1b\x65\x1b\x3c\x1b\x3e\x1b\x28\x1b\x29\x1b\x3d\x1b\x2f\x1b\x40\x1b\x14\x11", 0, GSM7, `@£$¥èéùìòÇ€[]{}~\|^_`},
		{"\x1f\x1c\x1d\x1e\x24\x40\x5b\x5c\x5d\x5e\x5f\x60\x7b\x7c\x7d\x7e\x7f", 0, GSM7, "ÉÆæß¤¡ÄÖÑÜ§¿äöñüà"},
		{"a\x1ba", 0, GSM7, "aa"}, {"a\x1b", 0, GSM7, "a"},
		{"caf\xe9", 0, Latin1, "café"}, {"caf\xe9", 3, GSM7, "café"}, {"[a]", 0, ASCII, "[a]"}, {"[a]", 1, GSM7, "[a]"},
		{"\xd8\x3d\xde\x00\x00a", 8, GSM7, "😀a"},
	} {
		if got, _ := decodeText([]byte(row.raw), row.coding, row.alphabet); got != row.want {
			t.Errorf("% x: %q, want %q", row.raw, got, row.want)
		}
	}
}

func TestIDs(t *testing.T) {
	for format, want := range map[IDFormat][2]string{
		IDDecimal: {"3735928559", "3735928559"}, IDHex: {"deadbeef", "deadbeef"},
		IDHexThenDecimal: {"deadbeef", "3735928559"}, IDDecimalThenHex: {"3735928559", "deadbeef"},
		IDZeroPadded: {"00000000003735928559", "3735928559"}, IDTrimmed: {"3735928559", "00000000003735928559"},
		IDCase: {"AB00000DEADBEEF", "ab00000deadbeef"},
	} {
		if got := [2]string{string(format.append(nil, 0xDEADBEEF, false)),
			string(format.append(nil, 0xDEADBEEF, true))}; got != want {
			t.Errorf("%d: %q, want %q", format, got, want)
		}
	}
}

// FuzzDecode: no input makes a decoder panic or read beyond its end.
func FuzzDecode(f *testing.F) {
	f.Add(usual("25779000000", "hello").body(), byte(0))
	long := usual("25779000029", "\x05\x00\x03\x01\x02\x02text")
	long.esm, long.tlvs = 0x40, umr+"\x04\x24\x00\x02hi"
	f.Add(long.body(), byte(1))
	f.Add([]byte("demo\x00demo\x00\x00\x34\x00\x00\x00"), byte(2))
	f.Add([]byte{}, byte(0))
	f.Fuzz(func(t *testing.T, body []byte, alphabet byte) {
		var m submit
		a := Alphabet(alphabet % 3)
		decodeSubmit(body, &m, a, noon)
		if len(m.shortMessage)+len(m.src)+len(m.dst)+len(m.tlvs) > len(body) || len(m.text)+len(m.udh) > len(body) {
			t.Error("more than came")
		}
		if !m.complete && len(m.breaches) == 0 {
			t.Error("refused without a reason")
		}
		if m.concat.Total > 0 && (m.concat.Seq == 0 || m.concat.Seq > m.concat.Total) {
			t.Errorf("%+v", m.concat)
		}
		decodeText(m.text, m.coding, a)
		scriptOf(m.dst)
		b, breaches := decodeBind(body)
		if len(b.systemID)+len(b.password) > len(body) && len(breaches) == 0 {
			t.Error("more than came")
		}
		checkAck(header{}, body)
		var frame [16]byte
		copy(frame[:], body)
		if h := parseHeader(frame[:]); h.length != binary.BigEndian.Uint32(frame[:]) {
			t.Error("length")
		}
		// The same submit_sm twice, through log and assembly.
		c := New(Options{MaxLog: 4, Alphabet: a})
		s := newSession(c, nil, 1)
		for range 6 {
			c.log.add(1, s, 1, verdict{accepted: true, script: defaultScript}, nil, true, body, 1)
		}
		c.Messages()
		if n := len(c.Submits()); n != 4 {
			t.Errorf("%d submits in a log of 4", n)
		}
	})
}
