package accounts

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strings"
)

// sealedPrefix marks a stored secret that is encrypted; no base32 begins so.
const sealedPrefix = "aes256gcm:"

var errSealed = errors.New("what is stored does not open with the configured key")

// vault encrypts at rest with AES-256-GCM, or leaves texts as they are when it has no key.
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

func (v vault) sealOctets(text, bound []byte) []byte {
	nonce := make([]byte, v.aead.NonceSize(), v.aead.NonceSize()+len(text)+v.aead.Overhead())
	_, _ = rand.Read(nonce) // never fails
	return v.aead.Seal(nonce, nonce, text, bound)
}

func (v vault) openOctets(box, bound []byte) ([]byte, error) {
	if len(box) < v.aead.NonceSize() {
		return nil, errSealed
	}
	text, err := v.aead.Open(nil, box[:v.aead.NonceSize()], box[v.aead.NonceSize():], bound)
	if err != nil {
		return nil, errSealed
	}
	return text, nil
}

// seal is what is stored of a user's secret; it opens for that user only.
func (v vault) seal(userID int64, secret string) string {
	if v.aead == nil {
		return secret
	}
	return sealedPrefix + base64.StdEncoding.EncodeToString(v.sealOctets([]byte(secret), userData(userID)))
}

// open is the secret of what is stored. One that was stored before there was a key opens as well.
func (v vault) open(userID int64, stored string) (string, error) {
	encoded, sealed := strings.CutPrefix(stored, sealedPrefix)
	if !sealed {
		return stored, nil
	}
	box, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || v.aead == nil {
		return "", errSealed
	}
	text, err := v.openOctets(box, userData(userID))
	return string(text), err
}

func userData(userID int64) []byte {
	return binary.BigEndian.AppendUint64([]byte("user"), uint64(userID))
}
