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
// connection, in the caller's goroutine (net/http's transport needs two more). It
// follows no redirect, asks for no compression and uses no proxy. The deadline is set
// on the connection, so an exchange ends by then whatever the endpoint sends.
type client struct {
	ctx       context.Context // ends all exchanges
	dialer    *net.Dialer
	handshake time.Duration // of a TLS handshake, at most
	idleMost  int           // limit of idle connections
	hostMost  int           // limit of idle connections to one place

	mu     sync.Mutex
	open   map[*connection]struct{} // all connections
	idle   map[place][]*connection  // the last one used at the end
	kept   int                      // idle connections to all places
	tidied *time.Timer              // nil: no connection is idle
}

// place is the address of connections; several companies may share one.
type place struct {
	address string // host:port
	name    string // for the certificate; "" without TLS
}

// connection is one connection to an endpoint. One exchange holds it at a time.
type connection struct {
	net.Conn
	raw      syscall.RawConn // of the socket below TLS
	place    place
	reader   *bufio.Reader
	left     int64 // octets that may still be read of the response's head
	received bool  // octets came after the request was written
	readErr  error // the error that ended reading; a parser may hide it behind its own
	since    time.Time
}

var sessions = tls.NewLRUClientSessionCache(256) // saves full handshakes with known servers

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

// exchange sends a request and returns the head of the final response; its body can be
// read from the connection until the deadline. The caller returns the connection by
// keep or drop. When nothing was received on a reused connection, the request is sent
// again on a new one: the server had closed the old one.
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
		if !kept || conn.received || timedOut(err) || c.ctx.Err() != nil {
			return nil, nil, err
		}
	}
}

var postRequest = &http.Request{Method: http.MethodPost} // what http.ReadResponse must know of the request

func (c *connection) exchange(request []byte) (*http.Response, error) {
	c.left, c.received = maxHeaderBytes, false
	if _, err := c.Write(request); err != nil {
		return nil, err
	}
	for {
		response, err := http.ReadResponse(c.reader, postRequest)
		if err != nil {
			return nil, cmp.Or(c.readErr, err)
		}
		if response.StatusCode < 100 || response.StatusCode > 199 || response.StatusCode == http.StatusSwitchingProtocols {
			c.left = math.MaxInt64 // the reader of the body limits it
			return response, nil
		}
	}
}

// meter is the source of a connection's reader; it limits the length of heads.
type meter struct{ *connection }

func (m meter) Read(b []byte) (int, error) {
	if m.left <= 0 {
		return 0, errLongHead
	}
	n, err := m.Conn.Read(b[:min(int64(len(b)), m.left)])
	m.left -= int64(n)
	m.received, m.readErr = m.received || n > 0, err
	return n, err
}

// get returns a connection for one exchange, with its deadline set. kept means that it
// was used before.
func (c *client) get(to place, deadline time.Time) (conn *connection, kept bool, err error) {
	for {
		conn = c.take(to)
		if conn == nil {
			conn, err = c.dial(to, deadline)
			return conn, false, err
		}
		if err := conn.SetDeadline(deadline); err == nil && conn.isIdle() {
			return conn, true, nil
		}
		c.drop(conn)
	}
}

// take removes and returns the idle connection that was used last.
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

// isIdle reports whether the server has neither closed the connection nor sent
// something unasked, which would be taken for the next response.
func (c *connection) isIdle() bool {
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
		// No ALPN: only HTTP/1.1 is spoken.
		secure := tls.Client(socket, &tls.Config{ServerName: to.name, MinVersion: tls.VersionTLS12, ClientSessionCache: sessions})
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = socket.Close() // the handshake's error is returned
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
	if c.ctx.Err() != nil { // it may have ended before the connection was added to open
		c.drop(conn)
		return nil, c.ctx.Err()
	}
	return conn, nil
}

// keep returns a connection for reuse. The whole response must have been read.
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

// drop closes a connection.
func (c *client) drop(conn *connection) {
	c.mu.Lock()
	delete(c.open, conn)
	c.mu.Unlock()
	_ = conn.Close() // it is not used again
}

// tidy closes connections that were idle for idleTimeout. It runs again while others
// are left.
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

// closeAll closes every connection.
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
		_ = conn.Close() // a pending read gets the error
	}
}
