package carriersim

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"
)

// delivery is the content of a deliver_sm or data_sm.
type delivery struct {
	srcTON, srcNPI byte
	src            []byte
	dstTON, dstNPI byte
	dst            []byte
	esmClass       byte
	coding         byte
	text           []byte // at most 254 bytes
	tlvs           []byte // encoded
}

func appendDeliver(dst []byte, d delivery) []byte {
	dst = appendHeader(dst, cmdDeliverSM, OK, 0)
	dst = append(dst, 0, d.srcTON, d.srcNPI)
	dst = append(append(dst, d.src...), 0, d.dstTON, d.dstNPI)
	dst = append(append(dst, d.dst...), 0, d.esmClass, 0, 0, 0, 0, 0, 0, d.coding, 0, byte(len(d.text)))
	return finish(append(append(dst, d.text...), d.tlvs...), 0)
}

func appendDataSM(dst []byte, d delivery) []byte {
	dst = appendHeader(dst, cmdDataSM, OK, 0)
	dst = append(dst, 0, d.srcTON, d.srcNPI)
	dst = append(append(dst, d.src...), 0, d.dstTON, d.dstNPI)
	dst = append(append(dst, d.dst...), 0, d.esmClass, 0, d.coding)
	if len(d.text) > 0 {
		dst = appendTLV(dst, tagMessagePayload, d.text)
	}
	return finish(append(dst, d.tlvs...), 0)
}

// receipt is the data for deliveries about a message.
type receipt struct {
	notice
	style            ReceiptStyle
	number           uint64 // the message's
	ids              IDFormat
	srcTON, srcNPI   byte // of the submit_sm
	src              []byte
	dstTON, dstNPI   byte
	dst              []byte
	reference        uint16
	echo             bool
	submitted, done  time.Time
	text             []byte // the message's text, for the receipt's Text field
	coding           byte
	textBuf, tlvsBuf [512]byte
}

// queueReceipt encodes a notice and queues it for due; the caller holds c.mu.
func (c *Carrier) queueReceipt(systemID string, r *receipt, due int64) {
	e := &event{systemID: systemID}
	d := delivery{srcTON: r.dstTON, srcNPI: r.dstNPI, src: r.dst, dstTON: r.srcTON, dstNPI: r.srcNPI, dst: r.src}
	switch r.kind {
	case noticeAlert:
		e.command = cmdAlert
		pdu := appendHeader(nil, cmdAlert, OK, 1)
		pdu = append(append(append(pdu, r.dstTON, r.dstNPI), r.dst...), 0, r.srcTON, r.srcNPI)
		e.pdu = finish(append(append(pdu, r.src...), 0), 0)
	case noticeAnswer:
		e.command, e.mo = cmdDeliverSM, true
		d.text = []byte("Murakoze cane")
		r.said.say(&d)
		e.pdu = appendDeliver(nil, d)
	case noticeForged:
		e.command, e.mo = cmdDeliverSM, true
		d.text = r.appendText(r.textBuf[:0])
		e.pdu = appendDeliver(nil, d)
	default:
		d.esmClass = 0x04
		if r.kind == noticeIntermediate {
			d.esmClass = 0x20
		}
		if r.style.Unmarked {
			d.esmClass = 0
		}
		if r.style.UDHI {
			d.esmClass |= 0x40
		}
		d.tlvs = r.oddTLVs(r.appendTLVs(r.tlvsBuf[:0]))
		if r.style.Form != ReceiptTLV {
			d.text = r.oddText(r.appendText(r.textBuf[:0]))
		}
		if r.style.Form == ReceiptPayload && !r.style.DataSM {
			d.tlvs = appendTLV(d.tlvs, tagMessagePayload, d.text)
			d.text = nil
		}
		if r.style.DataSM {
			e.command = cmdDataSM
			e.pdu = appendDataSM(nil, d)
		} else {
			e.command = cmdDeliverSM
			e.pdu = appendDeliver(nil, d)
		}
	}
	c.queueDelivery(e, c.clock(), due)
}

func (r *receipt) appendID(dst []byte) []byte {
	if r.style.HexPrefix {
		dst = append(dst, "0x"...)
	}
	return r.ids.append(dst, r.number, true)
}

// errorCode returns the network's error code, for the err field and network_error_code.
func (r *receipt) errorCode() uint16 {
	switch r.state {
	case Undeliverable:
		return 11
	case Expired:
		return 27
	case Rejected:
		return 69
	case Deleted:
		return 88
	}
	return 0
}

