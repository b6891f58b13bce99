package postgres

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Unreachable is the error of a connection that no host of a URL took. It holds no
// secret.
type Unreachable struct {
	Hosts []error // of each host the last, in the order in which they were tried
	err   error
}

// Error is one line for a single host, and else a line for each.
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

// unreachable makes an error of the driver an Unreachable, if it is one.
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
		// "host:port (name): what failed"; a name that leads nowhere has no host.
		host, _, _ := strings.Cut(one.Error(), " (")
		if i, again := at[host]; again { // without TLS, after it failed with it
			u.Hosts[i] = one
			continue
		}
		at[host] = len(u.Hosts)
		u.Hosts = append(u.Hosts, one)
	}
	return u
}
