package main

import (
	"container/list"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"intumwa/api"
)

// Why a connection was dropped.
const (
	dropAddress = "address" // its address had as many as it may: the address's oldest idle one, or else the new one
	dropIdle    = "idle"    // all connections were taken, and it was the oldest idle one
	dropStalled = "stalled" // its client stopped reading the answer
	dropFraming = "framing" // its request could be read in two ways
)

// stallAfter is how long a client may take to read the next writePiece octets of
// an answer.
const (
	stallAfter = 10 * time.Second
	writePiece = 32 << 10
)

// door bounds the open connections of a listener: all together, and of one
// address. When there is no room, the oldest that waits for a request gives way;
// when none does, a new one of that address is refused, and one of any other waits
// to be accepted until there is room.
type door struct {
	name       string         // of the listener
	most       int            // 0: no limit
	perAddress int            // 0: no limit
	exempt     []netip.Prefix // whose connections are bounded by most alone: the proxies
	stall      time.Duration
	log        *slog.Logger
	opened     prometheus.Gauge
	dropped    *prometheus.CounterVec // reason

	mu        sync.Mutex
	room      *sync.Cond // somebody left or became idle, or the listener was closed
	open      int
	ended     bool
	addresses map[netip.Prefix]*address
	idle      list.List // of *placed, the oldest first
	proxied   list.List // the same of the exempt ones, who give way last
	told      map[string]*tally
}

// address is one client's connections: those of an IPv4 address, or of an IPv6
// network of 64 bits.
type address struct {
	key  netip.Prefix
	open int
	idle list.List
}

// tally is what has not been logged yet.
type tally struct {
	since time.Time
	count int
}

// newDoor makes the door of the listener of that name, which its metrics bear.
func newDoor(listener string, most, perAddress int, proxies []string, log *slog.Logger, metrics prometheus.Registerer) *door {
	d := &door{name: listener, most: most, perAddress: perAddress, stall: stallAfter, log: log, addresses: make(map[netip.Prefix]*address), told: make(map[string]*tally),
		opened: prometheus.NewGauge(prometheus.GaugeOpts{Name: "intumwa_http_connections_open",
			Help: "Open connections to a public listener (api, dashboard)."}),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "intumwa_http_connections_dropped_total",
			Help: "Connections to a public listener that were dropped, by reason."}, []string{"reason"}),
	}
	d.room = sync.NewCond(&d.mu)
	for _, p := range proxies { // checked by configs
		if prefix, err := netip.ParsePrefix(p); err == nil {
			d.exempt = append(d.exempt, prefix.Masked())
		} else if ip, err := netip.ParseAddr(p); err == nil {
			d.exempt = append(d.exempt, netip.PrefixFrom(ip, ip.BitLen()))
		}
	}
	limit := prometheus.NewGauge(prometheus.GaugeOpts{Name: "intumwa_http_connections_max",
		Help: "Most open connections to a public listener; 0 is no limit."})
	limit.Set(float64(most))
	for _, reason := range []string{dropAddress, dropIdle, dropStalled, dropFraming} {
		d.dropped.WithLabelValues(reason)
	}
	prometheus.WrapRegistererWith(prometheus.Labels{"listener": listener}, metrics).MustRegister(d.opened, limit, d.dropped)
	return d
}

// behind puts a server behind the door, which then has to get its connections
// from what listen returns.
func (d *door) behind(server *http.Server) {
	inner := server.Handler
	server.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, connectionKey{}, conn)
	}
	server.ConnState = func(conn net.Conn, state http.ConnState) {
		if p, ours := conn.(*placed); ours {
			d.state(p, state)
		}
	}
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p, ours := r.Context().Value(connectionKey{}).(*placed); ours && p.framing.doubtful.Load() {
			d.note(dropFraming, p.key())
			w.Header().Set("Connection", "close")
			api.RefuseAmbiguous(w, r)
			return
		}
		inner.ServeHTTP(w, r)
	})
}

type connectionKey struct{}

// listen answers the listener's connections as the door lets them in.
func (d *door) listen(l net.Listener) net.Listener { return &limited{Listener: l, door: d} }

type limited struct {
	net.Listener
	door *door
}

// Accept waits for a connection and for room for it.
func (l *limited) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if p := l.door.enter(conn); p != nil {
			return p, nil
		}
		_ = conn.Close()
	}
}

// Close also ends an Accept that waits for room.
func (l *limited) Close() error {
	l.door.mu.Lock()
	l.door.ended = true
	l.door.room.Broadcast()
	l.door.mu.Unlock()
	return l.Listener.Close()
}

