package smpp

import "encoding/binary"

// command is an SMPP command_id.
type command uint32

const (
	cmdGenericNack       command = 0x80000000
	cmdBindReceiver      command = 0x00000001
	cmdBindTransmitter   command = 0x00000002
	cmdQuerySM           command = 0x00000003
	cmdSubmitSM          command = 0x00000004
	cmdSubmitSMResp      command = 0x80000004
	cmdDeliverSM         command = 0x00000005
	cmdDeliverSMResp     command = 0x80000005
	cmdUnbind            command = 0x00000006
	cmdUnbindResp        command = 0x80000006
	cmdReplaceSM         command = 0x00000007
	cmdCancelSM          command = 0x00000008
	cmdBindTransceiver   command = 0x00000009
	cmdOutbind           command = 0x0000000B
	cmdEnquireLink       command = 0x00000015
	cmdEnquireLinkResp   command = 0x80000015
	cmdSubmitMulti       command = 0x00000021
	cmdAlertNotification command = 0x00000102
	cmdDataSM            command = 0x00000103
	cmdDataSMResp        command = 0x80000103
	responseBit          command = 0x80000000
)

var commandNames = map[command]string{
	cmdGenericNack:                   "generic_nack",
	cmdBindReceiver:                  "bind_receiver",
	cmdBindReceiver | responseBit:    "bind_receiver_resp",
	cmdBindTransmitter:               "bind_transmitter",
	cmdBindTransmitter | responseBit: "bind_transmitter_resp",
	cmdQuerySM:                       "query_sm",
	cmdQuerySM | responseBit:         "query_sm_resp",
	cmdReplaceSM:                     "replace_sm",
	cmdReplaceSM | responseBit:       "replace_sm_resp",
	cmdCancelSM:                      "cancel_sm",
	cmdCancelSM | responseBit:        "cancel_sm_resp",
	cmdSubmitMulti:                   "submit_multi",
	cmdSubmitMulti | responseBit:     "submit_multi_resp",
	cmdSubmitSM:                      "submit_sm",
	cmdSubmitSMResp:                  "submit_sm_resp",
	cmdDeliverSM:                     "deliver_sm",
	cmdDeliverSMResp:                 "deliver_sm_resp",
	cmdUnbind:                        "unbind",
	cmdUnbindResp:                    "unbind_resp",
	cmdBindTransceiver:               "bind_transceiver",
	cmdBindTransceiver | responseBit: "bind_transceiver_resp",
	cmdOutbind:                       "outbind",
	cmdEnquireLink:                   "enquire_link",
	cmdEnquireLinkResp:               "enquire_link_resp",
	cmdAlertNotification:             "alert_notification",
	cmdDataSM:                        "data_sm",
	cmdDataSMResp:                    "data_sm_resp",
}

// String returns the specification's name, "unknown" for any other id.
func (c command) String() string {
	if name, ok := commandNames[c]; ok {
		return name
	}
	return "unknown"
}

func (c command) response() bool { return c&responseBit != 0 }

const headerLength = 16

// header is a PDU header without its command_length.
type header struct {
	command  command
	status   Status
	sequence uint32
}

// appendPDU appends a PDU whose body is given as bytes: the header-only ones
// and the short responses.
func appendPDU(b []byte, h header, body ...byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(headerLength+len(body)))
	b = binary.BigEndian.AppendUint32(b, uint32(h.command))
	b = binary.BigEndian.AppendUint32(b, uint32(h.status))
	b = binary.BigEndian.AppendUint32(b, h.sequence)
	return append(b, body...)
}

// maxSequence is the last sequence_number before 1 comes again.
const maxSequence = 0x7FFFFFFF

// patchSequence writes the sequence_number into a finished frame.
func patchSequence(frame []byte, sequence uint32) {
	binary.BigEndian.PutUint32(frame[12:16], sequence)
}
