package webhooks

import (
	"context"
	"crypto/tls"
	"net"
	"net/http/httptrace"
	"sync"
)

// line is a connection to an endpoint. It knows which call holds it, so that the
// call's end can end it, whatever net/http thinks is going on there: what it has
// handed over with a 101 it no longer watches.
type line struct {
	net.Conn

	mu     sync.Mutex
	holder *tether
}

// tether ties one call to the connection that carries it.
type tether struct {
	mu   sync.Mutex
	line *line
	over bool
}

// tie returns the context of a call under which the connection that it comes to
// hold is closed when the context ends, and what unties them when the call is
// over. A connection that has gone on to another call is left alone.
func tie(ctx context.Context) (tied context.Context, untie func()) {
	t := new(tether)
	stop := context.AfterFunc(ctx, t.cut)
	tied = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			conn := info.Conn
			if secure, ok := conn.(*tls.Conn); ok {
				conn = secure.NetConn()
			}
			if l, ok := conn.(*line); ok {
				t.hold(l)
			}
		},
	})
	return tied, func() { stop() }
}

// hold takes the connection over from the call before. A call may come to hold a
// second one, when the first turned out to be dead.
func (t *tether) hold(l *line) {
	l.mu.Lock()
	l.holder = t
	l.mu.Unlock()
	t.mu.Lock()
	t.line = l
	over := t.over
	t.mu.Unlock()
	if over {
		t.cut()
	}
}

// cut ends the connection if the call still holds it.
func (t *tether) cut() {
	t.mu.Lock()
	t.over = true
	l := t.line
	t.mu.Unlock()
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holder == t {
		_ = l.Close() // its reader gets the error
	}
}
