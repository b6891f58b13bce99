package smpp

import (
	"encoding/binary"
	"time"
	"unicode/utf8"
)

// Operation is what a peer requests.
type Operation uint8

const (
	// OpSubmit is submit_sm.
	OpSubmit Operation = iota
	// OpData is data_sm.
	OpData
	// OpQuery is query_sm.
	OpQuery
	// OpCancel is cancel_sm.
	OpCancel
	// OpReplace is replace_sm. Only its MessageID and source are decoded.
	OpReplace
	// OpSubmitMulti is submit_multi. None of its fields is decoded.
	OpSubmitMulti
)

// Request is a request of a bound peer. It shares no memory with the session. A field that its PDU does not have is
// zero.
//
// A PDU that cannot be read completely never becomes a Request: the session refuses it. The fields of a Request are
// bounded: addresses 64 bytes, ids 255, times 16 characters, the text 39,015 bytes, 128 TLVs.
type Request struct {
	Operation Operation
	Received  time.Time

	MessageID string // of query_sm, cancel_sm and replace_sm; cancel_sm may have none

	ServiceType        string
	SourceTON          uint8
	SourceNPI          uint8
	Source             string
	DestTON            uint8
	DestNPI            uint8
	Dest               string
	ESMClass           uint8 // as sent; if it has 0x40, the text begins with a whole UDH
	ProtocolID         uint8
	Priority           uint8
	Schedule           string // schedule_delivery_time
	Validity           string // validity_period
	RegisteredDelivery uint8
	Replace            uint8 // replace_if_present_flag
	DataCoding         uint8
	DefaultMessage     uint8 // sm_default_msg_id
	// ShortMessage is short_message, or message_payload where that carries the text, UDH included.
	ShortMessage []byte
	// TLVs holds the optional parameters, by ascending tag, without message_payload where that became ShortMessage.
	TLVs []TLV

	open
	peer *Peer
}

// TLV returns the value of an optional parameter and whether it is present.
func (r *Request) TLV(tag uint16) ([]byte, bool) { return tlv(r.TLVs, tag) }

// UDHLength is the length of the UDH that ShortMessage begins with, its length byte included; 0 for none.
func (r *Request) UDHLength() int {
	if r.ESMClass&esmUDHI == 0 {
		return 0
	}
	return int(r.ShortMessage[0]) + 1
}

// Accept responds with ESME_ROK and the message_id (at most 64 bytes), which cancel_sm_resp and replace_sm_resp do not
// have.
//
// Only the first of Accept, Refuse and AnswerQuery responds. They never block. If the session has ended meanwhile,
// nothing is sent, and the client may send the request again.
func (r *Request) Accept(messageID string) {
	var body []byte
	if r.Operation == OpSubmit || r.Operation == OpData {
		body = append(append(make([]byte, 0, maxStatusText), messageID...), 0)
	}
	r.respond(StatusOK, body)
}

// Refuse responds with an error status. text explains it to the client's operator (additional_status_info_text, of
// submit_sm_resp and data_sm_resp, 255 bytes; not to SMPP 3.3); it may be empty.
func (r *Request) Refuse(status Status, text string) {
	r.respond(status, r.peer.refusedBody(r.header.command, text))
}

// AnswerQuery responds to query_sm. finalDate is empty or the 16 characters of an SMPP time; state is the number of
// message_state (SMPP 3.4, 5.2.28).
func (r *Request) AnswerQuery(messageID, finalDate string, state, errorCode uint8) {
	body := append(append([]byte(messageID), 0), finalDate...)
	r.respond(StatusOK, append(body, 0, state, errorCode))
}

func (r *Request) respond(status Status, body []byte) {
	if r.answer(status, body...) {
		r.peer.count(status)
	}
}

// refusedBody is [Request.Refuse]'s body. A message_id that is empty is understood by all clients; other responses than
// those to a message or a bind have no body then.
func (p *Peer) refusedBody(cmd command, text string) (body []byte) {
	switch cmd {
	case cmdBindTransceiver, cmdBindTransmitter, cmdBindReceiver:
		return []byte{0}
	case cmdSubmitSM, cmdDataSM:
		body = []byte{0}
	}
	if body == nil || text == "" || p.Login().Version < Version34 {
		return body
	}
	for len(text) > maxStatusText {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	body = append(binary.BigEndian.AppendUint16(body, TagStatusText), 0, uint8(len(text)+1))
	return append(append(body, text...), 0)
}
