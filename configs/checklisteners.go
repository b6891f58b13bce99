package configs

import (
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"
)

func (k *checker) listeners(c *Config) {
	taken := map[string]string{}
	for _, l := range []struct{ key, address string }{
		{"api.listen", c.API.Listen}, {"ops.listen", c.Ops.Listen}, {"dashboard.listen", c.Dashboard.Listen},
		{"kannel.listen", c.Kannel.Listen}, {"smpp_server.listen", c.SMPPServer.Listen},
	} {
		if l.address == "" && (l.key == "kannel.listen" || l.key == "smpp_server.listen") {
			continue // off
		}
		port, err := portOf(l.address)
		switch other := taken[l.address]; {
		case err != nil:
			k.problem(l.key, "%s", err)
		case port != 0 && other != "":
			k.problem(l.key, "is the same as %s", other)
		default:
			taken[l.address] = l.key
		}
	}
	k.networks("api.trusted_proxies", c.API.TrustedProxies,
		"strangers could claim any address in X-Forwarded-For, and so pass every limit per address")
	k.openOps(c)
}

// smppServer checks that no password crosses a public network in plain.
func (k *checker) smppServer(s *SMPPServer) {
	switch host, _, err := net.SplitHostPort(s.Listen); {
	case s.Listen == "" || err != nil: // off, or reported
	case s.TLS == ServerTLS{}:
		if ip, err := netip.ParseAddr(host); err != nil || !ip.Unmap().IsLoopback() && !ip.Unmap().IsPrivate() {
			k.problem("smpp_server.tls", "is required, because smpp_server.listen is neither a loopback nor a private address: "+
				"passwords would cross the network readable")
		}
	case s.TLS.Cert == "" || s.TLS.Key == "":
		k.problem("smpp_server.tls", "needs both cert and key")
	case slices.Contains(k.roles, "smpp"):
		if _, err := tls.LoadX509KeyPair(s.TLS.Cert, s.TLS.Key); err != nil {
			k.problem("smpp_server.tls", "%s", err)
		}
	}
}

// portOf parses host:port; the host is optional.
func portOf(address string) (int, error) {
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		return 0, errors.New("must be host:port")
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0, errors.New("must have a port from 0 to 65535")
	}
	return int(port), nil
}

// remote accepts only host and port. Anything more, such as a password, would appear in logs and errors.
func (k *checker) remote(path, address string) {
	if port, err := portOf(address); err != nil || port == 0 || !plainAddress.MatchString(address) {
		k.problem(path, "must be host:port and nothing else, no scheme, user or password")
	}
}
