package stories

import (
	"context"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"
)

// bridge is a way to a server that can be made to hang: connections stay, and
// nothing moves on them.
type bridge struct {
	listener net.Listener
	target   string
	mu       sync.Mutex
	moving   *sync.Cond
	hangs    bool
}

// bridgeTo stands before the server of a URL and returns the URL that leads
// over it.
func (w *world) bridgeTo(database string) (*bridge, string) {
	w.t.Helper()
	at, err := url.Parse(database)
	if err != nil {
		w.t.Fatal(err)
	}
	b := &bridge{target: at.Query().Get("host") + "/.s.PGSQL.5432"}
	if at.Host != "" {
		b.target = at.Host
	}
	b.moving = sync.NewCond(&b.mu)
	if b.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = b.listener.Close(); b.hang(false) })
	go b.serve()
	at.Host = b.listener.Addr().String()
	query := at.Query()
	query.Del("host")
	query.Set("sslmode", "disable")
	at.RawQuery = query.Encode()
	return b, at.String()
}

func (b *bridge) hang(hangs bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hangs = hangs
	b.moving.Broadcast()
}

// wait waits while the bridge hangs.
func (b *bridge) wait() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.hangs {
		b.moving.Wait()
	}
}

func (b *bridge) serve() {
	for {
		near, err := b.listener.Accept()
		if err != nil {
			return
		}
		network := "tcp"
		if b.target[0] == '/' {
			network = "unix"
		}
		far, err := (&net.Dialer{}).DialContext(context.Background(), network, b.target)
		if err != nil {
			_ = near.Close()
			continue
		}
		for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
			go func() {
				defer func() { _, _ = way[0].Close(), way[1].Close() }()
				octets := make([]byte, 64<<10)
				for {
					n, err := way[0].Read(octets)
					b.wait()
					if _, failed := way[1].Write(octets[:n]); failed != nil || err != nil {
						return
					}
				}
			}()
		}
	}
}

// PostgreSQL stands still, its connections open, and the gateway is told to
// end. It leaves within its time and says what it could not finish; the next
// one carries everything on.
func TestTerminatedWhilePostgresHangs(t *testing.T) {
	t.Parallel()
	busy(t)
	w := play(t, scene{carriers: []carrier{steady()}, dark: true})
	b, over := w.bridgeTo(w.database)
	w.gateway.extra = tree{"database": tree{"url": over}}
	w.gateway.configure()
	w.gateway.start()
	shop := w.company("Isoko", 1_000_000)
	l := shop.sendsMany(&load{messages: 1000, keyed: true})
	l.reaches(300)
	b.hang(true)
	code, took := w.gateway.terminate()
	// It gives up after 9.5 s; on a machine that plays other stories beside it the
	// rest may take longer than half a second. Supervisors wait 15 s.
	if most := endWithin + 3*time.Second; took > most {
		t.Errorf("the gateway ended %v after SIGTERM, want within %v", took, most)
	}
	t.Logf("with the database hanging it ended with code %d after %v", code, took.Round(time.Millisecond))
	b.hang(false)
	w.gateway.start()
	l.finishes()
	w.drains()
	l.adds(window)
	w.gateway.extra = nil // the auditor comes when the bridge is down
	w.gateway.configure()
}
