package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"intumwa/configs"
	"intumwa/internal/postgres"
	"intumwa/internal/queue"
)

type configCmd struct {
	Check  configCheckCmd  `cmd:"" help:"Print every mistake in the configuration with its key path."`
	Sample configSampleCmd `cmd:"" help:"Print a configuration with every key, its default and its purpose."`
	Import configImportCmd `cmd:"" help:"Propose carriers from the configuration of another gateway."`
}

type configCheckCmd struct {
	Connect bool `help:"Also connect to PostgreSQL, Redis, the mail server and the SMSCs (nothing binds), and log in at the eBMS."`

	Roles []string `help:"For a process with these roles. Default: all." placeholder:"ROLE" enum:"api,dispatcher,webhooks,dashboard,smpp"`
}

// Run prints every error and warning, and with --connect which servers answer. It prints no secret.
func (check *configCheckCmd) Run(ctx context.Context, p *program) error {
	if len(check.Roles) == 0 {
		check.Roles = configs.Roles
	}
	c, err := p.checkedConfig(check.Roles...)
	if err != nil {
		return err
	}
	for _, w := range c.Warnings(check.Roles...) {
		_, _ = fmt.Fprintf(p.stderr, "intumwa: warning: %s\n", w)
	}
	if _, err := fmt.Fprintf(p.stdout, "%s is sound\n", p.configPath); err != nil || !check.Connect {
		return err
	}
	return check.connect(ctx, p, c)
}

type configSampleCmd struct{}

func (configSampleCmd) Run(p *program) error {
	_, err := io.WriteString(p.stdout, configs.Sample)
	return err
}

// connectPatience bounds each attempt of config check --connect. databasePatience bounds PostgreSQL's, where each host
// has the time of [postgres.Open]. All attempts run in parallel.
const (
	connectPatience  = 10 * time.Second
	databasePatience = 2 * time.Minute
)

// connection is a server that the configuration names and a role needs.
type connection struct {
	key string // configuration key
	try func(context.Context) (found string, err error)
}

// connections lists the servers that these roles need.
func connections(c *configs.Config, roles []string) []connection {
	list := []connection{
		{"database", func(ctx context.Context) (string, error) { return tryDatabase(ctx, c) }},
		{"redis", func(ctx context.Context) (string, error) { return tryRedis(ctx, c) }},
	}
	if c.Mail.URL != "" && (slices.Contains(roles, "webhooks") || slices.Contains(roles, "dashboard")) {
		list = append(list, connection{"mail.url", func(ctx context.Context) (string, error) {
			server, err := c.Mail.Server()
			if err != nil {
				return "", err
			}
			return tryAddress(ctx, server.Address, nil)
		}})
	}
	if c.EBMS.URL != "" && (slices.Contains(roles, "webhooks") || slices.Contains(roles, "dashboard")) {
		list = append(list, connection{"ebms.url", func(ctx context.Context) (string, error) {
			return tryEBMS(ctx, &c.EBMS)
		}})
	}
	if !slices.Contains(roles, "dispatcher") {
		return list
	}
	for i := range c.Carriers {
		for j := range c.Carriers[i].Links {
			link := &c.Carriers[i].Links[j]
			key := fmt.Sprintf("carriers[%d].links[%d] (%s)", i, j, link.Name)
			addresses := link.AllAddresses()
			if link.Receiver.Address != "" {
				addresses = append(addresses, link.Receiver.Address)
			}
			for _, address := range addresses {
				list = append(list, connection{key, func(ctx context.Context) (string, error) {
					secure, err := link.TLSConfig()
					if err != nil {
						return "", err
					}
					found, err := tryAddress(ctx, address, secure)
					if err == nil {
						found += "; intumwa admin carrier try --link " + link.Name + " tries the bind"
					}
					return found, err
				}})
			}
		}
	}
	return list
}

