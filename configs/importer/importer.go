// Package importer reads the configuration of another gateway and proposes ours: the carriers and their links. It
// reports every line that it leaves out, with the reason. It never returns a password, only the name of a variable for
// it.
package importer

import (
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Proposal is what an imported configuration becomes.
type Proposal struct {
	Ignored []Ignored
	Secrets []Secret

	source   string // what was read
	kannel   string // kannel.listen; "": none
	carriers []*carrier
	prefixes map[string]bool
}

// Ignored is a line that is not in the proposal. Its value is not kept: it may be a secret.
type Ignored struct {
	File   string
	Line   int
	Name   string
	Reason string
}

// String is the form of a compiler's message.
func (i Ignored) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", i.File, i.Line, i.Name, i.Reason)
}

// Secret is a password that must be put into a variable.
type Secret struct {
	Variable string
	File     string
	Line     int
}

// String says where the password stands.
func (s Secret) String() string {
	return fmt.Sprintf("%s: the password of %s:%d", s.Variable, s.File, s.Line)
}

// setting is a line of the source: a name and its value.
type setting struct {
	file, name, value string
	line              int
}

type carrier struct {
	id, name string // theirs, ours
	keys     keys
	prefixes []string
	links    []*keys
	notes    []string
}

// keys are our keys with their values in YAML, in order.
type keys struct{ names, values []string }

// value returns a key's value; "" without one.
func (k *keys) value(name string) string {
	if i := slices.Index(k.names, name); i >= 0 {
		return k.values[i]
	}
	return ""
}

// set sets a key to a YAML value; false if it has another one.
func (k *keys) set(name, value string) bool {
	if i := slices.Index(k.names, name); i >= 0 {
		return k.values[i] == value
	}
	k.names, k.values = append(k.names, name), append(k.values, value)
	return true
}

func (p *Proposal) ignore(s setting, format string, args ...any) {
	p.Ignored = append(p.Ignored, Ignored{s.file, s.line, s.name, fmt.Sprintf(format, args...)})
}

const maxName = 50

var notInName = regexp.MustCompile(`[^A-Za-z0-9-]+`)

// nameOf makes a name of ours from one of theirs.
func nameOf(text, otherwise string) string {
	text = strings.Trim(notInName.ReplaceAllString(text, "-"), "-")
	if text == "" {
		return otherwise
	}
	if text[0] >= '0' && text[0] <= '9' {
		text = "smsc-" + text
	}
	return text[:min(len(text), maxName)]
}

// carrier returns the carrier of an id; a new one at its first use. Ids that differ by more than case get different
// names.
func (p *Proposal) carrier(id string) *carrier {
	for _, c := range p.carriers {
		if strings.EqualFold(c.id, id) {
			return c
		}
	}
	c := &carrier{id: id, name: nameOf(id, "smsc")}
	for n := 2; slices.ContainsFunc(p.carriers, func(other *carrier) bool {
		return strings.EqualFold(other.name, c.name)
	}); n++ {
		name, number := nameOf(id, "smsc"), "-"+strconv.Itoa(n)
		c.name = name[:min(len(name), maxName-len(number))] + number
	}
	p.carriers = append(p.carriers, c)
	return c
}

// link adds a link to a carrier.
func (c *carrier) link() *keys {
	l := new(keys)
	l.set("name", quote(c.name+"-"+strconv.Itoa(len(c.links)+1)))
	c.links = append(c.links, l)
	return l
}

// all reports whether all links bind like that.
func (c *carrier) all(bind string) bool {
	return !slices.ContainsFunc(c.links, func(l *keys) bool { return l.value("bind") != bind })
}

// password puts a password into a variable of the link's name.
func (p *Proposal) password(c *carrier, l *keys, s setting) {
	name := strings.ToUpper(strings.ReplaceAll(c.name, "-", "_")) + "_" + strconv.Itoa(len(c.links)) + "_PASSWORD"
	l.set("password", `"${`+name+`}"`)
	p.Secrets = append(p.Secrets, Secret{name, s.file, s.line})
}

