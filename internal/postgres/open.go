// Package postgres opens connection pools with the same settings everywhere, migrates the schema to this binary's
// version, and classifies database errors. SQL belongs to the package that owns the table.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// MinimumServer is the oldest supported major version of PostgreSQL.
const MinimumServer = 13

const (
	connectTimeout   = 5 * time.Second
	statementTimeout = 10 * time.Second
	lockTimeout      = 5 * time.Second
	idleInTxTimeout  = 4 * time.Second // who waits for its locks gets them
	statementsKept   = 128             // prepared ones of a connection
)

// errURL replaces every parse error of a database URL: the original quotes pieces of the URL, and an unescaped "/" or
// "@" makes the password one of them.
var errURL = errors.New("the database URL cannot be understood; it should look like " +
	"postgres://user:password@host:5432/name?sslmode=require with special characters in the password " +
	"percent-encoded (details are withheld because they could show the password)")

// Options of one pool.
type Options struct {
	// MaxConns is the most connections of the pool; 0 means 4 per CPU, at least 8. It wins over pool_max_conns in the
	// URL.
	MaxConns int32

	// StatementTimeout is how long a statement may take; 0 means 10 s. It wins over statement_timeout in the URL.
	StatementTimeout time.Duration

	// Lookups keeps the planner on index look-ups for every statement of this pool: with stale statistics (a new table
	// or partition) it otherwise scans the whole table.
	Lookups bool

	// BatchUpdates is Lookups for UPDATE … FROM unnest($1, …) and other statements that run all the time. Each is planned
	// once a connection: with the length of each array the plan would hardly differ, and planning took a quarter of
	// PostgreSQL's processor time.
	BatchUpdates bool

	// Name is the sessions' application_name, for [Attend] and pg_stat_activity; "": intumwa, or the URL's.
	Name string

	// ReadOnly makes the sessions refuse changes (SQLSTATE 25006).
	ReadOnly bool

	// Primary keeps the pool away from an old primary. Share one between a process's pools after Primary.Look; nil: the
	// pool has its own.
	Primary *Primary
}

// Open returns a pool for the database at url, with one open connection. It fails when each host of the URL does not
// respond within 5 s, is read-only, refuses the credentials, or is older than MinimumServer; the error never contains
// the password. The caller closes the pool.
//
// Every connection uses UTC and ends a statement after 10 s, a wait for a lock after 5 s, and a transaction that is
// idle for 4 s, so that a stuck session cannot keep a company's row locked. A longer statement (an audit) runs SET
// LOCAL statement_timeout in its own transaction. Parameters in the URL win over these.
func Open(ctx context.Context, url string, opts Options) (*pgxpool.Pool, error) {
	if opts.Primary == nil {
		opts.Primary = NewPrimary(nil)
		opts.Primary.Look(ctx, url)
	}
	cfg, err := poolConfig(url, opts)
	if err != nil {
		return nil, err
	}
	traceLocks(cfg.ConnConfig)
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("making the database pool: %w", err)
	}
	if err := check(ctx, pool); err != nil {
		pool.Close()
		return nil, err
	}
	opts.Primary.watch(pool)
	return pool, nil
}

// Connect opens a connection outside pool to the pool's server; the caller closes it. Each host of the URL may take
// patience.
func Connect(ctx context.Context, pool *pgxpool.Pool, patience time.Duration) (*pgx.Conn, error) {
	whole := pool.Config()
	config := whole.ConnConfig
	if whole.BeforeConnect != nil {
		if err := whole.BeforeConnect(ctx, config); err != nil {
			return nil, fmt.Errorf("choosing the host: %w", err)
		}
	}
	config.ConnectTimeout = patience
	ctx, cancel := context.WithTimeout(ctx, time.Duration(1+len(config.Fallbacks))*patience)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	return conn, nil
}

