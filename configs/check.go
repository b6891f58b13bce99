package configs

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"intumwa/inbound/handsets"
	"intumwa/sms"
)

// Check says every mistake in the values that matters to a process with these roles, in the order of the keys; nil when
// there is none. Without a role it may lack the secrets that they read: the links' passwords and certificates are the
// dispatcher's, the key of signing secrets that of webhooks and dashboard, the key of one-time codes that of api and
// dashboard. Check opens the certificate files that the links and Redis name and nothing else. No problem quotes a value
// that may be a secret.
func (c *Config) Check(roles ...string) []Problem {
	k := &checker{lines: c.lines, foreign: c.foreign, binds: slices.Contains(roles, "dispatcher")}
	for _, p := range c.missing {
		if needs(roles, p.Key) {
			k.problems = append(k.problems, p)
		}
	}
	k.tags(c)
	k.listeners(c)
	k.database(&c.Database)
	k.redis(&c.Redis)
	if !senderName.MatchString(c.TestSender) {
		k.problem("test_sender", "must be 1-11 ASCII letters and digits")
	}
	k.dashboard(&c.Dashboard)
	k.mail(c)
	if n := len(c.Accounts.OTPKey); n > 0 && n < leastOTPKey {
		k.problem("accounts.otp_key", "must have at least %d characters, all of them random: openssl rand -base64 32", leastOTPKey)
	}
	if _, err := c.Accounts.Key(); err != nil {
		k.problem("accounts.encryption_key", "%s", err)
	}
	k.inbound(&c.Inbound)
	if _, err := c.Messages.Quiet(); err != nil {
		k.problem("messages.quiet_hours", "%s", err)
	}
	k.webhooks(&c.Webhooks)
	k.limits(&c.Limits)
	k.retention(c)
	k.carriers(c.Carriers)
	return k.problems
}

var senderName = regexp.MustCompile(`^[A-Za-z0-9]{1,11}$`)

// leastOTPKey is how short the key of one-time codes may be: with fewer characters it can be guessed.
const leastOTPKey = 32

type checker struct {
	lines    map[string]int
	foreign  map[string]bool
	binds    bool // the links are bound here
	problems []Problem
}

func (k *checker) problem(path, format string, args ...any) {
	k.problems = append(k.problems, Problem{Key: path, Line: k.lines[path], Text: fmt.Sprintf(format, args...)})
}

// tags checks what the fields' tags demand: min and max.
func (k *checker) tags(c *Config) {
	k.length("carriers", len(c.Carriers))
	for i := range c.Carriers {
		k.length(fmt.Sprintf("carriers[%d].links", i), len(c.Carriers[i].Links))
	}
	walk(c, func(l leaf) {
		if !l.value.CanInt() {
			return
		}
		low, hasLow := bound(l.field, "min")
		high, hasHigh := bound(l.field, "max")
		switch v := l.value.Int(); {
		case l.field.Type == durationType && hasLow && v < low && low != 1:
			k.problem(l.path, "must be at least %s, not %s", time.Duration(low), time.Duration(v))
		case l.field.Type == durationType && hasLow && v < low:
			k.problem(l.path, "must be longer than 0s, not %s", time.Duration(v))
		case hasLow && hasHigh && (v < low || v > high):
			k.problem(l.path, "must be from %d to %d%s", low, high, k.notNumber(l.path, v))
		case hasLow && v < low:
			k.problem(l.path, "must be at least %d%s", low, k.notNumber(l.path, v))
		}
	})
}

// not is the end of a problem's text that quotes the value, or nothing where it may be a secret.
func (k *checker) not(path, value string) string { return not(k.foreign, path, value) }

func (k *checker) notNumber(path string, n int64) string {
	if fromOutside(k.foreign, path) {
		return ""
	}
	return fmt.Sprintf(", not %d", n)
}

func (k *checker) length(path string, n int) {
	if n == 0 {
		k.problem(path, "needs at least one item")
	}
}

func bound(f reflect.StructField, tag string) (int64, bool) {
	if d, err := time.ParseDuration(f.Tag.Get(tag)); err == nil && f.Type == durationType && d > 0 {
		return int64(d), true
	}
	n, err := strconv.ParseInt(f.Tag.Get(tag), 10, 64)
	return n, err == nil
}

