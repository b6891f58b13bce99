package testenv

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// BehindSilentHost is a pool of the same database, of which the first host takes
// connections and says nothing: a server that hangs, while its standby was promoted.
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
	c.Host, c.Port, c.TLSConfig = "127.0.0.1", uint16(listener.Addr().(*net.TCPAddr).Port), nil //nolint:forcetypeassert // what a TCP listener has
	behind, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(behind.Close)
	return behind
}

// Unheard is a pool of the same database whose connections are lost, while lose is set,
// with the answer to a COMMIT that succeeded: once for each time that it is set.
func Unheard(t testing.TB, pool *pgxpool.Pool) (unheard *pgxpool.Pool, lose *atomic.Bool) {
	t.Helper()
	lose = new(atomic.Bool)
	config := pool.Config()
	dial := config.ConnConfig.DialFunc
	config.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		return &losing{conn, lose}, err
	}
	unheard, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(unheard.Close)
	return unheard, lose
}

// losing is a connection of Unheard.
type losing struct {
	net.Conn
	lose *atomic.Bool
}

func (l *losing) Read(octets []byte) (int, error) {
	n, err := l.Conn.Read(octets)
	if bytes.Contains(octets[:n], []byte("COMMIT\x00")) && l.lose.CompareAndSwap(true, false) {
		_ = l.Conn.Close()
		return 0, io.EOF
	}
	return n, err
}
