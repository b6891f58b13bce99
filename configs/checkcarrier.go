package configs

import (
	"fmt"
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
			k.link(link, l)
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
	for _, pair := range []struct {
		key    string
		values []int
	}{{"source_ton_npi", c.SourceTONNPI}, {"dest_ton_npi", c.DestTONNPI}} {
		if len(pair.values) != 2 || slices.ContainsFunc(pair.values, func(n int) bool { return n < 0 || n > 255 }) {
			k.problem(at+"."+pair.key, "must be two numbers from 0 to 255: the type of number and the numbering plan")
		}
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

func (k *checker) link(at string, l *Link) {
	if l.Address != "" {
		k.remote(at+".address", l.Address)
	}
	k.length(at+".system_id", l.SystemID, 15)
	k.length(at+".password", string(l.Password), 8)
	k.length(at+".system_type", l.SystemType, 12)
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
