package configs

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"intumwa/dispatcher"
	"intumwa/smpp"
)

const sound = `
database: {url: "postgres://u:p@h/d?sslmode=require"}
redis: {url: "redis://h:6379/0"}
carriers:
  - name: lumitel
    links: [{name: lumitel-1, address: "h:2775", system_id: demo}]
`

// checked answers all mistakes, those of Load first.
func checked(t *testing.T, text string, env ...string) []string {
	t.Helper()
	c, err := Load(write(t, text), env)
	var problems Problems
	if err != nil && !errors.As(err, &problems) {
		t.Fatal(err)
	}
	var out []string
	for _, p := range append(problems, c.Check(Roles...)...) {
		out = append(out, p.String())
	}
	return out
}

func TestSoundConfig(t *testing.T) {
	if got := checked(t, sound); got != nil {
		t.Errorf("mistakes in a sound file: %q", got)
	}
	cluster := strings.Replace(sound, `{url: "redis://h:6379/0"}`,
		`{addresses: ["a:1", "b:2"], master_name: main, username: u, password: p, sentinel_username: s, sentinel_password: q}`, 1)
	if got := checked(t, cluster); got != nil {
		t.Errorf("mistakes in a file with addresses: %q", got)
	}
	if got := checked(t, strings.Replace(cluster, "master_name: main, ", "", 1)); len(got) != 1 || !strings.HasPrefix(got[0], "redis.master_name: is required with redis.sentinel_username") {
		t.Errorf("Sentinels' user and password without Sentinels: %q", got)
	}
}

