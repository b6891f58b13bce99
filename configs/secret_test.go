package configs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
)

// awkward is a password of characters that are special in URLs.
const awkward = `p@ss/w#rd?$x:%41&=+ \'"é;`

func TestExpansion(t *testing.T) {
	c := load(t, `
redis: {prefix: "x${A}y$$z$${A}$1", url: "${P}"}
messages: {max_segments: "${N}"}
carriers: [{name: c, tlvs: {0x1401: "${A}"}}]
`, "A=1", "N=12", "P=p${A}")
	if c.Redis.Prefix != "x1y$z${A}$1" || c.Redis.URL != "p${A}" || c.Messages.MaxSegments != 12 ||
		c.Carriers[0].TLVs["0x1401"] != "1" {
		t.Errorf("%q, %q, %d, %q", c.Redis.Prefix, string(c.Redis.URL), c.Messages.MaxSegments, c.Carriers[0].TLVs)
	}
	wants(t, refused(t, "redis:\n  prefix: ${GONE}\n  master_name: ${open\nmessages: {max_segments: "+
		"'${GONE}'}\ntest_sender: ${file:/nowhere}"), []string{
		"redis.prefix (line 2): the environment variable GONE is not set",
		"redis.master_name (line 3): has a ${ that is not closed; write $$ for a dollar",
		"messages.max_segments (line 4): the environment variable GONE is not set",
		"test_sender (line 5): reading the file: no such file or directory",
	})
}

