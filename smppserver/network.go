package smppserver

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net"

	"intumwa/internal/throttle"
)

// Listen listens for customers' programs.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening for smpp: %w", err)
	}
	return door{listener}, nil
}

type door struct{ net.Listener }

// unread is how many bytes the system holds for a program that does not read, before our writes wait. By itself it
// would take megabytes, which are minutes of responses.
const unread = 32 << 10

// Accept returns the next connection.
func (d door) Accept() (net.Conn, error) {
	conn, err := d.Listener.Accept()
	if tcp, ok := conn.(*net.TCPConn); ok && err == nil {
		_ = tcp.SetWriteBuffer(unread) // without it the program is only ended later
	}
	return conn, err
}

// hostOf returns the IP address of a connection's peer.
func hostOf(remote net.Addr) string {
	host, _, err := net.SplitHostPort(remote.String())
	if err != nil {
		return remote.String()
	}
	return host
}

// throttleKey is the caller of throttles for the peer's network.
func throttleKey(remote net.Addr) int64 {
	sum := sha256.Sum256([]byte("smpp\x00" + throttle.Network(hostOf(remote))))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}
