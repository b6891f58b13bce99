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

// The mandatory fields as this package has them decoded, without sm_length and
// short_message: the codec's own list for deliver_sm takes the UDH apart and
// fails where there is none, and it has none for data_sm.
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

// decodeError is a PDU that cannot be read, with the status it is answered.
type decodeError struct {
	status Status
	err    error
}

func (e *decodeError) Error() string { return e.err.Error() }

// decodeDelivery reads the body of a deliver_sm or data_sm. The Delivery keeps
// body. What cannot be read whole is an error, but a receipt whose id and state
// can be read is taken all the same: it would not come again any better.
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
		ProtocolID:         octet(fields, pdufield.ProtocolID),
		Priority:           octet(fields, pdufield.PriorityFlag),
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

// octet returns a one-octet field; 0 where the PDU has no such field.
func octet(fields pdufield.Map, name pdufield.Name) uint8 {
	if f, ok := fields[name].(*pdufield.Fixed); ok {
		return f.Data
	}
	return 0
}

// takeText reads sm_length and short_message. Of a text that is shorter than
// its sm_length it keeps what is there but the last word, which may be cut: half
// an id is another message's.
func (d *Delivery) takeText(rest *bytes.Buffer) *decodeError {
	length, err := rest.ReadByte()
	if err != nil {
		return &decodeError{StatusInvCmdLen, errors.New("sm_length is missing")}
	}
	text := slices.Clip(rest.Next(int(length)))
	if len(text) < int(length) {
		d.ShortMessage = text[:max(bytes.LastIndexAny(text, " \t\r\n"), 0)]
		return &decodeError{StatusInvCmdLen, fmt.Errorf("short_message: %d octets, sm_length %d", len(text), length)}
	}
	d.ShortMessage = text
	return nil
}

// takeTLVs keeps the optional parameters, up to one that is cut, the last of
// each tag, and makes message_payload the text where there is no other. Up to
// three octets behind them are let pass.
func (d *Delivery) takeTLVs(octets []byte) *decodeError {
	var broken *decodeError
	inText := len(d.ShortMessage) > 0
	for len(octets) >= tlvHeader {
		tag, length := binary.BigEndian.Uint16(octets), int(binary.BigEndian.Uint16(octets[2:]))
		octets = octets[tlvHeader:]
		if length > len(octets) {
			broken = &decodeError{StatusInvOptStream, fmt.Errorf("TLV %#04x: %d octets, length %d", tag, len(octets), length)}
			break
		}
		value := octets[:length:length]
		octets = octets[length:]
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

// What a deliver_sm or data_sm may hold, in octets: what is kept of it goes into
// a database, whose indexes take no more than some 2,700 octets a row, and waits
// in memory until it is there.
const (
	// maxPeerAddress is the longest address of data_sm (SMPP 3.4, 5.2.9, without
	// the NUL). deliver_sm is to have 20 at most; carriers are known to write more.
	maxPeerAddress = 64
	// maxText is a message of 255 segments, the most that a UDH can count, at one
	// septet an octet.
	maxText = 255 * 153
	// maxTLVs is far above the optional parameters that there are.
	maxTLVs = 128
)

// boundFields empties what is longer than it may be and says what that was. An
// address that is cut would be another's.
func (d *Delivery) boundFields() (broken *decodeError) {
	if n := len(d.ShortMessage); n > maxText {
		d.ShortMessage = d.ShortMessage[:0]
		broken = &decodeError{StatusInvMsgLen, fmt.Errorf("the text has %d octets, more than %d", n, maxText)}
	}
	if n := len(d.Dest); n > maxPeerAddress {
		d.Dest = ""
		broken = &decodeError{StatusInvDstAddr, fmt.Errorf("destination_addr has %d octets, more than %d", n, maxPeerAddress)}
	}
	if n := len(d.Source); n > maxPeerAddress {
		d.Source = ""
		broken = &decodeError{StatusInvSrcAddr, fmt.Errorf("source_addr has %d octets, more than %d", n, maxPeerAddress)}
	}
	if n := len(d.ServiceType); n > maxPeerAddress { // 5, says the specification; nobody reads it
		d.ServiceType = ""
		broken = &decodeError{StatusInvCmdLen, fmt.Errorf("service_type has %d octets", n)}
	}
	return broken
}

// maxMessageID bounds what is taken for a message id; the specification says
// 64 octets.
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
