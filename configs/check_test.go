package configs

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

const sound = `
database: {url: "postgres://u:p@h/d?sslmode=require"}
redis: {url: "redis://h:6379/0"}
carriers:
  - name: lumitel
    links: [{name: lumitel-1, address: "h:2775", system_id: demo}]
`

// otpKey has the minimum length.
const otpKey = "0123456789abcdef0123456789abcdef"

// checked returns all problems, those of Load first.
func checked(t *testing.T, text string, env ...string) (out []string) {
	t.Helper()
	c, err := Load(write(t, text), env)
	var problems Problems
	if err != nil && !errors.As(err, &problems) {
		t.Fatal(err)
	}
	for _, p := range append(problems, c.Check(Roles...)...) {
		out = append(out, p.String())
	}
	return out
}

func TestSoundConfig(t *testing.T) {
	wants(t, checked(t, sound), nil)
	cluster := strings.Replace(sound, `{url: "redis://h:6379/0"}`,
		`{url: "redis://u:p@", addresses: ["a:1", "b:2"], master_name: main, sentinel_password: q}`, 1)
	wants(t, checked(t, cluster), nil)
	wants(t, checked(t, strings.Replace(cluster, "master_name: main, ", "", 1)),
		[]string{"redis.master_name: is required with redis.sentinel_password"})
	wants(t, checked(t, ""), []string{"carriers: needs at least one item", "database.url: is required",
		"redis.url: is required, or redis.addresses"})
	// A command needs no Redis and no carriers.
	if got := load(t, "database: {url: 'postgres://h/d'}").Check(); got != nil {
		t.Errorf("a command is refused: %v", got)
	}
}