// appendText appends the text of SMPP 3.4, Appendix B.
func (r *receipt) appendText(dst []byte) []byte {
	stat := r.stat
	if stat == "" {
		stat = r.state.String()
	}
	if r.style.Sparse {
		return r.appendID(append(append(append(dst, "STAT:"...), stat...), " ID:"...))
	}
	dst = append(dst, "id:"...)
	if r.contradictory {
		dst, stat = append(dst, "0000000000"...), Undeliverable.String()
	} else {
		dst = r.appendID(dst)
	}
	done := "000"
	if r.state == Delivered {
		done = "001"
	}
	layout := "0601021504"
	if r.style.Seconds {
		layout = "060102150405"
	}
	dst = append(append(dst, " sub:001 dlvrd:"...), done...)
	dst = r.submitted.AppendFormat(append(dst, " submit date:"...), layout)
	dst = r.done.AppendFormat(append(dst, " done date:"...), layout)
	dst = append(append(dst, " stat:"...), stat...)
	dst = append(dst, " err:"...)
	if r.style.Vendor {
		dst = appendPadded(dst, uint64(r.errorCode()), 4)
		return append(append(dst, " mccmnc:64208 hop:2 Text:"...), r.excerpt()...)
	}
	dst = appendPadded(dst, uint64(r.errorCode()), 3)
	return append(append(dst, " text:"...), r.excerpt()...)
}

// excerpt returns the first 20 bytes of the message.
func (r *receipt) excerpt() []byte {
	if r.coding == 8 {
		return nil
	}
	return r.text[:min(len(r.text), 20)]
}

func (r *receipt) appendTLVs(dst []byte) []byte {
	if r.style.Form == ReceiptTextTLV || r.style.Form == ReceiptTLV {
		var id [65]byte
		written, state := append(r.appendID(id[:0]), 0), byte(r.state)
		if r.style.ForeignTLV {
			written = []byte("4294967295\x00")
		}
		if r.style.StateZero {
			state = 0
		}
		dst = appendTLV(dst, tagReceiptedID, written)
		dst = appendTLV(dst, tagMessageState, []byte{state})
		code := r.errorCode()
		dst = appendTLV(dst, tagNetworkError, []byte{3, byte(code >> 8), byte(code)})
	}
	if r.style.Vendor {
		dst = appendTLV(dst, 0x1454, []byte("64208"))
		dst = appendTLV(dst, 0x1418, []byte{0, 1, 0, 0})
	}
	if r.echo {
		var ref [2]byte
		binary.BigEndian.PutUint16(ref[:], r.reference)
		dst = appendTLV(dst, tagUserReference, ref[:])
	}
	return dst
}

// MO is a mobile-originated message: a text from a handset.
type MO struct {
	From, To string // digits, and digits or a name
	Text     string
	SystemID string // the recipient account; empty = the carrier's own, or the only one bound
	ESMClass uint8
	UDH      []byte // of a long message's part, with its length byte; the text follows it
}

// ErrNoSession is the error of SendMO when it cannot determine the account.
var ErrNoSession = errors.New("carriersim: no session is bound, or several system_ids are and none was named")

// SendMO sends a text from a handset. Like a receipt, it is repeated until it is
// answered.
func (c *Carrier) SendMO(m MO) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	systemID := m.SystemID
	if systemID == "" {
		systemID = c.opts.SystemID
	}
	if systemID == "" {
		for name, a := range c.accounts {
			if len(a.receivers) == 0 {
				continue
			}
			if systemID != "" {
				return ErrNoSession
			}
			systemID = name
		}
	}
	if systemID == "" {
		return ErrNoSession
	}
	text, coding := encodeText(m.Text)
	if len(m.UDH) > 0 {
		text, m.ESMClass = append(slices.Clone(m.UDH), text...), m.ESMClass|0x40
	}
	if len(text) > 254 {
		return errors.New("carriersim: the text is over 254 bytes")
	}
	now := c.clock()
	e := &event{command: cmdDeliverSM, systemID: systemID, mo: true}
	e.pdu = appendDeliver(nil, delivery{
		srcTON: 1, srcNPI: 1, src: []byte(m.From), dst: []byte(m.To), esmClass: m.ESMClass, coding: coding, text: text,
	})
	c.queueDelivery(e, now, now)
	c.wake()
	return nil
}
