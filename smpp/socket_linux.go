package smpp

import (
	"syscall"
	"time"
)

// unacknowledged is how long written octets may stay unacknowledged by the
// peer's kernel before ours gives the connection up.
const unacknowledged = 30 * time.Second

// tcpUserTimeout is TCP_USER_TIMEOUT of <linux/tcp.h>.
const tcpUserTimeout = 0x12

// limitUnacknowledged makes the kernel end a connection whose peer has vanished.
func limitUnacknowledged(_, _ string, raw syscall.RawConn) error {
	var failed error
	err := raw.Control(func(fd uintptr) {
		failed = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(unacknowledged.Milliseconds()))
	})
	if err != nil {
		return err
	}
	return failed
}
