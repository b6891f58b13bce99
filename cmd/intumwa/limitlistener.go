package main

import (
	"net"
	"sync"
)

// limited is a listener with a bounded number of open connections: further
// ones wait in the system's queue until one of these is closed.
type limited struct {
	net.Listener
	places chan struct{}
	closed chan struct{}
	once   sync.Once
}

func limitListener(l net.Listener, connections int) net.Listener {
	return &limited{Listener: l, places: make(chan struct{}, connections), closed: make(chan struct{})}
}

// Accept waits for a place, then for a connection.
func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.places <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.places
		return nil, err
	}
	return &placed{Conn: conn, leave: sync.OnceFunc(func() { <-l.places })}, nil
}

// Close also ends an Accept that waits for a place.
func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// placed gives its place back when it is closed.
type placed struct {
	net.Conn
	leave func()
}

// Close closes the connection.
func (p *placed) Close() error {
	defer p.leave()
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