func TestEmptyConfigLacksWhatHasNoDefault(t *testing.T) {
	want := []string{
		"carriers: needs at least one item",
		"database.url: is required, or database.host",
		"redis.url: is required, or redis.host, or redis.addresses",
	}
	if got := checked(t, ""); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCheckSaysEveryMistake(t *testing.T) {
	got := checked(t, `
api:
  listen: nowhere
  trusted_proxies: [10.0.0.0/8, proxy]
  rate_limit_per_minute: 0
ops: {listen: "127.0.0.1:9"}
dashboard: {listen: "127.0.0.1:9", session_idle: 0s}
log: {level: loud}
database: {url: "mysql://h/d"}
redis: {url: "http://h", addresses: ["h"], prefix: "{x}"}
test_sender: TOO-LONG-SENDER
messages: {validity: -1s, max_segments: 256}
webhooks: {retry_delays: [0s], encryption_key: short}
carriers:
  - name: a b
    prefixes: ["6x", "61"]
    default: true
    confirm: maybe
    receipt_states: {unknown: failed, ACCEPTD: good}
    concat: none
    source_ton: 256
    service_type: TOOLONG
    tlvs: {x: y, 0x1401: "hex:0"}
    error_classes: {0x00: permanent, 0x58: fatal}
    retry_min: 2m
    failover: [nobody, a b]
    links: []
  - name: leo
    prefixes: ["61"]
    number_overrides: ["123"]
    default: true
    failover: [third, third]
    links:
      - {name: leo-1, address: ":2775", system_id: "", password: ninechars, window: 1001, tps: -1, bind: both}
      - {name: leo.1, address: "h:0", system_id: sixteen-octets-x, system_type: thirteen-oct., tls: {ca: /nowhere.pem}}
  - links: [{name: third-1, address: "h:1", system_id: x, tls: {cert: /nowhere.pem}}]
  - {name: third, links: [{name: third-2, address: "h:1", system_id: x}]}
`)
	want := []string{
		`log.level (line 8): must be one of debug, info, warn, error, not "loud"`,
		`carriers[0].confirm (line 18): must be one of receipt, submit, not "maybe"`,
		`carriers[0].receipt_states.ACCEPTD (line 19): must be one of sent, failed, none, not "good"`,
		`carriers[0].concat (line 20): must be one of udh8, udh16, sar, payload, not "none"`,
		`carriers[0].error_classes.0x58 (line 24): must be one of throttled, temporary, permanent, unroutable, configuration, not "fatal"`,
		`carriers[1].links[0].bind (line 34): must be one of transceiver, transmitter_receiver, not "both"`,
		"carriers[0].links (line 27): needs at least one item",
		"api.rate_limit_per_minute (line 5): must be at least 1, not 0",
		"dashboard.session_idle (line 7): must be longer than 0s, not 0s",
		"messages.validity (line 12): must be longer than 0s, not -1s",
		"messages.max_segments (line 12): must be from 1 to 255, not 256",
		"carriers[0].source_ton (line 21): must be from 0 to 255, not 256",
		"carriers[1].links[0].window (line 34): must be from 1 to 1000, not 1001",
		"carriers[1].links[0].tps (line 34): must be at least 0, not -1",
		`api.listen (line 3): must be host:port`,
		"dashboard.listen (line 7): is the same as ops.listen",
		`api.trusted_proxies[1] (line 4): must be an address or a range such as 10.0.0.0/8, not "proxy"`,
		"database.url (line 9): must be postgres://user:password@host:port/database",
		"redis.addresses (line 10): cannot be given beside redis.url, host, port or database",
		`redis.addresses[0] (line 10): must be host:port`,
		"redis.prefix (line 10): must be 1-64 letters, digits, dots, colons, hyphens and underscores, a letter or digit first",
		"test_sender (line 11): must be 1-11 ASCII letters and digits",
		"webhooks.retry_delays[0] (line 13): must be longer than 0s, not 0s",
		"webhooks.encryption_key (line 13): must be 32 octets in base64 or hex",
		`carriers[0].name (line 15): must be 1-63 letters, digits, dots, hyphens and underscores, a letter first, not "a b"`,
		`carriers[0].prefixes[0] (line 16): must be 1 to 8 national digits, not "6x"`,
		"carriers[0].service_type (line 22): must not be longer than 5 octets",
		"carriers[0].receipt_states.unknown (line 19): must be written in upper case, as receipts have it",
		"carriers[0].error_classes.0x00 (line 24): must be a command_status such as 0x58, other than 0",
		"carriers[0].tlvs.0x1401 (line 23): has hex: before what are not pairs of hexadecimal digits",
		"carriers[0].tlvs.x (line 23): must have a tag from 0x0000 to 0xFFFF",
		"carriers[0].retry_min (line 25): must not be longer than retry_max",
		`carriers[0].failover[0] (line 26): there is no carrier of this name`,
		"carriers[0].failover[1] (line 26): a carrier cannot stand in for itself",
		"carriers[1].default (line 31): only one carrier can be the default; carriers[0] is",
		"carriers[1].prefixes[0] (line 29): carriers[0].prefixes[1] has this already",
		"carriers[1].number_overrides[0] (line 30): must be the 8 digits of a national number",
		"carriers[1].failover[1] (line 32): carriers[1].failover[0] has this already",
		`carriers[1].links[0].address (line 34): must have a host and a port from 1 to 65535`,
		"carriers[1].links[0].system_id (line 34): is required",
		"carriers[1].links[0].password (line 34): must not be longer than 8 octets",
		"carriers[1].links[1].name (line 35): carriers[1].links[0].name has this already",
		`carriers[1].links[1].address (line 35): must have a host and a port from 1 to 65535`,
		"carriers[1].links[1].system_id (line 35): must not be longer than 15 octets",
		"carriers[1].links[1].system_type (line 35): must not be longer than 12 octets",
		"carriers[1].links[1].tls (line 35): reading ca: no such file or directory",
		"carriers[2].name: is required",
		"carriers[2].links[0].tls (line 36): reading cert and key: no such file or directory",
	}
	for i := range max(len(got), len(want)) {
		var g, w string
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			t.Errorf("problem %d\n got %s\nwant %s", i, g, w)
		}
	}
}

