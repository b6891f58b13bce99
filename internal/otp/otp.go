// Package otp has one-time codes. No code is ever stored: the database has a random [Secret], and the code follows from
// it and the installation's key. The text of a message has asterisks in the code's place until it is written to a
// carrier.
package otp

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
)

// Digits of a code.
const (
	Least   = 4
	Most    = 10
	Default = 6
)

const randomBytes = 16

// Secret is what the database has of a code: its number of digits in the first byte, then 16 random bytes.
type Secret []byte

// New draws the secret of a code with that many digits, from Least to Most.
func New(digits int) Secret {
	s := make(Secret, 1+randomBytes)
	s[0] = byte(digits)
	_, _ = rand.Read(s[1:]) // it never fails
	return s
}

// valid reports whether s is a secret of New.
func (s Secret) valid() bool { return len(s) == 1+randomBytes && s[0] >= Least && s[0] <= Most }

// Code returns the code under the installation's key; "" of no secret.
func (s Secret) Code(key []byte) string {
	if !s.valid() {
		return ""
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("one-time code\x00"))
	mac.Write(s)
	drawn := fmt.Sprintf("%0*d", Most, binary.BigEndian.Uint64(mac.Sum(nil))) // the last digits of 64 bits are even to 1 in a billion
	return drawn[len(drawn)-int(s[0]):]
}

// Is reports whether entered is the code. It takes as long for a wrong code as for the right one.
func (s Secret) Is(key []byte, entered string) bool {
	return s.valid() && hmac.Equal([]byte(s.Code(key)), []byte(entered))
}

// Mask is what stands in a text for the code: as many asterisks. They take as much room as the digits.
func (s Secret) Mask() string {
	if !s.valid() {
		return ""
	}
	return strings.Repeat("*", int(s[0]))
}

// Reveal puts the code into a text with the mask.
func (s Secret) Reveal(key []byte, text string) string {
	if !s.valid() {
		return text
	}
	return strings.ReplaceAll(text, s.Mask(), s.Code(key))
}
