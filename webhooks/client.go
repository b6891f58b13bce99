package webhooks

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

const (
	connectTimeout = 5 * time.Second
	tlsTimeout     = 5 * time.Second
	idleTimeout    = 90 * time.Second // of a connection between two calls
)

// client speaks HTTP/1.1 to endpoints on the caller's goroutine, one exchange at a time per connection; http.Transport
// would hand each exchange to two goroutines. It uses no proxy and follows no redirects. The dialer checks each
// address.
type client struct {
	dialer   *net.Dialer
	sessions tls.ClientSessionCache // saves full handshakes with servers seen before
	timeout  time.Duration          // of an exchange
	most     int                    // idle connections

	mu     sync.Mutex
	idle   []*connection // most recently used last
	expiry *time.Timer   // closes what nobody has used for too long
}

// place is a connection's destination. Several companies may share one.
type place struct {
	address string // host:port
	name    string // in the certificate; "": no TLS
}

type connection struct {
	net.Conn
	place  place
	raw    syscall.RawConn   // of the socket, below TLS
	source *io.LimitedReader // of reader; limits the response
	reader *bufio.Reader
	since  time.Time // when it became idle
}

func newClient(timeout time.Duration, most int, resolver *net.Resolver, g guard) *client {
	c := &client{
		dialer:   &net.Dialer{Timeout: connectTimeout, KeepAlive: 15 * time.Second, Resolver: resolver, Control: g.control},
		sessions: tls.NewLRUClientSessionCache(256),
		timeout:  timeout,
		most:     most,
	}
	c.expiry = time.AfterFunc(idleTimeout, func() { c.closeIdle(idleTimeout) })
	return c
}

// exchange sends a request and reads the response, within the timeout. If a kept connection returns nothing, the server
// has closed it; the request is sent again over another one.
func (c *client) exchange(ctx context.Context, to place, request []byte, excerpt bool) (response, error) {
	deadline := time.Now().Add(c.timeout)
	for {
		conn, kept := c.take(to), true
		if conn == nil {
			var err error
			switch conn, err = c.dial(ctx, to, deadline); {
			case err != nil && !time.Now().Before(deadline):
				return response{}, context.DeadlineExceeded // a timeout of the name look-up returns a different error
			case err != nil:
				return response{}, err
			}
			kept = false
		}
		if kept && !conn.silent() {
			_ = conn.Close() // the server has closed it
			continue
		}
		_ = conn.SetDeadline(deadline) // on a closed connection the next call returns an error too
		a, err := conn.exchange(ctx, request, excerpt)
		if a.whole {
			c.keep(conn)
		} else {
			_ = conn.Close() // not reused
		}
		switch {
		case err == nil:
			return a, nil
		case !time.Now().Before(deadline):
			return a, context.DeadlineExceeded // within a header line it is a different error
		case !kept || conn.source.N < maxHeadBytes || ctx.Err() != nil:
			return a, err
		}
	}
}

// exchange sends a request and reads the final response. It ends when ctx does.
func (c *connection) exchange(ctx context.Context, request []byte, excerpt bool) (a response, err error) {
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer func() { a.whole = stop() && a.whole }()
	c.source.N = maxHeadBytes
	if _, err := c.Write(request); err != nil {
		return a, err
	}
	for {
		h, err := readHead(c.reader)
		if err != nil {
			return a, err
		}
		if h.status < 100 || h.status > 199 || h.status == http.StatusSwitchingProtocols {
			c.source.N += maxAnswerBytes - maxHeadBytes
			return readBody(c.reader, h, excerpt), nil
		}
	}
}

func (c *client) dial(ctx context.Context, to place, deadline time.Time) (*connection, error) {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	socket, err := c.dialer.DialContext(ctx, "tcp", to.address)
	if err != nil {
		return nil, err
	}
	if to.name == "" {
		return newConnection(socket, socket, to)
	}
	ctx, stop := context.WithTimeout(ctx, tlsTimeout)
	defer stop()
	secure := tls.Client(socket, &tls.Config{ServerName: to.name, MinVersion: tls.VersionTLS12,
		ClientSessionCache: c.sessions})
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = socket.Close() // the handshake's error is returned
		return nil, fmt.Errorf("%w: %w", errHandshake, err)
	}
	return newConnection(socket, secure, to)
}

// errHandshake marks an error of a TLS handshake.
var errHandshake = errors.New("tls handshake")

// newConnection returns the connection over a socket; conn is the socket or TLS over it. An error means that the socket
// is closed.
func newConnection(socket, conn net.Conn, to place) (*connection, error) {
	raw, err := socket.(*net.TCPConn).SyscallConn()
	if err != nil {
		return nil, err
	}
	source := &io.LimitedReader{R: conn}
	return &connection{Conn: conn, place: to, raw: raw, source: source, reader: bufio.NewReader(source)}, nil
}

// silent reports whether the server has kept the connection open and sent nothing that would pass for the next
// response. It checks the socket and TLS, which reads ahead.
func (c *connection) silent() bool {
	_ = c.SetReadDeadline(time.Time{}) // errors: raw.Read and Peek return them too
	quiet := false
	err := c.raw.Read(func(fd uintptr) bool {
		_, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		quiet = err == syscall.EAGAIN
		return true
	})
	if !quiet || err != nil {
		return false
	}
	_ = c.SetReadDeadline(time.Unix(1, 0))
	c.source.N = 1
	_, err = c.reader.Peek(1)
	return errors.Is(err, os.ErrDeadlineExceeded)
}

// take returns the most recently used idle connection, or nil.
func (c *client) take(to place) *connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, conn := range slices.Backward(c.idle) {
		if conn.place == to {
			c.idle = slices.Delete(c.idle, i, i+1)
			return conn
		}
	}
	return nil
}

func (c *client) keep(conn *connection) {
	conn.since = time.Now()
	c.mu.Lock()
	c.idle = append(c.idle, conn)
	c.mu.Unlock()
	c.closeIdle(idleTimeout)
	c.expiry.Reset(idleTimeout)
}

// closeIdle closes connections that have been idle that long, and the oldest if there are too many.
func (c *client) closeIdle(long time.Duration) {
	c.mu.Lock()
	n := max(0, len(c.idle)-c.most)
	for n < len(c.idle) && time.Since(c.idle[n].since) >= long {
		n++
	}
	old := slices.Clone(c.idle[:n])
	c.idle = slices.Delete(c.idle, 0, n)
	c.mu.Unlock()
	for _, conn := range old {
		_ = conn.Close() // nothing is in flight
	}
}
