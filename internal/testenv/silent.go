package testenv

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// BehindSilentHost is a pool of the same database with a first host that accepts
// connections and never answers, as a hung former primary does.
func BehindSilentHost(t testing.TB, pool *pgxpool.Pool) *pgxpool.Pool {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	config := pool.Config()
	c := config.ConnConfig
	c.Fallbacks = append([]*pgconn.FallbackConfig{{Host: c.Host, Port: c.Port, TLSConfig: c.TLSConfig}}, c.Fallbacks...)
	c.Host, c.Port, c.TLSConfig = "127.0.0.1", uint16(listener.Addr().(*net.TCPAddr).Port),
		nil //nolint:forcetypeassert // what a TCP listener has
	behind, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(behind.Close)
	return behind
}

// Unheard is a pool of the same database over a line that can lose responses.
func Unheard(t testing.TB, pool *pgxpool.Pool, line *Line) *pgxpool.Pool {
	t.Helper()
	config := pool.Config()
	dial := config.ConnConfig.DialFunc
	config.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if line.down.Load() {
			return nil, net.ErrClosed
		}
		conn, err := dial(ctx, network, address)
		return &heard{conn, line}, err
	}
	unheard, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(unheard.Close)
	return unheard
}

// Line is a connection to a database.
type Line struct{ lose, cut, down atomic.Bool }

// Lose closes the connection before the response to the next successful COMMIT.
func (l *Line) Lose() { l.lose.Store(true) }

// LoseAndCut is Lose, and nothing passes afterwards.
func (l *Line) LoseAndCut() { l.cut.Store(true); l.Lose() }

// Lost reports whether the response was lost.
func (l *Line) Lost() bool { return !l.lose.Load() }

// OnLost calls do when the response is lost, or the test ends.
func (l *Line) OnLost(t testing.TB, do func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for !l.Lost() && t.Context().Err() == nil {
			time.Sleep(5 * time.Millisecond)
		}
		do()
	}()
	t.Cleanup(func() { <-ended })
}

// heard is a connection over a Line.
type heard struct {
	net.Conn
	line *Line
}

func (h *heard) Read(b []byte) (int, error) {
	n, err := h.Conn.Read(b)
	if bytes.Contains(b[:n], []byte("COMMIT\x00")) && h.line.lose.CompareAndSwap(true, false) {
		h.line.down.Store(h.line.cut.Load())
		_ = h.Close()
		return 0, io.EOF
	}
	if h.line.down.Load() {
		_ = h.Close()
		return 0, io.EOF
	}
	return n, err
}
