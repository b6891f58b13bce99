package configs

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// Check returns all mistakes in values that a process with these roles uses, or nil. Secrets of other roles may be
// missing. Without roles, as for a command, Redis and carriers may be missing too. Check opens only
// the certificate files of links and Redis, and the files of ebms. No problem quotes a value.
func (c *Config) Check(roles ...string) []Problem {
	k := &checker{lines: c.lines, roles: roles}
	for _, p := range c.missing {
		if k.needs(p.Key) {
			k.problems = append(k.problems, p)
		}
	}
	k.tags(c)
	k.listeners(c)
	k.stores(c)
	k.dashboard(c)
	k.keys(c)
	k.ebms(c)
	k.messages(c)
	k.smppServer(&c.SMPPServer)
	k.retention(c)
	k.operator(&c.Operator)
	k.carriers(c.Carriers)
	return k.problems
}

// Roles are the parts that a process may serve.
var Roles = []string{"api", "dispatcher", "webhooks", "dashboard", "smpp"}

// readers are the roles that read the keys under a path; every role and command reads the others.
var readers = []struct {
	path  string
	roles []string
}{
	{"accounts.otp_key", Roles}, // the dispatcher writes one-time codes into texts
	{"encryption_key", []string{"webhooks", "dashboard"}},
	{"mail.url", []string{"webhooks", "dashboard"}},
	{"ebms.", []string{"webhooks", "dashboard"}},
	{"dashboard.public_url", []string{"webhooks", "dashboard"}},
	{"carriers[", []string{"dispatcher"}},
	{"redis.", Roles},
}

// needs reports whether one of the roles reads the secret at a key path.
func needs(roles []string, path string) bool {
	for _, r := range readers {
		if strings.HasPrefix(path, r.path) {
			return slices.ContainsFunc(r.roles, func(role string) bool { return slices.Contains(roles, role) })
		}
	}
	return true
}

// Missing is the problem of a secret whose variable or file does not exist, otherwise nil. A command that uses a
// secret calls it first: Check without a role does not report it.
func (c *Config) Missing(path string) *Problem {
	for _, p := range c.missing {
		if p.Key == path {
			return &p
		}
	}
	return nil
}

const (
	unencrypted = "is empty, so signing secrets and the secrets of second factors are readable in the database; " +
		"set it to 32 random bytes before the first of them, the same in every process: openssl rand -base64 32"
	unhashed = "is empty, so a stolen copy of the database reveals the one-time codes of its last ten minutes and the " +
		"SMPP passwords; " +
		"set it to 32 random bytes, the same in every process: openssl rand -base64 32"
	unmailed = "is empty although dashboard.public_url is set, so no mail is sent: nobody can sign up, and no owner " +
		"learns of a decision or a low balance"
	unlinked  = "is empty, so the links in mails lead to this machine"
	inTheOpen = "has no sslmode that insists on encryption and names another host, so the password and the " +
		"messages may cross " +
		"the network readable; add sslmode=verify-full (or require), or sslmode=disable if the network is yours alone"
)

// Warnings are settings that are valid but probably mistakes, for a process with these roles.
func (c *Config) Warnings(roles ...string) []Problem {
	out := slices.Clone(c.warnings)
	out = append(out, c.longCredentials()...)
	out = append(out, c.unasked()...)
	out = append(out, c.reachable(roles)...)
	out = append(out, c.unusual()...)
	for _, w := range []struct {
		key, text string
		warn      bool
	}{
		{"accounts.otp_key", unhashed, c.Accounts.OTPKey == ""},
		{"encryption_key", unencrypted, c.EncryptionKey == ""},
		{"mail.url", unmailed, c.Mail.URL == "" && c.Dashboard.PublicURL != "" && !c.Dashboard.Local()},
		{"dashboard.public_url", unlinked, c.Mail.URL != "" && c.Dashboard.PublicURL == ""},
		{"database.url", inTheOpen, postgres.Readable(string(c.Database.URL))},
	} {
		if w.warn && needs(roles, w.key) {
			out = append(out, Problem{Key: w.key, Line: c.lines[w.key], Text: w.text})
		}
	}
	return out
}

type checker struct {
	lines    map[string]int
	roles    []string
	problems []Problem
}

func (k *checker) needs(path string) bool { return needs(k.roles, path) }

func (k *checker) problem(path, format string, args ...any) {
	k.problems = append(k.problems, Problem{Key: path, Line: k.lines[path], Text: fmt.Sprintf(format, args...)})
}

