package smpp

import (
	"bytes"
	"encoding/binary"
	"strings"
	"unicode/utf16"
)

// The message types of esm_class, bits 5-2, and its UDHI (SMPP 3.4, 5.2.12).
const (
	esmTypeMask     uint8 = 0x3C
	esmReceipt      uint8 = 0x04
	esmIntermediate uint8 = 0x20
	esmUDHI         uint8 = 0x40 // a UDH stands before the text
	dataCodingUCS2  uint8 = 0x08
	maxReceiptText        = 4096 // octets of a receipt's text that are parsed
	maxReceiptWord        = 64   // longest stat or err kept
)

// messageStates is message_state (SMPP 3.4, 5.2.28; SKIPPED and SCHEDULED 5.0)
// in the words of the text form.
var messageStates = [...]string{
	"SCHEDULED", "ENROUTE", "DELIVRD", "EXPIRED", "DELETED",
	"UNDELIV", "ACCEPTD", "UNKNOWN", "REJECTD", "SKIPPED",
}

// parseReceipt returns d as a receipt, nil when its esm_class says that it is not one.
// TLVs have precedence over the text.
func parseReceipt(d *Delivery) *Receipt {
	kind := d.ESMClass & esmTypeMask
	if kind != esmReceipt && kind != esmIntermediate {
		return nil
	}
	r := &Receipt{Intermediate: kind == esmIntermediate}
	r.readMessage(d)
	r.readTLVs(d)
	return r
}

// readMessage parses the text form, after the UDH if there is one. Some SMSCs copy the
// message's data_coding: a text marked as UCS-2 that has no keys when decoded so is
// parsed as octets.
func (r *Receipt) readMessage(d *Delivery) {
	text := d.ShortMessage
	if d.ESMClass&esmUDHI != 0 {
		text = text[udhLength(text):]
	}
	text = text[:min(len(text), maxReceiptText)]
	if d.DataCoding == dataCodingUCS2 && r.readText(narrow(text)) {
		return
	}
	r.readText(text)
}

// udhLength returns the length of the UDH that text begins with, its length
// octet included; 0 when it begins with none: the elements must fill the header
// exactly, and a first octet from the space up is a character of the text.
func udhLength(text []byte) int {
	if len(text) == 0 || text[0] == 0 || text[0] >= ' ' || int(text[0]) >= len(text) {
		return 0
	}
	length, end := int(text[0])+1, 1
	for end+2 <= length {
		end += 2 + int(text[end+1])
	}
	if end != length {
		return 0
	}
	return length
}

func (r *Receipt) readTLVs(d *Delivery) {
	if v, ok := d.TLV(TagReceiptedMessageID); ok {
		if id := strings.TrimSpace(messageID(v)); id != "" {
			r.ID = id
		}
	}
	if v, ok := d.TLV(TagMessageState); ok && len(v) == 1 && int(v[0]) < len(messageStates) {
		r.State = messageStates[v[0]]
	}
	if v, ok := d.TLV(TagUserMessageReference); ok && len(v) == 2 {
		ref := binary.BigEndian.Uint16(v)
		r.UserMessageReference = &ref
	}
}

// receiptKeys are the keys of the text form. A date's key is two words, which
// carriers join in several ways.
var receiptKeys = []struct {
	words []string
	set   func(*Receipt, string)
}{
	{[]string{"id"}, func(r *Receipt, v string) {
		if len(v) <= maxMessageID {
			r.ID = v
		}
	}},
	{[]string{"stat"}, func(r *Receipt, v string) { r.State = upper(v[:min(len(v), maxReceiptWord)]) }},
	{[]string{"state"}, func(r *Receipt, v string) { // used only if stat is missing
		if r.State == "" {
			r.State = upper(v[:min(len(v), maxReceiptWord)])
		}
	}},
	{[]string{"err"}, func(r *Receipt, v string) { r.Error = v[:min(len(v), maxReceiptWord)] }},
	{[]string{"submit", "date"}, func(*Receipt, string) {}},
	{[]string{"done", "date"}, func(*Receipt, string) {}},
	{[]string{"sub"}, func(*Receipt, string) {}},
	{[]string{"dlvrd"}, func(*Receipt, string) {}},
	{[]string{"text"}, nil}, // the message's own text follows
}

