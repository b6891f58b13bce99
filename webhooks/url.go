package webhooks

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"syscall"

	"code.dny.dev/ssrf"

	"intumwa/sms"
)

const (
	maxURLLength  = 2048
	maxHostLength = 253
)

// guard blocks deliveries to addresses that are not public. It checks the dialled address, after the name is resolved.
// So it also blocks a name that resolves differently between check and call (DNS rebinding).
type guard struct {
	public *ssrf.Guardian // nil: every address is allowed
}

func newGuard(allowPrivate bool) guard {
	if allowPrivate {
		return guard{}
	}
	return guard{ssrf.New(ssrf.WithPorts(443))}
}

// control is the Control function of a net.Dialer.
func (g guard) control(network, address string, c syscall.RawConn) error {
	if g.public == nil {
		return nil
	}
	return g.public.Safe(network, address, c)
}

// checkURL returns an sms.Refusal when a URL cannot be an endpoint. It resolves no names: each call checks their
// addresses.
func (g guard) checkURL(raw string) error {
	switch {
	case raw == "":
		return newRefusal(BadURL, "The webhook URL is required.")
	case len(raw) > maxURLLength:
		return newRefusal(BadURL, "The webhook URL must not exceed %d characters.", maxURLLength)
	}
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Opaque != "" ||
		strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return newRefusal(BadURL, "The webhook URL is not a valid absolute URL.")
	}
	switch {
	case u.Scheme == "http" && g.public == nil, u.Scheme == "https":
	case g.public == nil:
		return newRefusal(BadScheme, "The webhook URL must start with https:// or http://.")
	default:
		return newRefusal(BadScheme, "The webhook URL must start with https://.")
	}
	switch {
	case u.User != nil:
		return newRefusal(BadUser, "The webhook URL must not contain a user name or password.")
	case u.Fragment != "" || strings.Contains(raw, "#"):
		return newRefusal(BadFragment, "The webhook URL must not contain a fragment.")
	}
	if err := g.checkHost(u.Hostname()); err != nil {
		return err
	}
	if port := u.Port(); g.public != nil && port != "" && port != "443" {
		return newRefusal(BadPort, "The webhook URL must use port 443.")
	}
	return nil
}

func (g guard) checkHost(host string) error {
	if ip, err := netip.ParseAddr(host); err == nil {
		if g.public != nil && (ip.Zone() != "" || g.public.SafeAddr(ip) != nil) {
			return newRefusal(BadAddress, "The webhook URL must not point to a private or reserved address.")
		}
		return nil
	}
	name := strings.TrimSuffix(host, ".")
	if name == "" || len(name) > maxHostLength {
		return newRefusal(BadHost, "The webhook URL's host must have 1 to %d characters.", maxHostLength)
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || strings.ContainsFunc(label, notInHost) {
			return newRefusal(BadHost, "The webhook URL's host is not valid; write an international name in its xn-- form.")
		}
	}
	lower := strings.ToLower(name)
	if g.public != nil && (lower == "localhost" || strings.HasSuffix(lower, ".localhost")) {
		return newRefusal(BadAddress, "The webhook URL must not point to a private or reserved address.")
	}
	return nil
}

func notInHost(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
}

// Reasons of an sms.Refusal of an endpoint's URL or secret, for callers with their own texts.
const (
	BadURL      = "webhook_url" // missing, too long, or not a URL
	BadScheme   = "webhook_scheme"
	BadUser     = "webhook_user"
	BadFragment = "webhook_fragment"
	BadHost     = "webhook_host"
	BadAddress  = "webhook_address" // not public
	BadPort     = "webhook_port"
	BadSecret   = "webhook_secret"
	BadRotation = "webhook_rotation" // one is in progress
)

func newRefusal(reason, format string, args ...any) error {
	return sms.Refusal{Reason: reason, Text: fmt.Sprintf(format, args...)}
}
