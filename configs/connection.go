package configs

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Whole is where the database is: the URL with the parts that are given as keys laid over it, each escaped as a URL wants
// it. Without any it is the URL as it stands.
func (d *Database) Whole() URL {
	over := parts{host: string(d.Host), port: d.Port, user: d.User, password: d.Password, path: d.Name}
	if over == (parts{}) && d.SSLMode == "" {
		return d.URL
	}
	if d.URL == "" {
		over.scheme, over.port = "postgres", cmp.Or(d.Port, 5432)
	}
	socket := strings.HasPrefix(string(d.Host), "/")
	if socket {
		over.host, over.port = "", 0
	}
	query := map[string]string{"sslmode": d.SSLMode}
	if socket {
		query["host"] = string(d.Host)
		if d.Port > 0 {
			query["port"] = strconv.Itoa(d.Port)
		}
	}
	return over.laid(d.URL, query)
}

// Whole is where a single Redis is, as [Database.Whole]; empty when there are Addresses.
func (r *Redis) Whole() URL {
	over := parts{host: string(r.Host), port: r.Port, user: r.Username, password: r.Password}
	if r.Database > 0 {
		over.path = strconv.Itoa(r.Database)
	}
	if len(r.Addresses) > 0 || over == (parts{}) {
		return r.URL
	}
	if r.URL == "" {
		over.scheme, over.port = "redis", cmp.Or(r.Port, 6379)
		if r.TLS.Enabled {
			over.scheme = "rediss"
		}
	}
	return over.laid(r.URL, nil)
}

// parts are what may be laid over a URL; what is empty is left as it is there.
type parts struct {
	scheme, host string
	port         int
	user         string
	password     Secret
	path         string
}

// laid takes the URL apart by hand: a database's may have several hosts with ports, which net/url does not read.
func (p parts) laid(whole URL, query map[string]string) URL {
	scheme, rest, _ := strings.Cut(string(whole), "://")
	if p.scheme != "" {
		scheme, rest = p.scheme, ""
	}
	rest, tail, asks := strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	info, hosts := "", authority
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		info, hosts = authority[:at], authority[at+1:]
	}
	user, password, hasPassword := strings.Cut(info, ":")
	if p.user != "" {
		user = escapedInfo(p.user)
	}
	if p.password != "" {
		password, hasPassword = escapedInfo(string(p.password)), true
	}
	if hasPassword {
		user += ":" + password
	}
	if user != "" {
		user += "@"
	}
	if p.path != "" {
		path = url.PathEscape(p.path)
	}
	out := scheme + "://" + user + p.hosts(hosts) + "/" + path
	if asks {
		out += "?" + tail
	}
	for _, key := range []string{"host", "port", "sslmode"} {
		if query[key] == "" {
			continue
		}
		join := "?"
		if strings.Contains(out, "?") {
			join = "&"
		}
		out += join + key + "=" + escapedInfo(query[key]) // the last of a name counts
	}
	return URL(out)
}

// hosts are those of a URL or the key's, each with its port.
func (p parts) hosts(there string) string {
	list := there
	if p.host != "" {
		list = p.host
	}
	if p.port == 0 || list == "" && p.host == "" {
		return list
	}
	hosts := strings.Split(list, ",")
	for i, host := range hosts {
		if bare, _, err := net.SplitHostPort(host); err == nil {
			if p.host != "" {
				continue // a port of its own
			}
			host = bare
		}
		hosts[i] = net.JoinHostPort(strings.Trim(strings.TrimSpace(host), "[]"), strconv.Itoa(p.port))
	}
	return strings.Join(hosts, ",")
}

// escapedInfo escapes whatever is no letter, digit or one of -._~: so it stands in every part of a URL for itself.
func escapedInfo(text string) string {
	var out strings.Builder
	for i := range len(text) {
		switch c := text[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-._~", c) >= 0:
			out.WriteByte(c)
		default:
			fmt.Fprintf(&out, "%%%02X", c)
		}
	}
	return out.String()
}

var variables = regexp.MustCompile(`\$\{[^}]*\}`)

