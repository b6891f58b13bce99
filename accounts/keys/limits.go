package keys

import (
	"net/netip"
	"slices"
	"strings"

	"intumwa/accounts"
)

// MaxNetworks is how many networks a token may name.
const MaxNetworks = 10

// cleanLimits returns the limits of a key of the HTTP API as they are stored.
func cleanLimits(l accounts.TokenLimits) (accounts.TokenLimits, error) {
	for _, scope := range l.Scopes {
		if scope != accounts.ScopeSend && scope != accounts.ScopeRead {
			return l, accounts.Errorf(accounts.ErrInvalid, "%q is no scope: there are %s and %s", scope, accounts.ScopeSend,
				accounts.ScopeRead)
		}
	}
	l.Scopes = slices.DeleteFunc([]string{accounts.ScopeSend, accounts.ScopeRead},
		func(scope string) bool { return !l.May(scope) })
	if l.Expired() {
		return l, accounts.Errorf(accounts.ErrInvalid, "the token would have expired already")
	}
	if len(l.Networks) > MaxNetworks {
		return l, accounts.Errorf(accounts.ErrInvalid, "a token has at most %d networks", MaxNetworks)
	}
	if l.Networks == nil {
		l.Networks = []netip.Prefix{}
	}
	return l, nil
}

// ParseNetworks reads networks and addresses that are separated by commas or spaces. [accounts.ErrInvalid] names the
// first wrong one.
func ParseNetworks(text string) (networks []netip.Prefix, err error) {
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		n, err := netip.ParsePrefix(word)
		if err != nil {
			ip, wrong := netip.ParseAddr(word)
			n, err = netip.PrefixFrom(ip, ip.BitLen()), wrong
		}
		if err != nil || strings.Contains(word, "%") || n.Addr().Is4In6() {
			return nil, accounts.Errorf(accounts.ErrInvalid, "%q is no network such as 196.2.8.0/24 and no IP address", word)
		}
		if n = n.Masked(); !slices.Contains(networks, n) {
			networks = append(networks, n)
		}
	}
	if len(networks) > MaxNetworks {
		return nil, accounts.Errorf(accounts.ErrInvalid, "these are %d networks; a token has at most %d", len(networks),
			MaxNetworks)
	}
	return networks, nil
}
