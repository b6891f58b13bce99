package importer

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"intumwa/sms"
)

// Reasons of lines that have no counterpart.
const (
	ownProcesses = "about Kannel's own processes"
	ownLogs      = "about Kannel's logs"
	ownRoutes    = "routes follow the recipient's number: carriers[].prefixes and failover"
	fixedHere    = "fixed in this gateway"
)

// kannelGroups are the reasons of groups that are left out.
var kannelGroups = map[string]string{
	"core": ownProcesses, "smsbox": ownProcesses, "smsbox-route": ownRoutes, "modems": "modems are not supported",
	"sms-service":  "messages from handsets: docs/handsets.md",
	"sendsms-user": "create an API key for it: its number is the new username, its text the password (docs/kannel.md)",
}

// kannelIgnored are the reasons of lines of an SMPP link that are left out.
var kannelIgnored = map[string]string{
	"log-file": ownLogs, "log-level": ownLogs, "log-format": ownLogs,
	"allowed-smsc-id": ownRoutes, "denied-smsc-id": ownRoutes, "preferred-smsc-id": ownRoutes, "smsc-admin-id": ownRoutes,
	"allowed-smsc-id-regex": ownRoutes, "denied-smsc-id-regex": ownRoutes, "preferred-smsc-id-regex": ownRoutes,
	"denied-prefix": ownRoutes, "allowed-prefix-regex": ownRoutes, "denied-prefix-regex": ownRoutes,
	"preferred-prefix-regex": ownRoutes,
	"reroute":                ownRoutes, "reroute-smsc-id": ownRoutes, "reroute-receiver": ownRoutes,
	"reroute-dlr":        ownRoutes,
	"dead-start":         "intumwa admin link pause stops a link",
	"unified-prefix":     "numbers are normalized, carriers[].dest_form is how a carrier gets them",
	"connection-timeout": fixedHere + ": a link that answers no enquire_link is closed", "reconnect-delay": fixedHere +
		": 1 s, growing to 30 s", "keepalive": "enquire_link",
	"idle-timeout": fixedHere, "esm-class": fixedHere + ": 0 (default mode), and 0x40 with a UDH", "alt-dcs": fixedHere +
		": carriers[].data_coding changes data_coding",
	"my-number":        "receipts and messages from handsets keep the address that the carrier wrote",
	"alt-addr-charset": "senders have ASCII letters and digits only",
	"max-sms-octets":   fixedHere, "our-port": "the system chooses the port",
	"our-receiver-port": "the system chooses the port", "max-error-count": fixedHere,
}

// Kannel proposes a configuration from kannel.conf and the files that it includes.
func Kannel(path string) (*Proposal, error) {
	groups, err := readKannel(path)
	if err != nil {
		return nil, err
	}
	p := &Proposal{source: path, prefixes: map[string]bool{}}
	for i := range groups {
		g := &groups[i]
		kind, _ := g.get("smsc")
		switch {
		case g.name == "smsc" && strings.EqualFold(kind.value, "smpp"):
			p.smsc(g)
			continue
		case g.name == "smsc":
			p.leaveOut(g, "only SMPP is supported")
		default:
			p.leaveOut(g, cmp.Or(kannelGroups[g.name], "no part of this gateway"))
		}
		if port, given := g.get("sendsms-port"); given && g.name == "smsbox" {
			host, _ := g.get("sendsms-interface")
			if n, ok := port.number(p, 1, 65535); ok {
				p.kannel = address(cmp.Or(host.value, "127.0.0.1"), n)
			}
		}
	}
	if len(p.carriers) == 0 {
		return nil, fmt.Errorf("%s has no group = smsc with smsc = smpp", path)
	}
	return p, nil
}

func (p *Proposal) leaveOut(g *group, reason string) {
	for _, s := range g.settings {
		if s.name == "group" || g.name == "smsbox" && (s.name == "sendsms-port" || s.name == "sendsms-interface") {
			continue
		}
		if g.name == "smsc" && s.name == "smsc" {
			s.name = "smsc = " + nameOf(s.value, "")
		}
		p.ignore(s, "%s", reason)
	}
}

// smsc proposes a link. Groups with one smsc-id are links of one carrier.
func (p *Proposal) smsc(g *group) {
	id, _ := g.get("smsc-id")
	host, given := g.get("host")
	if !given {
		p.leaveOut(g, "the group has no host")
		return
	}
	c := p.carrier(cmp.Or(id.value, host.value))
	l := c.link()
	p.addresses(g, l, host)
	p.tonNPI(g, c)
	p.tls(g, l)
	p.rangeTONNPI(g, l)
	for _, s := range g.settings {
		if last, _ := g.get(s.name); last.line != s.line || last.file != s.file {
			p.ignore(s, "line %d sets it again", last.line)
			continue
		}
		p.linkSetting(c, l, s)
	}
	if _, given := g.get("max-pending-submits"); !given {
		l.set("window", "10") // Kannel's default
	}
	if instances, given := g.get("instances"); given {
		if n, ok := instances.number(p, 1, 20); ok {
			for range n - 1 {
				copied := c.link()
				copied.names, copied.values = append(copied.names, l.names[1:]...), append(copied.values, l.values[1:]...)
			}
		}
	}
}

