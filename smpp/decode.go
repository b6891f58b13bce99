package smpp

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/fiorix/go-smpp/smpp/pdu/pdufield"
	"github.com/fiorix/go-smpp/smpp/pdu/pdutlv"
)

// The mandatory fields as this package has them decoded: the codec's own list
// for deliver_sm takes the UDH apart and fails where there is none, and it has
// none for data_sm.
var (
	deliverSMFields = pdufield.List{
		pdufield.ServiceType,
		pdufield.SourceAddrTON, pdufield.SourceAddrNPI, pdufield.SourceAddr,
		pdufield.DestAddrTON, pdufield.DestAddrNPI, pdufield.DestinationAddr,
		pdufield.ESMClass, pdufield.ProtocolID, pdufield.PriorityFlag,
		pdufield.ScheduleDeliveryTime, pdufield.ValidityPeriod,
		pdufield.RegisteredDelivery, pdufield.ReplaceIfPresentFlag,
		pdufield.DataCoding, pdufield.SMDefaultMsgID,
		pdufield.SMLength, pdufield.ShortMessage,
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
// body.
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
	tlvs, err := pdutlv.DecodeTLV(rest)
	if err != nil {
		return nil, &decodeError{StatusInvOptStream, err}
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
	if text, ok := fields[pdufield.ShortMessage].(*pdufield.SM); ok {
		d.ShortMessage = slices.Clip(text.Data)
	}
	d.takeTLVs(tlvs)
	d.Receipt = parseReceipt(d)
	return d, nil
}

// octet returns a one-octet field; 0 where the PDU has no such field.
func octet(fields pdufield.Map, name pdufield.Name) uint8 {
	if f, ok := fields[name].(*pdufield.Fixed); ok {
		return f.Data
	}
	return 0
}

// takeTLVs keeps the optional parameters and makes message_payload the text
// where there is no other.
func (d *Delivery) takeTLVs(tlvs pdutlv.Map) {
	for tag, field := range tlvs {
		value := slices.Clip(field.Bytes())
		if uint16(tag) == TagMessagePayload && len(d.ShortMessage) == 0 {
			d.ShortMessage = value
			continue
		}
		d.TLVs = append(d.TLVs, TLV{Tag: uint16(tag), Value: value})
	}
	slices.SortFunc(d.TLVs, func(a, b TLV) int { return cmp.Compare(a.Tag, b.Tag) })
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
