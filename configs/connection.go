package configs

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"regexp"
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
