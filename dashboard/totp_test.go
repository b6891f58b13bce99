package dashboard

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"testing"
	"time"
)

// codeOf is an authenticator's current code, implemented independently after RFC 6238.
func codeOf(t *testing.T, secret string) string {
	t.Helper()
	key, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(secret)
	if err != nil || len(key) != 20 {
		t.Fatalf("the secret %q: %v", secret, err)
	}
	mac := hmac.New(sha1.New, key)
	var step [8]byte
	binary.BigEndian.PutUint64(step[:], uint64(time.Now().Unix()/30))
	mac.Write(step[:])
	sum := mac.Sum(nil)
	at := sum[19] & 15
	return fmt.Sprintf("%06d", (binary.BigEndian.Uint32(sum[at:at+4])&0x7fffffff)%1000000)
}
