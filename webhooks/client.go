package webhooks

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"math"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// client speaks HTTP/1.1 (RFC 9112) to endpoints: one request at a time over a
// connection, by the goroutine that asks, which net/http's transport needs two
// more for. It follows no redirect, asks for no compression and knows no proxy.
// An exchange ends by its deadline whatever is answered, because the connection
// does.
type client struct {
	ctx       context.Context // ends all that is under way
	dialer    *net.Dialer
	handshake time.Duration // of a TLS handshake, at most
	idleMost  int           // connections kept
	hostMost  int           // of them of one place

	mu     sync.Mutex
	open   map[*connection]struct{} // every one there is
	idle   map[place][]*connection  // the latest last
	kept   int                      // of all places
	tidied *time.Timer              // nil: nothing is kept
}

// place is where connections lead: companies may share one.
type place struct {
	address string // host:port
	name    string // of the certificate; "" without TLS
}

// connection is one connection to an endpoint. One exchange holds it at a time.
type connection struct {
	net.Conn
	raw    syscall.RawConn // of the socket beneath
	place  place
	reader *bufio.Reader
	left   int64 // octets that may still be read of the answer's head
	heard  bool  // something came since the request was written
	broke  error // how reading ended; half a line hides it from whoever parses
	since  time.Time
}

var sessions = tls.NewLRUClientSessionCache(256) // spares full handshakes with known servers

func newClient(ctx context.Context, opts Options, g guard) *client {
	c := &client{
		ctx: ctx,
		dialer: &net.Dialer{Timeout: min(connectTimeout, opts.Timeout), KeepAlive: 15 * time.Second,
			Resolver: opts.resolver, Control: g.control},
		handshake: min(tlsTimeout, opts.Timeout),
		idleMost:  opts.InFlight,
		hostMost:  max(opts.InFlight/2, opts.PerEndpointMax),
		open:      make(map[*connection]struct{}),
		idle:      make(map[place][]*connection),
	}
	context.AfterFunc(ctx, c.closeAll)
	return c
}

// exchange sends a request and returns the head of the final answer, whose body
// is read from the connection until the deadline. The caller gives the connection
// back by keep or drop. A request of which nothing was answered on a connection
// that was kept is sent again on a new one: the server had closed it.
func (c *client) exchange(to place, request []byte, deadline time.Time) (*http.Response, *connection, error) {
	for {
		conn, kept, err := c.get(to, deadline)
		if err != nil {
			return nil, nil, err
		}
		response, err := conn.exchange(request)
		if err == nil {
			return response, conn, nil
		}
		c.drop(conn)
		if !kept || conn.heard || timedOut(err) || c.ctx.Err() != nil {
			return nil, nil, err
		}
	}
}

var posted = &http.Request{Method: http.MethodPost} // what answers are to

func (c *connection) exchange(request []byte) (*http.Response, error) {
	c.left, c.heard = maxHeaderBytes, false
	if _, err := c.Write(request); err != nil {
		return nil, err
	}
	for {
		response, err := http.ReadResponse(c.reader, posted)
		if err != nil {
			return nil, cmp.Or(c.broke, err)
		}
		if response.StatusCode < 100 || response.StatusCode > 199 || response.StatusCode == http.StatusSwitchingProtocols {
			c.left = math.MaxInt64 // whoever reads the body bounds it
			return response, nil
		}
	}
}

// meter is what the reader of a connection reads from: it bounds heads.
type meter struct{ *connection }

func (m meter) Read(b []byte) (int, error) {
	if m.left <= 0 {
		return 0, errLongHead
	}
	n, err := m.Conn.Read(b[:min(int64(len(b)), m.left)])
	m.left -= int64(n)
	m.heard, m.broke = m.heard || n > 0, err
	return n, err
}

// get returns a connection for one exchange, of which the deadline is set. kept
// tells that it was used before.
func (c *client) get(to place, deadline time.Time) (conn *connection, kept bool, err error) {
	for {
		conn = c.take(to)
		if conn == nil {
			conn, err = c.dial(to, deadline)
			return conn, false, err
		}
		if err := conn.SetDeadline(deadline); err == nil && conn.quiet() {
			return conn, true, nil
		}
		c.drop(conn)
	}
}

