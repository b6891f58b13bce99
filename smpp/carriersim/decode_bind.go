package carriersim

import "fmt"

// bind is what a bind request says.
type bind struct {
	systemID, password, systemType string
	version                        byte
}

// decodeBind reads the body of any bind (SMPP 3.4, 4.1).
func decodeBind(body []byte) (bind, []breach) {
	var breaches []breach
	c := cursor{rest: body}
	read := func(size int, field string, status Status) string {
		value, long := c.cstring(size, field)
		if long {
			breaches = append(breaches, breach{status, field + " is longer than its field"})
		}
		return string(value)
	}
	b := bind{
		systemID:   read(16, "system_id", InvalidSystemID),
		password:   read(9, "password", InvalidPassword),
		systemType: read(13, "system_type", InvalidSystemType),
		version:    c.octet("interface_version"),
	}
	c.octet("addr_ton")
	c.octet("addr_npi")
	read(41, "address_range", BindFailed)
	switch {
	case c.cut != "":
		breaches = append(breaches, breach{InvalidCommandLen, "the body ends within " + c.cut})
	case len(c.rest) > 0:
		breaches = append(breaches, breach{InvalidCommandLen, fmt.Sprintf("%d octets behind the body", len(c.rest))})
	case b.version != 0x34 && b.version != 0x33:
		breaches = append(breaches, breach{BindFailed, fmt.Sprintf("interface_version 0x%02X", b.version)})
	}
	return b, breaches
}

// checkAck judges the body of a deliver_sm_resp or data_sm_resp: message_id is
// not used and set to NULL (SMPP 3.4, 4.6.2); a refusal may leave it out.
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