func TestCheckReportsEveryMistake(t *testing.T) {
	wants(t, checked(t, `
api:
  listen: nowhere
  trusted_proxies: [10.0.0.0/8, proxy]
  rate_limit_per_minute: 0
ops: {listen: "127.0.0.1:9"}
dashboard: {listen: "127.0.0.1:9"}
log: {level: loud}
database: {url: "mysql://h/d"}
redis: {url: "http://h", addresses: ["h"], prefix: "{x}"}
test_sender: TOO-LONG-SENDER
messages: {validity: -1s, max_segments: 256}
webhooks: {retry_delays: [0s]}
encryption_key: short
carriers:
  - name: a b
    prefixes: ["6x", "61"]
    default: true
    confirm: maybe
    receipt_states: {unknown: failed, ACCEPTD: good}
    concat: none
    source_ton_npi: [256, 0]
    service_type: TOOLONG
    tlvs: {x: y, 0x1401: "hex:0"}
    error_classes: {0x00: permanent, 0x58: fatal}
    failover: [unknown, a b]
    links: []
  - name: leo
    prefixes: ["61", "25779"]
    default: true
    failover: [third, third]
    second_carrier: leo
    links:
      - {name: leo-1, address: ":2775", system_id: "", password: "${LONG}", window: 1001, tps: -1, bind: both, `+
		`enquire_link: 500ms}
      - {name: leo.1, address: "h:0", system_id: "${LONG}", tls: {ca: /nowhere.pem}}
  - links: [{name: third-1, address: "h:1", system_id: x, tls: {cert: /nowhere.pem}}]
  - {name: third, links: [{name: third-2, address: "h:1", system_id: x}]}
`, "LONG="+strings.Repeat("x", 256)), []string{
		"carriers[0].links (line 27): needs at least one item",
		"api.rate_limit_per_minute (line 5): must be from 1 to 1000000000",
		"log.level (line 8): must be one of debug, info, warn, error",
		"messages.validity (line 12): must be from 1s to 720h",
		"messages.max_segments (line 12): must be from 1 to 255",
		"webhooks.retry_delays[0] (line 13): must be from 1ms to 24h",
		"carriers[0].confirm (line 19): must be one of receipt, submit",
		"carriers[0].receipt_states.ACCEPTD (line 20): must be one of sent, failed, none",
		"carriers[0].concat (line 21): must be one of udh8, udh16, sar, payload",
		"carriers[0].error_classes.0x58 (line 25): must be one of throttled, temporary, permanent, unroutable, configuration",
		"carriers[1].links[0].bind (line 34): must be one of transceiver, transmitter_receiver, transmitter, receiver",
		"carriers[1].links[0].system_id (line 34): is required",
		"carriers[1].links[0].window (line 34): must be from 1 to 1000",
		"carriers[1].links[0].tps (line 34): must be from 0 to 100000",
		"carriers[1].links[0].enquire_link (line 34): must be from 1s to 1h",
		"carriers[2].name: is required",
		"api.listen (line 3): must be host:port",
		"dashboard.listen (line 7): is the same as ops.listen",
		"api.trusted_proxies[1] (line 4): must be an address or a range such as 10.0.0.0/8",
		"database.url (line 9): must be postgres://user:password@host:port/name, and the files that it names must be " +
			"readable",
		"redis.url (line 10): must be redis://user:password@host:port/number, or rediss:// or unix://; in the password " +
			"write / as %2F, ? as %3F, # as %23 and @ as %40",
		"redis.addresses[0] (line 10): must be host:port and nothing else, no scheme, user or password",
		"redis.prefix (line 10): must be 1-64 letters, digits, dots, colons, hyphens and underscores, a letter or digit " +
			"first",
		"encryption_key (line 14): must be 32 bytes in base64 or hex",
		"test_sender (line 11): must be 1-11 ASCII letters and digits",
		"carriers[0].name (line 16): must be 1-63 letters, digits, dots, hyphens and underscores, a letter first",
		"carriers[0].prefixes[0] (line 17): must be 1 to 8 national digits",
		"carriers[0].service_type (line 23): must not be longer than 5 bytes",
		"carriers[0].source_ton_npi (line 22): must be two numbers from 0 to 255: the type of number and the numbering plan",
		"carriers[0].receipt_states.unknown (line 20): must be written in upper case, as receipts have it",
		"carriers[0].error_classes.0x00 (line 25): must be a command_status such as 0x58, other than 0",
		"carriers[0].tlvs.0x1401 (line 24): has hex: without pairs of hexadecimal digits after it",
		"carriers[0].tlvs.x (line 24): must have a tag from 0x0000 to 0xFFFF",
		"carriers[0].failover[0] (line 26): must be the name of another carrier",
		"carriers[0].failover[1] (line 26): must be the name of another carrier",
		"carriers[1].default (line 30): only one carrier can be the default; carriers[0] is",
		"carriers[1].prefixes[0] (line 29): carriers[0].prefixes[1] has this already",
		"carriers[1].prefixes[1] (line 29): begins with the country's code: write the national digits only",
		"carriers[1].failover[1] (line 31): carriers[1].failover[0] has this already",
		"carriers[1].second_carrier (line 32): must be the name of another carrier",
		"carriers[1].links[0].address (line 34): must be host:port and nothing else, no scheme, user or password",
		"carriers[1].links[0].password (line 34): must not be longer than 255 bytes",
		"carriers[1].links[1].name (line 35): carriers[1].links[0].name has this already",
		"carriers[1].links[1].address (line 35): must be host:port and nothing else, no scheme, user or password",
		"carriers[1].links[1].system_id (line 35): must not be longer than 255 bytes",
		"carriers[1].links[1].tls (line 35): reading ca: no such file or directory",
		"carriers[2].links[0].tls (line 36): reading cert and key: no such file or directory",
	})
}

