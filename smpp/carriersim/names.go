package carriersim

import (
	"fmt"
	"slices"
	"strings"
)

// The names by which flags and JSON call formats, forms and alphabets.
var (
	idFormatNames    = []string{"decimal", "hex", "hex-then-decimal", "decimal-then-hex", "zero-padded", "trimmed", "case", "uuid", "long"}
	receiptFormNames = []string{"text", "text-tlv", "tlv", "payload"}
	alphabetNames    = []string{"gsm7", "latin1", "ascii"}
)

func nameOf(n uint8, names []string) string {
	if int(n) < len(names) {
		return names[n]
	}
	return fmt.Sprintf("unknown (%d)", n)
}

func byName[T ~uint8](into *T, text []byte, what string, names []string) error {
	i := slices.Index(names, string(text))
	if i < 0 {
		return fmt.Errorf("%s %q: not one of %s", what, text, strings.Join(names, ", "))
	}
	*into = T(i)
	return nil
}

// String gives the name, such as "hex-then-decimal".
func (f IDFormat) String() string { return nameOf(uint8(f), idFormatNames) }

// MarshalText writes the name.
func (f IDFormat) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText reads a name.
func (f *IDFormat) UnmarshalText(text []byte) error {
	return byName(f, text, "message id format", idFormatNames)
}

// String gives the name, such as "text-tlv".
func (f ReceiptForm) String() string { return nameOf(uint8(f), receiptFormNames) }

// MarshalText writes the name.
func (f ReceiptForm) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText reads a name.
func (f *ReceiptForm) UnmarshalText(text []byte) error {
	return byName(f, text, "receipt form", receiptFormNames)
}

// String gives the name, such as "gsm7".
func (a Alphabet) String() string { return nameOf(uint8(a), alphabetNames) }

// MarshalText writes the name.
func (a Alphabet) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads a name.
func (a *Alphabet) UnmarshalText(text []byte) error {
	return byName(a, text, "alphabet", alphabetNames)
}
