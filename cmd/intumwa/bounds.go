package main

import (
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/netutil"

	"intumwa/internal/throttle"
)

// bounds limits the connections of a public listener, in total and per address, so that one
// host cannot take them all (TestOneHostGetsItsShareOfConnections). It closes a connection
// above its address's limit at once. Above the total, connections wait in the system's
// backlog; the server's timeouts end idle ones.
type bounds struct {
	listener   string
	most       int            // 0: no limit
	perAddress int            // 0: no limit
	exempt     []netip.Prefix // the proxies: only the total applies
	log        *slog.Logger
	opened     prometheus.Gauge
	limit      prometheus.Gauge
	refused    prometheus.Counter

	mu     sync.Mutex
	open   map[string]int // by network
	logged time.Time      // time of the last logged refusal
}

// A connection costs some 20 KiB, and the unit's limit of open files is 65,536. Many people may share one address.
const (
	maxConnections = 10_000
	maxPerAddress  = 1000
)

// newBounds labels the metrics with the listener's name.
func newBounds(listener string, proxies []string, log *slog.Logger, metrics prometheus.Registerer) *bounds {
	dropped := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "intumwa_http_connections_dropped_total",
		Help: "Connections dropped by a public listener."}, []string{"reason"})
	limit := prometheus.NewGauge(prometheus.GaugeOpts{Name: "intumwa_http_connections_max",
		Help: "Limit on open connections; 0: none."})
	c := &bounds{listener: listener, most: maxConnections, perAddress: maxPerAddress, log: log, limit: limit,
		open: make(map[string]int), refused: dropped.WithLabelValues("address"),
		opened: prometheus.NewGauge(prometheus.GaugeOpts{Name: "intumwa_http_connections_open",
			Help: "Open connections to a public listener."})}
	for _, p := range proxies { // configs checked them
		if prefix, err := netip.ParsePrefix(p); err == nil {
			c.exempt = append(c.exempt, prefix.Masked())
		} else if ip, err := netip.ParseAddr(p); err == nil {
			c.exempt = append(c.exempt, netip.PrefixFrom(ip, ip.BitLen()))
		}
	}
	prometheus.WrapRegistererWith(prometheus.Labels{"listener": listener}, metrics).MustRegister(c.opened, limit, dropped)
	return c
}

// listen applies the bounds to l.
func (c *bounds) listen(l net.Listener) net.Listener {
	c.limit.Set(float64(c.most))
	if c.most > 0 {
		l = netutil.LimitListener(l, c.most)
	}
	return &boundListener{Listener: l, of: c}
}

type boundListener struct {
	net.Listener
	of *bounds
}

// Accept returns the next connection within the bounds.
func (l *boundListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		key := l.of.address(conn)
		if l.of.enter(key) {
			return &boundConn{Conn: conn, leave: sync.OnceFunc(func() { l.of.leave(key) })}, nil
		}
		_ = conn.Close()
	}
}

type boundConn struct {
	net.Conn
	leave func()
}

// Close frees the connection's place once.
func (c *boundConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// address is the network of a connection, empty for an exempt one.
func (c *bounds) address(conn net.Conn) string {
	tcp, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return ""
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	if slices.ContainsFunc(c.exempt, func(p netip.Prefix) bool { return p.Contains(ip) }) {
		return ""
	}
	return throttle.Network(ip.String())
}

// enter counts a connection and returns false above the address's limit.
func (c *bounds) enter(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if key != "" && c.perAddress > 0 && c.open[key] >= c.perAddress {
		c.refused.Inc()
		if now := time.Now(); now.Sub(c.logged) >= time.Minute {
			c.logged = now
			c.log.Warn("connections are refused: one address has too many", "event", "connections_refused", "listener",
				c.listener, "address", key, "limit", c.perAddress)
		}
		return false
	}
	c.open[key]++
	c.opened.Inc()
	return true
}

func (c *bounds) leave(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.opened.Dec()
	if c.open[key]--; c.open[key] == 0 {
		delete(c.open, key)
	}
}
