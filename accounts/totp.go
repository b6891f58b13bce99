package accounts

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // RFC 6238 with SHA-1 is what every authenticator speaks; HMAC does not rest on collisions
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"strings"
	"time"
)

// The authenticator's usual figures: https://www.rfc-editor.org/rfc/rfc6238, section 4.
const (
	totpStep   = 30 // seconds
	totpDrift  = 1  // steps that a clock may be off, either way
	totpModulo = 1_000_000
)

// totp is the six digits of a step.
func totp(key []byte, step int64) string {
	mac := hmac.New(sha1.New, key)
	_ = binary.Write(mac, binary.BigEndian, step) // a hash takes whatever is written
	sum := mac.Sum(nil)
	offset := sum[len(sum)-1] & 0xF // RFC 4226, 5.3
	return fmt.Sprintf("%06d", (binary.BigEndian.Uint32(sum[offset:])&0x7FFF_FFFF)%totpModulo)
}

// matchTOTP says which step a code belongs to, when it is one of now's.
func matchTOTP(key []byte, code string, now time.Time) (step int64, right bool) {
	code = strings.ReplaceAll(strings.TrimSpace(code), " ", "")
	current := now.Unix() / totpStep
	for at := current - totpDrift; at <= current+totpDrift; at++ {
		if subtle.ConstantTimeCompare([]byte(totp(key, at)), []byte(code)) == 1 {
			step, right = at, true
		}
	}
	return step, right
}
