package postgres

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Primary finds the server that may write: the host of the URL, and its timeline
// (https://www.postgresql.org/docs/current/continuous-archiving.html#BACKUP-TIMELINES). Each promotion of a standby
// begins a new, higher timeline. A writable server on a lower one is the old primary, which came back or was never
// down: its writes would be lost. Primary makes no connection to it and closes those that exist.
//
// It is safe for concurrent use, and keeps its state in memory only.
type Primary struct {
	log *slog.Logger

	mu       sync.Mutex
	system   string // identifier of the cluster, the same on all of its servers
	timeline int64  // the highest seen
	first    string // host:port to try first; "": the URL's order
	pools    []*pgxpool.Pool
	renewed  time.Time       // when a read-only session last closed the idle ones
	lines    map[*line]int64 // by timeline of the server; 0: not judged yet
}

// line is the network connection below a database connection.
type line struct {
	net.Conn
	primary *Primary
}

// Close closes the connection and forgets it.
func (l *line) Close() error {
	l.primary.mu.Lock()
	delete(l.primary.lines, l)
	l.primary.mu.Unlock()
	return l.Conn.Close()
}

// NewPrimary returns a Primary without a state. log gets a line for each failover; nil: none.
func NewPrimary(log *slog.Logger) *Primary {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Primary{log: log, lines: make(map[*line]int64)}
}

var (
	errOldPrimary = errors.New("the server is not the primary any more")
	errNotPrimary = errors.New("the server is read-only")
)

// state is a server's report.
type state struct {
	system   string
	timeline int64 // 0: not reported
	readOnly bool
}

// stateQuery reads the state in one round trip. A standby's timeline does not matter.
const stateQuery = `SELECT (SELECT system_identifier FROM pg_control_system()),
	current_setting('transaction_read_only') = 'on',
	CASE WHEN pg_is_in_recovery() THEN '' ELSE left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) END`

// stateOf reads a server's state. A hosted server may refuse the query: it has no timeline. An error is the
// connection's.
func stateOf(ctx context.Context, conn *pgconn.PgConn) (s state, err error) {
	results, err := conn.Exec(ctx, stateQuery).ReadAll()
	if err != nil {
		if !Withheld(err) {
			return s, fmt.Errorf("reading whether the server is the primary: %w", err)
		}
		results, err = conn.Exec(ctx, `SELECT '', current_setting('transaction_read_only') = 'on', ''`).ReadAll()
	}
	if err == nil && (len(results) != 1 || len(results[0].Rows) != 1 || len(results[0].Rows[0]) != 3) {
		err = errors.New("an unexpected answer")
	}
	if err != nil {
		return s, fmt.Errorf("reading whether the server is writable: %w", err)
	}
	row := results[0].Rows[0]
	s.system, s.readOnly = string(row[0]), string(row[1]) == "t"
	if len(row[2]) > 0 {
		if s.timeline, err = strconv.ParseInt(string(row[2]), 16, 64); err != nil {
			return s, fmt.Errorf("reading the server's timeline: %w", err)
		}
	}
	return s, nil
}

// judge returns why a server in this state must not be used, or nil. It records a new timeline, and the timeline of
// conn (nil: no lasting connection).
func (p *Primary) judge(s state, conn *pgconn.PgConn) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := lineOf(conn); l != nil {
		p.lines[l] = s.timeline
	}
	switch {
	case s.timeline == 0:
		return nil
	case s.system == p.system && s.timeline < p.timeline:
		return fmt.Errorf("%w: it is on timeline %d, and another one is on timeline %d", errOldPrimary, s.timeline,
			p.timeline)
	case s.system == p.system && s.timeline > p.timeline:
		p.log.Warn("PostgreSQL has failed over; connections to the old primary are closed", "event", "database_failed_over",
			"timeline", s.timeline, "before", p.timeline)
		p.cutLocked(s.timeline)
	}
	p.system, p.timeline = s.system, s.timeline
	return nil
}

// cutLocked closes every connection to a server on a lower timeline, and unjudged ones: the response that their users
// wait for may never come, and must not count if it does.
func (p *Primary) cutLocked(timeline int64) {
	for l, on := range p.lines {
		if on < timeline {
			delete(p.lines, l)
			_ = l.Conn.Close() // its user gets an error
		}
	}
	for _, pool := range p.pools {
		go pool.Reset() // the caller may be one of its connections
	}
}

// renewEvery is the least time between two renewals: a server may stay read-only.
const renewEvery = time.Second

// renew closes the sessions of all pools after one was read-only: the others may be so too, and stay so when the server
// is writable again.
func (p *Primary) renew() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.renewed) < renewEvery {
		return
	}
	p.renewed = time.Now()
	for _, pool := range p.pools {
		go pool.Reset() // the caller has one of its connections
	}
}

// lineOf returns a connection's line; nil for one that was not dialled here.
func lineOf(conn *pgconn.PgConn) *line {
	if conn == nil {
		return nil
	}
	under := conn.Conn()
	if secure, ok := under.(*tls.Conn); ok {
		under = secure.NetConn()
	}
	l, _ := under.(*line)
	return l
}

