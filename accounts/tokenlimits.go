package accounts

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"intumwa/internal/postgres"
)

// Scopes of a token; the default is both.
const (
	ScopeSend = "send" // requests that send, or that change anything
	ScopeRead = "read" // requests that only read
)

// MaxNetworks is how many networks a token may name.
const MaxNetworks = 10

// TokenLimits are the limits of a token. The zero value limits nothing.
type TokenLimits struct {
	Scopes    []string       `json:"scopes"`     // of the scopes above; empty: both
	ExpiresAt *time.Time     `json:"expires_at"` // nil: never
	Networks  []netip.Prefix `json:"networks"`   // empty: the token works from every address
}

// clean returns the limits as they are stored.
func (l TokenLimits) clean() (TokenLimits, error) {
	for _, scope := range l.Scopes {
		if scope != ScopeSend && scope != ScopeRead {
			return l, &callerError{ErrInvalid, fmt.Sprintf("%q is no scope: there are %s and %s", scope, ScopeSend, ScopeRead)}
		}
	}
	l.Scopes = slices.DeleteFunc([]string{ScopeSend, ScopeRead}, func(scope string) bool { return !l.May(scope) })
	if l.Expired() {
		return l, &callerError{ErrInvalid, "the token would have expired already"}
	}
	if len(l.Networks) > MaxNetworks {
		return l, &callerError{ErrInvalid, fmt.Sprintf("a token has at most %d networks", MaxNetworks)}
	}
	if l.Networks == nil {
		l.Networks = []netip.Prefix{}
	}
	return l, nil
}

// May reports whether the token has a scope.
func (l TokenLimits) May(scope string) bool {
	return len(l.Scopes) == 0 || slices.Contains(l.Scopes, scope)
}

// From reports whether the token works from a client's address.
func (l TokenLimits) From(address string) bool {
	if len(l.Networks) == 0 {
		return true
	}
	ip, err := netip.ParseAddr(address)
	ip = ip.Unmap().WithZone("")
	return err == nil && slices.ContainsFunc(l.Networks, func(n netip.Prefix) bool { return n.Contains(ip) })
}

// Expired reports whether the token has expired.
func (l TokenLimits) Expired() bool {
	return l.ExpiresAt != nil && !postgres.Now().Before(*l.ExpiresAt)
}

// ParseNetworks reads networks and addresses that are separated by commas or spaces. [ErrInvalid] names the first wrong one.
func ParseNetworks(text string) (networks []netip.Prefix, err error) {
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		n, err := netip.ParsePrefix(word)
		if err != nil {
			ip, wrong := netip.ParseAddr(word)
			n, err = netip.PrefixFrom(ip, ip.BitLen()), wrong
		}
		if err != nil || strings.Contains(word, "%") || n.Addr().Is4In6() {
			return nil, &callerError{ErrInvalid, fmt.Sprintf("%q is no network such as 196.2.8.0/24 and no IP address", word)}
		}
		if n = n.Masked(); !slices.Contains(networks, n) {
			networks = append(networks, n)
		}
	}
	if len(networks) > MaxNetworks {
		return nil, &callerError{ErrInvalid, fmt.Sprintf("these are %d networks; a token has at most %d", len(networks), MaxNetworks)}
	}
	return networks, nil
}
