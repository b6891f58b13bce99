package carriersim

import (
	"bytes"
	"fmt"
)

// Demands are what a carrier insists on and SMPP 3.4 leaves open. They are in the JSON of Faults.
type Demands struct {
	// an SMSC of SMPP 3.3: no transceiver, no optional parameters, no relative time
	Old33        bool   `json:"old_3_3"`
	NeedRange    bool   `json:"need_range"`    // a bind without address_range is refused
	NameSource   string `json:"name_source"`   // "TON/NPI" of an alphanumeric sender, else ESME_RINVSRCTON
	ShortSource  string `json:"short_source"`  // of a sender of at most 8 digits
	NumberSource string `json:"number_source"` // of a sender of more digits
	DestDigits   int    `json:"dest_digits"`   // digits of a recipient, else ESME_RINVDSTADR
	NoOptional   bool   `json:"no_optional"`   // optional parameters get ESME_ROPTPARNOTALLWD
	NoRelative   bool   `json:"no_relative"`   // a relative validity_period gets ESME_RINVEXPIRY
}

// demandsDo describes each demand, in the order of Demands.
var demandsDo = []faultText{
	{"old_3_3", "An SMSC of SMPP 3.3: bind_transceiver gets generic_nack, another interface_version than 0x33 " +
		"ESME_RBINDFAIL; optional parameters and relative times are refused; bind responses have no sc_interface_version."},
	{"need_range", "A bind without address_range is refused with ESME_RBINDFAIL."},
	{"name_source", "TON/NPI of a sender with letters, such as `5/0`; others get ESME_RINVSRCTON."},
	{"short_source", "TON/NPI of a sender of at most 8 digits, such as `0/1`."},
	{"number_source", "TON/NPI of a sender of more digits."},
	{"dest_digits", "Digits of a recipient: 8 for the national form; others get ESME_RINVDSTADR."},
	{"no_optional", "Optional parameters get ESME_ROPTPARNOTALLWD."},
	{"no_relative", "A relative validity_period gets ESME_RINVEXPIRY."},
}

// refusesBind returns the status with which a bind is refused, OK if it is not.
func (d *Demands) refusesBind(command uint32, b *bind) Status {
	switch {
	case d.Old33 && command == cmdBindTransceiver:
		return InvalidCommand
	case d.Old33 && b.version != 0x33, d.NeedRange && b.addressRange == "":
		return BindFailed
	}
	return OK
}

// refuses returns the status with which a submit_sm is refused, OK if it is not.
func (d *Demands) refuses(m *submit) Status {
	want := d.NameSource
	if digits := bytes.TrimLeft(m.src, "+"); len(digits) > 0 && len(bytes.Trim(digits, "0123456789")) == 0 {
		want = d.NumberSource
		if len(digits) <= 8 {
			want = d.ShortSource
		}
	}
	switch {
	case want != "" && want != fmt.Sprintf("%d/%d", m.srcTON, m.srcNPI):
		return InvalidSourceTON
	case d.DestDigits > 0 && len(m.dst) != d.DestDigits:
		return InvalidDest
	case (d.NoOptional || d.Old33) && len(m.tlvs) > 0:
		return TLVNotAllowed
	case (d.NoRelative || d.Old33) && bytes.HasSuffix(m.validity, []byte("R")):
		return InvalidExpiry
	}
	return OK
}
