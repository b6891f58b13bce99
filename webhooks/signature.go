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

	// What Standard Webhooks 1.0 allows for a symmetric secret.
	minSecretBytes = 24
	maxSecretBytes = 64
)

// newSecret makes a signing secret: whsec_ and the base64 of 32 random bytes.
func newSecret() string {
	var key [secretBytes]byte
	_, _ = rand.Read(key[:]) // never fails: crypto/rand ends the program instead
	return secretPrefix + base64.StdEncoding.EncodeToString(key[:])
}

// secretKey returns the bytes that the base64 part of a secret stands for, and
// an sms.Refusal when it is not a secret.
func secretKey(secret string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(secret, secretPrefix)
	if !ok {
		return nil, refuse(BadSecret, "The signing secret must start with %s.", secretPrefix)
	}
	key, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || strings.ContainsAny(encoded, "\r\n") {
		return nil, refuse(BadSecret, "The signing secret must be %s followed by padded standard base64.", secretPrefix)
	}
	if len(key) < minSecretBytes || len(key) > maxSecretBytes {
		return nil, refuse(BadSecret, "The signing secret must hold %d to %d bytes.", minSecretBytes, maxSecretBytes)
	}
	return key, nil
}

// signer signs for one endpoint with both schemes. It may be used from many
// goroutines; the keyed hashes are kept for reuse.
type signer struct {
	contract sync.Pool // hash.Hash keyed by the secret's own characters
	standard sync.Pool // hash.Hash keyed by the decoded bytes

	// previous signs with the secret of before while a rotation lasts; else nil.
	previous *signer
}

func newSigner(secret string) (*signer, error) {
	key, err := secretKey(secret)
	if err != nil {
		return nil, err
	}
	s := new(signer)
	s.contract.New = func() any { return hmac.New(sha256.New, []byte(secret)) }
	s.standard.New = func() any { return hmac.New(sha256.New, key) }
	return s, nil
}

// appendContract appends the value of X-Webhook-Signature: lower-case hex of
// HMAC-SHA256 over the body, keyed by the whole whsec_… string; while a rotation
// lasts, of the secret of before, since there is room for one. rule api 6
func (s *signer) appendContract(b, body []byte) []byte {
	if s.previous != nil {
		return s.previous.appendContract(b, body)
	}
	mac := s.contract.Get().(hash.Hash)
	defer s.contract.Put(mac)
	mac.Reset()
	mac.Write(body)
	return appendSum(b, mac, hex.AppendEncode)
}

// appendStandard appends the value of webhook-signature of Standard Webhooks: v1,
// and the base64 of HMAC-SHA256 over id.timestamp.body, keyed by the decoded
// bytes. While a rotation lasts a second one, of the secret of before, stands
// behind a space, as its spec says.
func (s *signer) appendStandard(b, id, timestamp, body []byte) []byte {
	mac := s.standard.Get().(hash.Hash)
	defer s.standard.Put(mac)
	mac.Reset()
	mac.Write(id)
	mac.Write(stop)
	mac.Write(timestamp)
	mac.Write(stop)
	mac.Write(body)
	b = appendSum(append(b, "v1,"...), mac, base64.StdEncoding.AppendEncode)
	if s.previous != nil {
		b = s.previous.appendStandard(append(b, ' '), id, timestamp, body)
	}
	return b
}

var stop = []byte(".")

// appendSum appends a keyed hash in an encoding. The sum is made in the room
// behind b, and encoded behind itself.
func appendSum(b []byte, mac hash.Hash, encode func(dst, src []byte) []byte) []byte {
	var room [sha256.Size]byte
	return encode(b, mac.Sum(room[:0]))
}

// contractSignature and standardSignature are the values as strings.
func (s *signer) contractSignature(body []byte) string { return string(s.appendContract(nil, body)) }

func (s *signer) standardSignature(id, timestamp string, body []byte) string {
	return string(s.appendStandard(nil, []byte(id), []byte(timestamp), body))
}

// TestVector is a signed request for the documentation and for the tests of
// receivers: with this secret, this request carries these headers.
type TestVector struct {
	Secret    string
	Body      string
	Event     string // X-Webhook-Event
	Signature string // X-Webhook-Signature
	ID        string // webhook-id
	Timestamp string // webhook-timestamp, Unix seconds
	Standard  string // webhook-signature
}

// TestVectors returns one vector for each event, computed by the code that
// signs deliveries. The secret is fixed and public: it protects nothing.
func TestVectors() ([]TestVector, error) {
	const secret = "whsec_SW50dW13YSBleGFtcGxlIHNlY3JldCwgMzIgYnl0ZXM=" //nolint:gosec // published on purpose
	sign, err := newSigner(secret)
	if err != nil {
		return nil, fmt.Errorf("signing the test vectors: %w", err)
	}
	at := time.Date(2026, time.March, 1, 8, 0, 0, 0, time.UTC)
	events := []Event{
		{MessageID: 1024, Name: Sent, PhoneNumber: "+25761234500", At: at},
		{MessageID: 1025, Name: Failed, PhoneNumber: "+25779123401", At: at},
	}
	vectors := make([]TestVector, len(events))
	for i := range events {
		e := &events[i]
		id, err := deliveryID(e.MessageID, e.Name)
		if err != nil {
			return nil, fmt.Errorf("signing the test vectors: %w", err)
		}
		body := appendBody(nil, e)
		v := TestVector{Secret: secret, Body: string(body), Event: e.Name, ID: webhookID(id)}
		v.Timestamp = strconv.FormatInt(at.Add(2*time.Second).Unix(), 10)
		v.Signature = sign.contractSignature(body)
		v.Standard = sign.standardSignature(v.ID, v.Timestamp, body)
		vectors[i] = v
	}
	return vectors, nil
}