// TestWireKeys: what fails every message, or what serve refuses, config check refuses.
func TestWireKeys(t *testing.T) {
	long := strings.Repeat("a", 40_000)
	for _, try := range []struct {
		name, carrier string // lines of the carrier, the first of them line 6
		want          []string
	}{
		{"several of each", "tlvs: {0x1401: abc, 0x1402: def}\n    error_classes: {0x58: permanent, 0x59: throttled}", nil},
		{"one tag in two spellings", "tlvs: {0x1401: abc,\n      5121: def, 0X1401: x}", []string{
			"carriers[0].tlvs.0x1401 (line 6): carriers[0].tlvs.0X1401 has this already",
			"carriers[0].tlvs.5121 (line 7): carriers[0].tlvs.0X1401 has this already"}},
		{"one code in two spellings", "error_classes: {0x58: permanent, 88: throttled}", []string{
			"carriers[0].error_classes.88 (line 6): carriers[0].error_classes.0x58 has this already"}},
		{"how the text is cut", "tlvs: {0x020C: a, 0x020E: b, 527: c, 0x0424: d}", []string{
			"carriers[0].tlvs.0x020C (line 6): cannot be static: it says how the text is cut",
			"carriers[0].tlvs.0x020E (line 6): cannot be static: it says how the text is cut",
			"carriers[0].tlvs.0x0424 (line 6): cannot be static: it says how the text is cut",
			"carriers[0].tlvs.527 (line 6): cannot be static: it says how the text is cut"}},
		{"a hold within the finding of a dead session", "unknown_hold: 40s", []string{
			"carriers[0].unknown_hold (line 6): must be longer than enquire_link and enquire_timeout of lumitel-1 together (40s): until then nobody knows whether the session is alive"}},
		{"a hold just beyond it", "unknown_hold: 41s", nil},
		{"no rows at all", "max_unmatched_per_hour: 0\n    max_inbound_per_hour: -1", []string{
			"carriers[0].max_unmatched_per_hour (line 6): must be at least 1, not 0",
			"carriers[0].max_inbound_per_hour (line 7): must be at least 1, not -1"}},
		{"a second carrier that is not there", "second_carrier: nobody\n    second_carrier_within: -1s", []string{
			"carriers[0].second_carrier_within (line 7): must be at least 0s, not -1s",
			"carriers[0].second_carrier (line 6): there is no carrier of this name"}},
		{"itself as its second", "second_carrier: lumitel", []string{
			"carriers[0].second_carrier (line 6): a carrier cannot be its own second"}},
		{"too much for a PDU", fmt.Sprintf("tlvs: {0x1401: %s, 0x1402: %s}", long, long), []string{
			"carriers[0].tlvs (line 6): take 80008 octets, headers included, and a PDU has room for 68970"}},
		{"too much beside a text of 64 KiB", fmt.Sprintf("concat: payload\n    tlvs: {0x1401: %s}", long), []string{
			"carriers[0].tlvs (line 7): take 40004 octets, headers included, and a PDU has room for 3431"}},
	} {
		t.Run(try.name, func(t *testing.T) {
			text := strings.Replace(sound, "    links:", "    "+try.carrier+"\n    links:", 1)
			if got := checked(t, text); !slices.Equal(got, try.want) {
				t.Errorf("got  %q\nwant %q", got, try.want)
			}
		})
	}
}

// TestRoomForTLVs: static TLVs that config check just passes can be sent beside what the dispatcher adds, and not an
// octet more.
func TestRoomForTLVs(t *testing.T) {
	link, err := smpp.New(smpp.Options{Address: "h:1", SystemID: "s", Deliver: func(*smpp.Delivery) {}})
	if err != nil {
		t.Fatal(err)
	}
	reference := smpp.TLV{Tag: smpp.TagUserMessageReference, Value: make([]byte, 2)}
	for _, try := range []struct {
		name    string
		carrier Carrier
		own     []smpp.TLV // what the dispatcher adds
	}{
		{"nothing of ours", Carrier{}, nil},
		{"a reference", Carrier{UserReference: true}, []smpp.TLV{reference}},
		{"a segment's place", Carrier{UserReference: true, Concat: meaning(dispatcher.ConcatSAR)}, []smpp.TLV{reference,
			{Tag: smpp.TagSARMessageReference, Value: make([]byte, 2)},
			{Tag: smpp.TagSARTotalSegments, Value: make([]byte, 1)}, {Tag: smpp.TagSARSegmentSeqnum, Value: make([]byte, 1)}}},
		{"the longest text", Carrier{Concat: meaning(dispatcher.ConcatPayload)}, []smpp.TLV{{Tag: smpp.TagMessagePayload, Value: make([]byte, 0xFFFF)}}},
	} {
		t.Run(try.name, func(t *testing.T) {
			sent := func(size int) error { // of static TLVs that take so many octets
				static := []smpp.TLV{{Tag: 0x1401, Value: make([]byte, size/2-4)}, {Tag: 0x1402, Value: make([]byte, size-size/2-4)}}
				return link.Submit(t.Context(), &smpp.Submit{Dest: "25779000001", TLVs: append(static, try.own...)}, nil)
			}
			var refused *smpp.FieldError
			room := try.carrier.roomForTLVs()
			if err := sent(room); !errors.Is(err, smpp.ErrNotBound) {
				t.Errorf("%d octets: %v", room, err)
			}
			if err := sent(room + 1); !errors.As(err, &refused) {
				t.Errorf("%d octets: %v", room+1, err)
			}
		})
	}
}

