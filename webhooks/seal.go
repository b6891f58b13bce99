package webhooks

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strings"
)

// sealedPrefix marks a stored secret that is encrypted. A secret in plain starts
// with whsec_, so the two cannot be taken for each other.
const sealedPrefix = "aes256gcm:"

var (
	errNoKey    = errors.New("the stored signing secret is encrypted and no key is configured")
	errWrongKey = errors.New("the stored signing secret does not open with the configured key")
)

// vault encrypts signing secrets at rest with AES-256-GCM, bound to their
// company, or leaves them in plain when it has no key.
type vault struct{ aead cipher.AEAD }

func newVault(key *[32]byte) vault {
	if key == nil {
		return vault{}
	}
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // the type admits no other length
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // AES has the block size GCM wants
	}
	return vault{aead}
}

// seal returns what is stored for a secret.
func (v vault) seal(companyID int64, secret string) string {
	if v.aead == nil {
		return secret
	}
	sealed := make([]byte, v.aead.NonceSize(), v.aead.NonceSize()+len(secret)+v.aead.Overhead())
	_, _ = rand.Read(sealed) // never fails
	sealed = v.aead.Seal(sealed, sealed, []byte(secret), companyData(companyID))
	return sealedPrefix + base64.StdEncoding.EncodeToString(sealed)
}

// open returns the secret of what is stored. A secret that was stored before
// there was a key opens as well.
func (v vault) open(companyID int64, stored string) (string, error) {
	encoded, sealed := strings.CutPrefix(stored, sealedPrefix)
	if !sealed {
		return stored, nil
	}
	if v.aead == nil {
		return "", errNoKey
	}
	box, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(box) < v.aead.NonceSize() {
		return "", errWrongKey
	}
	nonce, text := box[:v.aead.NonceSize()], box[v.aead.NonceSize():]
	secret, err := v.aead.Open(nil, nonce, text, companyData(companyID))
	if err != nil {
		return "", errWrongKey
	}
	return string(secret), nil
}

// companyData binds a sealed secret to its row.
func companyData(companyID int64) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(companyID))
}
