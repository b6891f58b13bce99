package carriersim

import (
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
)

// Oddities are what some carriers' receipts do against SMPP 3.4.
type Oddities struct {
	Unmarked     bool // esm_class 0
	LongNames    bool // stat:"DELIVERED", as SMPP 3.4, 5.2.28 spells it, in quotation marks, and a full stop
	Equals       bool // id=1 stat=DELIVRD
	Digits       bool // stat:2, the number of message_state
	HexPrefix    bool // the id is 0x and hexadecimal
	LittleEndian bool // lengths of TLVs
	StateZero    bool // message_state is 0 whatever the text says
	ForeignTLV   bool // receipted_message_id is another id; the text's is right
}

// longNames are the states of SMPP 3.4, 5.2.28.
var longNames = [...]string{"SCHEDULED", "ENROUTE", "DELIVERED", "EXPIRED", "DELETED", "UNDELIVERABLE", "ACCEPTED",
	"UNKNOWN", "REJECTED"}

// oddText makes a text of appendix B odd.
func (r *receipt) oddText(text []byte) []byte {
	o := &r.style.Oddities
	stat := r.state.String()
	if r.stat != "" {
		stat = r.stat
	}
	written := stat
	switch {
	case o.LongNames && int(r.state) < len(longNames):
		written = `"` + longNames[r.state] + `".`
	case o.Digits:
		written = strconv.Itoa(int(r.state))
	}
	if written != stat {
		text = []byte(strings.Replace(string(text), "stat:"+stat, "stat:"+written, 1))
	}
	if o.Equals {
		for i, b := range text {
			if b == ':' {
				text[i] = '='
			}
		}
	}
	return text
}

// oddTLVs swaps the lengths of TLVs.
func (r *receipt) oddTLVs(tlvs []byte) []byte {
	if !r.style.LittleEndian {
		return tlvs
	}
	for rest := tlvs; len(rest) >= 4; {
		length := binary.BigEndian.Uint16(rest[2:])
		binary.LittleEndian.PutUint16(rest[2:], length)
		rest = rest[4+int(length):]
	}
	return tlvs
}

// odd applies the carrier's faults to the style of its receipts.
func (f *Faults) odd(style ReceiptStyle) ReceiptStyle {
	style.Unmarked = style.Unmarked || f.UnmarkedReceipts
	style.Digits = style.Digits || f.DigitReceipts
	style.LittleEndian = style.LittleEndian || f.LittleEndian
	return style
}

// said is what a handset sends in a fate.
type said struct {
	text     string
	esmClass byte
	tail     []byte // behind the text
	trunk    bool   // its number is written as people dial it: 079123456
}

// say changes a handset's text.
func (s *said) say(d *delivery) {
	if s == nil {
		return
	}
	d.text, d.esmClass, d.tlvs = []byte(s.text), s.esmClass, s.tail
	if s.trunk && len(d.src) > 8 {
		d.src = append([]byte{'0'}, d.src[len(d.src)-8:]...)
	}
}

func odd(o Oddities, form ReceiptForm) []notice {
	return styled(Delivered, ReceiptStyle{Form: form, Oddities: o})
}

func answers(texts ...said) []notice {
	notices := slices.Clone(delivered)
	for i := range texts {
		notices = append(notices, notice{kind: noticeAnswer, said: &texts[i]})
	}
	return notices
}

// Fates of carriers and handsets that do what SMPP does not say.
var oddScripts = []script{
	{Fate: Fate{"68", "TLV receipt under 0", "The receipt has TLVs only, and esm_class 0.", "sent"},
		notices: odd(Oddities{Unmarked: true}, ReceiptTLV)},
	{Fate: Fate{"69", "text receipt under 0", "The receipt is a text with esm_class 0.",
		"sent with receipts_without_esm_class, else on_receipt_timeout"},
		notices: odd(Oddities{Unmarked: true}, ReceiptText)},
	{Fate: Fate{"70", "long names", "The receipt's stat is \"DELIVERED\". with quotation marks and a full stop.", "sent"},
		notices: odd(Oddities{LongNames: true}, ReceiptText)},
	{Fate: Fate{"71", "equals signs", "The receipt has id=… stat=DELIVRD.", "sent"},
		notices: odd(Oddities{Equals: true}, ReceiptText)},
	{Fate: Fate{"72", "digits", "The receipt has stat:2.", "sent with receipt_state_digits, else on_receipt_timeout"},
		notices: odd(Oddities{Digits: true}, ReceiptText)},
	{Fate: Fate{"73", "0x", "Id in hex in the response, in hex behind 0x in the receipt.", "sent"}, ids: IDHex,
		notices: odd(Oddities{HexPrefix: true}, ReceiptTextTLV)},
	{Fate: Fate{"74", "little-endian TLVs", "The lengths of the receipt's TLVs are in little-endian.", "sent"},
		notices: odd(Oddities{LittleEndian: true}, ReceiptTLV)},
	{Fate: Fate{"75", "message_state 0", "The receipt's text has DELIVRD, its message_state is 0.", "sent"},
		notices: odd(Oddities{StateZero: true}, ReceiptTextTLV)},
	{Fate: Fate{"76", "another id in the TLV", "The receipt's text has the right id, receipted_message_id another.",
		"sent"}, notices: odd(Oddities{ForeignTLV: true}, ReceiptTextTLV)},
	{Fate: Fate{"77", "FAILED", "Receipt FAILED, a word that SMPP does not have.", "failed"},
		notices: []notice{{state: Undeliverable, stat: "FAILED"}}},
	{Fate: Fate{"78", "STOP marked as a receipt", "Delivered, and the handset sends STOP with esm_class 0x04.", "sent"},
		notices: answers(said{text: "STOP", esmClass: 0x04})},
	{Fate: Fate{"79", "STOP with the UDH bit", "Delivered, and the handset sends STOP with esm_class 0x40, without a UDH.",
		"sent"}, notices: answers(said{text: "STOP", esmClass: 0x40})},
	{Fate: Fate{"80", "STOP with a damaged tail", "Delivered, and the handset sends STOP before a TLV that is cut short.",
		"sent"}, notices: answers(said{text: "STOP", tail: []byte{0x14, 0x01, 0, 50, 1, 2, 3}})},
	{Fate: Fate{"81", "STOP from 079…", "Delivered, and the handset sends STOP; its number is written as people dial it.",
		"sent"}, notices: answers(said{text: "STOP.Murakoze", trunk: true})},
	{Fate: Fate{"82", "STOP in packed septets", "Delivered, and the handset sends STOP; data_coding 0 is eight septets " +
		"in seven bytes.", "sent"}, notices: answers(said{text: "\x53\xEA\x13\x0A"})},
	{Fate: Fate{"83", "ARRÊT in UTF-8", "Delivered, and the handset sends ARRÊT in UTF-8, with data_coding 0.", "sent"},
		notices: answers(said{text: "ARRÊT"})},
	{Fate: Fate{"84", "parts without the UDH bit", "Delivered, and the handset sends STOP ACME in two parts with a UDH " +
		"and esm_class 0.", "sent"}, notices: answers(said{text: "\x05\x00\x03\x2A\x02\x01STOP"},
		said{text: "\x05\x00\x03\x2A\x02\x02 ACME"})},
}
