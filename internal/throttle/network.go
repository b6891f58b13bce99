package throttle

import "net/netip"

// Network returns the network of one customer, to count by: the address itself, or the /64 of an IPv6 address, all of
// which one customer has. Any other text is its own network.
func Network(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	if ip = ip.Unmap().WithZone(""); ip.Is4() {
		return ip.String()
	}
	network, _ := ip.Prefix(64) // never fails without a zone
	return network.String()
}
