//go:build !linux

package smpp

import "syscall"

// limitUnacknowledged does nothing where TCP_USER_TIMEOUT is not known;
// keep-alive, write deadlines and enquire_link still find a vanished peer.
func limitUnacknowledged(_, _ string, _ syscall.RawConn) error { return nil }
