package carriersim

import (
	"encoding/binary"
	"fmt"
	"time"
)

// submit is a decoded submit_sm; its slices point into the frame.
type submit struct {
	service        []byte
	srcTON, srcNPI byte
	src            []byte
	dstTON, dstNPI byte
	dst            []byte
	esmClass       byte
	protocol       byte
	priority       byte
	schedule       []byte
	validity       []byte
	registered     byte
	replace        byte
	coding         byte
	defaultMessage byte
	shortMessage   []byte
	tlvs           []byte // undecoded
	udh            []byte // with its length byte
	text           []byte // short_message or message_payload without UDH
	concat         Concat // Total 0 = none
	reference      uint16 // user_message_reference
	hasReference   bool
	sar            [3]int // sar_msg_ref_num, total, seq; -1 = absent
	payload        []byte
	hasPayload     bool
	breaches       []breach
	complete       bool // all mandatory fields were decoded
}

func (m *submit) breach(status Status, format string, args ...any) {
	m.breaches = append(m.breaches, breach{status: status, text: fmt.Sprintf(format, args...)})
}

// refusal is the status with which a carrier refuses the submit; OK if it does not.
func (m *submit) refusal() Status {
	for _, b := range m.breaches {
		if !b.taken {
			return b.status
		}
	}
	return OK
}

// decodeSubmit decodes the body of a submit_sm and checks every field against SMPP 3.4,
// 4.4.1: the validity against now, and a text with data_coding 0 against alphabet.
// m.breaches lists the errors. Without m.complete, do not use the fields.
func decodeSubmit(body []byte, m *submit, alphabet Alphabet, now time.Time) {
	*m = submit{breaches: m.breaches[:0], sar: [3]int{-1, -1, -1}}
	c := cursor{rest: body}
	var long [5]bool
	m.service, long[0] = c.cstring(6, "service_type")
	m.srcTON, m.srcNPI = c.octet("source_addr_ton"), c.octet("source_addr_npi")
	m.src, long[1] = c.cstring(21, "source_addr")
	m.dstTON, m.dstNPI = c.octet("dest_addr_ton"), c.octet("dest_addr_npi")
	m.dst, long[2] = c.cstring(21, "destination_addr")
	m.esmClass, m.protocol, m.priority = c.octet("esm_class"), c.octet("protocol_id"), c.octet("priority_flag")
	m.schedule, long[3] = c.cstring(17, "schedule_delivery_time")
	m.validity, long[4] = c.cstring(17, "validity_period")
	m.registered, m.replace = c.octet("registered_delivery"), c.octet("replace_if_present_flag")
	m.coding, m.defaultMessage = c.octet("data_coding"), c.octet("sm_default_msg_id")
	length := int(c.octet("sm_length"))
	m.shortMessage = c.raw(length, "short_message")
	if c.cut != "" {
		m.breach(InvalidCommandLen, "the body ends within %s", c.cut)
		return
	}
	m.complete = true
	m.tlvs = c.rest
	m.text = m.shortMessage
	for i, at := range [...]struct {
		status Status
		name   string
	}{{InvalidService, "service_type"}, {InvalidSource, "source_addr"}, {InvalidDest, "destination_addr"},
		{InvalidSchedule, "schedule_delivery_time"}, {InvalidExpiry, "validity_period"}} {
		if long[i] {
			m.breach(at.status, "%s is longer than its field", at.name)
		}
	}
	if length > 254 {
		m.breach(InvalidLength, "sm_length %d is over 254", length)
	}
	m.checkTLVs()
	m.checkAddresses()
	m.checkFlags(now)
	m.checkUDH()
	m.checkText(alphabet)
}

