package carriersim

import (
	"fmt"
	"time"
)

func (m *submit) checkAddresses() {
	if len(m.service) > 0 && !visible(m.service) {
		m.breach(InvalidService, "service_type has characters that do not show")
	}
	if m.srcTON > 6 {
		m.breach(InvalidSourceTON, "source_addr_ton %d is reserved", m.srcTON)
	}
	if !knownNPI(m.srcNPI) {
		m.breach(InvalidSourceNPI, "source_addr_npi %d is reserved", m.srcNPI)
	}
	if m.dstTON > 6 {
		m.breach(InvalidDestTON, "dest_addr_ton %d is reserved", m.dstTON)
	}
	if !knownNPI(m.dstNPI) {
		m.breach(InvalidDestNPI, "dest_addr_npi %d is reserved", m.dstNPI)
	}
	switch {
	case m.srcTON == 5 && (len(m.src) == 0 || len(m.src) > 11 || !visible(m.src)):
		m.breach(InvalidSource, "an alphanumeric source has 1 to 11 characters")
	case m.srcTON == 5 && m.srcNPI != 0:
		m.breach(InvalidSourceNPI, "an alphanumeric source has NPI 0, not %d", m.srcNPI)
	case m.srcTON != 5 && m.srcTON != 0 && !digits(m.src): // 0 is unknown: some carriers want names so
		m.breach(InvalidSource, "a source of TON %d has digits only", m.srcTON)
	}
	switch {
	case m.dstTON == 5:
		m.breach(InvalidDestTON, "an alphanumeric destination")
	case len(m.dst) == 0 || !digits(m.dst):
		m.breach(InvalidDest, "a destination has digits only, without +")
	case m.dstTON == 1 && (len(m.dst) < 7 || len(m.dst) > 15 || m.dst[0] == '0'):
		m.breach(InvalidDest, "an international destination has 7 to 15 digits and no leading 0")
	}
}

// knownNPI reports whether a numbering plan is listed in SMPP 3.4, 5.2.6.
func knownNPI(npi byte) bool {
	switch npi {
	case 0, 1, 3, 4, 6, 8, 9, 10, 14, 18:
		return true
	}
	return false
}

func digits(b []byte) bool {
	for _, c := range b {
		if !digit(c) {
			return false
		}
	}
	return true
}

func visible(b []byte) bool {
	for _, c := range b {
		if c < 0x20 || c > 0x7E {
			return false
		}
	}
	return true
}

func (m *submit) checkFlags(now time.Time) {
	if kind := m.esmClass & 0x3C; kind != 0 && kind != 0x08 && kind != 0x10 {
		m.breach(InvalidESMClass, "esm_class 0x%02X has a message type that a client cannot send", m.esmClass)
	}
	if m.priority > 3 {
		m.breach(InvalidPriority, "priority_flag %d is over 3", m.priority)
	}
	if m.registered&0x03 == 0x03 || m.registered&0xE0 != 0 {
		m.breach(InvalidRegistered, "registered_delivery 0x%02X has reserved bits", m.registered)
	}
	if m.replace > 1 {
		m.breach(InvalidReplace, "replace_if_present_flag %d is over 1", m.replace)
	}
	if m.defaultMessage == 255 {
		m.breach(InvalidDefaultMsg, "sm_default_msg_id 255 is reserved")
	}
	switch m.coding {
	case 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 14:
	default:
		if m.coding < 0xC0 {
			m.breach(InvalidDataCoding, "data_coding 0x%02X is reserved", m.coding)
		}
	}
	if text := checkTime(m.schedule, now, false); text != "" {
		m.breach(InvalidSchedule, "schedule_delivery_time %s", text)
	}
	if text := checkTime(m.validity, now, true); text != "" {
		m.breach(InvalidExpiry, "validity_period %s", text)
	}
}

// checkTime checks a time of SMPP 3.4, 7.1.1: YYMMDDhhmmsstnnp, either absolute with
// the UTC offset in quarters of an hour, or relative; it may be empty. A validity
// period in the past is an error too. It returns the error, or "".
func checkTime(field []byte, now time.Time, expires bool) string {
	if len(field) == 0 {
		return ""
	}
	if len(field) != 16 {
		return fmt.Sprintf("has %d characters, not 16", len(field))
	}
	if !digits(field[:15]) {
		return "has other characters than digits"
	}
	two := func(at int) int { return int(field[at]-'0')*10 + int(field[at+1]-'0') }
	year, month, day, hour, minute, second, quarters := two(0), two(2), two(4), two(6), two(8), two(10), two(13)
	if field[15] == 'R' {
		switch {
		case field[12] != '0' || quarters != 0:
			return "is relative and has tenths or an offset"
		case month > 11 || day > 31 || hour > 23 || minute > 59 || second > 59:
			return "is relative and out of range"
		}
		if expires && string(field[:12]) == "000000000000" {
			return "is over at once"
		}
		return ""
	}
	if field[15] != '+' && field[15] != '-' {
		return "does not end with +, - or R"
	}
	if month < 1 || month > 12 || day < 1 || hour > 23 || minute > 59 || second > 59 || quarters > 48 {
		return "is absolute and out of range"
	}
	offset := time.Duration(quarters) * 15 * time.Minute
	if field[15] == '-' {
		offset = -offset
	}
	at := time.Date(2000+year, time.Month(month), day, hour, minute, second, 0, time.UTC)
	if at.Day() != day {
		return "names a day that does not exist"
	}
	if expires && !at.Add(-offset).After(now) {
		return "is in the past"
	}
	return ""
}
