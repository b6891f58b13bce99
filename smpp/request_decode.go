package smpp

import (
	"bytes"
	"fmt"
	"time"
)

// operation returns what a command requests of a server.
func operation(cmd command) (op Operation, known bool) {
	switch cmd {
	case cmdSubmitSM:
		return OpSubmit, true
	case cmdDataSM:
		return OpData, true
	case cmdQuerySM:
		return OpQuery, true
	case cmdCancelSM:
		return OpCancel, true
	case cmdReplaceSM:
		return OpReplace, true
	case cmdSubmitMulti:
		return OpSubmitMulti, true
	}
	return 0, false
}

// decodeRequest decodes the body of a request, which the Request keeps. The error is a *decodeError. Other than a
// deliver_sm, a request must be whole: the client is told at once what is wrong, and nothing is sent that it did not
// write.
func decodeRequest(op Operation, body []byte, received time.Time) (*Request, error) {
	r := &Request{Operation: op, Received: received}
	switch op {
	case OpSubmit, OpData:
		return r, r.readMessage(body)
	case OpSubmitMulti:
		return r, nil
	}
	f := fieldReader{rest: body}
	if op == OpCancel {
		f.cString("service_type", &r.ServiceType)
	}
	f.cString("message_id", &r.MessageID)
	f.octet("source_addr_ton", &r.SourceTON)
	f.octet("source_addr_npi", &r.SourceNPI)
	f.cString("source_addr", &r.Source)
	if op == OpCancel {
		f.octet("dest_addr_ton", &r.DestTON)
		f.octet("dest_addr_npi", &r.DestNPI)
		f.cString("destination_addr", &r.Dest)
	}
	if err := f.err(); err != nil {
		return nil, err
	}
	return r, boundedFields(
		bounded{"service_type", r.ServiceType, maxPeerAddress, StatusInvServiceType},
		bounded{"message_id", r.MessageID, maxMessageID, StatusInvMessageID},
		bounded{"source_addr", r.Source, maxPeerAddress, StatusInvSrcAddr},
		bounded{"destination_addr", r.Dest, maxPeerAddress, StatusInvDstAddr})
}

// readMessage reads a submit_sm or data_sm.
func (r *Request) readMessage(body []byte) error {
	d, o := Delivery{DataSM: r.Operation == OpData}, orders{}
	if _, err := d.read(body, &o); err != nil {
		return err
	}
	for _, broken := range [...]*decodeError{d.broken, d.boundFields()} {
		if broken != nil && broken.status != StatusOK {
			return broken
		}
	}
	if len(bytes.Trim(d.rest, "\x00")) > 0 { // NULs may end a text
		return &decodeError{StatusInvOptStream, fmt.Errorf("an optional parameter has %d bytes, fewer than its header",
			len(d.rest))}
	}
	if d.ESMClass&esmUDHI != 0 && !wholeUDH(d.ShortMessage) {
		return &decodeError{StatusInvESMClass, fmt.Errorf("esm_class %#02x, but the text does not begin with a UDH",
			d.ESMClass)}
	}
	r.ServiceType, r.ESMClass, r.RegisteredDelivery, r.DataCoding = d.ServiceType, d.ESMClass, d.RegisteredDelivery,
		d.DataCoding
	r.SourceTON, r.SourceNPI, r.Source = d.SourceTON, d.SourceNPI, d.Source
	r.DestTON, r.DestNPI, r.Dest = d.DestTON, d.DestNPI, d.Dest
	r.ProtocolID, r.Priority, r.Replace, r.DefaultMessage = o.protocol, o.priority, o.replace, o.defaultMessage
	r.Schedule, r.Validity, r.ShortMessage, r.TLVs = o.schedule, o.validity, d.ShortMessage, d.TLVs
	return boundedFields(
		bounded{"schedule_delivery_time", r.Schedule, validityLength, StatusInvSchedule},
		bounded{"validity_period", r.Validity, validityLength, StatusInvExpiry})
}

// bounded is a field with its most bytes and the status of a longer one.
type bounded struct {
	name, value string
	most        int
	status      Status
}

func boundedFields(fields ...bounded) error {
	for _, f := range fields {
		if len(f.value) > f.most {
			return &decodeError{f.status, fmt.Errorf("%s has %d bytes, more than %d", f.name, len(f.value), f.most)}
		}
	}
	return nil
}

// servedModes are the bind commands with what they bind.
var servedModes = map[command]struct {
	mode BindMode
	role role
}{
	cmdBindTransceiver: {Transceiver, asTransceiver},
	cmdBindTransmitter: {Transmitter, asTransmitter},
	cmdBindReceiver:    {Receiver, asReceiver},
}

// decodeLogin decodes the body of a bind.
func decodeLogin(mode BindMode, body []byte) (Login, error) {
	l := Login{Mode: mode}
	f := fieldReader{rest: body}
	f.cString("system_id", &l.SystemID)
	f.cString("password", &l.Password)
	f.cString("system_type", &l.SystemType)
	f.octet("interface_version", &l.Version)
	f.octet("addr_ton", &l.AddressTON)
	f.octet("addr_npi", &l.AddressNPI)
	f.cString("address_range", &l.AddressRange)
	if err := f.err(); err != nil {
		return Login{}, err
	}
	return l, boundedFields(
		bounded{"system_id", l.SystemID, maxCredential, StatusInvSystemID},
		bounded{"password", l.Password, maxCredential, StatusInvPassword},
		bounded{"system_type", l.SystemType, maxCredential, StatusInvSysType},
		bounded{"address_range", l.AddressRange, maxCredential, StatusBindFailed})
}
