package receipts

import (
	"math/big"
	"slices"
	"strconv"
	"strings"

	"intumwa/internal/postgres"
)

// Format is how a carrier's receipts write message ids, compared with its submit_sm_resp.
type Format uint8

// Formats.
const (
	Auto         Format = iota // any of the others
	Same                       // equal, except for what Key ignores
	HexToDecimal               // hexadecimal in the response, decimal in the receipt
	DecimalToHex               // decimal in the response, hexadecimal in the receipt
)

// String returns the format as the configuration spells it.
func (f Format) String() string {
	return [...]string{"auto", "same", "hex_to_decimal", "decimal_to_hex"}[f]
}

// Relate returns the format with which a receipt's id is that of the submit_sm_resp, false if there is none.
func Relate(response, receipt string) (Format, bool) {
	for _, f := range []Format{Same, HexToDecimal, DecimalToHex} {
		if slices.Contains(f.keys(receipt), Key(response)) {
			return f, true
		}
	}
	return Auto, false
}

// Key is the form of a carrier's message id in which receipts and segments are compared: carriers write one id in upper
// and lower case, with and without leading zeros, quotation marks, braces or 0x. NUL and invalid UTF-8, which
// PostgreSQL refuses, are left out.
func Key(carrierID string) string {
	key, _ := keyOf(carrierID)
	return key
}

// keyOf also reports whether 0x marks the id as hexadecimal.
func keyOf(carrierID string) (key string, hex bool) {
	id := strings.ToLower(strings.Trim(postgres.Text(carrierID), " \t\r\n\"'`<>()[]{},;."))
	if digits, marked := strings.CutPrefix(id, "0x"); marked && digits != "" &&
		strings.Trim(digits, "0123456789abcdef") == "" {
		id, hex = digits, true
	}
	if trimmed := strings.TrimLeft(id, "0"); trimmed != "" || id == "" {
		return trimmed, hex
	}
	return "0", hex
}

// keys returns the keys that the segment of a receipt may have, given the receipt's id, the likeliest first.
func (f Format) keys(id string) []string {
	key, hex := keyOf(id)
	switch {
	case f == Auto:
		return forms(key)
	case f == HexToDecimal && !hex:
		if converted, ok := rebase(key, 10, 16); ok {
			return []string{converted}
		}
	case f == DecimalToHex:
		if converted, ok := rebase(key, 16, 10); ok {
			return []string{converted}
		}
	}
	return []string{key}
}

// withoutPart returns an id without the number of a part that some carriers append: 7FCA1-1. "" if it has none.
func withoutPart(id string) string {
	before, part, _ := strings.Cut(strings.Trim(id, " \"'"), "-")
	if len(before) < 4 || part == "" || len(part) > 2 || strings.Trim(part, "0123456789") != "" {
		return ""
	}
	return before
}

// forms returns a key and its forms in the other base, read as decimal and as hexadecimal. The key is among the forms
// of each.
func forms(key string) []string {
	list := []string{key}
	if hex, ok := rebase(key, 10, 16); ok && hex != key {
		list = append(list, hex)
	}
	if decimal, ok := rebase(key, 16, 10); ok && decimal != key {
		list = append(list, decimal)
	}
	return list
}

// rebase converts a number of any length to another base.
func rebase(digits string, from, to int) (string, bool) {
	if digits == "" || len(digits) > 64 || strings.ContainsAny(digits, "+-_") {
		return "", false
	}
	if n, err := strconv.ParseUint(digits, from, 64); err == nil {
		return strconv.FormatUint(n, to), true
	}
	n, ok := new(big.Int).SetString(digits, from)
	if !ok {
		return "", false
	}
	return n.Text(to), true
}
