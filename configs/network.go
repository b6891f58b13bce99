package configs

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
)

// parseNetwork reads an address or a range. A range of IPv4 addresses written as IPv6 counts as IPv4.
func parseNetwork(text string) (netip.Prefix, bool) {
	if ip, err := netip.ParseAddr(text); err == nil && ip.Zone() == "" {
		ip = ip.Unmap()
		return netip.PrefixFrom(ip, ip.BitLen()), true
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return p, false
	}
	if mapped := p.Bits() - 96; p.Addr().Is4In6() && mapped >= 0 {
		p = netip.PrefixFrom(p.Addr().Unmap(), mapped)
	}
	return p.Masked(), true
}

// ownNetworks are those that no stranger has an address in.
var ownNetworks = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"),
	netip.MustParsePrefix("192.168.0.0/16"),
	netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("fc00::/7"), netip.MustParsePrefix("fe80::/10"), netip.MustParsePrefix("::1/128")}

func isOwn(p netip.Prefix) bool {
	return slices.ContainsFunc(ownNetworks, func(own netip.Prefix) bool {
		return own.Bits() <= p.Bits() &&
			own.Contains(p.Addr())
	})
}

// The widest ranges of public addresses that one operator's machines can have.
const (
	widestIPv4 = 12
	widestIPv6 = 24
)

// tooWide reports whether a range has strangers' addresses.
func tooWide(p netip.Prefix) bool {
	widest := widestIPv6
	if p.Addr().Is4() {
		widest = widestIPv4
	}
	return p.Bits() < widest && !isOwn(p)
}

// networks checks a list of addresses and ranges; meaning is what a range of everybody would do.
func (k *checker) networks(path string, list []string, meaning string) {
	for i, text := range list {
		p, ok := parseNetwork(text)
		switch at := fmt.Sprintf("%s[%d]", path, i); {
		case !ok:
			k.problem(at, "must be an address or a range such as 10.0.0.0/8")
		case tooWide(p):
			k.problem(at, "is too wide: %s; name the addresses of your own machines", meaning)
		}
	}
}

// reach is who can connect to a listener.
type reach int

const (
	reachMachine reach = iota // this machine
	reachNetwork              // a network of our own
	reachAll                  // every network of the machine, or a name
	reachPublic               // a public address
)

func reachOf(listen string) reach {
	host, _, err := net.SplitHostPort(listen)
	ip, bad := netip.ParseAddr(host)
	switch {
	case err != nil || loopback(host):
		return reachMachine
	case bad != nil || ip.IsUnspecified():
		return reachAll
	case isOwn(netip.PrefixFrom(ip.Unmap().WithZone(""), ip.Unmap().BitLen())):
		return reachNetwork
	}
	return reachPublic
}

// Readers returns the networks of ops.networks; none: everyone.
func (o *Ops) Readers() (readers []netip.Prefix) {
	for _, text := range o.Networks {
		if p, ok := parseNetwork(text); ok {
			readers = append(readers, p)
		}
	}
	return readers
}

// openOps checks that strangers cannot read metrics, profiles and traces.
func (k *checker) openOps(c *Config) {
	k.networks("ops.networks", c.Ops.Networks, "strangers could read metrics, profiles and traces")
	if reachOf(c.Ops.Listen) == reachPublic && len(c.Ops.Networks) == 0 {
		k.problem("ops.listen", "is a public address, and the listener has no password: use 127.0.0.1 or an address of your "+
			"own network, or name in ops.networks who may read it")
	}
}

const (
	openOps = "is open to every network of this machine and has no password: use 127.0.0.1, or name in ops.networks who " +
		"may read metrics, profiles and traces"
	noProxy = "is reachable from other machines and api.trusted_proxies is empty: behind a proxy all visitors share its " +
		"address, so a few wrong passwords " +
		"lock everybody out; name the proxy, or [127.0.0.1] if there is none"
)

// reachable warns of listeners that strangers may reach.
func (c *Config) reachable(roles []string) (out []Problem) {
	warn := func(key, text string) { out = append(out, Problem{Key: key, Line: c.lines[key], Text: text}) }
	if reachOf(c.Ops.Listen) == reachAll && len(c.Ops.Networks) == 0 {
		warn("ops.listen", openOps)
	}
	for _, l := range []struct{ role, key, listen string }{
		{"api", "api.listen", c.API.Listen}, {"dashboard", "dashboard.listen", c.Dashboard.Listen},
		{"api", "kannel.listen", c.Kannel.Listen},
	} {
		if slices.Contains(roles, l.role) && len(c.API.TrustedProxies) == 0 && reachOf(l.listen) != reachMachine {
			warn(l.key, noProxy)
		}
	}
	return out
}
