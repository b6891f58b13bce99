package receipts

import (
	"strconv"
	"strings"

	"intumwa/internal/postgres"
)

// handset is the part of an address that all its forms share, national or
// international, with or without a plus: its last eight digits. It is nil for what
// is no number.
func handset(address string) *int32 {
	digits := strings.TrimLeft(postgres.Text(address), "+")
	if len(digits) < 8 || strings.Trim(digits, "0123456789") != "" {
		return nil
	}
	n, err := strconv.ParseInt(digits[len(digits)-8:], 10, 32)
	if err != nil {
		return nil
	}
	last := int32(n)
	return &last
}
