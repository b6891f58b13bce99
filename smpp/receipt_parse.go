package smpp

import (
	"bytes"
	"cmp"
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
	maxReceiptText        = 4096 // bytes of a receipt's text that are parsed
	maxReceiptWord        = 64   // longest stat or err kept
)

// messageStates is message_state (SMPP 3.4, 5.2.28; SKIPPED and SCHEDULED 5.0)
// in the words of the text form.
var messageStates = [...]string{
	"SCHEDULED", "ENROUTE", "DELIVRD", "EXPIRED", "DELETED",
	"UNDELIV", "ACCEPTD", "UNKNOWN", "REJECTD", "SKIPPED",
}

// parseReceipt returns d as a receipt, nil when its esm_class marks it as something else.
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
// parsed as bytes.
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
// byte included; 0 when it begins with none: the elements must fill the header
// exactly, and a first byte from the space up is a character of the text.
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

// receiptKeys are the keys of the text form whose values count; the others end a value. A date's key is two words, which
// carriers join in several ways. Behind text comes the message's own text.
var receiptKeys = [...]string{"id", "stat", "state", "err", "sub", "dlvrd", "date", "submitdate", "donedate", "text"}

// readText parses the text form: keys in any order, with any of them missing; of equal keys
// the first counts, and state only if stat is missing. It reports whether there is any key.
func (r *Receipt) readText(text []byte) (keys bool) {
	var id, stat, state, code string
	take := func(key string, section []byte) {
		var into *string
		switch key {
		case "id":
			into = &id
		case "stat":
			into = &stat
		case "state":
			into = &state
		case "err":
			into = &code
		}
		if into != nil && *into == "" {
			*into = firstWord(section)
		}
	}
	key, start, from := "", 0, 0 // the key whose value begins at start
	for key != "text" {
		colon := bytes.IndexByte(text[from:], ':')
		if colon < 0 {
			break
		}
		from += colon + 1
		next, at := keyBefore(text[start : from-1])
		if next == "" {
			continue
		}
		take(key, text[start:start+at])
		key, start, keys = next, from, true
	}
	take(key, text[start:])
	if len(id) <= maxMessageID {
		r.ID = id
	}
	stat = cmp.Or(stat, state)
	r.State, r.Error = upper(stat[:min(len(stat), maxReceiptWord)]), code[:min(len(code), maxReceiptWord)]
	return keys
}

// keyBefore returns the key with which text ends, up to spaces, and where it begins; "" when
// it ends with none.
func keyBefore(text []byte) (key string, at int) {
	text = bytes.TrimRight(text, " ")
	at = len(text)
	for at > 0 && isLetter(text[at-1]) {
		at--
	}
	if at > 0 && text[at-1] >= '0' && text[at-1] <= '9' {
		return "", 0
	}
	for _, name := range receiptKeys {
		if len(name) != len(text)-at || !bytes.EqualFold(text[at:], []byte(name)) {
			continue
		}
		if name == "date" { // of "submit date" or "done_date"
			before := bytes.TrimRight(text[:at], " _")
			for _, word := range []string{"submit", "done"} {
				if n := len(before) - len(word); n >= 0 && bytes.EqualFold(before[n:], []byte(word)) {
					at = n
				}
			}
		}
		return name, at
	}
	return "", 0
}

// firstWord returns the first word of a value, without separators.
func firstWord(text []byte) string {
	text = bytes.TrimLeft(text, " \t\n\v\f\r")
	if end := bytes.IndexAny(text, " \t\n\v\f\r"); end >= 0 {
		text = text[:end]
	}
	return string(bytes.Trim(text, ",;|\x00"))
}

func isLetter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }

// upper converts the letters a to z to upper case and keeps everything else, also bytes
// that are not UTF-8 (strings.ToUpper would replace them by longer sequences).
func upper(word string) string {
	if strings.IndexFunc(word, func(r rune) bool { return r >= 'a' && r <= 'z' }) < 0 {
		return word
	}
	raw := []byte(word)
	for i, b := range raw {
		if b >= 'a' && b <= 'z' {
			raw[i] = b - 'a' + 'A'
		}
	}
	return string(raw)
}

// narrow turns UTF-16BE into UTF-8.
func narrow(text []byte) []byte {
	units := make([]uint16, len(text)/2)
	for i := range units {
		units[i] = binary.BigEndian.Uint16(text[2*i:])
	}
	return []byte(string(utf16.Decode(units)))
}