// tags checks the constraints of the fields' tags.
func (k *checker) tags(c *Config) {
	if len(c.Carriers) == 0 && len(k.roles) > 0 {
		k.problem("carriers", "needs at least one item")
	}
	for i := range c.Carriers {
		if len(c.Carriers[i].Links) == 0 {
			k.problem(fmt.Sprintf("carriers[%d].links", i), "needs at least one item")
		}
	}
	walk(c, func(l leaf) {
		if l.field.Tag.Get("required") != "" && l.value.Len() == 0 && c.Missing(l.path) == nil {
			k.problem(l.path, "is required")
		}
		if words := strings.Fields(l.field.Tag.Get("oneof")); len(words) > 0 {
			k.words(l, words)
		}
		if l.value.CanInt() {
			k.bounds(l.field, l.path, l.value.Int())
		}
		if l.field.Type.Kind() == reflect.String {
			k.line(l)
		}
		if l.field.Type == reflect.TypeFor[[]time.Duration]() {
			for i := range l.value.Len() {
				k.bounds(l.field, fmt.Sprintf("%s[%d]", l.path, i), l.value.Index(i).Int())
			}
		}
	})
}

func (k *checker) words(l leaf, words []string) {
	check := func(path, word string) {
		if !slices.Contains(words, word) {
			k.problem(path, "must be one of %s", strings.Join(words, ", "))
		}
	}
	if l.value.Kind() != reflect.Map {
		check(l.path, l.value.String())
		return
	}
	for _, key := range sortedKeys(l.value) {
		check(join(l.path, key), l.value.MapIndex(reflect.ValueOf(key)).String())
	}
}

var plainAddress = regexp.MustCompile(`^[A-Za-z0-9._-]+:[0-9]{1,5}$|^\[[0-9A-Fa-f:.]+(%[A-Za-z0-9]+)?\]:[0-9]{1,5}$`)