func (k *checker) listeners(c *Config) {
	taken := map[string]string{}
	listeners := []struct{ key, address string }{
		{"api.listen", c.API.Listen}, {"ops.listen", c.Ops.Listen}, {"dashboard.listen", c.Dashboard.Listen},
	}
	for _, role := range slices.Sorted(maps.Keys(c.Ops.Roles)) {
		path := join("ops.roles", role)
		if !slices.Contains(Roles, role) {
			k.problem(path, "must be one of %s", strings.Join(Roles, ", "))
			continue
		}
		listeners = append(listeners, struct{ key, address string }{path, c.Ops.Roles[role]})
	}
	for _, l := range listeners {
		port, err := portOf(l.address)
		switch other := taken[l.address]; {
		case err != nil:
			k.problem(l.key, "%s", err)
		case port != 0 && other != "":
			k.problem(l.key, "is the same as %s", other)
		default:
			taken[l.address] = l.key
		}
	}
	k.proxies("api.trusted_proxies", c.API.TrustedProxies)
	if c.API.BodyMemory <= 2*c.API.MaxBody {
		k.problem("api.body_memory", "must be more than twice api.max_body")
	}
	k.proxies("dashboard.trusted_proxies", c.Dashboard.TrustedProxies)
}

func (k *checker) proxies(path string, proxies []string) {
	for i, p := range proxies {
		_, addressErr := netip.ParseAddr(p)
		_, rangeErr := netip.ParsePrefix(p)
		if addressErr != nil && rangeErr != nil {
			at := fmt.Sprintf("%s[%d]", path, i)
			k.problem(at, "must be an address or a range such as 10.0.0.0/8%s", k.not(at, p))
		}
	}
}

// leastRetention leaves every delivery its retries, every request its repetition (rule choices 1.10), and people a day to
// look.
const leastRetention = 24 * time.Hour

func (k *checker) limits(l *Limits) {
	if l.RepeatInterval > 24*time.Hour || l.RepeatInterval%time.Second != 0 {
		k.problem("limits.repeat_interval", "must be whole seconds and at most 24h, not %s", l.RepeatInterval)
	}
}

func (k *checker) retention(c *Config) {
	r := &c.Retention
	for _, kept := range []struct {
		key  string
		time time.Duration
	}{{"deliveries", r.Deliveries}, {"idempotency_keys", r.IdempotencyKeys}, {"bodies", r.Bodies}, {"numbers", r.Numbers}} {
		if kept.time > 0 && kept.time < leastRetention {
			k.problem("retention."+kept.key, "must be at least %s, not %s", leastRetention, kept.time)
		}
	}
	if r.Numbers >= leastRetention && r.Numbers < max(r.Deliveries, r.Receipts) {
		k.problem("retention.numbers", "must be 0s or at least retention.deliveries and retention.receipts, %s: they hold the number too", max(r.Deliveries, r.Receipts))
	}
	if r.Messages <= 0 {
		return
	}
	final := c.Messages.Validity // by then a message is sent or failed
	for _, carrier := range c.Carriers {
		final = max(final, c.Messages.Validity+carrier.ReceiptTimeout)
	}
	switch least := max(final+leastRetention, r.IdempotencyKeys); {
	case r.Messages < least:
		k.problem("retention.messages", "must be 0s or at least %s, not %s: until then a message may wait for its receipt, or its request be repeated", least, r.Messages)
	case r.Bodies > r.Messages:
		k.problem("retention.bodies", "must not be longer than retention.messages, %s", r.Messages)
	case r.Numbers > r.Messages:
		k.problem("retention.numbers", "must not be longer than retention.messages, %s", r.Messages)
	}
}

// Bounds of what handsets are understood by and told.
const (
	maxCommandWord = 20  // characters
	maxReply       = 600 // code points, as of any message
)

func (k *checker) inbound(i *Inbound) {
	means := map[string]string{}
	words := func(list string, words []string) {
		for n, text := range words {
			path := fmt.Sprintf("inbound.%s[%d]", list, n)
			word := handsets.Word(text)
			switch other := means[word]; {
			case word == "" || strings.ContainsFunc(text, unicode.IsSpace) || utf8.RuneCountInString(text) > maxCommandWord:
				k.problem(path, "must be one word of at most %d letters and digits", maxCommandWord)
			case other != "" && other != list:
				k.problem(path, "stands in inbound.%s as well: case and accents do not count", other)
			}
			means[word] = list
		}
	}
	words("stop_words", i.StopWords)
	words("start_words", i.StartWords)
	for _, reply := range []struct{ key, text string }{{"inbound.stop_reply", i.StopReply}, {"inbound.start_reply", i.StartReply}} {
		if utf8.RuneCountInString(reply.text) > maxReply || strings.ContainsRune(reply.text, 0) || reply.text != "" && strings.TrimSpace(reply.text) == "" {
			k.problem(reply.key, "must be a text of at most %d characters, or empty", maxReply)
		}
	}
}