// of sets a key of a carrier, whose other links may have it already.
func (p *Proposal) of(c *carrier, s setting, name, value string) {
	if !c.keys.set(name, value) {
		p.ignore(s, "another link of %s sets %s differently; it is one for the carrier", c.name, name)
	}
}

// quote writes a text in YAML. A dollar is doubled: a single one begins a variable.
func quote(text string) string { return strconv.Quote(strings.ReplaceAll(text, "$", "$$")) }

func pair(ton, npi string) string { return "[" + ton + ", " + npi + "]" }

// leading returns the number at the beginning of a value, as sscanf reads it: a comment may follow.
var leading = regexp.MustCompile(`^[+-]?(0[xX][0-9a-fA-F]+|[0-9]+)`)

func (s setting) number(p *Proposal, least, most int) (n int, ok bool) {
	v, err := strconv.ParseInt(leading.FindString(s.value), 0, 32)
	if err != nil || v < int64(least) || v > int64(most) {
		p.ignore(s, "not a number from %d to %d", least, most)
		return 0, false
	}
	return int(v), true
}

// rate sets tps. A rate below one in a second becomes one: 0 is no limit.
func (p *Proposal) rate(l *keys, s setting) {
	whole, ok := s.number(p, 0, 100_000)
	if !ok {
		return
	}
	if whole == 0 && strings.ContainsAny(s.value, "123456789") {
		p.ignore(s, "tps is a whole number: 1 is proposed")
		whole = 1
	}
	l.set("tps", strconv.Itoa(whole))
}

// text returns a value for a key of so many bytes at most.
func (s setting) text(p *Proposal, most int) (text string, ok bool) {
	if len(s.value) > most {
		p.ignore(s, "longer than SMPP has it, %d bytes", most)
		return "", false
	}
	return s.value, true
}

// seconds formats a number of seconds as a duration.
func seconds(n int) string { return strconv.Itoa(n) + "s" }

func address(host string, port int) string {
	return net.JoinHostPort(strings.Trim(host, "[]"), strconv.Itoa(port))
}

// YAML is the proposal as a configuration file, without the keys that no import knows.
func (p *Proposal) YAML() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Proposed from %s. Add database, redis and what else your installation needs (intumwa "+
		"config sample),\n", p.source)
	b.WriteString("# set the variables, then run: intumwa config check, and intumwa admin carrier try for each link.\n")
	for _, s := range p.Secrets {
		fmt.Fprintf(&b, "#   %s\n", s)
	}
	if p.kannel != "" {
		fmt.Fprintf(&b, "kannel: {listen: %s} # who sends here needs an API key: docs/kannel.md\n", quote(p.kannel))
	}
	b.WriteString("carriers:\n")
	for i, c := range p.carriers {
		fmt.Fprintf(&b, "  - name: %s\n", quote(c.name))
		switch {
		case c.all("receiver"):
			b.WriteString("    # Its links only receive: no number is routed to it.\n")
		case len(c.prefixes) > 0:
			fmt.Fprintf(&b, "    prefixes: [%s]\n", strings.Join(c.prefixes, ", "))
		case i == 0 && len(p.prefixes) == 0:
			b.WriteString("    default: true # takes every number until prefixes divide them among the carriers\n")
		default:
			b.WriteString("    prefixes: [] # none was found: it gets no messages until you list its numbers\n")
		}
		if c.all("transmitter") {
			b.WriteString("    # Its links only transmit, so no receipts come. If the carrier sends receipts, add a link that " +
				"receives.\n")
			c.keys.set("confirm", "submit")
		}
		for _, note := range c.notes {
			fmt.Fprintf(&b, "    # %s\n", note)
		}
		c.keys.write(&b, "    ", "    ")
		b.WriteString("    links:\n")
		for _, l := range c.links {
			l.write(&b, "      - ", "        ")
		}
	}
	return b.String()
}

func (k *keys) write(b *strings.Builder, first, indent string) {
	for i, name := range k.names {
		if i > 0 {
			first = indent
		}
		fmt.Fprintf(b, "%s%s: %s\n", first, name, k.values[i])
	}
}
