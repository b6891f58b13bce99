package postgres

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Unreachable is the error of a connection that no host of a URL accepted. It has no secret.
type Unreachable struct {
	Hosts []error // the last error of each host, in the order of the attempts
	err   error
}

// Error returns one line for a single host, else a line for each.
func (u *Unreachable) Error() string {
	if len(u.Hosts) == 1 {
		return "connecting to the database: " + u.Hosts[0].Error()
	}
	text := "connecting to the database: no host takes the connection"
	for _, err := range u.Hosts {
		text += "\n  " + err.Error()
	}
	return text
}

// Unwrap returns the driver's error.
func (u *Unreachable) Unwrap() error { return u.err }

// unreachable converts an error of the driver to Unreachable, if it is one.
func unreachable(err error) error {
	failed, ok := errors.AsType[*pgconn.ConnectError](err)
	if !ok {
		return fmt.Errorf("connecting to the database: %w", err)
	}
	all := []error{failed.Unwrap()}
	if several, ok := failed.Unwrap().(interface{ Unwrap() []error }); ok {
		all = several.Unwrap()
	}
	u, at := &Unreachable{err: err}, map[string]int{}
	for _, one := range all {
		// "host:port (name): error"; a name that cannot be resolved has no host.
		host, _, _ := strings.Cut(one.Error(), " (")
		if i, again := at[host]; again { // without TLS, after a failure with it
			u.Hosts[i] = one
			continue
		}
		at[host] = len(u.Hosts)
		u.Hosts = append(u.Hosts, one)
	}
	return u
}
