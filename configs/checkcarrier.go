package configs

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"intumwa/sms"
)

var carrierName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]{0,62}$`)

// Longest values of the bind's fields, SMPP 3.4 section 4.1 and 5.2 (octets, without the final NUL).
const (
	maxSystemID    = 15
	maxPassword    = 8
	maxSystemType  = 12
	maxServiceType = 5
)

// carriers checks each carrier and what must hold between them.
func (k *checker) carriers(carriers []Carrier) {
	var (
		names     = map[string]string{} // as in an environment variable -> key path
		links     = map[string]string{}
		prefixes  = map[string]string{}
		numbers   = map[string]string{}
		isDefault = ""
	)
	for i := range carriers {
		c, at := &carriers[i], fmt.Sprintf("carriers[%d]", i)
		k.name(at+".name", c.Name, names)
		if c.Default {
			if isDefault != "" {
				k.problem(at+".default", "only one carrier can be the default; %s is", isDefault)
			} else {
				isDefault = at
			}
		}
		for j, prefix := range c.Prefixes {
			key := fmt.Sprintf("%s.prefixes[%d]", at, j)
			if !sms.ValidPrefix(prefix) {
				k.problem(key, "must be 1 to 8 national digits%s", k.not(key, prefix))
			} else if national, ok := strings.CutPrefix(prefix, "257"); ok && national != "" {
				k.problem(key, "begins with the country's code: write the national digits only%s", k.not(key, prefix))
			}
			k.unique(key, prefix, prefixes)
		}
		for j, number := range c.NumberOverrides {
			key := fmt.Sprintf("%s.number_overrides[%d]", at, j)
			if len(number) != 8 || strings.Trim(number, "0123456789") != "" {
				k.problem(key, "must be the 8 digits of a national number")
			}
			k.unique(key, number, numbers)
		}
		k.carrier(at, c)
		k.failover(at, c, carriers)
		k.second(at+".second_carrier", c, carriers)
		for j := range c.Links {
			link := fmt.Sprintf("%s.links[%d]", at, j)
			k.name(link+".name", c.Links[j].Name, links)
			k.link(link, &c.Links[j])
		}
	}
}

// name demands a name that can stand in keys, labels and environment variables, and no second like it.
func (k *checker) name(path, name string, taken map[string]string) {
	switch {
	case name == "":
		k.problem(path, "is required")
	case !carrierName.MatchString(name):
		k.problem(path, "must be 1-63 letters, digits, dots, hyphens and underscores, a letter first%s", k.not(path, name))
	default:
		k.unique(path, upperSnake(name), taken)
	}
}

func (k *checker) unique(path, value string, taken map[string]string) {
	if other, ok := taken[value]; ok {
		k.problem(path, "%s has this already", other)
		return
	}
	taken[value] = path
}

func (k *checker) carrier(at string, c *Carrier) {
	if len(c.ServiceType) > maxServiceType {
		k.problem(at+".service_type", "must not be longer than %d octets", maxServiceType)
	}
	for _, stat := range slices.Sorted(maps.Keys(c.ReceiptStates)) {
		path := join(at+".receipt_states", stat)
		if strings.ToUpper(stat) != stat {
			k.problem(path, "must be written in upper case, as receipts have it")
		}
	}
	statuses := map[string]string{} // the same number may be spelled in several ways
	for _, code := range slices.Sorted(maps.Keys(c.ErrorClasses)) {
		path := join(at+".error_classes", code)
		if status, err := commandStatus(code); err != nil {
			k.problem(path, "%s", err)
		} else {
			k.unique(path, fmt.Sprint(status), statuses)
		}
	}
	tags, size := map[string]string{}, 0
	for _, tag := range slices.Sorted(maps.Keys(c.TLVs)) {
		path := join(at+".tlvs", tag)
		tlv, err := parseTLV(tag, c.TLVs[tag])
		if err != nil {
			k.problem(path, "%s", err)
			continue
		}
		k.unique(path, fmt.Sprint(tlv.Tag), tags)
		size += tlvHeader + len(tlv.Value)
	}
	if room := c.roomForTLVs(); size > room {
		k.problem(at+".tlvs", "take %d octets, headers included, and a PDU has room for %d", size, room)
	}
	for i := range c.Links {
		if l := &c.Links[i]; c.UnknownHold > 0 && c.UnknownHold <= l.EnquireLink+l.EnquireTimeout { // the dispatcher refuses it too
			k.problem(at+".unknown_hold", "must be longer than enquire_link and enquire_timeout of %s together (%s): until then nobody knows whether the session is alive",
				l.Name, l.EnquireLink+l.EnquireTimeout)
			break
		}
	}
	if c.RetryMin > c.RetryMax {
		k.problem(at+".retry_min", "must not be longer than retry_max")
	}
}

func (k *checker) failover(at string, c *Carrier, carriers []Carrier) {
	seen := map[string]string{}
	for j, name := range c.Failover {
		path := fmt.Sprintf("%s.failover[%d]", at, j)
		switch {
		case name == c.Name:
			k.problem(path, "a carrier cannot stand in for itself")
		case !slices.ContainsFunc(carriers, func(other Carrier) bool { return other.Name == name }):
			k.problem(path, "there is no carrier of this name")
		default:
			k.unique(path, name, seen)
		}
	}
}

func (k *checker) second(path string, c *Carrier, carriers []Carrier) {
	switch {
	case c.SecondCarrier == "":
	case c.SecondCarrier == c.Name:
		k.problem(path, "a carrier cannot be its own second")
	case !slices.ContainsFunc(carriers, func(other Carrier) bool { return other.Name == c.SecondCarrier }):
		k.problem(path, "there is no carrier of this name")
	}
}

func (k *checker) link(at string, l *Link) {
	if err := remote(l.Address); err != nil {
		k.problem(at+".address", "%s", err)
	}
	switch {
	case l.SystemID == "":
		k.problem(at+".system_id", "is required")
	case len(l.SystemID) > maxSystemID:
		k.problem(at+".system_id", "must not be longer than %d octets", maxSystemID)
	}
	if len(l.Password) > maxPassword {
		k.problem(at+".password", "must not be longer than %d octets", maxPassword)
	}
	if len(l.SystemType) > maxSystemType {
		k.problem(at+".system_type", "must not be longer than %d octets", maxSystemType)
	}
	if !k.binds {
		return // its certificates are not here
	}
	if _, err := l.TLSConfig(); err != nil {
		k.problem(at+".tls", "%s", err)
	}
}