// bool reads a value as Kannel does: a strange one is true.
func (s setting) bool() bool {
	return !slices.Contains([]string{"", "false", "no", "off", "0"}, strings.ToLower(s.value))
}

func (p *Proposal) tls(g *group, l *keys) {
	use, _ := g.get("use-ssl")
	switch file, given := g.get("ssl-client-certkey-file"); {
	case !use.bool() && given:
		p.ignore(file, "use-ssl is off")
	case !use.bool():
	case given: // it has both
		l.set("tls", "{cert: "+quote(file.value)+", key: "+quote(file.value)+"}")
	default:
		l.set("tls", "true")
	}
}

func (p *Proposal) rangeTONNPI(g *group, l *keys) {
	both := [2]string{"0", "0"}
	for i, name := range []string{"bind-addr-ton", "bind-addr-npi"} {
		if s, given := g.get(name); given {
			if n, ok := s.number(p, 0, 255); ok {
				both[i] = strconv.Itoa(n)
			}
		}
	}
	if both != [2]string{"0", "0"} {
		l.set("address_range_ton_npi", pair(both[0], both[1]))
	}
}

// addresses sets the hosts, and how the link binds.
func (p *Proposal) addresses(g *group, l *keys, host setting) {
	port, receive := 0, 0
	if s, given := g.get("port"); given {
		port, _ = s.number(p, 0, 65535)
	}
	if s, given := g.get("receive-port"); given {
		receive, _ = s.number(p, 0, 65535)
	}
	transceiver, _ := g.get("transceiver-mode")
	if port == 0 && receive == 0 {
		port = 2775
	}
	bind := "transmitter"
	switch {
	case transceiver.bool() && port != 0:
		bind = "transceiver"
	case port == 0:
		bind, port = "receiver", receive
	case receive != 0:
		bind = "transmitter_receiver"
		if receive != port {
			l.set("receiver", "{address: "+quote(address(host.value, receive))+"}")
		}
	}
	l.set("address", quote(address(host.value, port)))
	if s, given := g.get("alt-host"); given {
		other := port
		if s, given := g.get("alt-port"); given {
			if n, ok := s.number(p, 1, 65535); ok {
				other = n
			}
		}
		l.set("addresses", "["+quote(address(s.value, other))+"]")
	}
	l.set("bind", bind)
}

// tonNPI sets the types of number and numbering plans as Kannel fills them in (msg_to_pdu of smsc_smpp.c): it detects
// senders with letters unless that is off, and has 2, 1 for what is not set.
func (p *Proposal) tonNPI(g *group, c *carrier) {
	both := func(kind string) (value string, given bool) {
		ton, hasTON := g.get(kind + "-addr-ton")
		npi, hasNPI := g.get(kind + "-addr-npi")
		if !hasTON || !hasNPI {
			for _, s := range []setting{ton, npi} {
				if s.name != "" {
					p.ignore(s, "Kannel uses it only together with the other of %s-addr-ton and %s-addr-npi", kind, kind)
				}
			}
			return "", false
		}
		t, ok := ton.number(p, 0, 255)
		n, fine := npi.number(p, 0, 255)
		return pair(strconv.Itoa(t), strconv.Itoa(n)), ok && fine
	}
	first := setting{g.settings[0].file, "source-addr-ton", "", g.settings[0].line}
	source, _ := both("source")
	source = cmp.Or(source, "[2, 1]")
	if detect, given := g.get("source-addr-autodetect"); given && !detect.bool() {
		p.of(c, first, "source_ton_npi", source)
	} else {
		p.of(c, first, "source_ton_npi", "{alphanumeric: [5, 0], short: "+source+", international: "+source+"}")
	}
	if dest, given := both("dest"); given {
		first.name = "dest-addr-ton"
		p.of(c, first, "dest_ton_npi", dest)
	} else if len(c.links) == 1 {
		c.notes = append(c.notes, "dest_ton_npi is [1, 1]; Kannel sends that for numbers with +, and 2, 1 for others.")
	}
}

