package importer

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// connector is an SMPP client connector of Jasmin: its keys as jCli has them.
type connector struct {
	settings []setting
}

func (c *connector) get(key string) (s setting, given bool) {
	for _, each := range c.settings {
		if each.name == key {
			s, given = each, true
		}
	}
	return s, given && s.value != "None"
}

// value is what a key has, or Jasmin's default (SMPPClientConfig).
func (c *connector) value(key, otherwise string) string {
	s, given := c.get(key)
	if !given {
		return otherwise
	}
	return s.value
}

// Jasmin's reasons of keys that are left out.
const retries = fixedHere + ": links bind again by themselves"

var jasminIgnored = map[string]string{
	"logfile": "about Jasmin's logs", "logrotate": "about Jasmin's logs", "loglevel": "about Jasmin's logs",
	"logprivacy":     "about Jasmin's logs",
	"con_loss_retry": retries, "con_loss_delay": retries, "con_fail_retry": retries, "con_fail_delay": retries,
	"bind_to": retries,
	"trx_to":  fixedHere + ": a link that answers no enquire_link is closed", "pdu_red_to": fixedHere,
	"requeue_delay": fixedHere + ": 1 s, growing to 60 s",
	"dlr_expiry":    "carriers[].receipt_timeout", "proto_id": fixedHere, "ripf": fixedHere, "def_msg_id": fixedHere,
	"validity": "one for all carriers: messages.validity",
	"src_addr": "a company's senders", "custom_tlvs": "it checks what senders give; carriers[].tlvs adds fixed ones",
}

// jasminKeys are the keys that are taken over.
var jasminKeys = []string{"cid", "host", "port", "username", "password", "systype", "bind", "bind_ton", "bind_npi",
	"src_ton", "src_npi", "dst_ton", "dst_npi",
	"addr_range", "submit_throughput", "elink_interval", "res_to", "ssl", "dlr_msgid", "priority", "coding"}

func isJasminKey(key string) bool {
	return slices.Contains(jasminKeys, key) || jasminIgnored[key] != ""
}

// ErrPickle says how to export a store that is not text.
var ErrPickle = errors.New(
	`this is a file of Jasmin's store, which only Jasmin reads. Write what jCli shows into a text file: "smppccm -l" ` +
		`lists the connectors, "smppccm -s CID" shows one`)

// jasminOutput are lines that jCli writes.
var jasminOutput = regexp.MustCompile(
	`^(#|Adding |Updating |Successfully |Total |Authentication|Welcome |Type |Session |Connected |Trying |Escape ` +
		`|Username|Password:|ok$|ko$)`)

// Jasmin proposes a configuration from a script for jCli, or from what it shows: the blocks of smppccm -a and -u, and
// the output of smppccm -s.
func Jasmin(path string) (*Proposal, error) {
	text, err := readText(path)
	switch {
	case err != nil:
		return nil, err
	case strings.HasPrefix(text, "Persisted on") || strings.IndexByte(text, 0) >= 0 || !utf8.ValidString(text):
		return nil, fmt.Errorf("%s: %w", path, ErrPickle)
	}
	p := &Proposal{source: path, prefixes: map[string]bool{}}
	r := &jasminReader{p: p}
	for i, line := range strings.Split(text, "\n") {
		r.line(setting{file: path, line: i + 1}, line)
	}
	for _, c := range r.connectors {
		p.connector(c)
	}
	slices.SortStableFunc(p.Ignored, func(a, b Ignored) int { return a.Line - b.Line })
	if len(p.carriers) == 0 {
		return nil, fmt.Errorf("%s has no smppccm connector with a cid", path)
	}
	return p, nil
}

type jasminReader struct {
	p          *Proposal
	connectors []*connector
	open       *connector // of the block, or of what is shown
	loose      bool       // the open one began without a command: a key that comes again begins the next
	block      string     // the command of a block that is left out; "": none
}

var jasminPrompt = regexp.MustCompile(`^(jcli\s*:|>)\s*`)

func (r *jasminReader) line(at setting, text string) {
	text = strings.TrimSpace(text)
	for jasminPrompt.MatchString(text) {
		text = jasminPrompt.ReplaceAllString(text, "")
	}
	words := strings.Fields(text)
	switch {
	case len(words) == 0:
	case words[0] == "smppccm":
		r.block = ""
		r.command(at, words)
	case jasminCommands[words[0]] != "":
		r.open, r.block = nil, ""
		at.name = words[0]
		r.p.ignore(at, "%s", jasminCommands[words[0]])
		if slices.Contains(words, "-a") || slices.Contains(words, "-u") {
			r.block = words[0]
		}
	case words[0] == "ok" || words[0] == "ko":
		if words[0] == "ko" && r.open != nil { // the block was given up
			r.connectors = slices.DeleteFunc(r.connectors, func(c *connector) bool { return c == r.open })
		}
		r.open, r.block = nil, ""
	case jasminOutput.MatchString(text):
	case r.block != "":
		at.name = r.block + " " + words[0]
		r.p.ignore(at, "%s", jasminCommands[r.block])
	default:
		_, value, _ := strings.Cut(text, " ")
		at.name, at.value = words[0], strings.TrimSpace(value)
		r.key(at)
	}
}

// jasminCommands are the reasons of jCli's other commands.
var jasminCommands = map[string]string{
	"user":     "create a company and an API key for it: intumwa admin company create, admin token create",
	"group":    "a company is the group of its people",
	"mtrouter": ownRoutes, "morouter": "messages from handsets: docs/handsets.md", "filter": ownRoutes,
	"mtinterceptor": "interceptors are not supported",
	"mointerceptor": "interceptors are not supported", "httpccm": "webhooks: each company sets its endpoint",
	"stats": "no setting", "persist": "no setting", "load": "no setting",
	"quit": "no setting", "help": "no setting",
}

