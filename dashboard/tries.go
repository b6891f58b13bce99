package dashboard

import (
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
	"strings"
)

// mayTry counts a try against an account and against the address it comes from. The answer is the same whether there
// is such an account.
func (v *visit) mayTry(kind, account string) bool {
	t := v.d.rooms.Tries
	allowed := t.Address == nil || t.Address.Allow(v.ctx(), tryKey("address", networkOf(v.c.ClientIP()))).Allowed
	if allowed && t.Account != nil {
		allowed = t.Account.Allow(v.ctx(), tryKey(kind, strings.ToLower(strings.TrimSpace(account)))).Allowed
	}
	return allowed
}

func tryKey(kind, who string) int64 {
	sum := sha256.Sum256([]byte("dashboard\x00" + kind + "\x00" + who))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

// networkOf is what one customer may have of addresses: a whole /64 of IPv6.
func networkOf(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil || !ip.Is6() || ip.Is4In6() {
		return address
	}
	prefix, err := ip.WithZone("").Prefix(64)
	if err != nil {
		return address
	}
	return prefix.String()
}
