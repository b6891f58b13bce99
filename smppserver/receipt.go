package smppserver

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"intumwa/messages"
	"intumwa/messages/submission"
	"intumwa/smpp"
	"intumwa/smppserver/binds"
	"intumwa/sms"
)

// state is a final state of a receipt: its word (SMPP 3.4, appendix B) and its message_state (5.2.28).
type state struct {
	word  string
	value uint8
}

var (
	stateEnroute   = state{"ENROUTE", 1}
	stateDelivered = state{"DELIVRD", 2}
	stateExpired   = state{"EXPIRED", 3}
	stateDeleted   = state{"DELETED", 4}
	stateUndeliv   = state{"UNDELIV", 5}
	stateUnknown   = state{"UNKNOWN", 7}
	stateRejected  = state{"REJECTD", 8}
)

// stateOf returns the state of a final message, and the carrier's error code if it is a number.
func stateOf(sent bool, reason string) (s state, code int) {
	word, rest, _ := strings.Cut(reason, " ")
	if n, err := strconv.ParseUint(rest, 10, 16); err == nil {
		code = int(n)
	}
	switch {
	case sent:
		return stateDelivered, 0
	case word == submission.ReasonExpired || word == stateExpired.word:
		return stateExpired, code
	case word == submission.ReasonNoReceipt || word == submission.ReasonNoAnswer:
		return stateUnknown, code
	case word == messages.ReasonCancelled || word == stateDeleted.word:
		return stateDeleted, code
	case word == submission.ReasonOptedOut || word == submission.ReasonClosed || word == stateRejected.word ||
		strings.HasPrefix(word, "ESME_") || strings.HasPrefix(word, "0x"):
		return stateRejected, code
	}
	return stateUndeliv, code
}

// esmReceipt is the esm_class of a receipt from an SMSC.
const esmReceipt = 0x04

// echoed are the optional parameters of a submit_sm that its receipt repeats: those by which programs recognise it.
// source_subaddress,
var echoed = []uint16{0x0202, 0x0203, smpp.TagUserMessageReference, 0x0205, 0x020A, 0x020B, 0x020D}

// dest_subaddress, user_response_code, source_port, destination_port, language_indicator

// longestEchoed is the longest of them: a subaddress (SMPP 3.4, 5.3.2.15).
const longestEchoed = 23

// echoOf returns the parameters of a request that its receipt repeats, as on the wire; nil for none.
func echoOf(r *smpp.Request) (echo []byte) {
	for _, tag := range echoed {
		if value, found := r.TLV(tag); found && len(value) <= longestEchoed {
			echo = append(binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(echo, tag), uint16(len(value))), value...)
		}
	}
	return echo
}

// echoOn adds parameters as on the wire.
func echoOn(tlvs []smpp.TLV, echo []byte) []smpp.TLV {
	for len(echo) >= 4 {
		value := echo[4 : 4+binary.BigEndian.Uint16(echo[2:])]
		tlvs, echo = append(tlvs, smpp.TLV{Tag: binary.BigEndian.Uint16(echo), Value: value}), echo[4+len(value):]
	}
	return tlvs
}

// deliver returns the deliver_sm of a delivery, with its short name (shortName) or its ULID.
func deliver(d *binds.Delivery, short bool) smpp.Submit {
	m := smpp.Submit{Key: uint64(d.ID)}
	m.Source, m.SourceTON, m.SourceNPI = addressOf(d.Number)
	m.Dest, m.DestTON, m.DestNPI = addressOf(d.Address)
	if d.Sent == nil {
		encoding, payload := sms.Encode(d.Body)
		m.DataCoding = encoding.DataCoding()
		if len(payload) <= maxShortMessage {
			m.ShortMessage = payload
		} else {
			m.TLVs = []smpp.TLV{{Tag: smpp.TagMessagePayload, Value: payload}}
		}
		return m
	}
	s, code := stateOf(*d.Sent, d.Reason)
	id := d.ULID.String()
	if short {
		id = shortName(d.MessageID)
	}
	delivered := 0
	if *d.Sent {
		delivered = 1
	}
	const minute = "0601021504"
	m.ESMClass = esmReceipt
	m.ShortMessage = fmt.Appendf(nil, "id:%s sub:001 dlvrd:%03d submit date:%s done date:%s stat:%s err:%03d text:", id,
		delivered,
		d.SubmittedAt.UTC().Format(minute), d.At.UTC().Format(minute), s.word, code%1000)
	m.TLVs = []smpp.TLV{{Tag: smpp.TagReceiptedMessageID, Value: append([]byte(id), 0)},
		{Tag: smpp.TagMessageState, Value: []byte{s.value}},
		{Tag: smpp.TagNetworkErrorCode, Value: binary.BigEndian.AppendUint16([]byte{networkGSM}, uint16(code))}}
	m.TLVs = echoOn(m.TLVs, d.Echo)
	return m
}

const (
	maxShortMessage = 254
	networkGSM      = 3 // network_type of network_error_code
)

// addressOf returns an address as a deliver_sm has it, with its TON and NPI.
func addressOf(address string) (text string, ton, npi uint8) {
	digits := strings.TrimPrefix(address, "+")
	switch {
	case strings.Trim(digits, "0123456789") != "":
		return address, 5, 0
	case len(digits) <= 8 && digits == address:
		return address, 3, 0
	}
	return digits, 1, 1
}
