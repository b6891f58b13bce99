package configs

import (
	"fmt"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"intumwa/sms"
)

var carrierName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]{0,62}$`)

// carriers checks each carrier, and the constraints between them.
func (k *checker) carriers(carriers []Carrier) {
	var names, links, prefixes = map[string]string{}, map[string]string{}, map[string]string{} // value -> key path
	isDefault := ""
	for i := range carriers {
		c, at := &carriers[i], fmt.Sprintf("carriers[%d]", i)
		k.name(at+".name", c.Name, names)
		switch {
		case c.Default && isDefault != "":
			k.problem(at+".default", "only one carrier can be the default; %s is", isDefault)
		case c.Default:
			isDefault = at
		}
		for j, prefix := range c.Prefixes {
			key := fmt.Sprintf("%s.prefixes[%d]", at, j)
			if !sms.ValidPrefix(prefix) {
				k.problem(key, "must be 1 to 8 national digits")
			} else if len(prefix) > 3 && strings.HasPrefix(prefix, "257") {
				k.problem(key, "begins with the country's code: write the national digits only")
			}
			k.unique(key, prefix, prefixes)
		}
		k.carrier(at, c)
		others := map[string]string{}
		for j, name := range c.Failover {
			key := fmt.Sprintf("%s.failover[%d]", at, j)
			k.other(key, name, c, carriers)
			k.unique(key, name, others)
		}
		if c.SecondCarrier != "" {
			k.other(at+".second_carrier", c.SecondCarrier, c, carriers)
		}
		for j := range c.Links {
			l, link := &c.Links[j], fmt.Sprintf("%s.links[%d]", at, j)
			k.name(link+".name", l.Name, links)
			k.link(link, c, l)
			if dead := l.EnquireLink + l.EnquireTimeout(); c.UnknownHold > 0 && c.UnknownHold <= dead {
				k.problem(at+".unknown_hold", "must be longer than the %s after which a dead session of %s is found", dead, l.Name)
			}
		}
	}
}

// maxEnquireTimeout bounds the wait for an enquire_link_resp: a live session answers within seconds.
const maxEnquireTimeout = 10 * time.Second

// EnquireTimeout is the silence after an enquire_link that ends the session.
func (l *Link) EnquireTimeout() time.Duration { return min(l.EnquireLink, maxEnquireTimeout) }

// name requires a unique name that fits into keys, labels and environment variables.
func (k *checker) name(path, name string, taken map[string]string) {
	switch {
	case name == "": // required
	case !carrierName.MatchString(name):
		k.problem(path, "must be 1-63 letters, digits, dots, hyphens and underscores, a letter first")
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

// other requires the name of another carrier.
func (k *checker) other(path, name string, c *Carrier, carriers []Carrier) {
	if name == c.Name || !slices.ContainsFunc(carriers, func(other Carrier) bool { return other.Name == name }) {
		k.problem(path, "must be the name of another carrier")
	}
}

func (k *checker) carrier(at string, c *Carrier) {
	k.length(at+".service_type", c.ServiceType, 5) // SMPP 3.4 section 5.2, without the final NUL, as below
	if pair := c.SourceTONNPI.Alphanumeric; slices.Equal(pair, c.SourceTONNPI.Short) &&
		slices.Equal(pair, c.SourceTONNPI.International) {
		k.tonNPI(at+".source_ton_npi", pair)
	} else {
		k.tonNPI(at+".source_ton_npi.alphanumeric", pair)
		k.tonNPI(at+".source_ton_npi.short", c.SourceTONNPI.Short)
		k.tonNPI(at+".source_ton_npi.international", c.SourceTONNPI.International)
	}
	k.tonNPI(at+".dest_ton_npi", c.DestTONNPI)
	if c.MessageClass != "none" && (c.Alphabet != "gsm7" || c.DataCoding.Default != 0 || c.DataCoding.UCS2 != 8) {
		k.problem(at+".message_class", "needs alphabet gsm7 and no data_coding: it is a data_coding of its own")
	}
	if c.Confirm == "receipt" && len(c.Links) > 0 &&
		!slices.ContainsFunc(c.Links, func(l Link) bool { return l.Bind != "transmitter" }) {
		k.problem(at+".confirm", "waits for receipts, and no link receives: bind one as receiver, or set submit")
	}
	if (c.Default || len(c.Prefixes) > 0) && len(c.Links) > 0 &&
		!slices.ContainsFunc(c.Links, func(l Link) bool { return l.Bind != "receiver" }) {
		k.problem(at+".links", "only receive, and the carrier has numbers: one must submit")
	}
	for _, stat := range sortedKeys(reflect.ValueOf(c.ReceiptStates)) {
		if strings.ToUpper(stat) != stat {
			k.problem(join(at+".receipt_states", stat), "must be written in upper case, as receipts have it")
		}
	}
	statuses := map[string]string{} // one number has several spellings
	for _, code := range sortedKeys(reflect.ValueOf(c.ErrorClasses)) {
		path := join(at+".error_classes", code)
		if status, err := CommandStatus(code); err != nil {
			k.problem(path, "%s", err)
		} else {
			k.unique(path, fmt.Sprint(status), statuses)
		}
	}
	if c.DeliveryRefusal != "" {
		if _, err := CommandStatus(c.DeliveryRefusal); err != nil {
			k.problem(at+".delivery_refusal", "%s", err)
		}
	}
	tags := map[string]string{}
	for _, tag := range sortedKeys(reflect.ValueOf(c.TLVs)) {
		path := join(at+".tlvs", tag)
		if tlv, err := parseTLV(tag, c.TLVs[tag]); err != nil {
			k.problem(path, "%s", err)
		} else {
			k.unique(path, fmt.Sprint(tlv.Tag), tags)
		}
	}
}

// tonNPI requires a type of number and a numbering plan.
func (k *checker) tonNPI(path string, pair []int) {
	if len(pair) != 2 || slices.ContainsFunc(pair, func(n int) bool { return n < 0 || n > 255 }) {
		k.problem(path, "must be two numbers from 0 to 255: the type of number and the numbering plan")
	}
}

// maxCredential bounds the fields of a bind that SMSCs take longer than SMPP 3.4 has them.
const maxCredential = 255

func (k *checker) link(at string, c *Carrier, l *Link) {
	for i, address := range l.AllAddresses() {
		key := at + ".address"
		if i > 0 || l.Address == "" {
			key = fmt.Sprintf("%s.addresses[%d]", at, i+len(l.Addresses)-len(l.AllAddresses()))
		}
		k.remote(key, address)
	}
	if len(l.AllAddresses()) == 0 {
		k.problem(at+".address", "is required")
	}
	for key, value := range map[string]string{"system_id": l.SystemID, "password": string(l.Password),
		"system_type":        l.SystemType,
		"receiver.system_id": l.Receiver.SystemID, "receiver.password": string(l.Receiver.Password)} {
		k.length(at+"."+key, value, maxCredential)
	}
	k.length(at+".address_range", l.AddressRange, 40)
	k.tonNPI(at+".address_range_ton_npi", l.RangeTONNPI)
	if l.Receiver.Address != "" {
		k.remote(at+".receiver.address", l.Receiver.Address)
	}
	if l.Receiver != (Receiver{}) && l.Bind != "transmitter_receiver" {
		k.problem(at+".receiver", "is only for bind: transmitter_receiver; another account that only receives is a link "+
			"with bind: receiver")
	}
	if _, err := netip.ParseAddr(l.LocalAddress); err != nil && l.LocalAddress != "" {
		k.problem(at+".local_address", "must be one of this machine's IP addresses, without a port")
	}
	switch version, err := InterfaceVersion(l.Version); {
	case err != nil:
		k.problem(at+".interface_version", "%s", err)
	case version >= 0x34:
	case c.Concat == "sar" || c.Concat == "payload":
		k.problem(at+".interface_version", "0x33 has no optional parameters, which concat: %s needs; set udh8 or udh16",
			c.Concat)
	case len(c.TLVs) > 0:
		k.problem(at+".interface_version", "0x33 has no optional parameters, and the carrier has tlvs")
	}
	if !slices.Contains(k.roles, "dispatcher") {
		return // its certificates are on other machines
	}
	if _, err := l.TLSConfig(); err != nil {
		k.problem(at+".tls", "%s", err)
	}
}

func (k *checker) length(path, text string, most int) {
	if len(text) > most {
		k.problem(path, "must not be longer than %d bytes", most)
	}
}

func sortedKeys(m reflect.Value) (keys []string) {
	for _, key := range m.MapKeys() {
		keys = append(keys, key.String())
	}
	slices.Sort(keys)
	return keys
}

// longCredentials warns of credentials that are longer than SMPP 3.4 (4.1.1) has them. Carriers give out such, and
// their SMSCs take them; a mistake in copying is as likely.
func (c *Config) longCredentials() (warnings []Problem) {
	walk(c, func(l leaf) {
		_, key := carrierKey(c, l.path)
		most := map[string]int{"links.system_id": 15, "links.password": 8, "links.system_type": 12,
			"links.receiver.system_id": 15, "links.receiver.password": 8}[key]
		if most > 0 && l.value.Len() > most {
			warnings = append(warnings, Problem{Key: l.path, Line: c.lines[l.path],
				Text: fmt.Sprintf("has %d bytes; SMPP 3.4 has at most %d. It is sent as it is: ask the carrier if the "+
					"bind is refused", l.value.Len(), most)})
		}
	})
	return warnings
}

// unasked warns of carriers whose messages wait for receipts that nobody asks for (registered_delivery: SMPP 3.4,
// 5.2.17).
func (c *Config) unasked() (warnings []Problem) {
	for i := range c.Carriers {
		carrier := &c.Carriers[i]
		if asks := carrier.RegisteredDelivery & 3; carrier.Confirm == "receipt" && carrier.OnReceiptTimeout == "failed" &&
			(asks == 0 || asks == 2) {
			key := fmt.Sprintf("carriers[%d].registered_delivery", i)
			warnings = append(warnings, Problem{Key: key, Line: c.lines[key],
				Text: "asks for no receipt of success, so every message fails after receipt_timeout; set confirm: submit, or " +
					"on_receipt_timeout: sent"})
		}
	}
	return warnings
}
