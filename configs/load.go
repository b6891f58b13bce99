package configs

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

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
	c, r := Default(), newReader(env)
	if path != "" {
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("there is no configuration file %s; --config or INTUMWA_CONFIG names another, and 'intumwa config sample' prints one", path)
		}
		if err != nil {
			return nil, fmt.Errorf("reading the configuration: %w", err)
		}
		document, problem := parse(text)
		if problem != nil {
			return nil, fmt.Errorf("reading the configuration %s: %w", path, Problems{*problem})
		}
		r.document = document
		r.value("", document.body, reflect.ValueOf(c).Elem())
	}
	r.override(c)
	r.secretFiles(c)
	c.lines, c.foreign, c.missing = r.lines, r.foreign, r.missing
	c.problems, c.warnings = r.problems, r.unused()
	return c, r.problems.orNil()
}

const inTheOpen = "has no sslmode that insists on encryption and names another host, so the password and the messages may cross " +
	"the network readable; add sslmode=verify-full (or require), or sslmode=disable if the network is yours alone"

// Warnings are things that are no mistakes but look like some, for a process with these roles: INTUMWA_ variables that name
// no key, codes, second factors and signing secrets stored under no key, a database elsewhere without encryption, a
// reference that a static TLV takes the place of.
func (c *Config) Warnings(roles ...string) []Problem {
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
	if readable(c.Database.Whole()) {
		warn("database.url", inTheOpen)
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

// Roles are the parts that a process may serve.
var Roles = []string{"api", "dispatcher", "webhooks", "dashboard"}

// readers says which roles read the secrets under a key path; every role reads the others.
var readers = []struct {
	path  string
	roles []string
}{
	{"accounts.otp_key", []string{"api", "dashboard"}},
	{"webhooks.encryption_key", []string{"webhooks", "dashboard"}},
	{"accounts.encryption_key", []string{"dashboard"}},
	{"mail.password", []string{"dashboard"}},
	{"carriers[", []string{"dispatcher"}},
}

// needs says whether one of the roles reads the secret at a key path.
func needs(roles []string, path string) bool {
	for _, r := range readers {
		if strings.HasPrefix(path, r.path) {
			return slices.ContainsFunc(r.roles, func(role string) bool { return slices.Contains(roles, role) })
		}
	}
	return true
}

// Missing is the mistake of a secret that the file takes from a variable which is not set, or from a file that cannot be read; nil when it has its value.
// Who is about to use a secret without having checked the configuration for a role asks first.
func (c *Config) Missing(path string) *Problem {
	for _, p := range c.missing {
		if strings.TrimSuffix(p.Key, fileSuffix) == path {
			return &p
		}
	}
	return nil
}
