package orders

import (
	"errors"
	"math/big"
	"sort"
	"strconv"
	"strings"
	"time"

	"intumwa/billing"
)

// Francs are whole Burundi francs (BIF).
type Francs int64

// Rate is a part of a sum in millionths: 180,000 is 18%.
type Rate int64

// ErrRate means that a text is no rate.
var ErrRate = errors.New("a rate is 18% or 0.18: from 0 to 100%, with at most four decimals in %")

// ParseRate reads a rate: 18%, 2.5%, 0.18, with a point or a comma. The error is [ErrRate].
func ParseRate(text string) (Rate, error) {
	number, percent := strings.CutSuffix(strings.Replace(strings.TrimSpace(text), ",", ".", 1), "%")
	whole, part, point := strings.Cut(strings.TrimSpace(number), ".")
	decimals := 6
	if percent {
		decimals = 4
	}
	if len(whole) < 1 || len(whole) > 3 || point && (len(part) < 1 || len(part) > decimals) ||
		strings.Trim(whole+part, "0123456789") != "" {
		return 0, ErrRate
	}
	n, err := strconv.ParseInt(whole+part+strings.Repeat("0", decimals-len(part)), 10, 64)
	if err != nil || n > 1_000_000 {
		return 0, ErrRate
	}
	return Rate(n), nil
}

// String returns the rate in percent, without its sign: 18 or 2.5.
func (r Rate) String() string {
	text := strconv.FormatInt(int64(r/10_000), 10)
	if rest := r % 10_000; rest != 0 {
		text += "." + strings.TrimRight(strconv.FormatInt(int64(10_000+rest), 10)[1:], "0")
	}
	return text
}

// Tax is a tax on credits from a day on, until the next one of its name.
type Tax struct {
	Name   string           `json:"name"`
	Rate   Rate             `json:"rate,omitempty"`    // of its base
	PerSMS billing.Centimes `json:"per_sms,omitempty"` // of each credit, instead of a rate
	On     []string         `json:"on,omitempty"`      // taxes that belong to its base, beside the price
	EBMS   string           `json:"ebms,omitempty"`    // what the tax office's system calls it: vat, ct, tl, ott, tsce
	From   time.Time        `json:"-"`                 // midnight in Burundi
}

// InForce returns the taxes in force at a moment, each name in the order of its first mention. A tax with neither a
// rate nor a sum has ended.
func InForce(taxes []Tax, at time.Time) (in []Tax) {
	place := map[string]int{}
	for _, t := range taxes {
		i, known := place[t.Name]
		if !known {
			i = len(in)
			place[t.Name], in = i, append(in, Tax{Name: t.Name})
		}
		if !t.From.After(at) && !t.From.Before(in[i].From) {
			in[i] = t
		}
	}
	kept := in[:0]
	for _, t := range in {
		if t.Rate != 0 || t.PerSMS != 0 {
			kept = append(kept, t)
		}
	}
	return kept
}

// TaxSum is a tax of a sale.
type TaxSum struct {
	Tax

	Sum Francs `json:"sum"`
}

// Sum is what a number of credits costs.
type Sum struct {
	Credits int64
	Price   billing.Centimes // of a credit
	Net     Francs
	Taxes   []TaxSum
	Total   Francs // exactly the net and the taxes
}

// Terms are the price of a credit and the taxes on it.
type Terms struct {
	Price billing.Centimes
	Taxes []Tax // those in force
}

// Sum returns what credits cost: the price and each tax are rounded once to whole francs, half a franc up, and a rate
// is taken of rounded sums.
func (t Terms) Sum(credits int64) Sum {
	s := Sum{Credits: credits, Price: t.Price, Net: round(credits, int64(t.Price), 100),
		Taxes: make([]TaxSum, len(t.Taxes))}
	of := map[string]Francs{}
	for _, later := range []bool{false, true} { // those on other taxes after these
		for i, tax := range t.Taxes {
			if later != (len(tax.On) > 0) {
				continue
			}
			sum := round(credits, int64(tax.PerSMS), 100)
			if tax.PerSMS == 0 {
				base := s.Net
				for _, name := range tax.On {
					base += of[name]
				}
				sum = round(int64(base), int64(tax.Rate), 1_000_000)
			}
			s.Taxes[i] = TaxSum{tax, sum}
			if !later {
				of[tax.Name] = sum
			}
		}
	}
	s.Total = s.Net
	for _, tax := range s.Taxes {
		s.Total += tax.Sum
	}
	return s
}

// Afford returns the largest number of credits, up to [MaxCredits], that a sum pays with its taxes.
func (t Terms) Afford(sum Francs) int64 {
	return int64(sort.Search(MaxCredits, func(n int) bool { return t.Sum(int64(n)+1).Total > sum }))
}

// minus returns the difference of two sums with the same terms: what the credits between them cost.
func (s Sum) minus(less Sum) Sum {
	out := Sum{Credits: s.Credits - less.Credits, Price: s.Price, Net: s.Net - less.Net, Total: s.Total - less.Total}
	for i, tax := range s.Taxes {
		out.Taxes = append(out.Taxes, TaxSum{tax.Tax, tax.Sum - less.Taxes[i].Sum})
	}
	return out
}

// round returns a × b / by in whole francs, half a franc up. a and b are not negative.
func round(a, b, by int64) Francs {
	n := new(big.Int).Mul(big.NewInt(a), big.NewInt(b))
	n.Add(n, big.NewInt(by/2))
	return Francs(n.Quo(n, big.NewInt(by)).Int64())
}
