// Package vault encrypts small secrets at rest with AES-256-GCM (NIST SP 800-38D).
// Each is bound to its row: copied to another row it cannot be decrypted.
package vault

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strings"
)

// Prefix marks an encrypted stored secret. No plain secret may begin with it.
const Prefix = "aes256gcm:"

var (
	// ErrNoKey means that a stored secret is encrypted and there is no key.
	ErrNoKey = errors.New("the stored secret is encrypted and no key is configured")
	// ErrWrongKey means that a stored secret cannot be decrypted: it was encrypted with
	// another key or for another row, or it was changed.
	ErrWrongKey = errors.New("the stored secret does not open with the configured key")
)

// Vault encrypts and decrypts the secrets of one kind of row. It is safe for
// concurrent use.
type Vault struct {
	kind string
	aead cipher.AEAD // nil: no key
}

// New returns a vault for rows of a kind. Without a key it stores secrets in plain.
func New(key *[32]byte, kind string) Vault {
	if key == nil {
		return Vault{kind: kind}
	}
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // cannot happen: the key has 32 bytes
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // cannot happen: AES has the block size of GCM
	}
	return Vault{kind, aead}
}

// Seal returns a row's secret in the form in which it is stored.
func (v Vault) Seal(row int64, secret string) string {
	if v.aead == nil {
		return secret
	}
	return Prefix + base64.StdEncoding.EncodeToString(
		v.aead.Seal(nil, nil, []byte(secret), v.bound(row))) //nolint:gosec // the nonce is random: NewGCMWithRandomNonce
}

// Open returns the secret of a row from its stored form. A secret that was stored in
// plain is returned as it is. The errors are ErrNoKey and ErrWrongKey.
func (v Vault) Open(row int64, stored string) (string, error) {
	encoded, sealed := strings.CutPrefix(stored, Prefix)
	if !sealed {
		return stored, nil
	}
	if v.aead == nil {
		return "", ErrNoKey
	}
	box, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return "", ErrWrongKey
	}
	secret, err := v.aead.Open(nil, nil, box, v.bound(row))
	if err != nil {
		return "", ErrWrongKey
	}
	return string(secret), nil
}

// bound returns the additional data of GCM: the kind and the row's id, big endian.
func (v Vault) bound(row int64) []byte {
	return binary.BigEndian.AppendUint64([]byte(v.kind), uint64(row))
}
