package smpp

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"time"
)

// decodeError is the error of a malformed PDU, with the status of our response: StatusOK if nothing of it is lost.
type decodeError struct {
	status Status
	err    error
}

func (e *decodeError) Error() string { return e.err.Error() }

// decode decodes the body of a deliver_sm or data_sm. The Delivery keeps body. What is
// malformed behind a text, or behind a receipt's id and state, does not matter: the carrier
// would only send it again in the same form. The error is for everything else.
func (rules Reading) decode(cmd command, body []byte, received time.Time) (*Delivery, error) {
	d := &Delivery{DataSM: cmd == cmdDataSM, Received: received}
	cut, err := d.read(body, new(orders))
	if err != nil {
		return nil, err
	}
	fault := d.boundFields()
	d.sentESM = d.ESMClass
	d.markUDH(rules.HiddenUDH)
	d.classify(rules, cut)
	broken := cmp.Or(d.broken, fault)
	if broken == nil || broken.status == StatusOK && fault == nil || d.Receipt != nil && d.Receipt.ID != "" &&
		d.Receipt.State != "" {
		d.broken = broken
		return d, nil
	}
	if fault != nil || d.Receipt != nil || len(d.ShortMessage) == 0 || cut && d.marked() {
		return nil, broken
	}
	return d, nil
}

// orders are the fields of submit_sm that nobody uses in a deliver_sm.
type orders struct {
	protocol, priority, replace, defaultMessage uint8
	schedule, validity                          string
}

// read reads the body of a deliver_sm, submit_sm or data_sm. It reports whether the text ends before its length says.
// The error is for a body that ends before its text.
func (d *Delivery) read(body []byte, o *orders) (cut bool, missing error) {
	f := fieldReader{rest: body}
	f.cString("service_type", &d.ServiceType)
	f.octet("source_addr_ton", &d.SourceTON)
	f.octet("source_addr_npi", &d.SourceNPI)
	f.cString("source_addr", &d.Source)
	f.octet("dest_addr_ton", &d.DestTON)
	f.octet("dest_addr_npi", &d.DestNPI)
	f.cString("destination_addr", &d.Dest)
	f.octet("esm_class", &d.ESMClass)
	if !d.DataSM {
		f.octet("protocol_id", &o.protocol)
		f.octet("priority_flag", &o.priority)
		f.cString("schedule_delivery_time", &o.schedule)
		f.cString("validity_period", &o.validity)
	}
	f.octet("registered_delivery", &d.RegisteredDelivery)
	if !d.DataSM {
		f.octet("replace_if_present_flag", &o.replace)
	}
	f.octet("data_coding", &d.DataCoding)
	var length uint8
	if !d.DataSM {
		f.octet("sm_default_msg_id", &o.defaultMessage)
		f.octet("sm_length", &length)
	}
	if err := f.err(); err != nil {
		return false, err
	}
	text := f.rest[:min(int(length), len(f.rest))]
	d.ShortMessage = slices.Clip(text)
	if cut = len(text) < int(length); cut {
		d.broken = &decodeError{StatusInvCmdLen, fmt.Errorf("short_message: %d bytes, sm_length %d", len(text), length)}
	}
	return d.takeTLVs(f.rest[len(text):]) || cut, nil
}

// classify reads d as a receipt, if it is one, and unpacks its text. If the text is cut, a receipt does without the
// last word, which may be incomplete: half an id could match another message.
func (d *Delivery) classify(rules Reading, cut bool) {
	text := d.ShortMessage
	if cut {
		text = text[:max(bytes.LastIndexAny(text, " \t\r\n"), 0)]
	}
	d.Receipt = rules.receipt(d, text)
	if !rules.Packed || d.DataCoding != 0 || d.Receipt != nil && d.Receipt.ID != "" {
		return
	}
	d.ShortMessage = unpack(d.ShortMessage, d.udh())
	if unpacked := rules.receipt(d, d.ShortMessage); unpacked != nil {
		d.Receipt = unpacked
	}
}

// marked reports whether esm_class marks d as a receipt.
func (d *Delivery) marked() bool {
	kind := d.ESMClass & esmTypeMask
	return kind == esmReceipt || kind == esmIntermediate
}

// fieldReader reads the mandatory fields of a PDU (SMPP 3.4, 4.6.1 and 4.7.1). After the first field that is missing or
// not terminated it reads nothing. The codec's own list for deliver_sm parses the UDH and fails where there is none; it
// has no list for data_sm, and it allocates 16 times for each PDU.
type fieldReader struct {
	rest    []byte
	missing string // the name of that field
}

func (f *fieldReader) octet(name string, into *uint8) {
	switch {
	case f.missing != "":
	case len(f.rest) == 0:
		f.missing = name
	default:
		*into, f.rest = f.rest[0], f.rest[1:]
	}
}

func (f *fieldReader) cString(name string, into *string) {
	if f.missing != "" {
		return
	}
	text, rest, ok := bytes.Cut(f.rest, []byte{0})
	if !ok {
		f.missing = name
		return
	}
	*into, f.rest = string(text), rest
}

// err is the error of a missing field; nil if all were there.
func (f *fieldReader) err() error {
	if f.missing == "" {
		return nil
	}
	return &decodeError{StatusInvCmdLen, fmt.Errorf("%s is missing", f.missing)}
}

