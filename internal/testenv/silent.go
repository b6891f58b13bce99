package testenv

import (
	"context"
	"net"
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
