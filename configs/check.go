package configs

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Check says every mistake in the values, in the order of the keys; nil when there is none. It opens the certificate
// files that the links and Redis name and nothing else. No problem quotes a value that may be a secret.
func (c *Config) Check() []Problem { return c.CheckFor(Roles...) }

// CheckFor is Check for a process that has these roles only: it may lack the secrets that the others read. The links'
// passwords and certificates are the dispatcher's, the key of signing secrets that of webhooks and dashboard, the key of
// one-time codes that of api and dashboard.
func (c *Config) CheckFor(roles ...string) []Problem {
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
	if !alphanumeric(c.TestSender, 11) {
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
	k.webhooks(&c.Webhooks)
	k.retention(&c.Retention)
	k.carriers(c.Carriers)
	return k.problems
}

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

// tags checks what the fields' tags demand: oneof, min and max.
func (k *checker) tags(c *Config) {
	k.length("carriers", len(c.Carriers))
	for i := range c.Carriers {
		k.length(fmt.Sprintf("carriers[%d].links", i), len(c.Carriers[i].Links))
	}
	walk(c, func(l leaf) {
		if words := l.field.Tag.Get("oneof"); words != "" {
			allowed := strings.Split(words, "|")
			if !slices.Contains(allowed, l.value.String()) {
				k.problem(l.path, "must be one of %s%s", strings.Join(allowed, ", "), k.not(l.path, l.value.String()))
			}
		}
		if !l.value.CanInt() {
			return
		}
		low, hasLow := bound(l.field, "min")
		high, hasHigh := bound(l.field, "max")
		switch v := l.value.Int(); {
		case l.field.Type == durationType && hasLow && v < low && low > 1:
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

const strayAtText = "has an @ behind the host: in the user and the password, write / as %%2F, ? as %%3F, # as %%23 and @ as %%40"

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
	if c.API.BodyMemory <= c.API.MaxBody {
		k.problem("api.body_memory", "must be more than api.max_body")
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

func (k *checker) database(d *Database) {
	raw := string(d.URL)
	pairs := strings.Contains(raw, "=") && !strings.Contains(raw, "://") // keyword/value form, which Postgres' client reads
	if raw == "" && d.Host != "" {
		raw = string(d.Whole())
	}
	parsed, err := url.Parse(oneHost(raw))
	switch {
	case raw == "":
		k.problem("database.url", "is required, or database.host")
	case pairs && d.Whole() != d.URL:
		k.problem("database.url", "must be a URL (postgres://) when host, port, name, user, password or sslmode are given beside it")
	case pairs:
	case err != nil || (parsed.Scheme != "postgres" && parsed.Scheme != "postgresql"):
		k.problem("database.url", "must be postgres://user:password@host:port/database")
	case strayAt(parsed):
		k.problem("database.url", strayAtText)
	}
	k.host("database", d.Host)
	if modes := []string{"", "disable", "allow", "prefer", "require", "verify-ca", "verify-full"}; !slices.Contains(modes, d.SSLMode) {
		k.problem("database.sslmode", "must be one of %s%s", strings.Join(modes[1:], ", "), k.not("database.sslmode", d.SSLMode))
	}
	if n := d.MaxConnections; n > 0 && n < leastConnections {
		k.problem("database.max_connections", "must be 0 or at least %d, not %d: the tasks of a dispatcher hold one connection while they work with another, and heartbeats must not wait for it",
			leastConnections, n)
	}
	if n, err := strconv.Atoi(d.Whole().parameter("pool_max_conns")); err == nil && n < leastConnections && d.MaxConnections == 0 {
		k.problem("database.url", "must not have pool_max_conns below %d; use database.max_connections", leastConnections)
	}
}

// leastConnections is how few connections a pool works with: the tasks hold
// one for its lock and works with a second, the heartbeat and whoever else asks
// meanwhile have two.
const leastConnections = 4

// parameter is a parameter of a database URL in either of its forms; "" when it
// is not there.
func (u URL) parameter(name string) string {
	if parsed, err := url.Parse(oneHost(string(u))); err == nil && parsed.Scheme != "" {
		if values := parsed.Query()[name]; len(values) > 0 {
			return values[len(values)-1]
		}
		return ""
	}
	found := regexp.MustCompile(`(?:^|\s)` + name + `\s*=\s*(?:'([^']*)'|(\S+))`).FindStringSubmatch(string(u))
	if found == nil {
		return ""
	}
	return found[1] + found[2]
}

// severalHosts are a URL's scheme and user, its first host, and the others.
var severalHosts = regexp.MustCompile(`^([a-z]+://(?:[^/?#]*@)?[^/?#,@]*)(,[^/?#@]*)`)

// oneHost leaves the first of several hosts: net/url does not read more with ports.
func oneHost(text string) string { return severalHosts.ReplaceAllString(text, "$1") }

// hosts are those of a database URL in either of its forms; net/url does not
// read several with ports.
func (u URL) hosts() (hosts []string) {
	list := u.parameter("host")
	if _, rest, ok := strings.Cut(string(u), "://"); ok && list == "" {
		list = rest[:strings.IndexAny(rest+"/", "/?")]
		list = list[strings.LastIndexByte(list, '@')+1:]
	}
	for host := range strings.SplitSeq(list, ",") {
		if bare, _, err := net.SplitHostPort(host); err == nil {
			host = bare
		}
		hosts = append(hosts, strings.Trim(host, "[]"))
	}
	return hosts
}

// readable tells whether somebody on the way to the database could read what
// goes there, and nobody said so: another machine, and no encryption that is
// insisted on.
func (d *Database) readable() bool {
	where := d.Whole()
	switch where.parameter("sslmode") {
	case "require", "verify-ca", "verify-full", "disable": // the last was meant, so say nothing of it
		return false
	}
	for _, host := range where.hosts() {
		address, _ := netip.ParseAddr(host)
		if host != "" && host != "localhost" && !strings.HasPrefix(host, "/") && !address.IsLoopback() {
			return true
		}
	}
	return false
}

func (k *checker) host(at string, host Host) {
	if !plainHosts.MatchString(string(host)) || at == "redis" && strings.HasPrefix(string(host), "/") {
		k.problem(at+".host", "must be a host's name or address and nothing else")
	}
}

var redisPrefix = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$`)

func (k *checker) redis(r *Redis) {
	raw := string(r.URL)
	if raw == "" && r.Host != "" {
		raw = string(r.Whole())
	}
	parsed, err := url.Parse(raw)
	switch {
	case len(r.Addresses) > 0 && (r.URL != "" || r.Host != "" || r.Port != 0 || r.Database != 0):
		k.problem("redis.addresses", "cannot be given beside redis.url, host, port or database")
	case raw == "" && len(r.Addresses) == 0:
		k.problem("redis.url", "is required, or redis.host, or redis.addresses")
	case raw != "" && (err != nil || (parsed.Scheme != "redis" && parsed.Scheme != "rediss" && parsed.Scheme != "unix")):
		k.problem("redis.url", "must be redis://user:password@host:port/number, or rediss:// or unix://")
	case raw != "" && strayAt(parsed):
		k.problem("redis.url", strayAtText)
	}
	for i, address := range r.Addresses {
		if err := remote(address); err != nil {
			k.problem(fmt.Sprintf("redis.addresses[%d]", i), "%s", err)
		}
	}
	k.host("redis", r.Host)
	if len(r.Addresses) == 0 && r.MasterName != "" {
		k.problem("redis.addresses", "is required with redis.master_name")
	}
	if _, err := r.TLSConfig(); err != nil {
		k.problem("redis.tls", "%s", err)
	}
	if !redisPrefix.MatchString(r.Prefix) {
		k.problem("redis.prefix", "must be 1-64 letters, digits, dots, colons, hyphens and underscores, a letter or digit first")
	}
}

// leastRetention leaves every delivery its retries, and people a day to look.
const leastRetention = 24 * time.Hour

func (k *checker) retention(r *Retention) {
	if r.Deliveries > 0 && r.Deliveries < leastRetention {
		k.problem("retention.deliveries", "must be at least 24h, not %s", r.Deliveries)
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
	if w.PerEndpoint > w.PerEndpointMax {
		k.problem("webhooks.per_endpoint", "must not be more than webhooks.per_endpoint_max")
	}
	if w.PerEndpointMax > w.InFlight {
		k.problem("webhooks.per_endpoint_max", "must not be more than webhooks.in_flight")
	}
}

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

func alphanumeric(s string, longest int) bool {
	ok := len(s) >= 1 && len(s) <= longest
	for _, r := range s {
		ok = ok && (r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z')
	}
	return ok
}