// takeTLVs keeps the optional parameters up to a truncated one, and the last of each
// tag. message_payload becomes the text if there is no other; it reports whether that is truncated.
func (d *Delivery) takeTLVs(raw []byte) (cut bool) {
	usual := len(raw)
	raw, order := tlvLayout(raw)
	if len(raw) != usual || order != binary.ByteOrder(binary.BigEndian) {
		d.broken = cmp.Or(d.broken, &decodeError{StatusOK, fmt.Errorf("TLVs behind %d NULs, lengths in %s", usual-len(raw),
			order)})
	}
	inText := len(d.ShortMessage) > 0
	for len(raw) >= tlvHeader {
		tag, length := binary.BigEndian.Uint16(raw), int(order.Uint16(raw[2:]))
		raw = raw[tlvHeader:]
		if length > len(raw) {
			d.broken = cmp.Or(d.broken, &decodeError{StatusInvOptStream,
				fmt.Errorf("TLV %#04x: %d bytes, length %d", tag, len(raw), length)})
			if cut = tag == TagMessagePayload && !inText && len(raw) > 0; cut {
				d.ShortMessage = slices.Clip(raw)
			}
			return cut
		}
		value := raw[:length:length]
		raw = raw[length:]
		if tag == TagMessagePayload && !inText {
			d.ShortMessage = value
			continue
		}
		i, known := slices.BinarySearchFunc(d.TLVs, tag, func(t TLV, tag uint16) int { return cmp.Compare(t.Tag, tag) })
		switch {
		case known:
			d.TLVs[i].Value = value
		case len(d.TLVs) == maxTLVs:
			d.broken = cmp.Or(d.broken, &decodeError{StatusInvOptStream, fmt.Errorf("more than %d TLVs", maxTLVs)})
			return false
		default:
			d.TLVs = slices.Insert(d.TLVs, i, TLV{Tag: tag, Value: value})
		}
	}
	d.rest = raw
	return false
}

// tlvLayout finds how the optional parameters are written: behind up to three NULs that end the text, and with lengths
// in either order. They are as SMPP says unless only another layout ends with the PDU. Up to three bytes after them are
// ignored.
func tlvLayout(raw []byte) (from []byte, order binary.ByteOrder) {
	if left, ok := afterTLVs(raw, binary.BigEndian); ok && left < tlvHeader {
		return raw, binary.BigEndian
	}
	for _, order := range [...]binary.ByteOrder{binary.BigEndian, binary.LittleEndian} {
		for skip := 0; skip < tlvHeader && skip < len(raw) && (skip == 0 || raw[skip-1] == 0); skip++ {
			if left, ok := afterTLVs(raw[skip:], order); ok && left == 0 {
				return raw[skip:], order
			}
		}
	}
	return raw, binary.BigEndian
}

// afterTLVs returns how many bytes are left behind whole TLVs; false if one is truncated.
func afterTLVs(raw []byte, order binary.ByteOrder) (left int, whole bool) {
	for len(raw) >= tlvHeader {
		length := int(order.Uint16(raw[2:]))
		if raw = raw[tlvHeader:]; length > len(raw) {
			return 0, false
		}
		raw = raw[length:]
	}
	return len(raw), true
}

// tlvHeader is the length of a TLV's tag and length.
const tlvHeader = 4

// Limits of a deliver_sm or data_sm, in bytes: its fields wait in memory and are stored
// in a database whose index rows have about 2,700 bytes at most.
const (
	// maxPeerAddress is the longest address of data_sm (SMPP 3.4, 5.2.9, without the
	// NUL). In deliver_sm the limit is 20, but some carriers send more.
	maxPeerAddress = 64
	// maxText is a message of 255 segments, the most that a UDH can count, at one
	// septet an byte.
	maxText = 255 * 153
	// maxTLVs is far above the number of defined optional parameters.
	maxTLVs = 128
)

// boundFields empties fields that are too long, and returns an error that names them. A
// truncated address could be another subscriber's.
func (d *Delivery) boundFields() (broken *decodeError) {
	if n := len(d.ShortMessage); n > maxText {
		d.ShortMessage = d.ShortMessage[:0]
		broken = &decodeError{StatusInvMsgLen, fmt.Errorf("the text has %d bytes, more than %d", n, maxText)}
	}
	if n := len(d.Dest); n > maxPeerAddress {
		d.Dest = ""
		broken = &decodeError{StatusInvDstAddr, fmt.Errorf("destination_addr has %d bytes, more than %d", n, maxPeerAddress)}
	}
	if n := len(d.Source); n > maxPeerAddress {
		d.Source = ""
		broken = &decodeError{StatusInvSrcAddr, fmt.Errorf("source_addr has %d bytes, more than %d", n, maxPeerAddress)}
	}
	if n := len(d.ServiceType); n > maxPeerAddress { // the specification allows 5; the field is not used
		d.ServiceType = ""
		broken = &decodeError{StatusInvCmdLen, fmt.Errorf("service_type has %d bytes", n)}
	}
	return broken
}

// maxMessageID is the longest accepted message id; the specification allows 64 bytes.
const maxMessageID = 255

// messageID reads the message_id of a submit_sm_resp: up to its NUL, or all of
// the body where the NUL is missing. A body that holds no plausible id gives "".
func messageID(body []byte) string {
	if i := bytes.IndexByte(body, 0); i >= 0 {
		body = body[:i]
	}
	if len(body) > maxMessageID {
		return ""
	}
	return string(body)
}
