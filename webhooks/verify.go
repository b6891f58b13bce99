package webhooks

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// verifyTolerance is how old a signed request may be: older ones are replays.
const verifyTolerance = 5 * time.Minute

// Verify is the receiver's side, for Go receivers and for our own echo: it
// checks both signatures of a request over the exact bytes of its body, in
// constant time, and that it is not an old one sent again. While a rotation
// lasts, which several signatures in webhook-signature show, the secret may be
// either; then X-Webhook-Signature is the old one's.
func Verify(secret string, header http.Header, body []byte, now time.Time) error {
	sign, err := newSigner(secret)
	if err != nil {
		return err
	}
	timestamp := header.Get("webhook-timestamp")
	want := sign.standardSignature(header.Get("webhook-id"), timestamp, body)
	signatures := strings.Fields(header.Get("webhook-signature"))
	if !slices.ContainsFunc(signatures, func(s string) bool { return equal(s, want) }) {
		return errors.New("webhook-signature does not match webhook-id, webhook-timestamp, the body and the secret")
	}
	if len(signatures) == 1 && !equal(header.Get("X-Webhook-Signature"), sign.contractSignature(body)) {
		return errors.New("X-Webhook-Signature does not match the body and the secret")
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return fmt.Errorf("webhook-timestamp %q is no number of seconds", timestamp)
	}
	if age := now.Sub(time.Unix(seconds, 0)); age > verifyTolerance || age < -verifyTolerance {
		return fmt.Errorf("the request was signed %s ago", age.Round(time.Second))
	}
	return nil
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
