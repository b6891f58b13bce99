package smpp

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
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

// receipt returns d as a receipt, nil for a message from a handset. A receipt is
//
//   - what esm_class marks as one and has an id, a state or a reference: carriers mark handsets' texts so too;
//   - what has receipted_message_id and message_state, whatever its esm_class: a handset cannot write TLVs;
//   - a text in the form of SMPP 3.4, appendix B (Unmarked).
//
// TLVs have precedence over the text.
func (rules Reading) receipt(d *Delivery, text []byte) *Receipt {
	kind := d.ESMClass & esmTypeMask
	marked := kind == esmReceipt || kind == esmIntermediate
	_, hasID := d.TLV(TagReceiptedMessageID)
	_, hasState := d.TLV(TagMessageState)
	r := Receipt{Intermediate: kind == esmIntermediate}
	switch form := r.readMessage(rules, d, text); {
	case marked || hasID && hasState:
		r.readTLVs(d)
		if marked && r.ID == "" && r.State == "" && r.UserMessageReference == nil {
			return nil
		}
	case form && d.ESMClass&esmUDHI == 0:
		r.Unmarked = true
	default:
		return nil
	}
	found := r
	return &found
}

// readMessage parses the text form, after the UDH if there is one. data_coding does not say
// for certain how it is written: some SMSCs copy that of the message, or have none for
// UCS-2. A text that has no keys when decoded in one way is decoded in the other. It reports
// whether the text has the form of SMPP 3.4, appendix B.
func (r *Receipt) readMessage(rules Reading, d *Delivery, text []byte) (form bool) {
	text = text[min(d.udh(), len(text)):]
	text = text[:min(len(text), maxReceiptText)]
	ucs2 := d.DataCoding == dataCodingUCS2
	for _, wide := range [...]bool{ucs2, !ucs2} {
		way := text
		switch {
		case wide && !ucs2 && bytes.IndexByte(text, 0) < 0:
			continue
		case wide:
			way = narrow(text)
		}
		if keys, form := r.readText(rules, way); keys {
			return form
		}
	}
	return false
}

func (r *Receipt) readTLVs(d *Delivery) {
	if v, ok := d.TLV(TagReceiptedMessageID); ok {
		if id := strings.TrimSpace(messageID(v)); id != "" {
			texts := [...]string{r.ID, r.Also[0]}
			r.ID, r.Also = id, [2]string{}
			r.addID(texts[0])
			r.addID(texts[1])
		}
	}
	if v, ok := d.TLV(TagMessageState); ok {
		// 0 is no state in SMPP 3.4. Carriers that do not know the field send it, beside a text with the state.
		if state, known := messageState(v); r.State == "" || known && state != messageStates[0] {
			r.State = state
		}
	}
	if v, ok := d.TLV(TagUserMessageReference); ok && len(v) == 2 {
		ref := binary.BigEndian.Uint16(v)
		r.UserMessageReference = &ref
	}
}

// messageState reads message_state, an octet: carriers also write it in two or four, in either order, as a digit, or as
// a word. A number without a name stays a number. It is empty, and unknown, without a value.
func messageState(value []byte) (state string, known bool) {
	if len(value) == 0 {
		return "", false
	}
	text := string(bytes.TrimRight(value, "\x00 "))
	if len(text) > 0 && strings.Trim(text, "0123456789") == "" { // digits
		return stateNumber(text)
	}
	if len(text) > 2 && len(text) <= maxReceiptWord && isLetter(text[0]) && isLetter(text[1]) {
		state = StateOf(firstWord([]byte(text)))
		return state, KnownState(state)
	}
	if value = bytes.Trim(value, "\x00"); len(value) > 1 { // no number of one octet
		return "", false
	}
	if len(value) == 0 {
		value = []byte{0}
	}
	return stateNumber(strconv.Itoa(int(value[0])))
}

// stateNumber returns the state with a number in SMPP 3.4, 5.2.28.
func stateNumber(digits string) (state string, known bool) {
	if n, err := strconv.Atoi(digits); err == nil && n < len(messageStates) {
		return messageStates[n], true
	}
	return digits[:min(len(digits), maxReceiptWord)], false
}

// receiptKeys are the keys of the text form whose values count; the others end a value. A date's key is two words,
// which carriers join in several ways. Behind text comes the message's own text.
var receiptKeys = [...]string{"id", "stat", "state", "err", "sub", "dlvrd", "date", "submitdate", "donedate", "text"}

