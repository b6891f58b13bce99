package configs

import (
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
)

// awkward is a password with whatever a URL gives a meaning to.
const awkward = `p@ss/w#rd?$x:%41&=+ \'"é;`

// TestVariablesInURLs: a password is a password, whatever is in it: in a variable within a URL, in a key of its own.
func TestVariablesInURLs(t *testing.T) {
	env := []string{"DB_PASSWORD=" + awkward, "DB_USER=us@r", "BOTH=us@r:" + awkward, "DB_HOST=db.example:5433", "HOSTS=a:1,b:2", "NAME=my/db", "MODE=verify-full", "WHOLE=postgres://u:p%40@h:1/d"}
	for text, want := range map[string]struct {
		user, password, host, database string
		port                           uint16
	}{
		"database: {url: 'postgres://u:${DB_PASSWORD}@h:1/d?sslmode=disable'}":                       {"u", awkward, "h", "d", 1},
		"database: {url: 'postgres://${DB_USER}:${DB_PASSWORD}@${DB_HOST}/${NAME}?sslmode=${MODE}'}": {"us@r", awkward, "db.example", "my/db", 5433},
		"database: {url: 'postgres://${BOTH}@${HOSTS}/d?sslmode=disable'}":                           {"us@r", awkward, "a", "d", 1},
		"database: {url: 'postgres://h:1/d?user=u&password=${DB_PASSWORD}'}":                         {"u", awkward, "h", "d", 1},
		"database: {url: '${WHOLE}'}": {"u", "p@", "h", "d", 1},
		"database: {host: h, user: '${DB_USER}', password: '${DB_PASSWORD}', name: '${NAME}', sslmode: disable}":       {"us@r", awkward, "h", "my/db", 5432},
		"database: {url: 'postgres://x:y@h:1/d?sslmode=disable', password: '${DB_PASSWORD}', user: u, port: 2}":        {"u", awkward, "h", "d", 2},
		"database: {url: 'postgres://x:y@h:1,i:2/d', host: j, name: e, sslmode: disable}":                              {"x", "y", "j", "e", 5432},
		"database: {url: 'postgres://x:y@a:1,b:2/d?sslmode=disable', password: '${DB_PASSWORD}'}":                      {"x", awkward, "a", "d", 1},
		"database: {host: '::1', user: u, password: p, name: d, sslmode: disable}":                                     {"u", "p", "::1", "d", 5432},
		"database: {host: /run/postgresql, user: u, password: '${DB_PASSWORD}', name: d, port: 5433}":                  {"u", awkward, "/run/postgresql", "d", 5433},
		"database: {url: 'postgres:///d?host=/run/postgresql', user: u, password: '${DB_PASSWORD}', sslmode: disable}": {"u", awkward, "/run/postgresql", "d", 5432},
	} {
		c := load(t, text, env...)
		for _, p := range c.Check(Roles...) {
			if strings.HasPrefix(p.Key, "database.") {
				t.Errorf("%s: %s", text, p)
			}
		}
		got, err := pgx.ParseConfig(string(c.Database.Whole()))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got.User != want.user || got.Password != want.password || got.Host != want.host || got.Port != want.port || got.Database != want.database {
			t.Errorf("%s: %q %q at %q:%d, %q", text, got.User, got.Password, got.Host, got.Port, got.Database)
		}
	}
	for text, want := range map[string]redis.Options{
		"redis: {url: 'redis://:${DB_PASSWORD}@h:1/2'}":                               {Password: awkward, Addr: "h:1", DB: 2},
		"redis: {url: 'redis://${BOTH}@h:1/2'}":                                       {Username: "us@r", Password: awkward, Addr: "h:1", DB: 2},
		"redis: {url: 'redis://h:1/2', username: u, password: '${DB_PASSWORD}'}":      {Username: "u", Password: awkward, Addr: "h:1", DB: 2},
		"redis: {host: h, database: 3, password: '${DB_PASSWORD}'}":                   {Password: awkward, Addr: "h:6379", DB: 3},
		"redis: {host: '::1', port: 7, username: '${DB_USER}', password: p}":          {Username: "us@r", Password: "p", Addr: "[::1]:7"},
		"redis: {url: 'redis://:old@h:1/2', port: 9, password: '${DB_PASSWORD}'}":     {Password: awkward, Addr: "h:9", DB: 2},
		"redis: {url: 'unix:///run/redis.sock?db=4', password: '${DB_PASSWORD}'}":     {Password: awkward, Addr: "/run/redis.sock", DB: 4},
		"redis: {host: h, tls: true, username: u, password: p, port: 1, database: 1}": {Username: "u", Password: "p", Addr: "h:1", DB: 1},
	} {
		c := load(t, text, env...)
		for _, p := range c.Check(Roles...) {
			if strings.HasPrefix(p.Key, "redis.") {
				t.Errorf("%s: %s", text, p)
			}
		}
		got, err := redis.ParseURL(string(c.Redis.Whole()))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got.Username != want.Username || got.Password != want.Password || got.Addr != want.Addr || got.DB != want.DB {
			t.Errorf("%s: %q %q at %q, %d", text, got.Username, got.Password, got.Addr, got.DB)
		}
	}
}

func TestPartsThatMakeNoURL(t *testing.T) {
	for text, want := range map[string]string{
		"database: {user: u, password: p}":                                     "database.url: is required, or database.host",
		"database: {url: 'host=h user=u', password: p}":                        "database.url (line 1): must be a URL (postgres://) when host, port, name, user, password or sslmode are given beside it",
		"database: {host: 'postgres://h/d'}":                                   "database.host (line 1): must be a host's name or address and nothing else",
		"database: {host: h, sslmode: verify}":                                 `database.sslmode (line 1): must be one of disable, allow, prefer, require, verify-ca, verify-full, not "verify"`,
		"redis: {password: p}":                                                 "redis.url: is required, or redis.host, or redis.addresses",
		"redis: {host: h, addresses: ['h:1']}":                                 "redis.addresses (line 1): cannot be given beside redis.url, host, port or database",
		"redis: {host: /run/redis.sock}":                                       "redis.host (line 1): must be a host's name or address and nothing else",
		"database: {url: 'postgres://a:1,b:2/d?target_session_attrs=standby'}": "database.url (line 1): must not have target_session_attrs=standby: the gateway writes; without it the host that can be written to is used",
		"database: {host: h, port: 70000}":                                     "database.port (line 1): must be from 0 to 65535, not 70000",
		"database: {url: 'postgres://h/d', port: -1}":                          "database.port (line 1): must be from 0 to 65535, not -1",
		"database: {url: 'postgres://a:1,b:2/d?x=y@z#@h'}":                     "database.url (line 1): " + strings.ReplaceAll(strayAtText, "%%", "%"),
	} {
		c := load(t, text)
		said := Problems(c.Check(Roles...)).Error()
		if !strings.Contains("\n"+said+"\n", "\n"+want+"\n") {
			t.Errorf("%s: want %s, got\n%s", text, want, said)
		}
	}
	c := load(t, "database: {host: db.example, user: u, password: p}\nredis: {host: h}")
	if w := Problems(c.Warnings("dispatcher")).Error(); !strings.Contains(w, "database.url: has no sslmode") {
		t.Errorf("the password goes out readable and nobody says so: %s", w)
	}
	if u, err := url.Parse(string(c.Database.Whole())); err != nil || u.Port() != "5432" {
		t.Errorf("%v, %v", u, err)
	}
}