func (m *submit) checkTLVs() {
	var seen [16]uint16
	known := seen[:0]
	for rest := m.tlvs; len(rest) > 0; {
		if len(rest) < 4 {
			m.breach(InvalidTLVStream, "%d bytes behind the last TLV", len(rest))
			break
		}
		tag, length := binary.BigEndian.Uint16(rest), int(binary.BigEndian.Uint16(rest[2:]))
		if len(rest) < 4+length {
			m.breach(InvalidTLVStream, "TLV 0x%04X has length %d, %d bytes are left", tag, length, len(rest)-4)
			break
		}
		value := rest[4 : 4+length]
		rest = rest[4+length:]
		for _, other := range known {
			if other == tag {
				m.breach(InvalidTLVStream, "TLV 0x%04X comes twice", tag)
			}
		}
		if len(known) < cap(known) {
			known = append(known, tag)
		}
		if want, ok := tlvLengths[tag]; ok && want != length {
			m.breach(InvalidTLVLength, "TLV 0x%04X has %d bytes, not %d", tag, length, want)
			continue
		}
		switch tag {
		case tagUserReference:
			m.reference, m.hasReference = binary.BigEndian.Uint16(value), true
		case tagSARRef:
			m.sar[0] = int(binary.BigEndian.Uint16(value))
		case tagSARTotal:
			m.sar[1] = int(value[0])
		case tagSARSeq:
			m.sar[2] = int(value[0])
		case tagMessagePayload:
			m.payload, m.hasPayload = value, true
		case tagReceiptedID, tagMessageState, tagNetworkError, tagCongestionState:
			m.breach(InvalidTLVStream, "TLV 0x%04X does not belong to submit_sm", tag)
		}
	}
	if m.hasPayload {
		if len(m.shortMessage) > 0 {
			m.breach(InvalidTLVStream, "message_payload beside a short_message")
		} else {
			m.text = m.payload
		}
	}
	switch {
	case m.sar == [3]int{-1, -1, -1}:
	case m.sar[0] < 0 || m.sar[1] < 0 || m.sar[2] < 0:
		m.breach(InvalidTLVStream, "sar_msg_ref_num, sar_total_segments and sar_segment_seqnum come together or not at all")
	case m.sar[1] == 0 || m.sar[2] == 0 || m.sar[2] > m.sar[1]:
		m.breach(InvalidTLVValue, "sar segment %d of %d", m.sar[2], m.sar[1])
	default:
		m.concat = Concat{Ref: uint16(m.sar[0]), Total: uint8(m.sar[1]), Seq: uint8(m.sar[2]), By: "sar"}
	}
}

// tlvLengths has the lengths of TLVs with a fixed length.
var tlvLengths = map[uint16]int{
	tagUserReference: 2, tagSARRef: 2, tagSARTotal: 1, tagSARSeq: 1,
	// dest_addr_subunit, dest_network_type, dest_bearer_type, dest_telematics_id
	0x0005: 1, 0x0006: 1, 0x0007: 1, 0x0008: 2,
	0x000D: 1, 0x000E: 1, 0x000F: 1, 0x0010: 1, // the same for the source (telematics: 1)
	0x0019: 1, 0x0030: 1, 0x020A: 2, 0x020B: 2, // payload_type, ms_msg_wait_facilities, source_port, destination_port
	// privacy_indicator, user_response_code, language_indicator, number_of_messages
	0x0201: 1, 0x0205: 1, 0x020D: 1, 0x0304: 1,
	// more_messages, display_time, sms_signal, ms_validity, its_reply_type
	0x0426: 1, 0x1201: 1, 0x1203: 2, 0x1204: 1, 0x1380: 1,
	0x130C: 0, 0x1383: 2, // alert_on_message_delivery, its_session_info
}

// bind is a decoded bind request.
type bind struct {
	systemID, password, systemType, addressRange string
	version                                      byte
}

// longest bounds system_id, password and system_type with their NUL. SMPP 3.4 has 16, 9 and 13, but carriers give out
// longer ones.
const longest = 256

// decodeBind decodes the body of any bind request (SMPP 3.4, 4.1).
func decodeBind(body []byte) (bind, []breach) {
	var breaches []breach
	c := cursor{rest: body}
	read := func(size int, field string, status Status) string {
		value, long := c.cstring(size, field)
		if long {
			breaches = append(breaches, breach{status: status, text: field + " is longer than its field"})
		}
		return string(value)
	}
	b := bind{
		systemID:   read(longest, "system_id", InvalidSystemID),
		password:   read(longest, "password", InvalidPassword),
		systemType: read(longest, "system_type", InvalidSystemType),
		version:    c.octet("interface_version"),
	}
	c.octet("addr_ton")
	c.octet("addr_npi")
	b.addressRange = read(41, "address_range", BindFailed)
	switch {
	case c.cut != "":
		breaches = append(breaches, breach{status: InvalidCommandLen, text: "the body ends within " + c.cut})
	case len(c.rest) > 0:
		breaches = append(breaches, breach{status: InvalidCommandLen,
			text: fmt.Sprintf("%d bytes behind the body", len(c.rest))})
	case b.version != 0x34 && b.version != 0x33 && b.version != 0x50:
		breaches = append(breaches, breach{status: BindFailed, text: fmt.Sprintf("interface_version 0x%02X", b.version)})
	}
	return b, breaches
}

// checkAck checks the body of a deliver_sm_resp or data_sm_resp: message_id is unused
// and must be NULL (SMPP 3.4, 4.6.2); a refusal may omit it.
func checkAck(h header, body []byte) string {
	switch {
	case len(body) == 0 && h.status != OK:
		return ""
	case len(body) == 0:
		return "has no message_id"
	case body[len(body)-1] != 0 && h.command == cmdDeliverSM|cmdResponse:
		return "message_id is not terminated"
	case len(body) > 1 && h.command == cmdDeliverSM|cmdResponse:
		return "message_id is not empty"
	}
	return ""
}