// TestValues lists texts and their problems in an otherwise valid file.
func TestValues(t *testing.T) {
	carrier := func(more string) string { return strings.Replace(sound, "    links:", "    "+more+"\n    links:", 1) }
	link := func(more string) string { return strings.Replace(sound, "system_id: ", more+", system_id: ", 1) }
	const smtp = "mail.url (line 1): must be smtp://user:password@host:port or smtps://; in the password write / as " +
		"%2F, " +
		"? as %3F, # as %23 and @ as %40"
	for _, try := range []struct {
		text string
		want []string
	}{
		{carrier("tlvs: {0x1401: abc, 0x1402: def}\n    error_classes: {0x58: permanent, 0x59: throttled}"), nil},
		{carrier("tlvs: {0x1401: abc,\n      5121: def, 0X1401: x}"), []string{
			"carriers[0].tlvs.0x1401 (line 6): carriers[0].tlvs.0X1401 has this already",
			"carriers[0].tlvs.5121 (line 7): carriers[0].tlvs.0X1401 has this already"}},
		{carrier("error_classes: {0x58: permanent, 88: throttled}"),
			[]string{"carriers[0].error_classes.88 (line 6): carriers[0].error_classes.0x58 has this already"}},
		{carrier("tlvs: {0x020C: a, 527: c, 0x0424: d}"), []string{
			"carriers[0].tlvs.0x020C (line 6): cannot be static: it describes how the text is cut",
			"carriers[0].tlvs.0x0424 (line 6): cannot be static: it describes how the text is cut",
			"carriers[0].tlvs.527 (line 6): cannot be static: it describes how the text is cut"}},
		{carrier("tlvs: {0x1401: " + strings.Repeat("a", 256) + "}"),
			[]string{"carriers[0].tlvs.0x1401 (line 6): must not be longer than 255 bytes"}},
		{carrier("source_ton_npi: {short: [0, 1]}\n    dest_ton_npi: [0x01, 0x1]"), nil},
		{carrier("source_ton_npi: {roman: [1, 1]}"), []string{"carriers[0].source_ton_npi.roman (line 6): unknown key"}},
		{carrier("source_ton_npi: {short: [1]}"), []string{"carriers[0].source_ton_npi.short (line 6): must be two numbers " +
			"from 0 to 255: the type of number and the numbering plan"}},
		{carrier("profile: old"), []string{"carriers[0].profile (line 6): must be one of strict_3_4, old_3_3, loose_3_4"}},
		{carrier("message_class: 1\n    alphabet: latin1"),
			[]string{
				"carriers[0].message_class (line 6): needs alphabet gsm7 and no data_coding: it is a data_coding of its own"}},
		{carrier("profile: old_3_3\n    concat: sar"), []string{"carriers[0].links[0].interface_version: 0x33 has no " +
			"optional parameters, which concat: sar needs; set udh8 or udh16"}},
		{carrier("profile: old_3_3\n    tlvs: {0x1401: x}"),
			[]string{"carriers[0].links[0].interface_version: 0x33 has no optional parameters, and the carrier has tlvs"}},
		{link("bind: transmitter"), []string{"carriers[0].confirm: waits for receipts, and no link receives: bind one as " +
			"receiver, or set submit"}},
		{strings.Replace(link("bind: receiver"), "name: lumitel\n", "name: lumitel\n    default: true\n", 1),
			[]string{"carriers[0].links (line 7): only receive, and the carrier has numbers: one must submit"}},
		{link("interface_version: 0x33"), nil},
		{link("interface_version: '3.4'"), nil},
		{link("interface_version: 0x35"), []string{"carriers[0].links[0].interface_version (line 6): must be 0x33, " +
			"0x34 or 0x50"}},
		{link("receiver: {address: 'h:1'}"), []string{"carriers[0].links[0].receiver (line 6): is only for bind: " +
			"transmitter_receiver; another account that only receives is a link with bind: receiver"}},
		{link("bind: transmitter_receiver, receiver: {address: 'h', system_id: x}"),
			[]string{"carriers[0].links[0].receiver.address (line 6): must be host:port and nothing else, no scheme, user " +
				"or password"}},
		{link("local_address: eth0"), []string{"carriers[0].links[0].local_address (line 6): must be one of this machine's " +
			"IP addresses, without a port"}},
		{link("addresses: ['h:1', h]"),
			[]string{"carriers[0].links[0].addresses[1] (line 6): must be host:port and nothing " +
				"else, no scheme, user or password"}},
		{carrier("unknown_hold: 40s"),
			[]string{"carriers[0].unknown_hold (line 6): must be longer than the 40s after which " +
				"a dead session of lumitel-1 is found"}},
		{carrier("unknown_hold: 41s"), nil},
		{"dashboard: {public_url: sms.example.com}" + sound,
			[]string{"dashboard.public_url (line 1): must be an address such as https://sms.example.com"}},
		{"dashboard: {public_url: 'https://u@sms.example.com'}" + sound,
			[]string{"dashboard.public_url (line 1): must be an address such as https://sms.example.com"}},
		{"dashboard: {docs_url: 'ftp://x'}" + sound, []string{"dashboard.docs_url (line 1): must be an address such as " +
			"https://sms.example.com"}},
		{"dashboard: {public_url: 'https://sms.example.com'}" + sound, nil},
		{"mail: {url: 'smtp://mail.example.com:587', from: 'Intumwa <no-reply@example.com>'}" + sound, nil},
		{"mail: {url: 'smtp://mail.example.com', from: a@example.com}" + sound, []string{smtp}},
		{"mail: {url: 'mail.example.com:587', from: a@example.com}" + sound, []string{smtp}},
		{"mail: {url: 'smtp://mail.example.com:587'}" + sound,
			[]string{"mail.from: must be an address such as Intumwa <no-reply@example.com>"}},
		{"dashboard: {listen: '0.0.0.0:8081'}\nmail: {url: 'smtp://mail.example.com:587', from: a@example.com}" + sound,
			[]string{"dashboard.public_url: is required with mail.url: the links in mails begin with it"}},
		{"accounts: {otp_key: short}" + sound, []string{
			"accounts.otp_key (line 1): must have at least 32 characters, all of them random: openssl rand -base64 32"}},
		{`messages: {quiet_hours: "21:00-06:00"}` + sound, nil},
		{`messages: {quiet_hours: "9-17"}` + sound, []string{"messages.quiet_hours (line 1): quiet hours are written as " +
			"21:00-06:00, or none"}},
		{`inbound: {stop_words: [A B, ""], start_words: [stop], start_reply: " "}` + sound, []string{
			"inbound.stop_words[0] (line 1): must be one word of at most 20 letters and digits",
			"inbound.stop_words[1] (line 1): must be one word of at most 20 letters and digits",
			"inbound.start_reply (line 1): must be a text of at most 600 characters, or empty"}},
		{`inbound: {start_words: [stop]}` + sound, []string{
			"inbound.start_words[0] (line 1): is in inbound.stop_words as well"}},
	} {
		t.Run(try.text[:min(len(try.text), 60)], func(t *testing.T) { wants(t, checked(t, try.text), try.want) })
	}
}