// linkSetting takes over a line of a link. Lines that count only together with others are passed by.
func (p *Proposal) linkSetting(c *carrier, l *keys, s setting) {
	switch s.name {
	case "group", "smsc", "smsc-id", "host", "alt-host", "port", "alt-port", "receive-port", "transceiver-mode",
		"instances",
		"source-addr-ton", "source-addr-npi", "source-addr-autodetect", "dest-addr-ton", "dest-addr-npi", "bind-addr-ton",
		"bind-addr-npi", "use-ssl", "ssl-client-certkey-file":
	case "smsc-username", "system-id":
		l.set("system_id", quote(s.value))
	case "smsc-password":
		p.password(c, l, s)
	case "system-type":
		l.set("system_type", quote(s.value))
	case "address-range":
		if text, ok := s.text(p, 40); ok && text != "" {
			l.set("address_range", quote(text))
		}
	case "interface-version":
		switch version := strings.TrimPrefix(s.value, "0x"); version {
		case "33", "34", "50":
			l.set("interface_version", "0x"+version)
		default:
			p.ignore(s, "not 33, 34 or 50")
		}
	case "our-host":
		if _, err := netip.ParseAddr(s.value); err != nil {
			p.ignore(s, "local_address is an IP address")
		} else {
			l.set("local_address", quote(s.value))
		}
	case "throughput":
		p.rate(l, s)
	case "max-pending-submits":
		if n, ok := s.number(p, 1, 1000); ok {
			l.set("window", strconv.Itoa(n))
		}
	case "enquire-link-interval":
		if n, ok := s.number(p, 1, 86400); ok {
			l.set("enquire_link", seconds(n))
			p.longHold(c, s, n)
		}
	case "wait-ack":
		if n, ok := s.number(p, 1, 3600); ok {
			l.set("response_timeout", seconds(n))
		}
	default:
		p.carrierSetting(c, s)
	}
}

// longHold keeps unknown_hold above the time after which a dead session is found.
func (p *Proposal) longHold(c *carrier, s setting, enquire int) {
	if enquire+10 >= 300 {
		p.of(c, s, "unknown_hold", seconds(2*enquire+20))
	}
}

// messageIDs are the formats by msg-id-type: bit 0 of submit_sm_resp, bit 1 of deliver_sm, set if it is hexadecimal.
var messageIDs = [...]string{"same", "hex_to_decimal", "decimal_to_hex", "same"}

// carrierSetting takes over a line that is about the whole carrier here.
func (p *Proposal) carrierSetting(c *carrier, s setting) {
	switch s.name {
	case "msg-id-type":
		if n, ok := s.number(p, 0, 3); ok {
			p.of(c, s, "message_id_format", messageIDs[n])
		}
	case "service-type":
		if text, ok := s.text(p, 5); ok {
			p.of(c, s, "service_type", quote(text))
		}
	case "priority":
		if n, ok := s.number(p, 0, 3); ok {
			p.of(c, s, "single_priority", strconv.Itoa(n))
		}
	case "no-dlr":
		if s.bool() {
			p.of(c, s, "confirm", "submit")
			p.of(c, s, "registered_delivery", "0")
		}
	case "wait-ack-expire":
		if n, ok := s.number(p, 0, 3); ok && n == 2 {
			p.of(c, s, "on_ambiguous", "hold")
		} else if ok && n == 0 {
			p.ignore(s, "%s: the link stays open", fixedHere)
		}
	case "alt-charset":
		switch strings.ToLower(s.value) {
		case "iso-8859-1", "iso8859-1", "latin1", "latin-1", "windows-1252", "cp1252":
			p.of(c, s, "alphabet", "latin1")
		case "gsm", "gsm7":
			p.of(c, s, "alphabet", "gsm7")
		case "ascii", "us-ascii":
			p.of(c, s, "alphabet", "ascii")
		default:
			p.ignore(s, "carriers[].alphabet is gsm7, latin1 or ascii")
		}
	case "allowed-prefix", "preferred-prefix":
		p.prefixesOf(c, s)
	case "validityperiod":
		p.ignore(s, "one for all carriers: messages.validity")
	default:
		p.ignore(s, "%s", cmp.Or(kannelIgnored[s.name], "not known for SMPP"))
	}
}

// prefixesOf takes over prefixes of numbers of the country.
func (p *Proposal) prefixesOf(c *carrier, s setting) {
	for prefix := range strings.SplitSeq(s.value, ";") {
		prefix = strings.TrimSpace(prefix)
		national := strings.TrimLeft(prefix, "+")
		national = strings.TrimPrefix(strings.TrimPrefix(national, "00"), "257")
		switch {
		case prefix == "":
		case !sms.ValidPrefix(national):
			p.ignore(s, "%d digits are no prefix of a national number", len(national))
		case slices.Contains(c.prefixes, quote(national)):
		case p.prefixes[national]:
			p.ignore(s, "another carrier has the prefix %s", national)
		default:
			p.prefixes[national] = true
			c.prefixes = append(c.prefixes, quote(national))
		}
	}
}