// command reads an smppccm command. What follows -a on its line counts as lines of the block: key value, or
// --key=value.
func (r *jasminReader) command(at setting, words []string) {
	r.open, r.loose = nil, false
	at.name = strings.Join(words[:min(2, len(words))], " ")
	if len(words) < 2 {
		return
	}
	switch words[1] {
	case "-a", "--add":
		r.begin()
	case "-u", "-s", "--update", "--show":
		if len(words) > 2 {
			i := slices.IndexFunc(r.connectors, func(c *connector) bool { return c.value("cid", "") == words[2] })
			if i >= 0 {
				r.open = r.connectors[i]
			} else {
				r.begin()
				at.name, at.value = "cid", words[2]
				r.key(at)
			}
		}
		return
	case "-r", "--remove":
		r.connectors = slices.DeleteFunc(r.connectors,
			func(c *connector) bool { return len(words) > 2 && c.value("cid", "") == words[2] })
		return
	default:
		r.p.ignore(at, "no setting; intumwa admin link pause and resume stop and start a link")
		return
	}
	for rest := words[2:]; len(rest) > 0; rest = rest[1:] {
		key, value, joined := strings.Cut(strings.TrimLeft(rest[0], "-"), "=")
		if !joined && len(rest) > 1 {
			rest = rest[1:]
			value = rest[0]
		}
		at.name, at.value = key, strings.Trim(value, `"'`)
		r.key(at)
	}
}

func (r *jasminReader) begin() {
	r.open = new(connector)
	r.connectors = append(r.connectors, r.open)
}

// key adds a key to the connector. In output without commands, a key that comes again begins the next connector.
func (r *jasminReader) key(s setting) {
	if !isJasminKey(s.name) {
		r.p.ignore(s, "not known")
		return
	}
	if r.open == nil {
		r.loose = true
		r.begin()
	} else if slices.ContainsFunc(r.open.settings, func(old setting) bool { return old.name == s.name }) && r.loose {
		r.begin()
	}
	r.open.settings = append(r.open.settings, s)
}

// connector proposes a carrier with one link.
func (p *Proposal) connector(j *connector) {
	cid, given := j.get("cid")
	if !given {
		for _, s := range j.settings {
			p.ignore(s, "its connector has no cid")
		}
		return
	}
	c := p.carrier(cid.value)
	l := c.link()
	port := 2775
	if s, given := j.get("port"); given {
		if n, ok := s.number(p, 1, 65535); ok {
			port = n
		}
	}
	l.set("address", quote(address(j.value("host", "127.0.0.1"), port)))
	if bind := j.value("bind", "transceiver"); slices.Contains([]string{"transceiver", "transmitter", "receiver"}, bind) {
		l.set("bind", bind)
	}
	l.set("system_id", quote(j.value("username", "smppclient")))
	octet := func(key, otherwise string) string {
		if s, given := j.get(key); given {
			if n, ok := s.number(p, 0, 255); ok {
				return strconv.Itoa(n)
			}
		}
		return otherwise
	}
	c.keys.set("source_ton_npi", pair(octet("src_ton", "2"), octet("src_npi", "1")))
	c.keys.set("dest_ton_npi", pair(octet("dst_ton", "1"), octet("dst_npi", "1")))
	if ton, npi := octet("bind_ton", "0"), octet("bind_npi", "0"); ton != "0" || npi != "0" {
		l.set("address_range_ton_npi", pair(ton, npi))
	}
	if _, given := j.get("submit_throughput"); !given {
		l.set("tps", "1") // Jasmin's default
	}
	for _, s := range j.settings {
		if last, _ := j.get(s.name); s.value == "None" || last.line != s.line {
			continue
		}
		p.connectorSetting(c, l, s)
	}
}

func (p *Proposal) connectorSetting(c *carrier, l *keys, s setting) {
	switch s.name {
	case "cid", "host", "port", "username", "bind", "src_ton", "src_npi", "dst_ton", "dst_npi", "bind_ton", "bind_npi":
	case "password":
		p.password(c, l, s)
	case "systype":
		if s.value != "" {
			l.set("system_type", quote(s.value))
		}
	case "addr_range":
		if text, ok := s.text(p, 40); ok && text != "" {
			l.set("address_range", quote(text))
		}
	case "submit_throughput":
		p.rate(l, s)
	case "elink_interval":
		if n, ok := s.number(p, 1, 86400); ok {
			l.set("enquire_link", seconds(n))
			p.longHold(c, s, n)
		}
	case "res_to":
		if n, ok := s.number(p, 1, 3600); ok {
			l.set("response_timeout", seconds(n))
		}
	case "ssl":
		if s.bool() {
			l.set("tls", "true")
		}
	case "dlr_msgid":
		if n, ok := s.number(p, 0, 2); ok {
			p.of(c, s, "message_id_format", messageIDs[n]) // 0 is the same base here too
		}
	case "priority":
		if n, ok := s.number(p, 0, 3); ok && n > 0 {
			p.of(c, s, "single_priority", fmt.Sprint(n))
		}
	case "coding":
		switch s.value {
		case "0":
		case "3":
			p.of(c, s, "alphabet", "latin1")
			p.of(c, s, "data_coding", "{default: 3}")
		default:
			p.ignore(s, "a text's characters decide: carriers[].data_coding has the values")
		}
	default:
		p.ignore(s, "%s", jasminIgnored[s.name])
	}
}
