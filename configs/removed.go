package configs

import "regexp"

// removed are keys of earlier versions, with what to do instead. They are refused.
var removed = map[string]string{
	"api.large_body":            "api.body_memory limits all bodies together, and one user to half of it",
	"api.max_large_bodies":      "api.body_memory limits all bodies together, and one user to half of it",
	"database.session_url":      "point database.url at PostgreSQL itself; poolers such as PgBouncer are no longer supported",
	"webhooks.per_endpoint":     "webhooks.in_flight alone limits the calls; one endpoint gets at most an eighth of it",
	"webhooks.per_endpoint_max": "webhooks.in_flight alone limits the calls; one endpoint gets at most an eighth of it",
	"webhooks.disable_after":    "its owner gets a mail; switch a dead endpoint off with admin webhook set --active=false",
	"webhooks.disable_on_gone":  "its owner gets a mail; switch a dead endpoint off with admin webhook set --active=false",
}

var elements = regexp.MustCompile(`\[\d+\]`)

// unknown is the problem of a key that does not exist.
func unknown(path string) string {
	if instead, ok := removed[elements.ReplaceAllString(path, "[]")]; ok {
		return "was removed: " + instead
	}
	return "unknown key"
}