// guard refuses connections to an old primary and, with several hosts, to a read-only one. It closes a session whose
// error says that it is of no further use.
func (p *Primary) guard(config *pgx.ConnConfig) {
	validate, several := config.ValidateConnect, len(hostsOf(config)) > 1
	config.ValidateConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		if validate != nil {
			if err := validate(ctx, conn); err != nil {
				return err
			}
		}
		s, err := stateOf(ctx, conn)
		switch {
		case err != nil:
			return err
		case s.readOnly && several:
			return errNotPrimary
		}
		return p.judge(s, conn)
	}
	keeps := config.OnPgError
	config.OnPgError = func(conn *pgconn.PgConn, err *pgconn.PgError) bool {
		if err.Code == readOnly {
			p.renew()
		}
		return !spent(err.Code) && (keeps == nil || keeps(conn, err))
	}
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		l := &line{Conn: conn, primary: p}
		p.mu.Lock()
		p.lines[l] = 0
		p.mu.Unlock()
		return l, nil
	}
}

// host is a host of a URL, with its ways to connect (with and without TLS for sslmode=prefer).
type host struct {
	address string
	ways    []*pgconn.FallbackConfig
}

// hostsOf returns a configuration's hosts, in order.
func hostsOf(config *pgx.ConnConfig) (hosts []host) {
	ways := append([]*pgconn.FallbackConfig{{Host: config.Host, Port: config.Port, TLSConfig: config.TLSConfig}},
		config.Fallbacks...)
	for _, way := range ways {
		address := net.JoinHostPort(way.Host, strconv.Itoa(int(way.Port)))
		if n := len(hosts); n > 0 && hosts[n-1].address == address {
			hosts[n-1].ways = append(hosts[n-1].ways, way)
			continue
		}
		hosts = append(hosts, host{address, []*pgconn.FallbackConfig{way}})
	}
	return hosts
}

// lead sets a configuration's order of hosts.
func lead(config *pgx.ConnConfig, hosts []host) {
	var ways []*pgconn.FallbackConfig
	for _, h := range hosts {
		ways = append(ways, h.ways...)
	}
	config.Host, config.Port, config.TLSConfig, config.Fallbacks = ways[0].Host, ways[0].Port, ways[0].TLSConfig, ways[1:]
}

// prefer puts the host first that was last found to be the primary: a silent host costs each connection its whole
// timeout.
func (p *Primary) prefer(_ context.Context, config *pgx.ConnConfig) error {
	p.mu.Lock()
	first := p.first
	p.mu.Unlock()
	hosts := hostsOf(config)
	if i := slices.IndexFunc(hosts, func(h host) bool { return h.address == first }); i > 0 {
		lead(config, slices.Concat(hosts[i:], hosts[:i]))
	}
	return nil
}

// lookPatience is how long one host may take to respond.
const lookPatience = 2 * time.Second

// Look searches all hosts of the URL at once for the primary, when there are several: for a process that starts, or
// whose server does not commit. It takes at most two seconds, or four where TLS is optional.
func (p *Primary) Look(ctx context.Context, url string) {
	config, err := poolConfig(url, Options{})
	if err != nil {
		return // opening a pool returns the error
	}
	hosts := hostsOf(config.ConnConfig)
	if len(hosts) < 2 {
		return
	}
	states := make([]state, len(hosts))
	var looks sync.WaitGroup
	for i, h := range hosts {
		looks.Go(func() { states[i] = lookAt(ctx, config.ConnConfig.Copy(), h) })
	}
	looks.Wait()
	best := -1
	for i, s := range states {
		if s.timeline > 0 && !s.readOnly && (best < 0 || s.timeline > states[best].timeline) {
			best = i
		}
	}
	if best < 0 || p.judge(states[best], nil) != nil {
		return
	}
	p.mu.Lock()
	p.first = hosts[best].address
	p.mu.Unlock()
}

// lookAt returns the state of one host, the zero state if it does not respond.
func lookAt(ctx context.Context, config *pgx.ConnConfig, h host) (s state) {
	config.ConnectTimeout = lookPatience
	config.ValidateConnect = nil
	lead(config, []host{h})
	ctx, cancel := context.WithTimeout(ctx, time.Duration(len(h.ways))*lookPatience)
	defer cancel()
	conn, err := pgconn.ConnectConfig(ctx, &config.Config)
	if err != nil {
		return s
	}
	s, err = stateOf(ctx, conn)
	_ = conn.Close(ctx) // its response is complete
	if err != nil {
		return state{}
	}
	return s
}

// watch closes a pool's connections when another server becomes the primary.
func (p *Primary) watch(pool *pgxpool.Pool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pools = append(p.pools, pool)
}

// Confirmed calls read in a transaction. It returns nil when what read saw is as safe as an acknowledged commit: on the
// synchronous standby, where there is one. A row can be visible earlier: a COMMIT whose client was cut off ends without
// the standby. So whoever tells somebody what became of a COMMIT without a response reads it here. The transaction
// writes, so its COMMIT proves the earlier ones, and read and proof are of one server. read must reset the outer
// variables that it sets.
func Confirmed(ctx context.Context, pool *pgxpool.Pool, read func(tx pgx.Tx) error) error {
	return InTx(ctx, pool, func(tx pgx.Tx) error {
		if err := read(tx); err != nil {
			return err
		}
		return ConfirmWith(ctx, tx)
	})
}

// ConfirmWith makes the COMMIT of tx do the work of [Confirmed], even if tx writes nothing else: a transaction without
// writes waits for no standby. It costs no round trip.
func ConfirmWith(ctx context.Context, tx pgx.Tx) error {
	b := &pgx.Batch{}
	b.Queue(confirm)
	return Pipeline(ctx, tx, confirming, b)
}

// Confirming is a call in SQL that makes the COMMIT of its statement's transaction do the work of [Confirmed].
const Confirming = `pg_logical_emit_message(true, 'intumwa', '')`

const (
	confirm    = `SELECT ` + Confirming
	confirming = "waiting until what was written is safe"
)