// connect tries all of them, prints each result, and fails if one cannot be reached.
func (check *configCheckCmd) connect(ctx context.Context, p *program, c *configs.Config) error {
	list := connections(c, check.Roles)
	lines, failed := make([]string, len(list)), make([]bool, len(list))
	var tries sync.WaitGroup
	for i, it := range list {
		tries.Go(func() {
			patience := connectPatience
			if it.key == "database" {
				patience = databasePatience
			}
			limited, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			found, err := it.try(limited)
			failed[i] = err != nil
			unreachable, ok := errors.AsType[*postgres.Unreachable](err)
			switch {
			case unfit(err):
				found = "reached, and NOT fit: " + err.Error()
			case ok: // one line per host
				texts := make([]string, len(unreachable.Hosts))
				for n, host := range unreachable.Hosts {
					texts[n] = "NOT reached: " + strings.ReplaceAll(host.Error(), "\n", " ")
				}
				found = strings.Join(texts, "\n"+it.key+": ")
			case err != nil:
				found = "NOT reached: " + strings.ReplaceAll(err.Error(), "\n", " ")
			}
			lines[i] = it.key + ": " + found
		})
	}
	tries.Wait()
	for _, line := range lines {
		if _, err := fmt.Fprintln(p.stdout, line); err != nil {
			return err
		}
	}
	if n := len(slices.DeleteFunc(failed, func(bad bool) bool { return !bad })); n > 0 {
		return fmt.Errorf("%d of %d could not be reached, or are not fit", n, len(list))
	}
	return nil
}

func tryDatabase(ctx context.Context, c *configs.Config) (string, error) {
	pool, err := postgres.Open(ctx, string(c.Database.URL),
		postgres.Options{MaxConns: 2, Name: postgres.SessionName("config check")})
	if err != nil {
		return "", err
	}
	defer pool.Close()
	var version string
	if err := pool.QueryRow(ctx, `SELECT current_setting('server_version')`).Scan(&version); err != nil {
		return "", fmt.Errorf("asking its version: %w", err)
	}
	if err := postgres.TryCommit(ctx, pool, commitPatience); err != nil {
		return "", err
	}
	schema := "its schema is this binary's"
	if err := postgres.Current(ctx, pool); err != nil {
		schema = err.Error()
	}
	found := "PostgreSQL " + version + " answers and commits; " + schema
	if err := postgres.ReadClock(ctx, pool); err != nil {
		return "", err
	}
	if ahead := postgres.Ahead(); ahead.Abs() > clockTolerance {
		found += fmt.Sprintf("; this machine's clock is %v ahead of its: one of the two is wrong", ahead.Round(time.Second))
	}
	mismatches, err := postgres.Collations(ctx, pool)
	if err != nil {
		return "", err
	}
	if len(mismatches) > 0 {
		found += "; collation mismatches: " + strings.Join(mismatches, "; ") + " (docs/runbooks/database-care.md)"
	}
	why, err := postgres.Unsafe(ctx, pool)
	switch {
	case err != nil:
		return "", err
	case why == "":
		found += "; each commit is on a standby before it is answered"
	case c.Database.RequireStandby:
		return "", fmt.Errorf("%w: %s", errUnsafe, why)
	}
	return found, nil
}

// errUnsafe reports that commits do not wait for a standby although
// database.require_standby is set.
var errUnsafe = errors.New("database.require_standby does not hold")

// unfit reports whether a server answered but cannot be used.
func unfit(err error) bool {
	return errors.Is(err, errUnsafe) || errors.Is(err, postgres.ErrStandbyAway) || errors.Is(err, queue.ErrEvicts)
}

func tryRedis(ctx context.Context, c *configs.Config) (string, error) {
	short, waiting, err := openRedis(&c.Redis, 1)
	if err != nil {
		return "", err
	}
	defer func() { _ = errors.Join(short.Close(), waiting.Close()) }()
	if err := short.Ping(ctx).Err(); err != nil {
		return "", err
	}
	q := queue.New(short, queue.Options{Prefix: c.Redis.Prefix, Waiting: waiting})
	if err := q.Evicts(ctx); err != nil {
		return "", err
	}
	warnings, err := q.CheckServer(ctx)
	if err != nil {
		return "", err
	}
	return strings.Join(append([]string{"Redis answers"}, warnings...), "; "), nil
}

// tryAddress completes a TCP and TLS handshake and sends nothing.
func tryAddress(ctx context.Context, address string, secure *tls.Config) (string, error) {
	if secure == nil {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return "", err
		}
		_ = conn.Close()
		return address + " takes connections", nil
	}
	conn, err := (&tls.Dialer{Config: secure}).DialContext(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	state := conn.(*tls.Conn).ConnectionState() //nolint:forcetypeassert // as tls.Dialer returns
	ends := state.PeerCertificates[0].NotAfter
	return fmt.Sprintf("%s speaks TLS; its certificate is good until %s", address, ends.Format(time.DateOnly)), nil
}
