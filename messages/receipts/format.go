package receipts

import (
	"math/big"
	"strings"

	"intumwa/internal/postgres"
)

// Format says how a carrier writes a message id in its receipts, compared with its
// submit_sm_resp.
type Format uint8

// Formats.
const (
	Auto         Format = iota // learnt from the receipts themselves
	Same                       // alike, but for what Key passes over
	HexToDecimal               // hexadecimal in the response, decimal in the receipt
	DecimalToHex               // decimal in the response, hexadecimal in the receipt
)

// formatNames are the formats as the configuration and the links table spell them.
var formatNames = [...]string{Auto: "", Same: "same", HexToDecimal: "hex_to_decimal", DecimalToHex: "decimal_to_hex"}

// known are the formats that an id may have in a receipt. The order is that of the
// keys of otherKeys; the first is the id itself.
var known = [...]Format{Same, HexToDecimal, DecimalToHex}

// Key is the normal form of a carrier's message id by which a receipt finds its
// segment: carriers write the same id in upper and lower case, with and
// without leading zeros. NUL and invalid UTF-8, which no id should hold and
// no database takes, are left out.
func Key(carrierID string) string {
	id := strings.ToLower(strings.TrimSpace(postgres.Text(carrierID)))
	if trimmed := strings.TrimLeft(id, "0"); trimmed != "" || id == "" {
		return trimmed
	}
	return "0"
}

// receiptKey turns a receipt's message id into the key of its segment, that
// is, into the form that its submit_sm_resp had.
func receiptKey(format Format, id string) string {
	key := Key(id)
	switch format {
	case HexToDecimal:
		if converted, ok := rebase(key, 10, 16); ok {
			return converted
		}
	case DecimalToHex:
		if converted, ok := rebase(key, 16, 10); ok {
			return converted
		}
	}
	return key
}

// otherKeys are the keys of a submit_sm_resp's id as a receipt would have it in
// the formats known[1:]; "" where it cannot be in one. Without any the id is the
// same in every format.
func otherKeys(id string) []string {
	key := Key(id)
	decimal, _ := rebase(key, 16, 10)
	hex, _ := rebase(key, 10, 16)
	if decimal == key || len(key) == 0 { // one digit is itself in every format
		return nil
	}
	return []string{decimal, hex}
}

// rebase writes a number of any length in another base.
func rebase(digits string, from, to int) (string, bool) {
	if digits == "" || len(digits) > 64 || strings.ContainsAny(digits, "+-_") {
		return "", false
	}
	n, ok := new(big.Int).SetString(digits, from)
	if !ok {
		return "", false
	}
	return n.Text(to), true
}
