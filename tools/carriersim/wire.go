package carriersim

import (
	"encoding/binary"
	"fmt"
)

// command_id values (SMPP 3.4, 5.1.2.1).
const (
	cmdBindReceiver    = 0x00000001
	cmdBindTransmitter = 0x00000002
	cmdQuerySM         = 0x00000003
	cmdSubmitSM        = 0x00000004
	cmdDeliverSM       = 0x00000005
	cmdUnbind          = 0x00000006
	cmdReplaceSM       = 0x00000007
	cmdCancelSM        = 0x00000008
	cmdBindTransceiver = 0x00000009
	cmdEnquireLink     = 0x00000015
	cmdSubmitMulti     = 0x00000021
	cmdAlert           = 0x00000102
	cmdDataSM          = 0x00000103
	cmdResponse        = 0x80000000 // marks a response
	cmdGenericNack     = 0x80000000
)

var commandNames = map[uint32]string{
	cmdBindReceiver: "bind_receiver", cmdBindTransmitter: "bind_transmitter", cmdBindTransceiver: "bind_transceiver",
	cmdQuerySM: "query_sm", cmdSubmitSM: "submit_sm", cmdDeliverSM: "deliver_sm", cmdUnbind: "unbind",
	cmdReplaceSM: "replace_sm", cmdCancelSM: "cancel_sm", cmdEnquireLink: "enquire_link",
	cmdSubmitMulti: "submit_multi", cmdAlert: "alert_notification", cmdDataSM: "data_sm",
}

func commandName(id uint32) string {
	if id == cmdGenericNack {
		return "generic_nack"
	}
	name, ok := commandNames[id&^cmdResponse]
	switch {
	case !ok:
		return fmt.Sprintf("command 0x%08X", id)
	case id&cmdResponse != 0:
		return name + "_resp"
	}
	return name
}

// Tags of optional parameters (SMPP 3.4, 5.3.2).
const (
	tagReceiptedID     = 0x001E
	tagUserReference   = 0x0204
	tagSARRef          = 0x020C
	tagSARTotal        = 0x020E
	tagSARSeq          = 0x020F
	tagSCVersion       = 0x0210
	tagNetworkError    = 0x0423
	tagMessagePayload  = 0x0424
	tagMessageState    = 0x0427
	tagCongestionState = 0x0428
)

const (
	headerLen = 16
	// maxPDU is the longest accepted PDU: a message_payload of 64 KiB and the other fields.
	maxPDU = 70_000
)

type header struct {
	length  uint32
	command uint32
	status  Status
	seq     uint32
}

func parseHeader(b []byte) header {
	return header{
		length:  binary.BigEndian.Uint32(b),
		command: binary.BigEndian.Uint32(b[4:]),
		status:  Status(binary.BigEndian.Uint32(b[8:])),
		seq:     binary.BigEndian.Uint32(b[12:]),
	}
}

// appendHeader starts a PDU; finish sets its length after the body was appended.
func appendHeader(dst []byte, command uint32, status Status, seq uint32) []byte {
	dst = append(dst, 0, 0, 0, 0)
	dst = binary.BigEndian.AppendUint32(dst, command)
	dst = binary.BigEndian.AppendUint32(dst, uint32(status))
	return binary.BigEndian.AppendUint32(dst, seq)
}

// finish sets the length of the PDU that began at start.
func finish(dst []byte, start int) []byte {
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start))
	return dst
}

func appendCString(dst []byte, s string) []byte { return append(append(dst, s...), 0) }

func appendTLV(dst []byte, tag uint16, value []byte) []byte {
	dst = binary.BigEndian.AppendUint16(dst, tag)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(value)))
	return append(dst, value...)
}

// breach is one error of a PDU.
type breach struct {
	status Status
	text   string
	taken  bool // no reason to refuse
}

// cursor reads a PDU's body up to the first error.
type cursor struct {
	rest []byte
	cut  string // the field where the body ended
}

func (c *cursor) octet(field string) byte {
	if c.cut != "" || len(c.rest) == 0 {
		c.fail(field)
		return 0
	}
	b := c.rest[0]
	c.rest = c.rest[1:]
	return b
}

func (c *cursor) raw(n int, field string) []byte {
	if c.cut != "" || len(c.rest) < n {
		c.fail(field)
		return nil
	}
	b := c.rest[:n:n]
	c.rest = c.rest[n:]
	return b
}

// cstring reads up to a NUL; size is the specified size of the field, including the NUL. It
// still reads a longer string; long is then true.
func (c *cursor) cstring(size int, field string) (value []byte, long bool) {
	if c.cut != "" {
		return nil, false
	}
	for i, b := range c.rest {
		if b == 0 {
			value, c.rest = c.rest[:i:i], c.rest[i+1:]
			return value, i >= size
		}
	}
	c.fail(field)
	return nil, false
}

func (c *cursor) fail(field string) {
	if c.cut == "" {
		c.cut = field
	}
	c.rest = nil
}
