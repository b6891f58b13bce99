package smppserver

import (
	"crypto/sha256"
	"encoding/binary"
	"net"

	"intumwa/internal/throttle"
)

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
