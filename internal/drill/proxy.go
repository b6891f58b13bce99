package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
)

// proxy stands between the gateway and a store, so that the store can be away
// without being harmed: connections are then broken and refused.
type proxy struct {
	address  string
	listener net.Listener
	network  string
	target   string

	mu    sync.Mutex
	away  bool
	conns map[net.Conn]struct{}
}

func newProxy(ctx context.Context, network, target string) (*proxy, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening before %s: %w", target, err)
	}
	p := &proxy{address: listener.Addr().String(), listener: listener, network: network, target: target, conns: map[net.Conn]struct{}{}}
	go p.serve(ctx)
	return p, nil
}

func (p *proxy) serve(ctx context.Context) {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.join(ctx, near)
	}
}

// join carries octets both ways until either side ends.
func (p *proxy) join(ctx context.Context, near net.Conn) {
	defer p.forget(near)
	if !p.keep(near) {
		return
	}
	far, err := (&net.Dialer{}).DialContext(ctx, p.network, p.target)
	if err != nil {
		return
	}
	defer p.forget(far)
	if !p.keep(far) {
		return
	}
	go func() {
		_, _ = io.Copy(far, near)
		p.forget(far)
	}()
	_, _ = io.Copy(near, far)
}

func (p *proxy) keep(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[conn] = struct{}{}
	return !p.away
}

func (p *proxy) forget(conn net.Conn) {
	p.mu.Lock()
	delete(p.conns, conn)
	p.mu.Unlock()
	_ = conn.Close()
}

// cut breaks every connection and refuses new ones, or lets them through again.
func (p *proxy) cut(away bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away = away
	if away {
		for conn := range p.conns {
			_ = conn.Close()
		}
	}
}

func (p *proxy) close() {
	_ = p.listener.Close()
	p.cut(true)
}
