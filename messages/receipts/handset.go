package receipts

import (
	"strconv"
	"strings"

	"intumwa/internal/postgres"
)

// handset returns the part that all forms of an address share, national or international, with or without a plus: its
// last eight digits; nil for an address that is no number.
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
