package configs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// otpKey is long enough for one.
const otpKey = "0123456789abcdef0123456789abcdef"

// canary is the secret that must not get out. It reads like a word, which a value that may be quoted is.
const canary = "hunter2canary"

// printed is everything that may ever be said of a configuration: the mistakes of reading and checking it, its warnings,
// and itself under every verb and encoder.
func printed(t *testing.T, text string, env ...string) string {
	t.Helper()
	path := write(t, text)
	c, err := Load(path, env)
	all := fmt.Sprintf("%v\n", err)
	if c == nil {
		return all
	}
	var log bytes.Buffer
	var links []Link
	for i := range c.Carriers {
		links = append(links, c.Carriers[i].Links...)
	}
	slog.New(slog.NewJSONHandler(&log, nil)).Info("it", "config", c, "links", links, "redis", c.Redis)
	slog.New(slog.NewTextHandler(&log, nil)).Info("it", "config", c, "links", links, "redis", c.Redis)
	encoded, err := json.Marshal([]any{c.Database, c.Redis, c.Accounts, c.Webhooks, links})
	if err != nil {
		t.Fatal(err)
	}
	all += fmt.Sprintf("%v %+v %#v %s %q %x %v %+v %#v %+v %#v", c, c, c, c, c, c, c.Database, c.Redis, c.Redis, links, links)
	all += fmt.Sprint(c.Redacted(), c.Check(Roles...), c.Check("api"), c.Warnings(Roles...)) + log.String() + string(encoded)
	for i := range links {
		_, err := links[i].TLSConfig()
		all += fmt.Sprint(err)
	}
	return all
}

