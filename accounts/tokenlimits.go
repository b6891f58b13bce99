package accounts

import (
	"net/netip"
	"slices"
	"time"

	"intumwa/internal/postgres"
)

// Scopes of a token; the default is both.
const (
	ScopeSend = "send" // requests that send, or that change anything
	ScopeRead = "read" // requests that only read
)

// TokenLimits are the limits of a token. The zero value limits nothing.
type TokenLimits struct {
	Scopes    []string       `json:"scopes"`     // of the scopes above; empty: both
	ExpiresAt *time.Time     `json:"expires_at"` // nil: never
	Networks  []netip.Prefix `json:"networks"`   // empty: the token works from every address
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
