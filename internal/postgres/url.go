package postgres

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// leastConns is the smallest number of connections of a pool: one for recovery, one for housekeeping, one for the
// renewals of the dispatcher's leases, and one for other work.
const leastConns = 4

// CheckURL returns why a database URL cannot be used. Its errors do not quote the URL.
func CheckURL(url string) error {
	if _, rest, ok := strings.Cut(url, "://"); ok && strings.Contains(rest[strings.IndexAny(rest+"/", "/?#"):], "@") {
		return errors.New("has an @ behind the host: in the user and the password, write / as %2F, ? as %3F, # as %23 " +
			"and @ as %40")
	}
	cfg, err := pgxpool.ParseConfig(url)
	switch {
	case err != nil:
		return errors.New("must be postgres://user:password@host:port/name, and the files that it names must be readable")
	case strings.Contains(url, "pool_max_conns") && cfg.MaxConns < leastConns:
		return fmt.Errorf("must have a pool_max_conns of at least %d", leastConns)
	}
	return nil
}

// Readable reports whether others on the way to the database could read the traffic: the URL names another machine and
// does not require encryption. sslmode=disable confirms that the network is private.
func Readable(url string) bool {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil || strings.Contains(url, "sslmode=disable") {
		return false
	}
	if first := cfg.ConnConfig; first.TLSConfig == nil && distant(first.Host) {
		return true
	}
	for _, next := range cfg.ConnConfig.Fallbacks {
		if next.TLSConfig == nil && distant(next.Host) {
			return true
		}
	}
	return false
}

func distant(host string) bool {
	address, _ := netip.ParseAddr(host)
	return host != "localhost" && !strings.HasPrefix(host, "/") && !address.IsLoopback()
}