func TestDashboardAndMail(t *testing.T) {
	for text, want := range map[string]string{
		"dashboard: {public_url: sms.example.com}":                                                         "dashboard.public_url (line 1): must be an address such as https://sms.example.com",
		"dashboard: {public_url: 'https://u@sms.example.com'}":                                             "dashboard.public_url (line 1): must be an address such as https://sms.example.com",
		"dashboard: {docs_url: 'ftp://x'}":                                                                 "dashboard.docs_url (line 1): must be an address such as https://sms.example.com",
		"dashboard: {public_url: 'https://sms.example.com'}":                                               "",
		"dashboard: {public_url: 'http://sms.example.com', secure_cookies: false}":                         "dashboard.secure_cookies (line 1): can be false only while dashboard.public_url is on this machine (http://localhost, http://127.0.0.1)",
		"dashboard: {public_url: 'http://127.0.0.1:8081', secure_cookies: false}":                          "",
		"mail: {server: 'mail.example.com:587', from: 'Intumwa <no-reply@example.com>'}":                   "",
		"mail: {server: mail.example.com, from: a@example.com}":                                            "mail.server (line 1): must be host:port",
		"mail: {server: 'mail.example.com:587'}":                                                           "mail.from: must be an address such as Intumwa <no-reply@example.com>",
		"dashboard: {listen: '0.0.0.0:8081'}\nmail: {server: 'mail.example.com:587', from: a@example.com}": "dashboard.public_url: is required with mail.server: the links in mails begin with it",
		"mail: {username: u, password: p}":                                                                 "mail.server: is required with mail.username or mail.password",
		"mail: {server: 'mail.example.com:25', from: a@example.com, username: u, password: p, tls: none}":  "mail.tls (line 1): cannot be none with a password: it would go out readable",
		"mail: {server: 'localhost:25', from: a@example.com, username: u, password: p, tls: none}":         "",
		"accounts: {encryption_key: short}":                                                                "accounts.encryption_key (line 1): must be 32 octets in base64 or hex",
	} {
		if got := strings.Join(checked(t, text+sound), "; "); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", text, got, want)
		}
	}
}

