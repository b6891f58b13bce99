package kannel

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"intumwa/intake"
	"intumwa/internal/postgres"
	"intumwa/sms"
	"intumwa/webhooks"
)

// message is a valid request: one text to one or more numbers.
type message struct {
	from, text, account string
	to                  []string
	sendAt, expireAt    time.Time // zero: not given
	deferred            bool
	callback            webhooks.Callback
	part                *sms.Part // the sender has cut a long text itself
}

const (
	mostMinutes = 10 * 365 * 24 * 60
)

// message reads a request. mistake is Kannel's text about the first parameter that is wrong, or one in its form.
func (p parameters) message(checkCallback func(string) error) (m message, mistake string) {
	for _, step := range []func(*message) string{p.receivers, p.sender, p.unsupported, p.body, p.times,
		func(m *message) string { return p.reports(m, checkCallback) }} {
		if mistake = step(&m); mistake != "" {
			return message{}, mistake
		}
	}
	return m, ""
}

func (p parameters) receivers(m *message) string {
	to, given := p["to"]
	if !given {
		return "Missing receiver number, rejected"
	}
	seen := map[string]bool{}
	for _, number := range strings.Fields(to) {
		one := number
		if full, ok := sms.FromCarrier(number); ok { // in whatever form
			one = string(full)
		}
		if !seen[one] {
			seen[one] = true
			m.to = append(m.to, number)
		}
	}
	if len(m.to) == 0 {
		return "Empty receiver number not allowed, rejected"
	}
	return ""
}

func (p parameters) sender(m *message) string {
	if m.from = p["from"]; m.from == "" {
		return "Sender missing and no global set, rejected"
	}
	if m.account = p["account"]; utf8.RuneCountInString(m.account) > 64 || strings.ContainsAny(m.account, "[]\n\r") ||
		!utf8.ValidString(m.account) {
		return "Account field misformed or too long, rejected"
	}
	return ""
}

// unsupported refuses what the gateway cannot send: other texts than messages for people, and classes of a single
// message.
func (p parameters) unsupported(m *message) string {
	if udh := p["udh"]; udh != "" && udh != "-1" {
		ref, total, number, ok := sms.Concatenation([]byte(udh + "x")) // with a text behind it
		if !ok || len(udh) != 6 && len(udh) != 7 {                     // it has other elements
			return "udh is not supported but for the parts of a long text, rejected"
		}
		m.part = &sms.Part{Reference: uint16(ref), Total: uint8(total), Number: uint8(number), Wide: len(udh) == 7}
	}
	for _, name := range []string{"mwi", "meta-data"} {
		if text := p[name]; text != "" && text != "-1" {
			return name + " is not supported, rejected"
		}
	}
	for _, name := range []string{"pid", "rpi", "compress", "flash"} {
		if n, _, ok := p.number(0, 0, name); !ok || n != 0 {
			return name + " is not supported, rejected"
		}
	}
	switch class, unset, ok := p.number(0, 3, "mclass"); {
	case !ok:
		return "MClass field misformed, rejected"
	case !unset && class != 1:
		return "MClass " + strconv.Itoa(class) + " is not supported, rejected"
	}
	if _, _, ok := p.number(0, 1, "alt-dcs"); !ok { // two ways to write one class: the carrier's profile decides
		return "Alt-DCS field misformed, rejected"
	}
	if _, _, ok := p.number(0, 3, "priority"); !ok {
		return "Priority field misformed, rejected"
	}
	return ""
}

// charsets are the encodings of a text by the names that clients give them.
var charsets = map[string]encoding.Encoding{
	"utf-8": encoding.Nop, "utf8": encoding.Nop, "us-ascii": encoding.Nop, "ascii": encoding.Nop,
	"iso-8859-1": charmap.ISO8859_1, "iso8859-1": charmap.ISO8859_1, "latin1": charmap.ISO8859_1,
	"latin-1":     charmap.ISO8859_1,
	"iso-8859-15": charmap.ISO8859_15, "windows-1252": charmap.Windows1252, "cp1252": charmap.Windows1252,
	"utf-16be": unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM),
	"ucs-2":    unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM),
	"ucs-2be":  unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM),
	"utf-16le": unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM),
	"utf-16":   unicode.UTF16(unicode.BigEndian, unicode.UseBOM),
}

