package configs

import (
	_ "embed"
	"fmt"
	"maps"
	"os"
	"slices"

	"intumwa/smpp"
)

// Sample is a file with every key at its default and what each is for.
//
//go:embed intumwa.sample.yaml
var Sample []byte

// Load reads the file at path (an empty path: no file, only defaults), replaces ${NAME} in its values from env, and
// lays env's INTUMWA_ variables over it. env has the form of os.Environ.
//
// A key's variable is INTUMWA_ and the key path in upper case with underscores: INTUMWA_API_LISTEN. Lists of plain
// values are comma-separated, maps are comma-separated key=value pairs. A carrier or a link stands there with its
// name (INTUMWA_CARRIERS_LUMITEL_LINKS_LUMITEL_1_PASSWORD, whatever is no letter or digit being an underscore) or
// with its index (INTUMWA_CARRIERS_0_LINKS_0_PASSWORD); when both are set the name wins. Variables change carriers
// and links that the file has, they add none. An empty variable is an empty value.
//
// A secret's key may be given with _file behind it: the path of the file that has the value, which every Load reads. A
// variable within a URL is escaped where it is a user, a password or a parameter.
//
// Load says what cannot be read; whether the values make sense says [Config.Check]. When the file is YAML at all, the
// Config is returned beside the [Problems] so that Check can say the rest. No problem quotes a value that may be a secret.
func Load(path string, env []string) (*Config, error) {
	c := Default()
	vars := newEnviron(env)
	d := &decoder{env: vars, lines: map[string]int{}, foreign: map[string]bool{}}
	if path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading the configuration: %w", err)
		}
		root, problem := parse(text)
		if problem != nil {
			return nil, fmt.Errorf("reading the configuration %s: %w", path, Problems{*problem})
		}
		d.file(root, c)
	}
	d.override(c)
	d.secretFiles(c)
	c.lines, c.foreign, c.missing = d.lines, d.foreign, d.missing
	c.warnings = vars.unused()
	return c, d.problems.orNil()
}

// Warnings are things that are no mistakes but look like some: INTUMWA_ variables that name no key, codes,
// second factors and signing secrets stored under no key, a database elsewhere without encryption, a reference that a static TLV takes the place of.
func (c *Config) Warnings() []Problem { return c.WarningsFor(Roles...) }

// WarningsFor are those that concern a process with these roles.
func (c *Config) WarningsFor(roles ...string) []Problem {
	out := slices.Clone(c.warnings)
	warn := func(path, text string) { out = append(out, Problem{Key: path, Line: c.lines[path], Text: text}) }
	if c.Accounts.OTPKey == "" && needs(roles, "accounts.otp_key") {
		warn("accounts.otp_key", "is empty, so a stolen copy of the database tells the one-time codes of its last ten minutes; "+
			"set it to 32 random octets, the same in every process: openssl rand -base64 32")
	}
	if c.Accounts.EncryptionKey == "" && needs(roles, "accounts.encryption_key") {
		warn("accounts.encryption_key", "is empty, so the secrets of second factors stand readable in the database; "+
			"set it to 32 random octets, the same in every process: openssl rand -base64 32")
	}
	if c.Database.readable() {
		warn("database.url", "has no sslmode that insists on encryption and names another host, so the password and the messages may cross "+
			"the network readable; add sslmode=verify-full (or require), or sslmode=disable if the network is yours alone")
	}
	if c.Webhooks.EncryptionKey == "" && needs(roles, "webhooks.encryption_key") {
		warn("webhooks.encryption_key", "is empty, so customers' signing secrets stand readable in the database; "+
			"set it to 32 random octets before the first endpoint, the same in every process: openssl rand -base64 32")
	}
	for i := range c.Carriers {
		carrier := &c.Carriers[i]
		for _, tag := range slices.Sorted(maps.Keys(carrier.TLVs)) {
			tlv, err := parseTLV(tag, carrier.TLVs[tag])
			if err == nil && tlv.Tag == smpp.TagUserMessageReference && carrier.UserReference {
				warn(fmt.Sprintf("carriers[%d].tlvs.%s", i, tag), "takes the place of user_message_reference, so no receipt can echo ours; "+
					"say so with user_message_reference: false")
			}
		}
	}
	return out
}