// TestMailServer: the scheme and the host decide about TLS; a password may contain any character.
func TestMailServer(t *testing.T) {
	for text, want := range map[string]MailServer{
		"":                                    {},
		"smtp://mail.example.com:587":         {Address: "mail.example.com:587", TLS: "starttls"},
		"smtp://127.0.0.1:25":                 {Address: "127.0.0.1:25", TLS: "none"},
		"smtps://u:${PASSWORD}@m.example:465": {"m.example:465", "u", awkward, "tls"},
	} {
		c := load(t, "mail: {url: '"+text+"'}", "PASSWORD="+awkward)
		if got, err := c.Mail.Server(); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}

func TestWarnings(t *testing.T) {
	some := strings.Repeat("Q", 43) + "="
	both := "accounts: {otp_key: " + otpKey + "}\nencryption_key: " + some
	for _, try := range []struct {
		text string
		want []string // keys
	}{
		{sound, []string{"accounts.otp_key", "encryption_key"}},
		{"encryption_key: " + some + sound, []string{"accounts.otp_key"}},
		{both + sound, nil},
		{both + strings.Replace(sound, "system_id: demo",
			"system_id: sixteen-octets-x, password: ninechars, receiver: {password: ninechars}", 1),
			[]string{"carriers[0].links[0].system_id", "carriers[0].links[0].password",
				"carriers[0].links[0].receiver.password"}},
		{both + "\ndashboard: {public_url: 'https://sms.example.com'}" + sound, []string{"mail.url"}},
		{both + "\ndashboard: {public_url: 'http://localhost:8081'}" + sound, nil},
		{both + "\nmail: {url: 'smtp://127.0.0.1:25', from: a@example.com}" + sound, []string{"dashboard.public_url"}},
		{both + strings.Replace(sound, "?sslmode=require", "", 1), []string{"database.url"}},
		{both + sound + "    registered_delivery: 0\n", []string{"carriers[0].registered_delivery"}},
		{both + sound + "    registered_delivery: 18\n", []string{"carriers[0].registered_delivery"}}, // of failure only
		{both + sound + "    registered_delivery: 2\n    on_receipt_timeout: sent\n", nil},
		{both + sound + "    registered_delivery: 0\n    confirm: submit\n", nil},
	} {
		var got []string
		for _, w := range load(t, try.text).Warnings(Roles...) {
			got = append(got, w.Key)
		}
		wants(t, got, try.want)
	}
	for role, want := range map[string]string{"api": "[accounts.otp_key]", "webhooks": "[accounts.otp_key encryption_key]",
		"dispatcher": "[accounts.otp_key]", "dashboard": "[accounts.otp_key encryption_key]"} {
		got := []string{}
		for _, w := range load(t, sound).Warnings(role) {
			got = append(got, w.Key)
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%s is warned of %s, want %s", role, got, want)
		}
	}
}

// TestOverriddenKeyHasNoLine: a problem of a key from the environment names no line of the file.
func TestOverriddenKeyHasNoLine(t *testing.T) {
	wants(t, checked(t, "log: {level: info}\nmessages: {max_segments: 5}\n"+sound, "INTUMWA_LOG_LEVEL=loud",
		"INTUMWA_MESSAGES_MAX_SEGMENTS=0"),
		[]string{"log.level: must be one of debug, info, warn, error", "messages.max_segments: must be from 1 to 255"})
}

func TestWireValues(t *testing.T) {
	c := &Carrier{TLVs: map[string]string{"0x1402": "hex:00ff", "5121": "abc"}}
	tlvs, err := c.StaticTLVs()
	if err != nil || fmt.Sprint(tlvs) != "[{5121 [97 98 99]} {5122 [0 255]}]" {
		t.Errorf("StaticTLVs: %v, %v", tlvs, err)
	}
	link := Link{Address: "smsc.example:2775"}
	if config, err := link.TLSConfig(); config != nil || err != nil {
		t.Errorf("plain TCP: %v, %v", config, err)
	}
	link.TLS.Enabled = true
	config, err := link.TLSConfig()
	if err != nil || config.ServerName != "" || config.MinVersion != tls.VersionTLS12 { // each address has its own name
		t.Errorf("TLS: %+v, %v", config, err)
	}
	for _, text := range []string{strings.Repeat("ab", 32), "q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s=",
		"q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s"} {
		if key, err := (&Config{EncryptionKey: Secret(text)}).Key(); err != nil || key == nil || key[31] != 0xab {
			t.Errorf("%s: %v, %v", text, key, err)
		}
	}
}

// TestRetention: nothing is deleted before its retries end, before it is final, or within a day.
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

// TestRolesSecrets: a process needs exactly the secrets of its roles.
func TestRolesSecrets(t *testing.T) {
	text := `
database: {url: "postgres://h/d"}
redis: {url: "${REDIS}"}
accounts: {otp_key: "${OTP_KEY}"}
encryption_key: "${ENCRYPTION_KEY}"
mail: {url: "${MAIL_URL}", from: a@example.com}
carriers: [{name: a, links: [{name: b, address: "h:1", system_id: s, password: "${LINK_PASSWORD}", ` +
		`tls: {cert: /run/secrets/none.pem, key: /run/secrets/none.pem}}]}]
`
	const (
		redis = "redis.url (line 3): the environment variable REDIS is not set"
		otp   = "accounts.otp_key (line 4): the environment variable OTP_KEY is not set"
		key   = "encryption_key (line 5): the environment variable ENCRYPTION_KEY is not set"
		mail  = "mail.url (line 6): the environment variable MAIL_URL is not set"
		link  = "carriers[0].links[0].password (line 7): the environment variable LINK_PASSWORD is not set"
		files = "carriers[0].links[0].tls (line 7): reading cert and key: no such file or directory"
	)
	for roles, want := range map[string][]string{
		"api":            {redis, otp},
		"webhooks":       {redis, otp, key, mail},
		"dashboard":      {redis, otp, key, mail},
		"dispatcher":     {redis, otp, link, files},
		"api dispatcher": {redis, otp, link, files},
		"":               nil,
	} {
		var got []string
		for _, p := range load(t, text).Check(strings.Fields(roles)...) {
			got = append(got, p.String())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", roles, got, want)
		}
	}
	c := load(t, text, "INTUMWA_CARRIERS_A_LINKS_B_PASSWORD=pass", "ENCRYPTION_KEY=")
	if c.Missing("carriers[0].links[0].password") != nil || c.Missing("encryption_key") != nil ||
		c.Missing("accounts.otp_key") == nil {
		t.Error("what is missing is not reported, or what is there is")
	}
}