// take removes the kept connection that was used last.
func (c *client) take(to place) *connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := c.idle[to]
	if len(kept) == 0 {
		return nil
	}
	conn := kept[len(kept)-1]
	kept[len(kept)-1] = nil
	c.idle[to] = kept[:len(kept)-1]
	c.kept--
	return conn
}

// quiet tells that the server has neither closed the connection nor said
// something unasked, which would be taken for the next answer.
func (c *connection) quiet() bool {
	quiet := false
	var octet [1]byte
	err := c.raw.Read(func(fd uintptr) bool {
		_, _, err := syscall.Recvfrom(int(fd), octet[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		quiet = err == syscall.EAGAIN
		return true
	})
	return err == nil && quiet
}

func (c *client) dial(to place, deadline time.Time) (*connection, error) {
	ctx, cancel := context.WithDeadline(c.ctx, deadline)
	defer cancel()
	socket, err := c.dialer.DialContext(ctx, "tcp", to.address)
	if err != nil {
		return nil, err
	}
	raw, err := socket.(*net.TCPConn).SyscallConn()
	if err != nil {
		_ = socket.Close()
		return nil, err
	}
	conn := &connection{Conn: socket, raw: raw, place: to}
	if to.name != "" {
		ctx, cancel := context.WithTimeout(ctx, c.handshake)
		defer cancel()
		// No ALPN: there is HTTP/1.1 and nothing else.
		secure := tls.Client(socket, &tls.Config{ServerName: to.name, MinVersion: tls.VersionTLS12, ClientSessionCache: sessions})
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = socket.Close() // the handshake's error says more
			return nil, &handshakeError{err}
		}
		conn.Conn = secure
	}
	conn.reader = bufio.NewReader(meter{conn})
	if err := conn.SetDeadline(deadline); err != nil {
		_ = conn.Close()
		return nil, err
	}
	c.mu.Lock()
	c.open[conn] = struct{}{}
	c.mu.Unlock()
	if c.ctx.Err() != nil { // it may have ended before the connection stood among the open
		c.drop(conn)
		return nil, c.ctx.Err()
	}
	return conn, nil
}

// keep gives a connection back of which the whole answer was read.
func (c *client) keep(conn *connection) {
	c.mu.Lock()
	kept := c.idle[conn.place]
	if c.kept >= c.idleMost || len(kept) >= c.hostMost || c.ctx.Err() != nil || conn.reader.Buffered() > 0 {
		c.mu.Unlock()
		c.drop(conn)
		return
	}
	conn.since = time.Now()
	c.idle[conn.place] = append(kept, conn)
	c.kept++
	if c.tidied == nil {
		c.tidied = time.AfterFunc(idleTimeout/2, c.tidy)
	}
	c.mu.Unlock()
}

// drop ends a connection.
func (c *client) drop(conn *connection) {
	c.mu.Lock()
	delete(c.open, conn)
	c.mu.Unlock()
	_ = conn.Close() // nothing is expected of it
}

// tidy ends connections that have been kept for long, and comes again while
// there are others.
func (c *client) tidy() {
	c.mu.Lock()
	var old []*connection
	for at, kept := range c.idle {
		n := 0
		for n < len(kept) && time.Since(kept[n].since) > idleTimeout {
			n++
		}
		old = append(old, kept[:n]...)
		if c.idle[at] = kept[n:]; n == len(kept) {
			delete(c.idle, at)
		}
	}
	c.kept -= len(old)
	if c.tidied = nil; len(c.idle) > 0 {
		c.tidied = time.AfterFunc(idleTimeout/2, c.tidy)
	}
	c.mu.Unlock()
	for _, conn := range old {
		c.drop(conn)
	}
}

// closeAll ends every connection.
func (c *client) closeAll() {
	c.mu.Lock()
	open := c.open
	c.open, c.idle, c.kept = make(map[*connection]struct{}), make(map[place][]*connection), 0
	if c.tidied != nil {
		c.tidied.Stop()
		c.tidied = nil
	}
	c.mu.Unlock()
	for conn := range open {
		_ = conn.Close() // whoever reads gets the error
	}
}
