package smppserver

import (
	"net"
	"net/netip"
)

// addressOfPeer returns the IP address of a connection; the zero Addr if it has none.
func addressOfPeer(remote net.Addr) netip.Addr {
	at, err := netip.ParseAddrPort(remote.String())
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap().WithZone("")
}

// networkOf returns one customer's network: an IPv4 address, or the /64 of an IPv6 address.
func networkOf(remote net.Addr) netip.Prefix {
	ip := addressOfPeer(remote)
	bits := ip.BitLen()
	if ip.Is6() {
		bits = 64
	}
	prefix, _ := ip.Prefix(bits) // of no address: the zero Prefix
	return prefix
}