func TestWarnings(t *testing.T) {
	const empty = ": is empty, so a stolen copy of the database tells the one-time codes of its last ten minutes; " +
		"set it to 32 random octets, the same in every process: openssl rand -base64 32"
	const open = ": is empty, so customers' signing secrets stand readable in the database; " +
		"set it to 32 random octets before the first endpoint, the same in every process: openssl rand -base64 32"
	const factors = ": is empty, so the secrets of second factors stand readable in the database; " +
		"set it to 32 random octets, the same in every process: openssl rand -base64 32"
	some := strings.Repeat("Q", 43) + "="
	keys := []string{"INTUMWA_WEBHOOKS_ENCRYPTION_KEY=" + some, "INTUMWA_ACCOUNTS_ENCRYPTION_KEY=" + some}
	reference := strings.Replace(sound, "    links:", "    tlvs: {0x0204: ab}\n    links:", 1)
	for _, try := range []struct {
		name, text string
		env        []string
		want       []string
	}{
		{"no key of the codes", sound, nil, []string{"accounts.otp_key" + empty}},
		{"no key of the secrets", "accounts: {otp_key: " + otpKey + "}" + sound, []string{"INTUMWA_WEBHOOKS_ENCRYPTION_KEY="}, []string{"webhooks.encryption_key" + open}},
		{"no key of the factors", "accounts: {otp_key: " + otpKey + "}" + sound, []string{"INTUMWA_ACCOUNTS_ENCRYPTION_KEY="}, []string{"accounts.encryption_key" + factors}},
		{"an empty one", "accounts: {otp_key: ''}" + sound, nil, []string{"accounts.otp_key (line 1)" + empty}},
		{"one in the file", "accounts: {otp_key: " + otpKey + "}" + sound, nil, nil},
		{"one in the environment", sound, []string{"INTUMWA_ACCOUNTS_OTP_KEY=" + otpKey}, nil},
		{"an empty one in the environment", "accounts: {otp_key: " + otpKey + "}" + sound, []string{"INTUMWA_ACCOUNTS_OTP_KEY="}, []string{"accounts.otp_key" + empty}},
		{"a reference of the carrier's own", "accounts: {otp_key: " + otpKey + "}" + reference, nil, []string{
			"carriers[0].tlvs.0x0204 (line 6): takes the place of user_message_reference, so no receipt can echo ours; say so with user_message_reference: false"}},
		{"one that was meant", "accounts: {otp_key: " + otpKey + "}" + reference, []string{"INTUMWA_CARRIERS_LUMITEL_USER_MESSAGE_REFERENCE=false"}, nil},
	} {
		t.Run(try.name, func(t *testing.T) {
			c := load(t, try.text, append(keys, try.env...)...)
			if problems := c.Check(Roles...); problems != nil {
				t.Errorf("mistakes: %v", problems)
			}
			var got []string
			for _, w := range c.Warnings(Roles...) {
				got = append(got, w.String())
			}
			if !slices.Equal(got, try.want) {
				t.Errorf("got  %q\nwant %q", got, try.want)
			}
		})
	}
}

// A key that the environment changed is not blamed on its line of the file.
func TestOverriddenKeyHasNoLine(t *testing.T) {
	got := checked(t, "log: {level: info}\napi: {max_body: 5000}\n"+sound, "INTUMWA_LOG_LEVEL=loud", "INTUMWA_API_MAX_BODY=5")
	if want := []string{`INTUMWA_LOG_LEVEL: must be one of debug, info, warn, error`, `api.max_body: must be at least 1024`}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSecretsNeverPrint(t *testing.T) {
	c := load(t, `
database: {url: "postgres://user:canary1@h:5432/d?password=canary2"}
redis: {addresses: ["h:1"], password: canary3}
accounts: {otp_key: canary4canary4canary4canary4canary4}
webhooks: {encryption_key: canary5}
carriers: [{name: a, links: [{name: b, password: canary6, address: "h:1", system_id: s, window: 0}]}]
`)
	encoded, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("configuration", "config", c)
	slog.New(slog.NewTextHandler(&log, nil)).Info("configuration", "config", c.Redacted(), "carriers", c.Carriers)
	all := string(encoded) + log.String() +
		fmt.Sprintf("%v %+v %#v %s %v %+v %#v %s %d", c, c, c, c, *c, c.Carriers, c.Carriers[0], c.Database.URL, c.Redis.Password) +
		fmt.Sprint(c.Check(Roles...))
	if i := strings.Index(all, "canary"); i >= 0 {
		t.Errorf("a secret got out: …%s…", all[max(0, i-60):i+10])
	}
	if got := c.Redacted()["database.url"]; got != "postgres://h:5432/d" {
		t.Errorf("database.url prints as %q", got)
	}
	if got := URL("host=h password=x").redacted(); got != hidden {
		t.Errorf("a keyword/value connection string prints as %q", got)
	}
}

func TestWireValues(t *testing.T) {
	c := &Carrier{
		TLVs:         map[string]string{"0x1402": "hex:00ff", "5121": "abc"},
		ErrorClasses: map[string]Word[smpp.Class]{"0x45": meaning(smpp.ClassPermanent), "88": meaning(smpp.ClassThrottled)},
	}
	tlvs, err := c.StaticTLVs()
	if err != nil || fmt.Sprint(tlvs) != "[{5121 [97 98 99]} {5122 [0 255]}]" {
		t.Errorf("StaticTLVs: %v, %v", tlvs, err)
	}
	classes, err := c.Classes()
	if err != nil || !maps.Equal(classes, map[smpp.Status]smpp.Class{69: smpp.ClassPermanent, 88: smpp.ClassThrottled}) {
		t.Errorf("Classes: %v, %v", classes, err)
	}
	link := Link{Address: "smsc.example:2775"}
	if config, err := link.TLSConfig(); config != nil || err != nil {
		t.Errorf("plain TCP: %v, %v", config, err)
	}
	link.TLS.Enabled = true
	config, err := link.TLSConfig()
	if err != nil || config.ServerName != "smsc.example" || config.MinVersion != tls.VersionTLS12 {
		t.Errorf("TLS: %+v, %v", config, err)
	}
}

func TestEncryptionKey(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("ab", 32),
		"q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s=",
		"q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s",
	} {
		key, err := (&Webhooks{EncryptionKey: Secret(text)}).Key()
		if err != nil || key == nil || key[31] != 0xab {
			t.Errorf("%s: %v, %v", text, key, err)
		}
	}
	if key, err := (&Webhooks{}).Key(); key != nil || err != nil {
		t.Errorf("no key: %v, %v", key, err)
	}
}