// upper converts the letters a to z to upper case and keeps everything else, also octets
// that are not UTF-8 (strings.ToUpper would replace them by longer sequences).
func upper(word string) string {
	octets := []byte(word)
	for i, b := range octets {
		if b >= 'a' && b <= 'z' {
			octets[i] = b - 'a' + 'A'
		}
	}
	return string(octets)
}

// readText parses the text form key by key: in any order, with any of them missing; of
// equal keys the first counts. It reports whether there is any key.
func (r *Receipt) readText(text []byte) (keys bool) {
	seen := 0
	for i := 0; i < len(text); {
		if !beginsKey(text[i]) || i > 0 && isWordByte(text[i-1]) {
			i++
			continue
		}
		key, n := matchReceiptKey(text[i:])
		if n == 0 {
			i++
			continue
		}
		keys = true
		set := receiptKeys[key].set
		if set == nil {
			break
		}
		i += n
		value, n := receiptValue(text[i:])
		i += n
		if bit := 1 << key; seen&bit == 0 && value != "" {
			seen |= bit
			set(r, value)
		}
	}
	return keys
}

// beginsKey reports whether one of receiptKeys begins with the letter.
func beginsKey(b byte) bool {
	switch b | 0x20 {
	case 'i', 's', 'e', 'd', 't':
		return true
	}
	return false
}

// matchReceiptKey returns the key that text begins with and its length with
// the colon, before which there may be spaces; length 0 when it begins with
// none.
func matchReceiptKey(text []byte) (key, length int) {
	for k := range receiptKeys {
		n := 0
		for i, word := range receiptKeys[k].words {
			for i > 0 && n < len(text) && (text[n] == ' ' || text[n] == '_') {
				n++
			}
			if !hasWord(text[n:], word) {
				n = len(text)
				break
			}
			n += len(word)
		}
		for n < len(text) && text[n] == ' ' {
			n++
		}
		if n < len(text) && text[n] == ':' {
			return k, n + 1
		}
	}
	return 0, 0
}

// hasWord reports whether text begins with word, which is in lower case, in any
// case.
func hasWord(text []byte, word string) bool {
	if len(text) < len(word) {
		return false
	}
	for i := range len(word) {
		if text[i]|0x20 != word[i] {
			return false
		}
	}
	return true
}

// receiptValue returns the word at the beginning of text ("" when the next key is there)
// and its length. A word ends at white space, or at a separator before a key. Any other
// separator is part of the word.
func receiptValue(text []byte) (value string, length int) {
	start := 0
	for start < len(text) && isSpaceByte(text[start]) {
		start++
	}
	if start < len(text) && beginsKey(text[start]) {
		if _, n := matchReceiptKey(text[start:]); n > 0 {
			return "", start
		}
	}
	end := start
	for end < len(text) && !isSpaceByte(text[end]) && !separatesKey(text[end:]) {
		end++
	}
	return string(bytes.Trim(text[start:end], ",;|\x00")), end
}

// separatesKey reports whether text begins with a separator and a key.
func separatesKey(text []byte) bool {
	switch text[0] {
	case ',', ';', '|':
		if len(text) > 1 && beginsKey(text[1]) {
			_, n := matchReceiptKey(text[1:])
			return n > 0
		}
	}
	return false
}

func isSpaceByte(b byte) bool { return b == ' ' || b >= '\t' && b <= '\r' }

func isWordByte(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'A' && b <= 'Z' || b >= 'a' && b <= 'z'
}

// narrow turns UTF-16BE into UTF-8.
func narrow(text []byte) []byte {
	units := make([]uint16, len(text)/2)
	for i := range units {
		units[i] = binary.BigEndian.Uint16(text[2*i:])
	}
	return []byte(string(utf16.Decode(units)))
}