func poolConfig(url string, opts Options) (*pgxpool.Config, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errURL
	}
	if opts.MaxConns > 0 {
		cfg.MaxConns = opts.MaxConns
	} else if !strings.Contains(url, "pool_max_conns") {
		cfg.MaxConns = int32(max(8, 4*runtime.GOMAXPROCS(0)))
	}
	// pgx reserves the memory of both caches for every connection. With more statements than these, one that was not used
	// for long is prepared again.
	if !strings.Contains(url, "statement_cache_capacity") {
		cfg.ConnConfig.StatementCacheCapacity = statementsKept
	}
	if cfg.ConnConfig.DefaultQueryExecMode != pgx.QueryExecModeCacheDescribe {
		cfg.ConnConfig.DescriptionCacheCapacity = 0
	}
	cfg.MinConns = min(cfg.MinConns, cfg.MaxConns)
	cfg.HealthCheckPeriod = 30 * time.Second
	cfg.MaxConnLifetime = time.Hour
	cfg.MaxConnLifetimeJitter = 5 * time.Minute
	cfg.MaxConnIdleTime = 5 * time.Minute
	if cfg.ConnConfig.ConnectTimeout == 0 || !strings.Contains(url, "connect_timeout") {
		cfg.ConnConfig.ConnectTimeout = connectTimeout
	}

	primary := opts.Primary
	if primary == nil {
		primary = NewPrimary(nil)
	}
	primary.guard(cfg.ConnConfig)
	if opts.Name == "" { // else Attend may end its waits
		cfg.ConnConfig.OnNotice = noteAlone
	}
	cfg.BeforeConnect = primary.prefer

	params := cfg.ConnConfig.RuntimeParams
	setDefault(params, "application_name", "intumwa")
	setDefault(params, "timezone", "UTC")
	setDefault(params, "statement_timeout", milliseconds(statementTimeout))
	setDefault(params, "lock_timeout", milliseconds(lockTimeout))
	setDefault(params, "idle_in_transaction_session_timeout", milliseconds(idleInTxTimeout))
	// A vanished host must not keep its locks for two hours, TCP's default.
	setDefault(params, "tcp_keepalives_idle", "10")
	setDefault(params, "tcp_keepalives_interval", "5")
	setDefault(params, "tcp_keepalives_count", "3")
	// Compiling a plan takes longer than any statement of ours, and the cost penalty of a disabled scan would trigger
	// it on every batch.
	setDefault(params, "jit", "off")
	if opts.Name != "" {
		params["application_name"] = opts.Name
	}
	cfg.AfterConnect = func(ctx context.Context, conn *pgx.Conn) (err error) {
		useArrays(conn.TypeMap())
		if opts.ReadOnly { // only after the connection is judged: a primary must not look like a standby
			_, err = conn.Exec(ctx, `SET default_transaction_read_only = on`)
		}
		return err
	}
	if opts.StatementTimeout > 0 {
		params["statement_timeout"] = milliseconds(opts.StatementTimeout)
	}
	if opts.Lookups || opts.BatchUpdates {
		params["enable_seqscan"] = "off"
		params["enable_hashjoin"] = "off"
		params["enable_mergejoin"] = "off"
	}
	if opts.BatchUpdates {
		params["plan_cache_mode"] = "force_generic_plan"
	}
	return cfg, nil
}

// setDefault sets a parameter unless the URL has it, in upper or lower case (TimeZone).
func setDefault(params map[string]string, key, value string) {
	for there := range params {
		if strings.EqualFold(there, key) {
			return
		}
	}
	params[key] = value
}

func milliseconds(d time.Duration) string {
	return strconv.FormatInt(d.Milliseconds(), 10)
}

func check(ctx context.Context, pool *pgxpool.Pool) error {
	// One more than the hosts take, to get the last one's error.
	ctx, cancel := context.WithTimeout(ctx, time.Duration(2+len(pool.Config().ConnConfig.Fallbacks))*connectTimeout)
	defer cancel()
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return unreachable(err)
	}
	defer conn.Release()
	version := conn.Conn().PgConn().ParameterStatus("server_version")
	if major := majorVersion(version); major > 0 && major < MinimumServer {
		return fmt.Errorf("PostgreSQL %s is too old: %d or newer is needed", version, MinimumServer)
	}
	return nil
}

// majorVersion returns 15 for "15.18 (Debian 15.18-0)", and 0 for other texts.
func majorVersion(version string) int {
	digits := len(version) - len(strings.TrimLeft(version, "0123456789"))
	major, err := strconv.Atoi(version[:digits])
	if err != nil {
		return 0
	}
	return major
}
