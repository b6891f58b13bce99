package smpp

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fiorix/go-smpp/smpp/pdu/pdufield"
)

// The mandatory fields that the codec decodes, without sm_length and short_message: the
// codec's own list for deliver_sm parses the UDH and fails where there is none, and it
// has no list for data_sm.
var (
	deliverSMFields = pdufield.List{
		pdufield.ServiceType,
		pdufield.SourceAddrTON, pdufield.SourceAddrNPI, pdufield.SourceAddr,
		pdufield.DestAddrTON, pdufield.DestAddrNPI, pdufield.DestinationAddr,
		pdufield.ESMClass, pdufield.ProtocolID, pdufield.PriorityFlag,
		pdufield.ScheduleDeliveryTime, pdufield.ValidityPeriod,
		pdufield.RegisteredDelivery, pdufield.ReplaceIfPresentFlag,
		pdufield.DataCoding, pdufield.SMDefaultMsgID,
	}
	dataSMFields = pdufield.List{
		pdufield.ServiceType,
		pdufield.SourceAddrTON, pdufield.SourceAddrNPI, pdufield.SourceAddr,
		pdufield.DestAddrTON, pdufield.DestAddrNPI, pdufield.DestinationAddr,
		pdufield.ESMClass, pdufield.RegisteredDelivery, pdufield.DataCoding,
	}
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
	list := deliverSMFields
	if cmd == cmdDataSM {
		list = dataSMFields
	}
	rest := bytes.NewBuffer(body)
	fields, err := list.Decode(rest)
	if err != nil {
		return nil, &decodeError{StatusInvCmdLen, err}
	}
	for _, name := range list {
		if fields[name] == nil {
			return nil, &decodeError{StatusInvCmdLen, fmt.Errorf("%s is missing", name)}
		}
	}
	d := &Delivery{
		DataSM:             cmd == cmdDataSM,
		ServiceType:        fields[pdufield.ServiceType].String(),
		SourceTON:          octet(fields, pdufield.SourceAddrTON),
		SourceNPI:          octet(fields, pdufield.SourceAddrNPI),
		Source:             fields[pdufield.SourceAddr].String(),
		DestTON:            octet(fields, pdufield.DestAddrTON),
		DestNPI:            octet(fields, pdufield.DestAddrNPI),
		Dest:               fields[pdufield.DestinationAddr].String(),
		ESMClass:           octet(fields, pdufield.ESMClass),
		RegisteredDelivery: octet(fields, pdufield.RegisteredDelivery),
		DataCoding:         octet(fields, pdufield.DataCoding),
		Received:           received,
	}
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

// octet returns a one-octet field, 0 if the PDU has none.
func octet(fields pdufield.Map, name pdufield.Name) uint8 {
	if f, ok := fields[name].(*pdufield.Fixed); ok {
		return f.Data
	}
	return 0
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
