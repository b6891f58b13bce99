// Package otp has one-time codes. No code is ever stored: the database has a random [Secret], and the code follows from
// it and the installation's key. The text of a message has asterisks in the code's place until it is written to a
// carrier.
package otp

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
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

// Known is a secret whose code everybody knows: the first of 1234567890. It is for messages that nobody gets.
func Known(digits int) Secret { return append(Secret{byte(digits)}, make([]byte, randomBytes)...) }

// known reports whether s is a secret of Known. New draws it once in 2^128 times.
func (s Secret) known() bool { return bytes.Equal(s[1:], make([]byte, randomBytes)) }

// valid reports whether s is a secret of New.
func (s Secret) valid() bool { return len(s) == 1+randomBytes && s[0] >= Least && s[0] <= Most }

// Code returns the code under the installation's key; "" of no secret.
func (s Secret) Code(key []byte) string {
	if !s.valid() {
		return ""
	}
	if s.known() {
		return "1234567890"[:s[0]]
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("one-time code\x00"))
	mac.Write(s)
	// the last digits of 64 bits are even to 1 in a billion
	drawn := fmt.Sprintf("%0*d", Most, binary.BigEndian.Uint64(mac.Sum(nil)))
	return drawn[len(drawn)-int(s[0]):]
}

// Is reports whether entered is the code. It takes as long for a wrong code as for the right one.
func (s Secret) Is(key []byte, entered string) bool {
	return s.valid() && hmac.Equal([]byte(s.Code(key)), []byte(entered))
}

// Typed is a code as a person may have typed or pasted it, in plain digits: without blanks, line ends, dashes and
// characters that are not seen, such as marks of direction. It keeps every other character.
func Typed(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r < utf8.RuneSelf && r > ' ' && r != '-':
			return r
		case unicode.IsSpace(r), unicode.In(r, unicode.Cf, unicode.Cc, unicode.Zs, unicode.Pd), r == '\u2212':
			return -1
		case unicode.Is(unicode.Nd, r):
			return digit(r)
		}
		return r
	}, s)
}

// digit is a decimal digit of any script as a plain one. Unicode has each script's ten together, in order.
func digit(r rune) rune {
	for _, of := range unicode.Nd.R16 {
		if r <= rune(of.Hi) {
			return '0' + (r-rune(of.Lo))%10
		}
	}
	for _, of := range unicode.Nd.R32 {
		if r <= rune(of.Hi) {
			return '0' + (r-rune(of.Lo))%10
		}
	}
	return r
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