// TestValuesInURLs: a password in a URL may contain any character, from a variable or a
// file.
func TestValuesInURLs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(awkward+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"DB_PASSWORD=" + awkward, "DB_USER=us@r", "DB_HOST=db.example:5433", "HOSTS=a:1,b:2", "NAME=my/db",
		"MODE=disable", "WHOLE=postgres://u:p%40@h:1/d?sslmode=disable"}
	for text, want := range map[string]struct {
		user, password, host, database string
		port                           uint16
	}{
		"postgres://u:${DB_PASSWORD}@h:1/d?sslmode=disable":       {"u", awkward, "h", "d", 1},
		"postgres://u:${file:" + file + "}@h:1/d?sslmode=disable": {"u", awkward, "h", "d", 1},
		"postgres://${DB_USER}:${DB_PASSWORD}@${DB_HOST}/${NAME}?sslmode=${MODE}": {"us@r", awkward, "db.example", "my/db",
			5433},
		"postgres://${DB_USER}:x@${HOSTS}/d?sslmode=disable":              {"us@r", "x", "a", "d", 1},
		"postgres://h:1/d?sslmode=disable&user=u&password=${DB_PASSWORD}": {"u", awkward, "h", "d", 1},
		"${WHOLE}": {"u", "p@", "h", "d", 1},
	} {
		c := load(t, "database: {url: '"+text+"'}", env...)
		got, err := pgx.ParseConfig(string(c.Database.URL))
		if err != nil || got.User != want.user || got.Password != want.password || got.Host != want.host ||
			got.Database != want.database || got.Port != want.port {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	c := load(t, "redis: {url: 'rediss://u:${DB_PASSWORD}@h:1/3'}", env...)
	if got, err := redis.ParseURL(string(c.Redis.URL)); err != nil || got.Password != awkward || got.Username != "u" ||
		got.DB != 3 || got.TLSConfig == nil {
		t.Errorf("redis: %+v, %v", got, err)
	}
}

// TestSecretsFromFiles: every secret can be in a file, which each Load reads.
func TestSecretsFromFiles(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	file := func(text string) {
		t.Helper()
		_ = os.Remove(link)
		if err := os.WriteFile(link, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string {
		return strings.Replace(sound, "system_id: demo", `system_id: demo, password: "${file:`+name+`}"`, 1)
	}
	env := []string{"CREDENTIALS_DIRECTORY=" + dir}
	for _, name := range []string{link, "link"} { // a credential of systemd
		for _, text := range []string{"geheim\n", "anders\r\n"} {
			file(text)
			if c := load(t, at(name), env...); string(c.Carriers[0].Links[0].Password) != text[:6] {
				t.Errorf("%s: the file is not read, or not read again", name)
			}
		}
	}
	// A faulty file is reported to the roles that need it, without its name or text.
	for want, spoil := range map[string]func(){
		"reading the file: no such file or directory": func() { _ = os.Remove(link) },
		"the file is empty":                           func() { file("\n") },
		"the file must have one line":                 func() { file("a\nb\n") },
		"the file must not have more than 4096 bytes": func() { file(strings.Repeat("x", 4097)) },
		"does not name a plain file": func() {
			_ = os.Remove(link)
			if err := syscall.Mkfifo(link, 0o600); err != nil {
				t.Error(err)
			}
		},
		"names a file without its whole path, and no CREDENTIALS_DIRECTORY is set": nil,
	} {
		env := env
		if spoil == nil {
			env = nil
		} else {
			spoil()
		}
		c := load(t, at("link"), env...)
		if got := Problems(c.Check("dispatcher")).Error(); got != "carriers[0].links[0].password (line 6): "+want {
			t.Errorf("want %s, got %s", want, got)
		}
		if got := c.Check("api"); got != nil {
			t.Errorf("the api does not need it: %v", got)
		}
	}
}

// canary is the secret that must not leak.
const canary = "hunter2canary"

// TestCanaries puts a secret wherever an operator may put one, rightly or by mistake: no error or warning quotes it.
func TestCanaries(t *testing.T) {
	link := func(rest string) string {
		return "carriers:\n  - name: a\n    links:\n      - name: b\n        system_id: s\n        " + rest + "\n"
	}
	output := func(text string, env ...string) string {
		c, err := Load(write(t, text), env)
		all := fmt.Sprint(err)
		if c != nil {
			all += fmt.Sprint(c.Check(Roles...), c.Check("api"), c.Warnings(Roles...))
			_, err := c.Mail.Server()
			all += fmt.Sprint(err)
		}
		return all
	}
	for _, text := range []string{
		"database: {url: 'host=h user=u password=CANARY'}", "database: {url: 'postgres://h/d?password=CANARY&sslmode=no'}",
		// Invalid URLs.
		"database: {url: 'postgres://u:x/CANARY@h/d'}", "database: {url: 'postgres://u:1/CANARY@h/d'}",
		"database: {url: 'postgres://u:1?CANARY@h/d'}",
		"database: {url: 'postgres://u:CANARY@h:port/d'}", "database: {url: 'postgres://u:%zzCANARY@h/d'}",
		"database: {url: CANARY}", "database: {url: 'mysql://u:CANARY@h/d'}",
		"redis: {url: 'redis://:1/CANARY@h:6379/0'}", "redis: {url: 'h:6379,password=CANARY'}", "mail: {url: 'u:CANARY@h'}",
		"mail: {url: 'smtp://u:1/CANARY@h:1'}",
		// In addresses and names.
		"redis: {addresses: ['redis://u:CANARY@h:6379', 'h:CANARY']}", link("address: 's:CANARY@h:2775'"),
		link("address: 'h:CANARY'"),
		"api: {listen: 'u:CANARY@h:1', trusted_proxies: ['http://CANARY']}",
		link("tls: {ca: '-----BEGIN CERTIFICATE-----CANARY'}"),
		"carriers: [{name: 'a CANARY', failover: ['CANARY'], prefixes: ['CANARY'], receipt_states: {'x CANARY': " +
			"'u:CANARY@'}, error_classes: {'@CANARY': '@CANARY'}, tlvs: {'@CANARY': 'u:CANARY@'}, links: []}]",
		// The secret in place of its file or variable.
		link("password: '${file:CANARY}'"), link("password: 'x${CANARY}y'"), link("password: 'x${CANARY'"),
		// YAML that parses a secret as something else.
		link("password: *CANARY"), link("password: &CANARY"), link("password: !CANARY x"), link("password: @CANARY"),
		link("password: `CANARY`"),
		link("password: %CANARY"), link("password: 'CANARY"), link(`password: "CANARY\q"`), link("password: [CANARY]"),
		link("password: {CANARY: x}"),
		link("password: CANARY: x"), link("password CANARY"), link("password = CANARY"), link("{password CANARY}"),
		"redis:\n  password CANARY:\n",
		"'pass CANARY': 1\n'pass CANARY': 2\n", "a: b: CANARY\n", "redis: [CANARY", "? [CANARY]\n: x\n", "- CANARY\n",
		"CANARY\n", "%CANARY x\n", "!CANARY\n",
	} {
		secret := canary
		if !strings.Contains(text, "${CANARY}") {
			secret = "Hunter/2=Canary+" + canary
		}
		if all := output(strings.ReplaceAll(text, "CANARY", secret)); strings.Contains(all, canary) {
			t.Errorf("%s\nsays %s", text, all)
		}
	}
	// A variable at the wrong key.
	walk(load(t, sound), func(l leaf) {
		if all := output(sound, l.variables[len(l.variables)-1]+"=9 "+canary); strings.Contains(all, canary) {
			t.Errorf("%s prints %s", l.path, all)
		}
	})
	// The whole configuration printed.
	c := load(t, "database: {url: 'postgres://u:"+canary+"@h/d'}\nredis: {url: 'redis://:"+canary+
		"@h', sentinel_password: "+canary+"}\nmail: {url: 'smtp://u:"+canary+"@h:1'}\naccounts: {otp_key: "+canary+
		"}\nencryption_key: "+canary+"\n"+link("password: "+canary))
	encoded, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("configuration", "config", c, "url", c.Database.URL)
	slog.New(slog.NewTextHandler(&log, nil)).Info("configuration", "config", c, "url", c.Database.URL)
	if all := string(encoded) + log.String() + fmt.Sprintf("%v %+v %#v", c, *c, c); strings.Contains(all, canary) {
		t.Errorf("a secret is printed: %s", all)
	}
}