// TestCanaries puts a secret wherever an operator may put one by right or by mistake.
func TestCanaries(t *testing.T) {
	link := func(rest string) string {
		return "carriers:\n  - name: a\n    links:\n      - name: b\n        system_id: s\n        " + rest + "\n"
	}
	for _, text := range []string{
		// By right.
		"database: {url: 'postgres://u:CANARY@h:5432/d'}", "redis: {url: 'redis://:CANARY@h:6379/0'}", "redis: {addresses: ['h:1'], password: CANARY}", "redis: {addresses: ['h:1'], master_name: m, sentinel_password: CANARY}",
		"accounts: {otp_key: CANARY}", "webhooks: {encryption_key: CANARY}", link("password: CANARY"), link("password: 'too long by far CANARY'"),
		"database: {url: 'host=h user=u password=CANARY'}", "database: {url: 'host=h password = CANARY'}", `database: {url: "password='CANARY' host=h"}`,
		"database: {url: 'postgres://h/d?password=CANARY'}", "database: {url: 'postgres://h/d?sslpassword=CANARY&sslmode=no'}",
		"database: {host: h, user: u, password: CANARY}", "database: {url: 'postgres://h/d', password: CANARY}", "database: {host: CANARY@h}", "database: {user: u, password: CANARY}",
		"database: {url: 'host=h', password: CANARY}", "redis: {host: h, password: CANARY}", "redis: {url: 'redis://h', password: CANARY}", "redis: {host: 'CANARY@h'}", "redis: {password: CANARY}",
		// The secret itself where its file's name belongs.
		"database: {host: h, password_file: CANARY}", "redis: {host: h, password_file: CANARY}", "accounts: {otp_key_file: CANARY, encryption_key_file: CANARY}",
		"webhooks: {encryption_key_file: CANARY}", "mail: {password_file: CANARY}", link("password_file: CANARY"), link("password: CANARY\n        password_file: /x"),
		link("password: x\n        password_file: CANARY"), link("password_file: |\n          /CANARY\n          x"),
		// URLs that are none, in every way that they can be read.
		"database: {url: 'postgres://u:x/CANARY@h/d'}", "database: {url: 'postgres://u:1/CANARY@h/d'}", "database: {url: 'postgres://u:1?CANARY@h/d'}",
		"database: {url: 'postgres://u:1#CANARY@h/d'}", "database: {url: 'postgres://u:CANARY#x@h/d'}", "database: {url: 'postgres://u:%zzCANARY@h/d'}",
		"database: {url: 'postgres://u:CANARY@h:port/d'}", "database: {url: 'u:CANARY@h/d'}", "database: {url: CANARY}", "database: {url: 'mysql://u:CANARY@h/d'}",
		"database: {url: 'postgres:u:CANARY@h'}", "database: {url: 'postgres://u:CANARY @h/d'}", "database: {url: ' postgres://u:CANARY@h/d'}",
		"redis: {url: 'redis://:1/CANARY@h:6379/0'}", "redis: {url: 'redis://:CANARY@h:6379/x'}", "redis: {url: 'h:6379,password=CANARY'}", "redis: {url: ':CANARY@h:6379'}",
		// In addresses.
		"redis: {addresses: ['redis://u:CANARY@h:6379']}", "redis: {addresses: ['u:CANARY@h:6379']}", "redis: {addresses: ['CANARY@h:6379']}",
		"redis: {addresses: ['h:CANARY']}", "redis: {addresses: ['h:1', 'redis://h/?password=CANARY']}", "redis: {addresses: ['h:6379,password=CANARY']}",
		link("address: 'smpp://s:CANARY@h:2775'"), link("address: 's:CANARY@h:2775'"), link("address: 'CANARY@h:2775'"), link("address: 'h:2775?password=CANARY'"),
		link("address: 'h:CANARY'"), link("address: 's/CANARY@h:2775'"), link("address: '[CANARY]:2775'"), link("tls: true\n        address: 's:CANARY@h'"),
		"api: {listen: 'u:CANARY@h:1'}", "ops: {listen: 'h:CANARY'}", "ops: {roles: {api: 'u:CANARY@h'}}", "ops: {roles: {'@CANARY': 'h:1', api: 'h:CANARY'}}", "api: {trusted_proxies: ['u:CANARY@h']}", "api: {trusted_proxies: ['http://CANARY']}",
		// A key itself where its file's name belongs.
		link("tls:\n          key: |\n            -----BEGIN PRIVATE KEY-----\n            CANARY\n            -----END PRIVATE KEY-----\n          cert: /x.pem"),
		link("tls:\n          ca: |\n            CANARY\n            x"), link("tls: {ca: '-----BEGIN CERTIFICATE-----CANARY'}"),
		// YAML that reads a secret as something else.
		link("password: *CANARY"), link("password: &CANARY"), link("password: !CANARY x"), link("password: @CANARY"), link("password: `CANARY`"),
		link("password: %CANARY"), link("password: 'CANARY"), link(`password: "CANARY\q"`), link("password: [CANARY]"), link("password: {CANARY: x}"),
		link("password: {x: CANARY}"), link("password: CANARY: x"), link("password:CANARY"), link("password CANARY"), link("password: a\n        CANARY@: b"),
		link("password = CANARY"), link("{password CANARY}"), "redis: {password CANARY}", "redis: {password:CANARY}", "redis:\n  password CANARY:\n",
		"'pass CANARY': 1\n'pass CANARY': 2\n", "redis: {'pass CANARY': 1, 'pass CANARY': 2}", "a: b: CANARY\n", "redis: [CANARY", "? [CANARY]\n: x\n", "- CANARY\n", "CANARY\n",
		"carriers: {name: CANARY}", "carriers: [CANARY]", link("tls: CANARY:x"), link("receipt_states: {'x CANARY': y}"),
		"carriers: [{name: a, receipt_states: {'x CANARY': 'u:CANARY@'}, error_classes: {'@CANARY': '@CANARY'}, tlvs: {'@CANARY': 'u:CANARY@'}, links: []}]",
		"%CANARY x\n", "%YAML CANARY\n---\na: 1\n", "!CANARY\n",
		// Variables that are not set, and a secret that looks like one.
		link("password: 'x${CANARY}y'"), link("address: 'x${CANARY}y'"), link("password: 'x${CANARY'"), "test_sender: '${CANARY}'",
	} {
		for _, secret := range []string{canary, "Hunter/2=Canary+" + canary} {
			if strings.Contains(text, "${CANARY}") && secret != canary {
				continue
			}
			if all := printed(t, strings.ReplaceAll(text, "CANARY", secret)); strings.Contains(all, canary) {
				i := strings.Index(all, canary)
				t.Errorf("%s\nsays …%s…", text, all[max(0, i-100):min(len(all), i+len(canary)+20)])
			}
		}
	}
	// Whatever comes from the environment, into whatever key: the wrong variable in the wrong place.
	for _, text := range []string{
		link("bind: ${V}"), link("window: ${V}"), link("enquire_link: ${V}"), link("tls: ${V}"), link("address: ${V}"), link("address: '${V}:x'"), link("address: '${V}:0'"),
		"log: {level: '${V}'}", "api: {max_body: '${V}', trusted_proxies: ['${V}'], listen: '${V}'}", "webhooks: {retry_delays: ['${V}'], allow_private: '${V}'}",
		"test_sender: '${V}!'", "redis: {prefix: '${V}!'}", "carriers: [{name: '9${V}', prefixes: ['${V}'], failover: ['${V}'], receipt_states: {X: '${V}'}, error_classes: {'0x1': '${V}'}}]",
		"redis: {url: '${V}'}", "database: {url: '${V}'}", "redis: {addresses: ['${V}']}",
		"database: {url: 'postgres://u:${V}@h/d'}", "database: {url: 'postgres://${V}@h/d'}", "redis: {url: 'redis://:${V}@h'}", "database: {sslmode: '${V}', port: '${V}', host: '${V}@'}",
		"redis: {host: '${V}@', port: '${V}', database: '${V}'}", "database: {host: h, password_file: '${V}'}", link("password_file: '${V}'"),
	} {
		c, err := Load(write(t, text), []string{"V=" + canary})
		said := fmt.Sprint(err)
		if c != nil {
			said += fmt.Sprint(c.Check(Roles...), c.Warnings(Roles...))
		}
		if strings.Contains(said, canary) {
			t.Errorf("%s\nsays %s", text, said)
		}
	}
	for _, variable := range []string{
		"API_LISTEN", "API_MAX_BODY", "API_TRUSTED_PROXIES", "API_READ_TIMEOUT", "LOG_LEVEL", "DATABASE_URL", "DATABASE_MAX_CONNECTIONS", "REDIS_URL", "REDIS_ADDRESSES",
		"REDIS_PASSWORD", "WEBHOOKS_RETRY_DELAYS", "WEBHOOKS_ALLOW_PRIVATE", "WEBHOOKS_ENCRYPTION_KEY", "CARRIERS_A_LINKS_B_ADDRESS", "CARRIERS_A_LINKS_B_TPS",
		"CARRIERS_A_LINKS_B_BIND", "CARRIERS_A_LINKS_B_TLS", "CARRIERS_A_RECEIPT_STATES", "BILLING_REFUND", "NO_SUCH_KEY",
	} {
		c, err := Load(write(t, link("window: 1")), []string{"INTUMWA_" + variable + "=" + canary})
		if err == nil {
			err = Problems(c.Check(Roles...))
		}
		if strings.Contains(fmt.Sprint(err, c.Warnings(Roles...)), canary) {
			t.Errorf("%s: %v", variable, err)
		}
	}
}

