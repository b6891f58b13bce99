package smpp

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"
)

// decodeError is the error of a malformed PDU, with the status of our response.
type decodeError struct {
	status Status
	err    error
}

func (e *decodeError) Error() string { return e.err.Error() }

// decodeDelivery decodes the body of a deliver_sm or data_sm. The Delivery keeps body. A
// malformed PDU is an error, unless it is a receipt whose id and state can be read: that
// is accepted, because the carrier would only send it again in the same form.
func decodeDelivery(cmd command, body []byte, received time.Time) (*Delivery, error) {
	d := &Delivery{DataSM: cmd == cmdDataSM, Received: received}
	f := fieldReader{rest: body}
	f.cString("service_type", &d.ServiceType)
	f.octet("source_addr_ton", &d.SourceTON)
	f.octet("source_addr_npi", &d.SourceNPI)
	f.cString("source_addr", &d.Source)
	f.octet("dest_addr_ton", &d.DestTON)
	f.octet("dest_addr_npi", &d.DestNPI)
	f.cString("destination_addr", &d.Dest)
	f.octet("esm_class", &d.ESMClass)
	var octet uint8 // of fields that are not used
	var text string
	if !d.DataSM {
		f.octet("protocol_id", &octet)
		f.octet("priority_flag", &octet)
		f.cString("schedule_delivery_time", &text)
		f.cString("validity_period", &text)
	}
	f.octet("registered_delivery", &d.RegisteredDelivery)
	if !d.DataSM {
		f.octet("replace_if_present_flag", &octet)
	}
	f.octet("data_coding", &d.DataCoding)
	if !d.DataSM {
		f.octet("sm_default_msg_id", &octet)
	}
	if f.missing != "" {
		return nil, &decodeError{StatusInvCmdLen, fmt.Errorf("%s is missing", f.missing)}
	}
	rest := bytes.NewBuffer(f.rest)
	var broken *decodeError
	if !d.DataSM {
		broken = d.takeText(rest)
	}
	if broken == nil {
		broken = d.takeTLVs(rest.Bytes())
	}
	if fault := d.boundFields(); broken == nil {
		broken = fault
	}
	d.Receipt = parseReceipt(d)
	if broken != nil {
		if d.Receipt == nil || d.Receipt.ID == "" || d.Receipt.State == "" {
			return nil, broken
		}
		d.broken = broken
	}
	return d, nil
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

// takeText reads sm_length and short_message. If the text is shorter than sm_length, it
// drops the last word, which may be truncated: half an id could match another message.
func (d *Delivery) takeText(rest *bytes.Buffer) *decodeError {
	length, err := rest.ReadByte()
	if err != nil {
		return &decodeError{StatusInvCmdLen, errors.New("sm_length is missing")}
	}
	text := slices.Clip(rest.Next(int(length)))
	if len(text) < int(length) {
		d.ShortMessage = text[:max(bytes.LastIndexAny(text, " \t\r\n"), 0)]
		return &decodeError{StatusInvCmdLen, fmt.Errorf("short_message: %d bytes, sm_length %d", len(text), length)}
	}
	d.ShortMessage = text
	return nil
}

// takeTLVs keeps the optional parameters up to a truncated one, and the last of each
// tag. message_payload becomes the text if there is no other. Up to three bytes after
// the parameters are ignored.
func (d *Delivery) takeTLVs(raw []byte) *decodeError {
	var broken *decodeError
	inText := len(d.ShortMessage) > 0
	for len(raw) >= tlvHeader {
		tag, length := binary.BigEndian.Uint16(raw), int(binary.BigEndian.Uint16(raw[2:]))
		raw = raw[tlvHeader:]
		if length > len(raw) {
			broken = &decodeError{StatusInvOptStream, fmt.Errorf("TLV %#04x: %d bytes, length %d", tag, len(raw), length)}
			break
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
			return &decodeError{StatusInvOptStream, fmt.Errorf("more than %d TLVs", maxTLVs)}
		default:
			d.TLVs = slices.Insert(d.TLVs, i, TLV{Tag: tag, Value: value})
		}
	}
	return broken
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
