package configs

import (
	"slices"
	"strings"
)

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