// TestRolesSecrets: a process needs the secrets of its roles and no others.
func TestRolesSecrets(t *testing.T) {
	text := `
database: {url: "postgres://h/d"}
redis: {url: "redis://h:6379"}
accounts: {otp_key: "${OTP_KEY}"}
webhooks: {encryption_key: "${ENCRYPTION_KEY}"}
carriers: [{name: a, links: [{name: b, address: "h:1", system_id: s, password: "${LINK_PASSWORD}", tls: {cert: /run/secrets/none.pem, key: /run/secrets/none.pem}}]}]
`
	otp, key, link := "accounts.otp_key (line 4): the environment variable OTP_KEY is not set",
		"webhooks.encryption_key (line 5): the environment variable ENCRYPTION_KEY is not set",
		"carriers[0].links[0].password (line 6): the environment variable LINK_PASSWORD is not set"
	files := "carriers[0].links[0].tls (line 6): reading cert and key: no such file or directory"
	for roles, want := range map[string][]string{
		"api":            {otp},
		"webhooks":       {key},
		"dashboard":      {otp, key},
		"dispatcher":     {link, files},
		"api dispatcher": {otp, link, files},
		"":               nil,
	} {
		c, err := Load(write(t, text), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := (Problems)(c.Check(strings.Fields(roles)...)).Error(); got != strings.Join(want, "\n") {
			t.Errorf("%s: got\n%s\nwant\n%s", roles, got, strings.Join(want, "\n"))
		}
	}
	c := load(t, text, "INTUMWA_CARRIERS_A_LINKS_B_PASSWORD=pass", "OTP_KEY="+otpKey, "ENCRYPTION_KEY=")
	if p := c.Missing("carriers[0].links[0].password"); p != nil {
		t.Errorf("given by its own variable, and %v", p)
	}
	if c := load(t, text); c.Missing("webhooks.encryption_key") == nil || c.Missing("database.url") != nil {
		t.Error("what is missing is not said, or what is there is")
	}
	warned := func(c *Config, roles ...string) (keys []string) {
		for _, w := range c.Warnings(roles...) {
			keys = append(keys, w.Key)
		}
		return keys
	}
	c = load(t, "redis: {url: 'redis://h'}")
	for role, want := range map[string]string{"api": "[accounts.otp_key]", "webhooks": "[webhooks.encryption_key]", "dispatcher": "[]", "dashboard": "[accounts.otp_key accounts.encryption_key webhooks.encryption_key]"} {
		if got := fmt.Sprint(warned(c, role)); got != want {
			t.Errorf("%s is warned of %s, want %s", role, got, want)
		}
	}
}
