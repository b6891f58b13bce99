package billing

import (
	"errors"
	"math/big"
	"strconv"
	"strings"
)

// Centimes is a price: hundredths of a Burundi franc (BIF) for one credit or segment.
type Centimes int64

// MaxPrice is the highest price: a million francs.
const MaxPrice Centimes = 100_000_000

// ErrPrice means that a text is no price.
var ErrPrice = errors.New("a price is a number of francs from 0 to 1000000, with at most two decimals, such as 12.5")

// ParsePrice reads a price in francs, with a point or a comma: 12, 12.5, 12,50. The error is [ErrPrice].
func ParsePrice(text string) (Centimes, error) {
	francs, cents, point := strings.Cut(strings.Replace(strings.TrimSpace(text), ",", ".", 1), ".")
	digits := func(s string, least, most int) bool {
		return len(s) >= least && len(s) <= most && strings.Trim(s, "0123456789") == ""
	}
	if !digits(francs, 1, 7) || point && !digits(cents, 1, 2) {
		return 0, ErrPrice
	}
	n, err := strconv.ParseInt(francs+(cents + "00")[:2], 10, 64)
	if err != nil || Centimes(n) > MaxPrice {
		return 0, ErrPrice
	}
	return Centimes(n), nil
}

// String returns the price in francs: 12 or 12.50.
func (c Centimes) String() string { return c.Of(1).String() }

// MarshalJSON implements json.Marshaler: a number of francs.
func (c Centimes) MarshalJSON() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalJSON implements json.Unmarshaler: a number of francs. null changes nothing. The error is [ErrPrice].
func (c *Centimes) UnmarshalJSON(data []byte) (err error) {
	if string(data) != "null" {
		*c, err = ParsePrice(string(data))
	}
	return err
}

// Of returns the price of n credits or segments, which may be negative.
func (c Centimes) Of(n int64) *Money {
	return &Money{new(big.Int).Mul(big.NewInt(int64(c)), big.NewInt(n))}
}

// Money is an exact amount in Burundi francs, of any size. nil is an unknown one.
type Money struct{ centimes *big.Int }

// Plus returns the sum, which is unknown if one of the two is.
func (m *Money) Plus(n *Money) *Money {
	if m == nil || n == nil {
		return nil
	}
	return &Money{new(big.Int).Add(m.centimes, n.centimes)}
}

// Minus returns the difference, which is unknown if one of the two is.
func (m *Money) Minus(n *Money) *Money {
	return m.Plus(n.Negative())
}

// Sign is negative, 0 or positive, as the amount is.
func (m *Money) Sign() int { return m.centimes.Sign() }

// String returns the amount in francs without separators: 1234 or -1234.50; "" if it is unknown.
func (m *Money) String() string {
	if m == nil {
		return ""
	}
	francs, cents := new(big.Int).QuoRem(new(big.Int).Abs(m.centimes), big.NewInt(100), new(big.Int))
	text := francs.String()
	if cents.Sign() != 0 {
		text += "." + strconv.FormatInt(100+cents.Int64(), 10)[1:]
	}
	if m.centimes.Sign() < 0 {
		text = "-" + text
	}
	return text
}

// MarshalJSON implements json.Marshaler: a number of francs, null if it is unknown.
func (m *Money) MarshalJSON() ([]byte, error) {
	if m == nil {
		return []byte("null"), nil
	}
	return []byte(m.String()), nil
}

// Negative returns the amount with the other sign, nil if it is unknown.
func (m *Money) Negative() *Money {
	if m == nil {
		return nil
	}
	return &Money{new(big.Int).Neg(m.centimes)}
}
