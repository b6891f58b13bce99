package smpp

import (
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"github.com/fiorix/go-smpp/smpp/pdu"
	"github.com/fiorix/go-smpp/smpp/pdu/pdufield"
	"github.com/fiorix/go-smpp/smpp/pdu/pdutlv"
)

// frame is a PDU under construction; the codec writes into it.
type frame []byte

func (f *frame) Write(b []byte) (int, error) {
	*f = append(*f, b...)
	return len(b), nil
}

// submitEncoder is one submit_sm of the codec, filled anew for every message:
// building the codec's maps costs several times what filling them does.
type submitEncoder struct {
	body pdu.Body
	tlvs pdutlv.Map

	serviceType, source, dest, validity              *pdufield.Variable
	sourceTON, sourceNPI, destTON, destNPI, esmClass *pdufield.Fixed
	priority, registered, dataCoding, length         *pdufield.Fixed
	text                                             *pdufield.SM
}

var submitEncoders = sync.Pool{New: func() any { return newSubmitEncoder() }}

func newSubmitEncoder() *submitEncoder {
	body := pdu.NewSubmitSM(nil)
	fields := body.Fields()
	variable := func(name pdufield.Name) *pdufield.Variable {
		v := &pdufield.Variable{Data: make([]byte, 0, 32)}
		fields[name] = v
		return v
	}
	fixed := func(name pdufield.Name) *pdufield.Fixed {
		v := new(pdufield.Fixed)
		fields[name] = v
		return v
	}
	e := &submitEncoder{
		body:        body,
		tlvs:        body.TLVFields(),
		serviceType: variable(pdufield.ServiceType),
		sourceTON:   fixed(pdufield.SourceAddrTON),
		sourceNPI:   fixed(pdufield.SourceAddrNPI),
		source:      variable(pdufield.SourceAddr),
		destTON:     fixed(pdufield.DestAddrTON),
		destNPI:     fixed(pdufield.DestAddrNPI),
		dest:        variable(pdufield.DestinationAddr),
		esmClass:    fixed(pdufield.ESMClass),
		priority:    fixed(pdufield.PriorityFlag),
		validity:    variable(pdufield.ValidityPeriod),
		registered:  fixed(pdufield.RegisteredDelivery),
		dataCoding:  fixed(pdufield.DataCoding),
		length:      fixed(pdufield.SMLength),
		text:        new(pdufield.SM),
	}
	fields[pdufield.ShortMessage] = e.text
	for _, name := range []pdufield.Name{pdufield.ProtocolID, pdufield.ReplaceIfPresentFlag, pdufield.SMDefaultMsgID} {
		fixed(name) // always 0
	}
	setCString(variable(pdufield.ScheduleDeliveryTime), "")
	return e
}

// setCString sets the field to a text with its closing NUL. Without the NUL the codec
// would append one to memory that it does not own.
func setCString(v *pdufield.Variable, s string) {
	v.Data = append(append(v.Data[:0], s...), 0)
}

// encodeMessage writes m, which must be valid, into f as a submit_sm or deliver_sm, which have the same fields, with
// sequence_number 0, without its optional parameters if they are not wanted.
func encodeMessage(f *frame, cmd command, m *Submit, optional bool) error {
	e := submitEncoders.Get().(*submitEncoder)
	defer submitEncoders.Put(e)
	setCString(e.serviceType, m.ServiceType)
	e.sourceTON.Data, e.sourceNPI.Data = m.SourceTON, m.SourceNPI
	setCString(e.source, m.Source)
	e.destTON.Data, e.destNPI.Data = m.DestTON, m.DestNPI
	setCString(e.dest, m.Dest)
	e.esmClass.Data, e.priority.Data = m.ESMClass, m.Priority
	setCString(e.validity, m.Validity)
	e.registered.Data, e.dataCoding.Data = m.RegisteredDelivery, m.DataCoding
	e.length.Data = uint8(len(m.ShortMessage))
	e.text.Data = m.ShortMessage
	for i := range m.TLVs {
		if !optional {
			break
		}
		t := pdutlv.Tag(m.TLVs[i].Tag)
		e.tlvs[t] = &pdutlv.Field{Tag: t, Data: m.TLVs[i].Value}
	}
	e.body.Header().Seq = 0
	err := serialize(f, e.body)
	e.text.Data = nil
	clear(e.tlvs)
	if err == nil {
		binary.BigEndian.PutUint32((*f)[4:], uint32(cmd))
	}
	return err
}

// encodeBind returns the bind PDU of a session.
func encodeBind(o *Options, r role, sequence uint32) ([]byte, error) {
	var body pdu.Body
	account := o.account(r)
	switch r.command() {
	case cmdBindTransmitter:
		body = pdu.NewBindTransmitter()
	case cmdBindReceiver:
		body = pdu.NewBindReceiver()
	default:
		body = pdu.NewBindTransceiver()
	}
	body.Header().Seq = sequence
	fields := body.Fields()
	for name, value := range map[pdufield.Name]any{
		pdufield.SystemID:         account.SystemID,
		pdufield.Password:         account.Password,
		pdufield.SystemType:       o.SystemType,
		pdufield.InterfaceVersion: o.Version,
		pdufield.AddrTON:          o.AddressTON,
		pdufield.AddrNPI:          o.AddressNPI,
		pdufield.AddressRange:     o.AddressRange,
	} {
		if err := fields.Set(name, value); err != nil {
			return nil, fmt.Errorf("encoding %s: %w", name, err)
		}
	}
	var f frame
	err := serialize(&f, body)
	return f, err
}

// serialize lets the codec write the PDU and checks that the length it
// announces is the length it wrote: anything else would desynchronise the
// stream.
func serialize(f *frame, body pdu.Body) error {
	*f = (*f)[:0]
	if err := body.SerializeTo(io.Writer(f)); err != nil {
		return fmt.Errorf("encoding %s: %w", command(body.Header().ID), err)
	}
	if n := len(*f); n < headerLength || n > maxPDU || binary.BigEndian.Uint32(*f) != uint32(n) {
		return fmt.Errorf("encoding %s: the codec wrote %d bytes under another length", command(body.Header().ID), n)
	}
	return nil
}
