package smpp

import (
	"bytes"
	"encoding/binary"
)

// congestionOf finds congestion_state (SMPP 5.0, 4.8.4.18) in the body of a response. A
// response may lack its mandatory fields; its optional parameters then come first.
func congestionOf(cmd command, body []byte) (state uint8, ok bool) {
	if cmd == cmdSubmitSMResp || cmd == cmdDataSMResp {
		if end := bytes.IndexByte(body, 0); end >= 0 {
			if state, ok = congestionAmong(body[end+1:]); ok {
				return state, true
			}
		}
	}
	return congestionAmong(body)
}

func congestionAmong(tlvs []byte) (state uint8, ok bool) {
	for len(tlvs) >= 4 {
		tag, length := binary.BigEndian.Uint16(tlvs), int(binary.BigEndian.Uint16(tlvs[2:]))
		tlvs = tlvs[4:]
		if length > len(tlvs) {
			return 0, false
		}
		if tag == TagCongestionState && length == 1 {
			return tlvs[0], true
		}
		tlvs = tlvs[length:]
	}
	return 0, false
}