var redisPrefix = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$`)

func (k *checker) stores(c *Config) {
	if err := postgres.CheckURL(string(c.Database.URL)); err != nil && c.Database.URL != "" {
		k.problem("database.url", "%s", err)
	}
	r := &c.Redis
	u, err := url.Parse(string(r.URL))
	switch {
	case r.URL == "" && len(r.Addresses) == 0 && len(k.roles) > 0 && c.Missing("redis.url") == nil:
		k.problem("redis.url", "is required, or redis.addresses")
	case r.URL == "":
	case err != nil || u.Scheme != "redis" && u.Scheme != "rediss" && u.Scheme != "unix" ||
		strings.Contains(u.Host+u.Path, "@"):
		k.problem("redis.url", "must be redis://user:password@host:port/number, or rediss:// or unix://; in the password "+
			"write / as %%2F, ? as %%3F, # as %%23 and @ as %%40")
	}
	for i, address := range r.Addresses {
		k.remote(fmt.Sprintf("redis.addresses[%d]", i), address)
	}
	if len(r.Addresses) == 0 && r.MasterName != "" {
		k.problem("redis.addresses", "is required with redis.master_name")
	}
	if r.MasterName == "" && r.SentinelPassword != "" {
		k.problem("redis.master_name", "is required with redis.sentinel_password")
	}
	if _, err := r.TLSConfig(); err != nil {
		k.problem("redis.tls", "%s", err)
	}
	if !redisPrefix.MatchString(r.Prefix) {
		k.problem("redis.prefix", "must be 1-64 letters, digits, dots, colons, hyphens and underscores, a letter or "+
			"digit first")
	}
}

func (k *checker) dashboard(c *Config) {
	d := &c.Dashboard
	for _, u := range []struct{ key, text string }{{"dashboard.public_url", d.PublicURL},
		{"dashboard.docs_url", d.DocsURL}} {
		parsed, err := url.Parse(u.text)
		if u.text != "" && (err != nil || (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Host == "" ||
			parsed.User != nil || parsed.RawQuery != "" || parsed.Fragment != "") {
			k.problem(u.key, "must be an address such as https://sms.example.com")
		}
	}
	if c.Mail.URL == "" {
		return
	}
	if _, err := c.Mail.Server(); err != nil {
		k.problem("mail.url", "%s", err)
	}
	if _, err := mail.ParseAddress(c.Mail.From); err != nil {
		k.problem("mail.from", "must be an address such as Intumwa <no-reply@example.com>")
	}
	if host, _, err := net.SplitHostPort(d.Listen); err == nil && d.PublicURL == "" && !loopback(host) {
		k.problem("dashboard.public_url", "is required with mail.url: the links in mails begin with it")
	}
}

// Local reports whether the dashboard is used on this machine only, over plain HTTP.
func (d *Dashboard) Local() bool {
	u, err := url.Parse(d.PublicURL)
	return err == nil && u.Scheme == "http" && loopback(u.Hostname())
}

func loopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

// leastOTPKey is the minimum length of the key of one-time codes: a shorter one can be guessed.
const leastOTPKey = 32

func (k *checker) keys(c *Config) {
	if n := len(c.Accounts.OTPKey); n > 0 && n < leastOTPKey {
		k.problem("accounts.otp_key", "must have at least %d characters, all of them random: openssl rand -base64 32",
			leastOTPKey)
	}
	if _, err := c.Key(); err != nil {
		k.problem("encryption_key", "%s", err)
	}
}

// Key is the encryption key's 32 bytes, given as base64 or hex; nil when there is none.
func (c *Config) Key() (*[32]byte, error) {
	if c.EncryptionKey == "" {
		return nil, nil
	}
	for _, decode := range []func(string) ([]byte, error){
		hex.DecodeString,
		base64.StdEncoding.DecodeString, base64.RawStdEncoding.DecodeString,
		base64.URLEncoding.DecodeString, base64.RawURLEncoding.DecodeString,
	} {
		if key, err := decode(string(c.EncryptionKey)); err == nil && len(key) == 32 {
			return (*[32]byte)(key), nil
		}
	}
	return nil, errors.New("must be 32 bytes in base64 or hex")
}

// Bounds of webhooks' retries and of handset keywords.
const (
	mostRetries    = 20
	maxCommandWord = 20 // characters
)

func (k *checker) messages(c *Config) {
	if !sms.ValidSender(c.TestSender) {
		k.problem("test_sender", "must be 1-11 ASCII letters and digits")
	}
	if _, err := sms.ParseQuietHours(c.Messages.QuietHours); err != nil {
		k.problem("messages.quiet_hours", "%s", err)
	}
	if len(c.Webhooks.RetryDelays) > mostRetries {
		k.problem("webhooks.retry_delays", "must have at most %d items", mostRetries)
	}
	means := map[string]string{}
	words := func(list string, words []string) {
		for n, text := range words {
			path, word := fmt.Sprintf("inbound.%s[%d]", list, n), strings.ToUpper(text)
			switch other := means[word]; {
			case text == "" || utf8.RuneCountInString(text) > maxCommandWord ||
				strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }):
				k.problem(path, "must be one word of at most %d letters and digits", maxCommandWord)
			case other != "" && other != list:
				k.problem(path, "is in inbound.%s as well", other)
			}
			means[word] = list
		}
	}
	words("stop_words", c.Inbound.StopWords)
	words("start_words", c.Inbound.StartWords)
	for _, reply := range []struct{ key, text string }{{"inbound.stop_reply", c.Inbound.StopReply},
		{"inbound.start_reply", c.Inbound.StartReply}} {
		if utf8.RuneCountInString(reply.text) > sms.MaxText || strings.ContainsRune(reply.text, 0) || reply.text != "" &&
			strings.TrimSpace(reply.text) == "" {
			k.problem(reply.key, "must be a text of at most %d characters, or empty", sms.MaxText)
		}
	}
}

// leastRetention leaves time for every delivery's retries, every request's repetition (rule choices 1.10), and a day
// for people to look.
const leastRetention = 24 * time.Hour

func (k *checker) retention(c *Config) {
	r := &c.Retention
	for _, kept := range []struct {
		key  string
		time time.Duration
	}{{"bodies", r.Bodies}, {"numbers", r.Numbers}} {
		if kept.time > 0 && kept.time < leastRetention {
			k.problem("retention."+kept.key, "must be at least %s", leastRetention)
		}
	}
	if r.Numbers >= leastRetention && r.Numbers < max(r.Deliveries, r.Receipts) {
		k.problem("retention.numbers", "must be 0s or at least retention.deliveries and retention.receipts: they hold "+
			"the number too")
	}
	if r.Messages <= 0 {
		return
	}
	final := c.Messages.Validity // every message is final by then
	for _, carrier := range c.Carriers {
		final = max(final, c.Messages.Validity+carrier.ReceiptTimeout)
	}
	switch least := max(final+leastRetention, r.IdempotencyKeys); {
	case r.Messages < least:
		k.problem("retention.messages", "must be 0s or at least %s: until then a message may wait for its receipt, or its "+
			"request be repeated", least)
	case r.Bodies > r.Messages:
		k.problem("retention.bodies", "must not be longer than retention.messages")
	case r.Numbers > r.Messages:
		k.problem("retention.numbers", "must not be longer than retention.messages")
	}
}