func (k *checker) webhooks(w *Webhooks) {
	for i, delay := range w.RetryDelays {
		if delay <= 0 {
			k.problem(fmt.Sprintf("webhooks.retry_delays[%d]", i), "must be longer than 0s, not %s", delay)
		}
	}
	if _, err := w.Key(); err != nil {
		k.problem("webhooks.encryption_key", "%s", err)
	}
}

// Quiet are the quiet hours.
func (m *Messages) Quiet() (sms.QuietHours, error) { return sms.ParseQuietHours(m.QuietHours) }

// Key is the encryption key's 32 octets, given as base64 or hex; nil when there is none.
func (w *Webhooks) Key() (*[32]byte, error) { return octetsOf(w.EncryptionKey) }

// Key is the encryption key's 32 octets, given as base64 or hex; nil when there is none.
func (a *Accounts) Key() (*[32]byte, error) { return octetsOf(a.EncryptionKey) }

func octetsOf(text Secret) (*[32]byte, error) {
	raw := string(text)
	if raw == "" {
		return nil, nil
	}
	decoders := []func(string) ([]byte, error){
		hex.DecodeString,
		base64.StdEncoding.DecodeString, base64.RawStdEncoding.DecodeString,
		base64.URLEncoding.DecodeString, base64.RawURLEncoding.DecodeString,
	}
	for _, decode := range decoders {
		if key, err := decode(raw); err == nil && len(key) == 32 {
			return (*[32]byte)(key), nil
		}
	}
	return nil, errors.New("must be 32 octets in base64 or hex")
}

// portOf reads host:port, where the host may be missing. Its errors do not quote the address: what is no address may be
// a URL with a password.
func portOf(address string) (int, error) {
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		return 0, errors.New("must be host:port")
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0, errors.New("must have a port from 0 to 65535")
	}
	return int(port), nil
}

// remote refuses an address that one cannot connect to, and one that holds more than a host and a port: it would stand
// in logs and errors.
func remote(address Address) error {
	port, err := portOf(string(address))
	if err != nil {
		return err
	}
	if host, _, _ := net.SplitHostPort(string(address)); host == "" || port == 0 {
		return errors.New("must have a host and a port from 1 to 65535")
	}
	if !plainAddress.MatchString(string(address)) {
		return errors.New("must be host:port and nothing else, no scheme, user or password")
	}
	return nil
}

func (k *checker) dashboard(d *Dashboard) {
	for _, u := range []struct{ key, text string }{{"dashboard.public_url", d.PublicURL}, {"dashboard.docs_url", d.DocsURL}} {
		if u.text == "" {
			continue
		}
		parsed, err := url.Parse(u.text)
		if err != nil || (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Host == "" || parsed.User != nil || parsed.RawQuery != "" || parsed.Fragment != "" {
			k.problem(u.key, "must be an address such as https://sms.example.com")
		}
	}
	if u, err := url.Parse(d.PublicURL); err == nil && !d.SecureCookies && d.PublicURL != "" && !loopback(u.Hostname()) {
		k.problem("dashboard.secure_cookies", "can be false only while dashboard.public_url is on this machine (http://localhost, http://127.0.0.1)")
	}
}

func loopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

func (k *checker) mail(c *Config) {
	m := &c.Mail
	if m.Server != "" {
		if err := remote(m.Server); err != nil {
			k.problem("mail.server", "%s", err)
		}
		if _, err := mail.ParseAddress(m.From); err != nil {
			k.problem("mail.from", "must be an address such as Intumwa <no-reply@example.com>")
		}
		if m.TLS.Is == "none" && m.Password != "" {
			if host, _, _ := net.SplitHostPort(string(m.Server)); !loopback(host) {
				k.problem("mail.tls", "cannot be none with a password: it would go out readable")
			}
		}
	}
	if host, _, err := net.SplitHostPort(c.Dashboard.Listen); m.Server != "" && c.Dashboard.PublicURL == "" && err == nil && !loopback(host) {
		k.problem("dashboard.public_url", "is required with mail.server: the links in mails begin with it")
	}
	if m.Server == "" && (m.Username != "" || m.Password != "") {
		k.problem("mail.server", "is required with mail.username or mail.password")
	}
}
