// Package vault keeps small secrets encrypted at rest with AES-256-GCM
// (NIST SP 800-38D), each bound to the row that it belongs to: copied to another
// it does not open.
package vault

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strings"
)

// Prefix marks a stored secret that is encrypted. No secret in plain may begin so.
const Prefix = "aes256gcm:"

var (
	// ErrNoKey says that a stored secret is encrypted and there is no key.
	ErrNoKey = errors.New("the stored secret is encrypted and no key is configured")
	// ErrWrongKey says that what is stored does not open: it was sealed with
	// another key or for another row, or it was changed.
	ErrWrongKey = errors.New("the stored secret does not open with the configured key")
)

// Vault seals and opens the secrets of one kind of row. It may be used from many
// goroutines.
type Vault struct {
	kind string
	aead cipher.AEAD // nil: no key
}

// New returns a vault for rows of a kind. Without a key it leaves secrets as
// they are.
func New(key *[32]byte, kind string) Vault {
	if key == nil {
		return Vault{kind: kind}
	}
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // the type admits no other length
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // AES has the block size GCM wants
	}
	return Vault{kind, aead}
}

// Seal returns what is stored of a row's secret.
func (v Vault) Seal(row int64, secret string) string {
	if v.aead == nil {
		return secret
	}
	return Prefix + base64.StdEncoding.EncodeToString(v.aead.Seal(nil, nil, []byte(secret), v.bound(row))) //nolint:gosec // the nonce is random: NewGCMWithRandomNonce
}

// Open returns the secret of what is stored of a row. One that was stored before
// there was a key opens as well. The errors are ErrNoKey and ErrWrongKey.
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

// bound is the additional data: the kind and the row's id, big endian.
func (v Vault) bound(row int64) []byte {
	return binary.BigEndian.AppendUint64([]byte(v.kind), uint64(row))
}

// SealOctets encrypts octets that belong to no row; v has a key.
func (v Vault) SealOctets(octets []byte) []byte {
	return v.aead.Seal(nil, nil, octets, nil) //nolint:gosec // the nonce is random: NewGCMWithRandomNonce
}

// OpenOctets undoes SealOctets, or answers ErrWrongKey.
func (v Vault) OpenOctets(box []byte) ([]byte, error) {
	octets, err := v.aead.Open(nil, nil, box, nil)
	if err != nil {
		return nil, ErrWrongKey
	}
	return octets, nil
}