// keyOf is whose connection it is; ok is false for the exempt.
func (d *door) keyOf(conn net.Conn) (key netip.Prefix, ok bool) {
	tcp, isTCP := conn.RemoteAddr().(*net.TCPAddr)
	if !isTCP {
		return netip.Prefix{}, false
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	for _, p := range d.exempt {
		if p.Contains(ip) {
			return netip.Prefix{}, false
		}
	}
	bits := ip.BitLen()
	if ip.Is6() {
		bits = 64
	}
	key, err := ip.Prefix(bits)
	return key, err == nil
}

// enter lets a connection in; nil when it is to be refused.
func (d *door) enter(conn net.Conn) *placed {
	key, counted := d.keyOf(conn)
	d.mu.Lock()
	defer d.mu.Unlock()
	for {
		if d.ended {
			return nil
		}
		if a := d.addresses[key]; counted && a != nil && d.perAddress > 0 && a.open >= d.perAddress {
			d.say(dropAddress, key)
			if !d.drop(a.idle.Front()) {
				return nil
			}
		}
		if d.most == 0 || d.open < d.most {
			break
		}
		oldest := d.idle.Front()
		if oldest == nil {
			oldest = d.proxied.Front()
		}
		if oldest != nil {
			d.say(dropIdle, oldest.Value.(*placed).key())
			d.drop(oldest)
			continue
		}
		d.room.Wait()
	}
	p := &placed{Conn: conn, door: d}
	if counted {
		if p.address = d.addresses[key]; p.address == nil {
			p.address = &address{key: key}
			d.addresses[key] = p.address
		}
		p.address.open++
	}
	d.open++
	d.opened.Set(float64(d.open))
	d.rest(p)
	return p
}

// drop closes a connection that is idle; false when there is none.
func (d *door) drop(e *list.Element) bool {
	if e == nil {
		return false
	}
	p := e.Value.(*placed)
	d.leave(p)
	_ = p.Conn.Close()
	return true
}

// rest puts a connection among the idle ones, work takes it from there.
func (d *door) rest(p *placed) {
	if p.gone || p.idle != nil {
		return
	}
	if p.address != nil {
		p.idle, p.idleOfAddress = d.idle.PushBack(p), p.address.idle.PushBack(p)
	} else {
		p.idle = d.proxied.PushBack(p)
	}
	d.room.Signal()
}

func (d *door) work(p *placed) {
	if p.idle == nil {
		return
	}
	if p.address != nil {
		d.idle.Remove(p.idle)
		p.address.idle.Remove(p.idleOfAddress)
	} else {
		d.proxied.Remove(p.idle)
	}
	p.idle, p.idleOfAddress = nil, nil
}

// leave takes a connection off the books, once.
func (d *door) leave(p *placed) {
	if p.gone {
		return
	}
	d.work(p)
	p.gone = true
	d.open--
	d.opened.Set(float64(d.open))
	if a := p.address; a != nil {
		if a.open--; a.open == 0 {
			delete(d.addresses, a.key)
		}
	}
	d.room.Signal()
}

// state follows what the server does with a connection. One whose request has
// not come whole is idle.
func (d *door) state(p *placed, state http.ConnState) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch state {
	case http.StateActive:
		d.work(p)
	case http.StateIdle:
		d.rest(p)
	case http.StateNew, http.StateHijacked, http.StateClosed:
	}
}

func (d *door) note(reason string, key netip.Prefix) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.say(reason, key)
}

// say counts a dropped connection, and logs the first of a reason and then their
// number once a minute.
func (d *door) say(reason string, key netip.Prefix) {
	d.dropped.WithLabelValues(reason).Inc()
	t := d.told[reason]
	if t == nil {
		t = &tally{}
		d.told[reason] = t
	}
	t.count++
	if now := time.Now(); now.Sub(t.since) >= time.Minute {
		d.log.Warn("connections are dropped", "listener", d.name, "reason", reason, "dropped", t.count, "last_address", key.String(), "open", d.open)
		t.since, t.count = now, 0
	}
}

// placed is a connection that was let in.
type placed struct {
	net.Conn
	door          *door
	address       *address // nil: exempt
	idle          *list.Element
	idleOfAddress *list.Element
	gone          bool // these by door.mu

	framing framing

	mu      sync.Mutex
	writeBy time.Time // what the server wants; zero: whenever
	stalled bool
}

func (p *placed) key() (key netip.Prefix) {
	if p.address != nil {
		key = p.address.key
	}
	return key
}

// Read follows what is read, see framing.
func (p *placed) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	p.framing.feed(b[:n])
	return n, err
}

// Write gives up on a client that takes none of the next writePiece octets for
// so long, whatever time the whole answer has.
func (p *placed) Write(b []byte) (n int, err error) {
	for first := true; first || len(b) > 0; first = false {
		if err := p.untilStalled(); err != nil {
			return n, err
		}
		written, err := p.Conn.Write(b[:min(len(b), writePiece)])
		n += written
		if err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) && !p.stalled {
				p.stalled = true
				p.door.note(dropStalled, p.key())
			}
			return n, err
		}
		b = b[written:]
	}
	return n, nil
}

func (p *placed) untilStalled() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	by := time.Now().Add(p.door.stall)
	if !p.writeBy.IsZero() && p.writeBy.Before(by) {
		by = p.writeBy
	}
	return p.Conn.SetWriteDeadline(by)
}

// SetWriteDeadline also ends a Write that is under way.
func (p *placed) SetWriteDeadline(t time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writeBy = t
	return p.Conn.SetWriteDeadline(t)
}

// SetDeadline sets both deadlines.
func (p *placed) SetDeadline(t time.Time) error {
	return errors.Join(p.SetReadDeadline(t), p.SetWriteDeadline(t))
}

// Close closes the connection and makes room.
func (p *placed) Close() error {
	p.door.mu.Lock()
	p.door.leave(p)
	p.door.mu.Unlock()
	return p.Conn.Close()
}

// CloseWrite tells the client that nothing more comes, which net/http does
// before it closes on one that is still sending.
func (p *placed) CloseWrite() error {
	if conn, ok := p.Conn.(interface{ CloseWrite() error }); ok {
		return conn.CloseWrite()
	}
	return nil
}