// inURL is how a variable's value is written into a URL: template is the text with its ${NAME}, at where the variable
// stands. In the user, the password and behind the ? it is escaped; where the whole URL, or hosts and ports, may come from
// one variable, it is left as it is.
func inURL(template string, at int) func(string) string {
	as := func(text string) string { return text }
	_, rest, ok := strings.Cut(template, "://")
	begin := len(template) - len(rest)
	if !ok || at < begin {
		return as
	}
	authority := rest[:strings.IndexAny(rest+"/", "/?#")]
	last := strings.LastIndexByte(authority, '@')
	switch {
	case at-begin < last:
		if strings.Contains(variables.ReplaceAllString(authority[:last], ""), ":") {
			return escapedInfo
		}
		return func(text string) string { // both of them may be in it
			user, password, both := strings.Cut(text, ":")
			if !both {
				return escapedInfo(text)
			}
			return escapedInfo(user) + ":" + escapedInfo(password)
		}
	case at-begin < len(authority):
		return as
	case strings.Contains(template[:at], "?"):
		return escapedInfo
	}
	return url.PathEscape
}

const strayAtText = "has an @ behind the host: in the user and the password, write / as %%2F, ? as %%3F, # as %%23 and @ as %%40"

func (k *checker) database(d *Database) {
	raw := d.URL
	if raw == "" && d.Host != "" {
		raw = d.Whole()
	}
	if raw == "" {
		k.problem("database.url", "is required, or database.host")
	} else {
		k.databaseURL("database.url", raw, d.Whole() != d.URL, "host, port, name")
	}
	k.host("database", d.Host)
	if modes := []string{"", "disable", "allow", "prefer", "require", "verify-ca", "verify-full"}; !slices.Contains(modes, d.SSLMode) {
		k.problem("database.sslmode", "must be one of %s%s", strings.Join(modes[1:], ", "), k.not("database.sslmode", d.SSLMode))
	}
	k.sessionAttrs("database.url", d.Whole())
	if n := d.MaxConnections; n > 0 && n < leastConnections {
		k.problem("database.max_connections", "must be 0 or at least %d, not %d: the dispatcher's renewals must not wait for a connection until its tasks and the links are done with theirs",
			leastConnections, n)
	}
	if n, err := strconv.Atoi(parameter(d.Whole(), "pool_max_conns")); err == nil && n < leastConnections && d.MaxConnections == 0 {
		k.problem("database.url", "must not have pool_max_conns below %d; use database.max_connections", leastConnections)
	}
}

// databaseURL checks a URL; parts says that keys are laid over it, and which keys these may be.
func (k *checker) databaseURL(at string, whole URL, parts bool, which string) {
	raw := string(whole)
	pairs := strings.Contains(raw, "=") && !strings.Contains(raw, "://") // keyword/value form, which Postgres' client reads
	parsed, err := url.Parse(oneHost(raw))
	switch {
	case pairs && parts:
		k.problem(at, "must be a URL (postgres://) when %s, user, password or sslmode are given beside it", which)
	case pairs:
	case err != nil || (parsed.Scheme != "postgres" && parsed.Scheme != "postgresql"):
		k.problem(at, "must be postgres://user:password@host:port/database")
	case strayAt(parsed):
		k.problem(at, strayAtText)
	}
}

func (k *checker) sessionAttrs(at string, whole URL) {
	switch attrs := parameter(whole, "target_session_attrs"); attrs {
	case "", "any", "read-write", "primary":
	default:
		k.problem(at, "must not have target_session_attrs=%s: the gateway writes; without it the host that can be written to is used", attrs)
	}
}

// leastConnections is how few connections a pool works with: one for the tasks, one for the
// renewals of the dispatcher's leases, and two for what else runs meanwhile.
const leastConnections = 4

// parameter is a parameter of a database URL in either of its forms; "" when it
// is not there.
func parameter(u URL, name string) string {
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

// hostsOf are those of a database URL in either of its forms; net/url does not
// read several with ports.
func hostsOf(u URL) (hosts []string) {
	list := parameter(u, "host")
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
func readable(where URL) bool {
	switch parameter(where, "sslmode") {
	case "require", "verify-ca", "verify-full", "disable": // the last was meant, so say nothing of it
		return false
	}
	for _, host := range hostsOf(where) {
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
	if r.MasterName == "" && (r.SentinelUsername != "" || r.SentinelPassword != "") {
		k.problem("redis.master_name", "is required with redis.sentinel_username or redis.sentinel_password: they are the Sentinels'")
	}
	if _, err := r.TLSConfig(); err != nil {
		k.problem("redis.tls", "%s", err)
	}
	if !redisPrefix.MatchString(r.Prefix) {
		k.problem("redis.prefix", "must be 1-64 letters, digits, dots, colons, hyphens and underscores, a letter or digit first")
	}
}
