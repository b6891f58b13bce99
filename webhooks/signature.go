package webhooks

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	secretPrefix = "whsec_"
	secretBytes  = 32 // of a generated secret

	// The limits of Standard Webhooks 1.0 for a symmetric secret.
	minSecretBytes = 24
	maxSecretBytes = 64
)

// newSecret generates a signing secret: whsec_ and the base64 of 32 random bytes.
func newSecret() string {
	var key [secretBytes]byte
	_, _ = rand.Read(key[:]) // never fails: crypto/rand ends the program instead
	return secretPrefix + base64.StdEncoding.EncodeToString(key[:])
}

// secretKey decodes the base64 part of a secret. It returns an sms.Refusal if text is not a secret.
func secretKey(secret string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(secret, secretPrefix)
	if !ok {
		return nil, newRefusal(BadSecret, "The signing secret must start with %s.", secretPrefix)
	}
	key, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || strings.ContainsAny(encoded, "\r\n") {
		return nil, newRefusal(BadSecret, "The signing secret must be %s followed by padded standard base64.", secretPrefix)
	}
	if len(key) < minSecretBytes || len(key) > maxSecretBytes {
		return nil, newRefusal(BadSecret, "The signing secret must hold %d to %d bytes.", minSecretBytes, maxSecretBytes)
	}
	return key, nil
}

// signer signs for one endpoint with both schemes. It is safe for concurrent use.
type signer struct {
	contract sync.Pool // *keyed by the whole whsec_… string
	standard sync.Pool // *keyed by the secret's decoded bytes

	// previous signs with the previous secret during a rotation; otherwise nil.
	previous *signer
}

func newSigner(secret string) (*signer, error) {
	key, err := secretKey(secret)
	return &signer{
		contract: sync.Pool{New: func() any { return &keyed{Hash: hmac.New(sha256.New, []byte(secret))} }},
		standard: sync.Pool{New: func() any { return &keyed{Hash: hmac.New(sha256.New, key)} }},
	}, err
}

// keyed is a hash with a key. A reused one keeps its state after the key, which saves most of the work of a new one.
type keyed struct {
	hash.Hash

	sum [sha256.Size]byte
}

// of returns the HMAC-SHA256 of parts, until the next call.
func (k *keyed) of(parts ...[]byte) []byte {
	k.Reset()
	for _, part := range parts {
		k.Write(part)
	}
	return k.Sum(k.sum[:0])
}

// appendContract appends the value of X-Webhook-Signature: lower-case hex of HMAC-SHA256 over the body, keyed by the
// whole whsec_… string. The header holds one signature; during a rotation the key is the previous secret. rule api 6
func (s *signer) appendContract(b, body []byte) []byte {
	if s.previous != nil {
		return s.previous.appendContract(b, body)
	}
	k := s.contract.Get().(*keyed)
	defer s.contract.Put(k)
	return hex.AppendEncode(b, k.of(body))
}

// appendStandard appends the value of webhook-signature of Standard Webhooks: v1, and the base64 of HMAC-SHA256 over
// id.timestamp.body, keyed by the decoded bytes. before is id.timestamp. with both full stops. During a rotation the
// previous secret's signature follows after a space, as the specification demands.
func (s *signer) appendStandard(b, before, body []byte) []byte {
	k := s.standard.Get().(*keyed)
	b = base64.StdEncoding.AppendEncode(append(b, "v1,"...), k.of(before, body))
	s.standard.Put(k)
	if s.previous != nil {
		b = s.previous.appendStandard(append(b, ' '), before, body)
	}
	return b
}

// TestVector is a signed request for the documentation and for receivers' tests: with this secret, this request has
// these headers.
type TestVector struct {
	Secret    string
	Body      string
	Event     string // X-Webhook-Event
	Signature string // X-Webhook-Signature
	ID        string // webhook-id
	Timestamp string // webhook-timestamp, Unix seconds
	Standard  string // webhook-signature
}

// TestVectors returns one vector per event, computed by the code that signs deliveries. Their secret is fixed and
// public: it protects nothing.
func TestVectors() ([]TestVector, error) {
	const secret = "whsec_SW50dW13YSBleGFtcGxlIHNlY3JldCwgMzIgYnl0ZXM=" //nolint:gosec // published on purpose
	sign, err := newSigner(secret)
	if err != nil {
		return nil, fmt.Errorf("signing the test vectors: %w", err)
	}
	at := time.Date(2026, time.March, 1, 8, 0, 0, 0, time.UTC)
	vectors := make([]TestVector, 2)
	for i, number := range []string{"+25761234500", "+25779123401"} {
		e := storedEvent{id: int64(1024+i)*idSpan + int64(i), number: number, at: at} // sms.sent of 1024, sms.failed of 1025
		body, id, timestamp := appendBody(nil, &e), webhookID(e.id), strconv.FormatInt(at.Add(2*time.Second).Unix(), 10)
		vectors[i] = TestVector{Secret: secret, Body: string(body), Event: eventName(e.id), ID: id, Timestamp: timestamp,
			Signature: string(sign.appendContract(nil, body)),
			Standard:  string(sign.appendStandard(nil, []byte(id+"."+timestamp+"."), body))}
	}
	return vectors, nil
}
