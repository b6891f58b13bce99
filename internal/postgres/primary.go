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

// Primary finds the server that may write: which host of the
// URL it is, and on which timeline (https://www.postgresql.org/docs/current/continuous-archiving.html#BACKUP-TIMELINES).
// Each promotion of a standby begins a new, higher timeline. So a server that can be
// written to on a lower one is the old primary, which came back or was never gone:
// what it takes would be lost. No connection is made to it, and those that there are
// get closed.
//
// It is safe for concurrent use, and keeps its state in memory only.
type Primary struct {
	log *slog.Logger

	mu       sync.Mutex
	system   string // identifier of the cluster, the same on all of its servers
	timeline int64  // the highest seen
	first    string // host:port to be tried first; "": in the URL's order
	pools    []*pgxpool.Pool
	lines    map[*line]int64 // by their servers' timelines; 0: not judged yet
}

// line is what a connection goes over.
type line struct {
	net.Conn
	primary *Primary
}

// Close forgets the line, too.
func (l *line) Close() error {
	l.primary.mu.Lock()
	delete(l.primary.lines, l)
	l.primary.mu.Unlock()
	return l.Conn.Close()
}

// NewPrimary makes one without a state. log gets a line for each failover; nil:
// none.
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

// state is what a server reports of itself.
type state struct {
	system   string
	timeline int64 // 0: not reported
	readOnly bool
}

// stateQuery reads it in one round trip. A standby's timeline does not matter.
const stateQuery = `SELECT (SELECT system_identifier FROM pg_control_system()), current_setting('transaction_read_only') = 'on',
	CASE WHEN pg_is_in_recovery() THEN '' ELSE left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) END`

// stateOf queries a server. One that does not allow it (a hosted one may have functions of
// its own) has no timeline; the error is of the connection.
func stateOf(ctx context.Context, conn *pgconn.PgConn) (s state, err error) {
	results, err := conn.Exec(ctx, stateQuery).ReadAll()
	if err != nil {
		if SQLState(err) == "" {
			return s, fmt.Errorf("asking the server whether it is the primary: %w", err)
		}
		results, err = conn.Exec(ctx, `SELECT '', current_setting('transaction_read_only') = 'on', ''`).ReadAll()
	}
	if err == nil && (len(results) != 1 || len(results[0].Rows) != 1 || len(results[0].Rows[0]) != 3) {
		err = errors.New("an answer that is none")
	}
	if err != nil {
		return s, fmt.Errorf("asking the server whether it can be written to: %w", err)
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

// judge returns why a server that is in such a state is not to be used, or nil, and
// remembers what is new, and that conn (nil: none that stays) leads there.
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
		return fmt.Errorf("%w: it is on timeline %d, and another one is on timeline %d", errOldPrimary, s.timeline, p.timeline)
	case s.system == p.system && s.timeline > p.timeline:
		p.log.Warn("PostgreSQL has failed over; connections to the old primary are closed", "event", "database_failed_over", "timeline", s.timeline, "before", p.timeline)
		p.cutLocked(s.timeline)
	}
	p.system, p.timeline = s.system, s.timeline
	return nil
}

// cutLocked ends every connection to a server on a timeline below one, and those that
// had no answer yet: what they wait for may never come, and must not count when it
// does.
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

// lineOf is what a connection goes over; nil for one that was not dialled here.
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

// guard lets no connection of a configuration lead to an old primary and, where it
// names several hosts, to one that is read-only.
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

// host is one of those that a URL names, with the ways in which it is spoken to (TLS,
// and without, for sslmode=prefer).
type host struct {
	address string
	ways    []*pgconn.FallbackConfig
}

// hostsOf are a configuration's, in order.
func hostsOf(config *pgx.ConnConfig) (hosts []host) {
	ways := append([]*pgconn.FallbackConfig{{Host: config.Host, Port: config.Port, TLSConfig: config.TLSConfig}}, config.Fallbacks...)
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

// lead has a configuration try hosts in this order.
func lead(config *pgx.ConnConfig, hosts []host) {
	var ways []*pgconn.FallbackConfig
	for _, h := range hosts {
		ways = append(ways, h.ways...)
	}
	config.Host, config.Port, config.TLSConfig, config.Fallbacks = ways[0].Host, ways[0].Port, ways[0].TLSConfig, ways[1:]
}

// prefer has a configuration try first the host that was last found to be the primary:
// one that does not answer costs each connection the whole of its time.
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

// lookPatience is how long one host may take to answer.
const lookPatience = 2 * time.Second

// Look queries every host of the URL, all at once, for the primary, when there are several:
// for a process that starts, or whose server does not commit. It
// takes two seconds at most, or four where TLS is optional.
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
	var asked sync.WaitGroup
	for i, h := range hosts {
		asked.Go(func() { states[i] = ask(ctx, config.ConnConfig.Copy(), h) })
	}
	asked.Wait()
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

// ask returns the state of one host, the zero state if it does not answer.
func ask(ctx context.Context, config *pgx.ConnConfig, h host) (s state) {
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
	_ = conn.Close(ctx) // its answer is complete
	if err != nil {
		return state{}
	}
	return s
}

// watch has a pool's connections closed when another server becomes the primary.
func (p *Primary) watch(pool *pgxpool.Pool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pools = append(p.pools, pool)
}

// Confirm returns when all that could be seen in the database before is as safe as what
// was committed with an answer: on the synchronous standby, where there is one. A row can
// be seen earlier: a COMMIT without a waiting client, because its connection was cut, ends
// without the standby. So what a customer gets after a COMMIT without an
// answer is confirmed, and then read; with pools that share a [Primary] both are done by
// one server, or the second by the new primary.
func Confirm(ctx context.Context, pool *pgxpool.Pool) error {
	if _, err := pool.Exec(ctx, confirm); err != nil {
		return fmt.Errorf("%s: %w", confirming, err)
	}
	return nil
}

// ConfirmWith has the COMMIT of tx do what [Confirm] does, also if tx writes nothing else: a
// transaction that writes nothing waits for no standby. It costs no round trip.
func ConfirmWith(ctx context.Context, tx pgx.Tx) error {
	b := &pgx.Batch{}
	b.Queue(confirm)
	return Later(ctx, tx, confirming, b)
}

const (
	confirm    = `SELECT pg_logical_emit_message(true, 'intumwa', '')`
	confirming = "waiting until what was written is safe"
)