// proof are the keys that no person writes.
func proof(key string) bool {
	return key == "sub" || key == "dlvrd" || key == "submitdate" || key == "donedate"
}

// readText parses the text form: keys in any order, with any of them missing, and = for the colon; of equal keys the
// first counts, except that further ids are kept, and state only if stat is missing. It reports whether there is any
// key, and whether the text has the form of a receipt: an id, and a known state, or a stat beside a key that only SMSCs
// write.
func (r *Receipt) readText(rules Reading, text []byte) (keys, form bool) {
	var stat, state, code string
	proven := false
	*r = Receipt{Intermediate: r.Intermediate}
	take := func(key string, section []byte) {
		proven = proven || proof(key)
		var into *string
		switch key {
		case "id":
			if id := firstWord(section); len(id) <= maxMessageID {
				r.addID(id)
			}
			return
		case "stat":
			into = &stat
		case "state":
			into = &state
		case "err":
			into = &code
		default:
			return
		}
		if *into == "" {
			*into = strings.Trim(cmp.Or(longName(section), firstWord(section)), `.<>()[]{}"'`)
		}
	}
	key, start, from := "", 0, 0 // the key whose value begins at start
	for key != "text" {
		sign := indexSign(text[from:])
		if sign < 0 {
			break
		}
		from += sign + 1
		next, at := keyBefore(text[start : from-1])
		if next == "" {
			continue
		}
		take(key, text[start:start+at])
		key, start, keys = next, from, true
	}
	take(key, text[start:])
	word := cmp.Or(stat, state)
	r.State, r.Error = StateOf(word), code[:min(len(code), maxReceiptWord)]
	if rules.StateDigits && strings.Trim(r.State, "0123456789") == "" {
		if named, known := stateNumber(r.State); known {
			r.State = named
		}
	}
	return keys, r.ID != "" && (KnownState(r.State) || stat != "" && proven)
}

// indexSign returns where the first sign is that may end a key; -1: nowhere. (bytes.IndexAny takes several times as
// long for texts this short.)
func indexSign(text []byte) int {
	for i, c := range text {
		if c == ':' || c == '=' {
			return i
		}
	}
	return -1
}

// keyBefore returns the key with which text ends, up to spaces, and where it begins; "" when
// it ends with none.
func keyBefore(text []byte) (key string, at int) {
	text = bytes.TrimRight(text, " \t\"'")
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
					name, at = "donedate", n
				}
			}
		}
		return name, at
	}
	return "", 0
}

// longName returns the name of a state that is written in several words ("Not delivered"); "" for all other values.
func longName(section []byte) string {
	if section = bytes.Trim(section, " \t\r\n,;|&.\"'`\x00"); len(section) > maxReceiptWord ||
		bytes.IndexByte(section, ' ') < 0 {
		return ""
	}
	name := strings.Join(strings.Fields(string(section)), "_")
	if _, known := stateNames[upper(name)]; !known {
		return ""
	}
	return name
}

// firstWord returns the first word of a value, without separators and quotation marks.
func firstWord(text []byte) string {
	text = bytes.TrimLeft(text, " \t\n\v\f\r")
	if end := bytes.IndexAny(text, " \t\n\v\f\r"); end >= 0 {
		text = text[:end]
	}
	return string(bytes.Trim(text, ",;|&\"'`\x00"))
}

func isLetter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }

// upper returns a word in upper case and in UTF-8, at most maxReceiptWord bytes: what is no UTF-8 is Latin-1.
func upper(word string) string {
	word = word[:min(len(word), maxReceiptWord)]
	if !utf8.ValidString(word) {
		runes := make([]rune, len(word))
		for i := range len(word) {
			runes[i] = rune(word[i])
		}
		word = string(runes)
	}
	word = strings.ToUpper(word)
	return strings.ToValidUTF8(word[:min(len(word), maxReceiptWord)], "")
}

// narrow turns UTF-16 into UTF-8: big-endian, unless only its second bytes are zero.
func narrow(text []byte) []byte {
	order := binary.ByteOrder(binary.BigEndian)
	if len(text) > 1 && text[1] == 0 && text[0] != 0 {
		order = binary.LittleEndian
	}
	units := make([]uint16, len(text)/2)
	for i := range units {
		units[i] = order.Uint16(text[2*i:])
	}
	return []byte(string(utf16.Decode(units)))
}