// TestDatabase: too few connections are a mistake, a database elsewhere without
// encryption a warning.
func TestDatabase(t *testing.T) {
	for _, c := range []struct {
		database string
		mistake  string // contained in it
		warned   bool
	}{
		{`{url: "postgres://u:p@db/d"}`, "", true},
		{`{url: "postgres://u:p@db:5432/d?sslmode=prefer"}`, "", true},
		{`{url: "postgres://u:p@db/d?sslmode=disable"}`, "", false},
		{`{url: "postgres://u:p@db/d?sslmode=require"}`, "", false},
		{`{url: "postgres://u:p@db/d?sslmode=verify-full"}`, "", false},
		{`{url: "postgres://u:p@127.0.0.1:5432/d"}`, "", false},
		{`{url: "postgres://u:p@[::1]:5432/d"}`, "", false},
		{`{url: "postgres://u:p@localhost/d"}`, "", false},
		{`{url: "postgres://localhost,db/d"}`, "", true},
		{`{url: "postgres:///d?host=/run/postgresql"}`, "", false},
		{`{url: "postgres:///d?host=db"}`, "", true},
		{`{url: "postgres:///d"}`, "", false},
		{`{url: "host=db dbname=d"}`, "", true},
		{`{url: "host = 'db' dbname=d sslmode=verify-ca"}`, "", false},
		{`{url: "host=/run/postgresql dbname=d"}`, "", false},
		{`{url: "postgres://u:p@localhost/d", max_connections: 1}`, "database.max_connections", false},
		{`{url: "postgres://u:p@localhost/d", max_connections: 3}`, "database.max_connections", false},
		{`{url: "postgres://u:p@localhost/d", max_connections: 4}`, "", false},
		{`{url: "postgres://u:p@localhost/d?pool_max_conns=1"}`, "pool_max_conns", false},
		{`{url: "postgres://u:p@localhost/d?pool_max_conns=1", max_connections: 8}`, "", false},
	} {
		config := load(t, strings.Replace(sound, `{url: "postgres://u:p@h/d?sslmode=require"}`, c.database, 1))
		var mistakes, warnings []string
		for _, p := range config.Check(Roles...) {
			mistakes = append(mistakes, p.String())
		}
		for _, w := range config.Warnings(Roles...) {
			if w.Key == "database.url" {
				warnings = append(warnings, w.String())
			}
		}
		if text := strings.Join(mistakes, "; "); (text != "") != (c.mistake != "") || !strings.Contains(text, c.mistake) {
			t.Errorf("%s: mistakes %q, want one of %q", c.database, text, c.mistake)
		}
		if (warnings != nil) != c.warned {
			t.Errorf("%s: warnings %q", c.database, warnings)
		}
		if strings.Contains(strings.Join(warnings, ""), "u:p") {
			t.Errorf("%s: %q shows the password", c.database, warnings)
		}
	}
}

