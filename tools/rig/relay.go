package rig

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
)

// Relay sits between a client and a server. It can count bytes and simulate an outage
// without touching the server. (toxiproxy needs a process and has had no release since
// 2022.)
type Relay struct {
	listener        net.Listener
	network, target string
	carry           func(server io.Writer, client io.Reader) error
	serving         sync.WaitGroup

	mu    sync.Mutex
	away  bool
	conns map[net.Conn]struct{}
}

// NewRelay relays to the target. carry passes bytes from clients; nil: unchanged.
func NewRelay(network, target string, carry func(server io.Writer, client io.Reader) error) (*Relay, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // loopback
	if err != nil {
		return nil, fmt.Errorf("listening before %s: %w", target, err)
	}
	if carry == nil {
		carry = func(server io.Writer, client io.Reader) error {
			_, err := io.Copy(server, client)
			return err
		}
	}
	r := &Relay{listener: listener, network: network, target: target, carry: carry, conns: map[net.Conn]struct{}{}}
	r.serving.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			r.serving.Go(func() { r.join(near) })
		}
	})
	return r, nil
}

// Address returns the address for clients.
func (r *Relay) Address() string { return r.listener.Addr().String() }

// join copies bytes both ways until either side ends.
func (r *Relay) join(near net.Conn) {
	defer r.forget(near)
	if !r.keep(near) {
		return
	}
	var dialer net.Dialer
	far, err := dialer.DialContext(context.Background(), r.network, r.target)
	if err != nil {
		return
	}
	defer r.forget(far)
	if !r.keep(far) {
		return
	}
	r.serving.Go(func() {
		_ = r.carry(far, near)
		r.forget(far)
	})
	_, _ = io.Copy(near, far)
}

func (r *Relay) keep(conn net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns[conn] = struct{}{}
	return !r.away
}

func (r *Relay) forget(conn net.Conn) {
	r.mu.Lock()
	delete(r.conns, conn)
	r.mu.Unlock()
	_ = conn.Close()
}

// Cut breaks every connection and refuses new ones, or allows them again.
func (r *Relay) Cut(away bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.away = away
	if away {
		for conn := range r.conns {
			_ = conn.Close()
		}
	}
}

// Close breaks every connection and returns when all are gone.
func (r *Relay) Close() {
	_ = r.listener.Close()
	r.Cut(true)
	r.serving.Wait()
}
