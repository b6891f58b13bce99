package web

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
)

// KeyPrefix separates the idempotency keys of forms from those of the user's API requests.
const KeyPrefix = "dashboard:"

// NewFormKey returns a new key for a form: submitting the form twice sends one message.
func NewFormKey() string {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // never fails
	return hex.EncodeToString(raw[:])
}

// IsFormKey reports whether a text has the form of [NewFormKey].
func IsFormKey(key string) bool {
	return len(key) == 32 && strings.Trim(key, "0123456789abcdef") == ""
}

// FormKey returns the field "key", or a new key without one.
func (f *Form) FormKey() string {
	if key := f.Value("key"); IsFormKey(key) {
		return key
	}
	key := NewFormKey()
	f.Values.Set("key", key)
	return key
}