// TestQuietHours: as they are written, or not at all.
func TestQuietHours(t *testing.T) {
	for text, right := range map[string]bool{
		"21:00-06:00": true, "none": true, "": true, "12:30-13:00": true, "06:00-06:00": false, "9-17": false, "24:00-06:00": false, "21:00": false, "quiet": false,
	} {
		c := load(t, `messages: {quiet_hours: "`+text+`"}`)
		wrong := slices.ContainsFunc(c.Check(Roles...), func(p Problem) bool { return p.Key == "messages.quiet_hours" })
		if wrong == right {
			t.Errorf("%q: a mistake is %v", text, wrong)
		}
		if quiet, err := c.Messages.Quiet(); right && (err != nil || text != "" && quiet.String() != text) {
			t.Errorf("%q is %s, %v", text, quiet, err)
		}
	}
}

// TestRetention: nothing leaves before its retries are over, before it is final, or before somebody could have looked.
func TestRetention(t *testing.T) {
	carrier := "carriers: [{name: lumitel, receipt_timeout: 72h, links: [{name: l1, address: smsc:2775}]}]\n"
	for _, c := range []struct{ text, wrong string }{
		{"retention: {deliveries: 23h}", "retention.deliveries"},
		{"retention: {deliveries: 0s}", "retention.deliveries"},
		{"retention: {deliveries: 24h}", ""},
		{"retention: {receipts: 0s}", "retention.receipts"},
		{"retention: {idempotency_keys: 23h}", "retention.idempotency_keys"},
		{"retention: {idempotency_keys: 48h}", ""},
		{"retention: {bodies: 23h}", "retention.bodies"},
		{"retention: {bodies: 24h}", ""},
		{"retention: {bodies: -1s}", "retention.bodies"},
		{"retention: {messages: -1s}", "retention.messages"},
		{"retention: {numbers: 23h, receipts: 1h}", "retention.numbers"},
		{"retention: {numbers: 719h}", "retention.numbers"}, // shorter than deliveries
		{"retention: {numbers: 720h}", ""},
		{"retention: {numbers: 48h, deliveries: 24h, receipts: 72h}", "retention.numbers"},
		{"retention: {numbers: 1000h, messages: 999h}", "retention.numbers"},
		{"retention: {messages: 47h}", "retention.messages"},
		{"retention: {messages: 48h}", ""},
		{carrier + "retention: {messages: 119h}", "retention.messages"}, // 24h validity, 72h for the receipt, a day to look
		{carrier + "retention: {messages: 120h}", ""},
		{"messages: {validity: 72h}\nretention: {messages: 95h}", "retention.messages"},
		{"retention: {messages: 48h, idempotency_keys: 72h}", "retention.messages"},
		{"retention: {messages: 100h, bodies: 101h}", "retention.bodies"},
		{"retention: {messages: 100h, bodies: 100h}", ""},
	} {
		var found []string
		for _, p := range load(t, c.text).Check(Roles...) {
			if strings.HasPrefix(p.Key, "retention.") {
				found = append(found, p.Key)
			}
		}
		if strings.Join(found, " ") != c.wrong {
			t.Errorf("%s: mistakes in %q, want %q", c.text, found, c.wrong)
		}
	}
}

// TestLimits: none is set unless somebody sets it, and none can be nonsense.
func TestLimits(t *testing.T) {
	if l := load(t, "").Limits; l != (Limits{UnusualHour: 5000}) {
		t.Errorf("without a word of them: %+v", l)
	}
	for _, c := range []struct{ text, wrong string }{
		{"limits: {repeat_interval: 30s, repeats_a_day: 10, number_a_day: 50, credits_a_day: 1000, singles: true, unusual_hour: 0}", ""},
		{"limits: {repeat_interval: 24h}", ""},
		{"limits: {repeat_interval: 25h}", "limits.repeat_interval"},
		{"limits: {repeat_interval: 1500ms}", "limits.repeat_interval"},
		{"limits: {repeat_interval: -1s}", "limits.repeat_interval"},
		{"limits: {repeats_a_day: -1}", "limits.repeats_a_day"},
		{"limits: {number_a_day: -1}", "limits.number_a_day"},
		{"limits: {credits_a_day: -1}", "limits.credits_a_day"},
	} {
		var found []string
		for _, p := range load(t, c.text).Check(Roles...) {
			if strings.HasPrefix(p.Key, "limits.") {
				found = append(found, p.Key)
			}
		}
		if strings.Join(found, " ") != c.wrong {
			t.Errorf("%s: mistakes in %q, want %q", c.text, found, c.wrong)
		}
	}
}
