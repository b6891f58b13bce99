package configs

import (
	"regexp"
	"strings"
)

const (
	constant = "it has a fixed value now"
	inFile   = "write ${file:/etc/intumwa/secrets/NAME} as the value of the key without _file"
	inURL    = "write it into the URL; ${NAME} and ${file:PATH} are escaped there"
	ownLimit = "limits are a company's own: intumwa admin company set"
)

// removed are keys of earlier versions and their replacements. They are refused.
var removed = map[string]string{ //nolint:gosec // names of keys, no credentials
	"api.max_body":                    "16 MiB",
	"api.large_body":                  constant,
	"api.max_large_bodies":            constant,
	"api.body_memory":                 constant,
	"api.lookups_per_user":            constant,
	"api.max_connections":             "10000; limit them at the proxy",
	"api.max_connections_per_address": "1000, but for api.trusted_proxies; limit them at the proxy",
	"api.read_header_timeout":         constant,
	"api.read_timeout":                constant,
	"api.write_timeout":               constant,
	"api.idle_timeout":                constant,

	"ops.roles": "give each process its own ops.listen by the variable INTUMWA_OPS_LISTEN",

	"dashboard.trusted_proxies": "api.trusted_proxies holds for both",
	"dashboard.secure_cookies":  "cookies need HTTPS unless dashboard.public_url is http:// on this machine",
	"dashboard.session_idle":    "12h",

	"mail.server":        "write mail.url: smtp://user:password@host:587",
	"mail.username":      "write mail.url: smtp://user:password@host:587",
	"mail.password":      "write mail.url: smtp://user:password@host:587",
	"mail.password_file": "write mail.url: smtp://user:${file:/etc/intumwa/secrets/mail}@host:587",
	"mail.tls":           "write mail.url with smtp:// (starttls, none on this machine) or smtps:// (tls)",

	"database.session_url":        "point database.url at PostgreSQL itself; poolers such as PgBouncer are not supported",
	"database.host":               inURL,
	"database.port":               inURL,
	"database.name":               inURL,
	"database.user":               inURL,
	"database.password":           inURL,
	"database.password_file":      inURL,
	"database.sslmode":            inURL,
	"database.max_connections":    "write it into the URL as pool_max_conns",
	"database.lookup_connections": constant,
	"database.lookup_timeout":     "2s",

	"redis.host":                   inURL,
	"redis.port":                   inURL,
	"redis.database":               inURL,
	"redis.username":               inURL + "; beside redis.addresses: redis://user:password@",
	"redis.password":               inURL + "; beside redis.addresses: redis://:password@",
	"redis.password_file":          inURL + "; beside redis.addresses: redis://:password@",
	"redis.sentinel_username":      "Sentinels are used with their default user",
	"redis.sentinel_password_file": inFile,

	"accounts.otp_key_file":        inFile,
	"accounts.encryption_key":      "encryption_key holds for second factors and webhooks",
	"accounts.encryption_key_file": "encryption_key holds for second factors and webhooks",

	"limits":                 ownLimit,
	"limits.repeat_interval": ownLimit,
	"limits.repeats_a_day":   ownLimit,
	"limits.number_a_day":    ownLimit,
	"limits.singles":         "the limits of a company count single sends as well",
	"limits.credits_a_day":   ownLimit,
	"limits.unusual_hour":    "5000",

	"inbound.assembly": "10m",
	"inbound.repeats":  "2m",

	"webhooks.encryption_key":      "encryption_key holds for second factors and webhooks",
	"webhooks.encryption_key_file": "encryption_key holds for second factors and webhooks",
	"webhooks.in_flight":           constant,
	"webhooks.per_endpoint":        constant,
	"webhooks.per_endpoint_max":    constant,
	"webhooks.disable_after":       "its owner gets a mail; switch a dead endpoint off with admin webhook set --active=false",
	"webhooks.disable_on_gone":     "its owner gets a mail; switch a dead endpoint off with admin webhook set --active=false",

	"carriers[].number_overrides":        "write whole numbers into prefixes",
	"carriers[].source_ton":              "write source_ton_npi: [5, 0]",
	"carriers[].source_npi":              "write source_ton_npi: [5, 0]",
	"carriers[].dest_ton":                "write dest_ton_npi: [1, 1]",
	"carriers[].dest_npi":                "write dest_ton_npi: [1, 1]",
	"carriers[].retry_min":               "1s",
	"carriers[].retry_max":               "1m",
	"carriers[].failover_after":          "10s",
	"carriers[].second_carrier_within":   "1m",
	"carriers[].max_unmatched_per_hour":  "50000",
	"carriers[].max_inbound_per_hour":    "20000",
	"carriers[].links[].password_file":   inFile,
	"carriers[].links[].weight":          "links share the traffic evenly within their tps",
	"carriers[].links[].binds":           "write a link for each bind, with its part of window and tps",
	"carriers[].links[].enquire_timeout": "it is enquire_link, and at most 10s",
	"carriers[].links[].connect_timeout": "10s",
	"carriers[].links[].bind_timeout":    "30s",
}

// value matches texts of removed that are just today's fixed value.
var value = regexp.MustCompile(`^[0-9][0-9a-zA-Z ]*(;|,|$)`)

var elements = regexp.MustCompile(`\[\d+\]`)

// unknown is the problem of a key that does not exist.
func unknown(path string) string {
	if instead, ok := removed[elements.ReplaceAllString(path, "[]")]; ok {
		return wasRemoved(instead)
	}
	return "unknown key"
}

func wasRemoved(instead string) string {
	if value.MatchString(instead) {
		instead = "it is always " + instead
	}
	return "was removed: " + instead
}

// removedVariable is the problem of a variable whose key was removed; "" for any other.
func removedVariable(name string) string {
	for key, instead := range removed {
		pattern := envPrefix + "_" + strings.ReplaceAll(upperSnake(key), "___", "_.+_") // [] and the dot
		if regexp.MustCompile("^" + pattern + "$").MatchString(name) {
			return wasRemoved(instead)
		}
	}
	return ""
}