const misformedText = "Charset or body misformed, rejected"

// body reads the text. coding says only how it is encoded here: how it goes to a carrier depends on its characters.
func (p parameters) body(m *message) string {
	coding, _, ok := p.number(0, 2, "coding")
	switch {
	case !ok:
		return "Coding field misformed, rejected"
	case coding == 1:
		return "Coding 1 (8-bit data) is not supported, rejected"
	}
	name := strings.ToLower(strings.TrimSpace(p["charset"]))
	if name == "" {
		if name = "utf-8"; coding == 2 {
			name = "utf-16be"
		}
	}
	charset, known := charsets[name]
	wide := strings.HasPrefix(name, "utf-16") || strings.HasPrefix(name, "ucs")
	if !known || wide && len(p["text"])%2 != 0 {
		return misformedText
	}
	text, err := charset.NewDecoder().String(p["text"])
	if err != nil || !utf8.ValidString(text) || wide && strings.ContainsRune(text, utf8.RuneError) {
		return misformedText
	}
	m.text = strings.TrimPrefix(text, "\ufeff")
	return ""
}

func (p parameters) times(m *message) string {
	now := postgres.Now().UTC().Truncate(time.Second)
	validity, _, ok := p.number(0, mostMinutes, "validity")
	if !ok {
		return "Validity field misformed, rejected"
	}
	deferred, _, ok := p.number(0, mostMinutes, "deferred")
	if !ok {
		return "Deferred field misformed, rejected"
	}
	from := now
	if deferred > 0 {
		from = now.Add(time.Duration(deferred) * time.Minute)
		m.sendAt, m.deferred = from, true
	}
	if validity > 0 {
		m.expireAt = now.Add(time.Duration(validity) * time.Minute)
		if last := from.Add(sms.MaxValid); m.expireAt.After(last) {
			m.expireAt = last
		}
	}
	return ""
}

func (p parameters) reports(m *message, check func(string) error) string {
	mask, _, ok := p.number(0, 66, "dlr-mask", "dlrmask")
	if !ok {
		return "DLR-Mask field misformed, rejected"
	}
	url, _ := p.either("dlr-url", "dlrurl")
	if url == "" {
		return ""
	}
	user, _ := p.either("username", "user")
	m.callback = webhooks.Callback{URL: url, Mask: mask, Account: m.account, Service: user, Billing: p["binfo"]}
	filled := m.callback.For("+25779123456", m.from, strings.Repeat("0", ulid.EncodedSize)) // as long as it will be
	err := check(url)
	if err == nil {
		err = check(filled.URL)
	}
	if err != nil {
		return "DLR-URL field misformed, rejected: " + strings.NewReplacer("The webhook URL's", "its", "The webhook URL",
			"it").Replace(err.Error())
	}
	return ""
}

// request returns the request of the API: a single send, or to several numbers a bulk send.
func (m message) request() (path string, body []byte) {
	type item struct {
		Number    string `json:"phone_number"`
		Message   string `json:"message"`
		Reference string `json:"client_reference,omitempty"`
	}
	type times struct {
		SendAt   time.Time `json:"send_at,omitzero"`
		ExpireAt time.Time `json:"expire_at,omitzero"`
	}
	items := make([]item, len(m.to))
	for i, number := range m.to {
		items[i] = item{number, m.text, m.account}
	}
	when := times{m.sendAt, m.expireAt}
	if len(items) == 1 {
		return "/v1/sms", intake.Encode(struct {
			item
			times
			Sender string `json:"sender"`
		}{items[0], when, m.from})
	}
	return "/v1/sms/bulk", intake.Encode(struct {
		times
		Sender   string `json:"sender"`
		Messages []item `json:"messages"`
	}{when, m.from, items})
}
