package reports

import (
	"context"
	"maps"
	"slices"
	"time"

	"intumwa/billing"
	"intumwa/sms"
)

// Invoice is what a carrier should ask for in a period, beside what companies were charged for its messages.
type Invoice struct {
	Carrier  string
	Lines    []Carried // by link, and by tariff in order of time
	Accepted Sum       // segments that the carrier accepted, at its tariff
	Unpaid   int64     // of these, segments of tests and of the gateway's own messages, which no company pays for
	Possible int64     // segments that the carrier may have: it has not answered
	// credits of the period's messages that this carrier has, at each company's price; refunds are not subtracted
	Charged Sum
}

// Carried is a line of an invoice: the segments that a carrier accepted on one link at one tariff.
type Carried struct {
	Link     string // "": not known
	From     time.Time
	To       time.Time // exclusive
	Segments int64
	Possible int64
	Tariff   *billing.Centimes
	Amount   *billing.Money
}

// Difference is how many more segments the carrier accepted than companies were charged for.
func (i *Invoice) Difference() int64 { return i.Accepted.Credits - i.Charged.Credits }

// Margin is what companies paid above the tariff, nil if one of the two is not known.
func (i *Invoice) Margin() *billing.Money { return i.Charged.Amount.Minus(i.Accepted.Amount) }

// ReadInvoices reads the invoices of all carriers, or of one, from midnight to midnight in Burundi, to exclusive; with
// a company, the part of that company's messages.
func ReadInvoices(ctx context.Context, deps Deps, carrier string, company sms.CompanyID, from, to time.Time) (
	[]Invoice, error) {
	tariffs, err := deps.Ledger.Tariffs(ctx)
	if err != nil {
		return nil, err
	}
	accepted, err := acceptedOf(ctx, deps.Statistics, carrier, company, from, to)
	if err != nil {
		return nil, err
	}
	all := make(map[string]*Invoice)
	invoice := func(carrier string) *Invoice {
		if all[carrier] == nil {
			all[carrier] = &Invoice{Carrier: carrier, Accepted: Sum{0, billing.Centimes(0).Of(0)},
				Charged: Sum{0, billing.Centimes(0).Of(0)}}
		}
		return all[carrier]
	}
	for _, a := range accepted {
		invoice(a.carrier).carry(a, tariffs[a.carrier], from, to)
	}
	if err := deps.charge(ctx, carrier, company, from, to, invoice); err != nil {
		return nil, err
	}
	var list []Invoice
	for _, name := range slices.Sorted(maps.Keys(all)) {
		i := all[name]
		slices.SortStableFunc(i.Lines, func(a, b Carried) int { return a.From.Compare(b.From) })
		for _, line := range i.Lines {
			i.Accepted = Sum{i.Accepted.Credits + line.Segments, i.Accepted.Amount.Plus(line.Amount)}
			i.Possible += line.Possible
		}
		list = append(list, *i)
	}
	return list, nil
}

// carry adds what a carrier got on one day.
func (i *Invoice) carry(a carried, tariff billing.Rates, from, to time.Time) {
	span := billing.Prices{Own: tariff}.Span(a.day, from, to)
	at := slices.IndexFunc(i.Lines, func(l Carried) bool { return l.Link == a.link && l.From.Equal(span.From) })
	if at < 0 {
		at = len(i.Lines)
		i.Lines = append(i.Lines, Carried{Link: a.link, From: span.From, To: span.To, Tariff: span.Price})
	}
	line := &i.Lines[at]
	line.Segments += a.accepted
	line.Possible += a.unanswered
	line.Amount = line.Tariff.Amount(line.Segments)
	if a.unpaid {
		i.Unpaid += a.accepted
	}
}

// pricedMost is how many companies with a price of their own are read one by one.
const pricedMost = 10

// charge adds what companies were charged, each at its own price. Usually few companies have one: the others together
// are the total without these. The total is a row of its own for each day, and the rows of all companies are many.
func (r Deps) charge(ctx context.Context, carrier string, company sms.CompanyID, from, to time.Time,
	invoice func(carrier string) *Invoice) error {
	prices, err := r.Ledger.AllPrices(ctx)
	if err != nil {
		return err
	}
	cuts := prices.Cuts(from, to)
	for i := range len(cuts) - 1 {
		counted, err := chargedOf(ctx, r.Statistics, carrier, company, cuts[i], cuts[i+1], company == 0 &&
			len(prices) > pricedMost)
		for own := range prices {
			if err != nil || company != 0 || own == 0 || len(prices) > pricedMost {
				continue
			}
			var theirs []used
			theirs, err = chargedOf(ctx, r.Statistics, carrier, own, cuts[i], cuts[i+1], false)
			for _, u := range theirs {
				if at := slices.IndexFunc(counted, func(all used) bool {
					return all.company == 0 &&
						all.carrier == u.carrier
				}); at >= 0 {
					counted[at].credits -= u.credits
				}
			}
			counted = append(counted, theirs...)
		}
		if err != nil {
			return err
		}
		for _, u := range counted {
			of := invoice(u.carrier)
			of.Charged = Sum{of.Charged.Credits + u.credits,
				of.Charged.Amount.Plus(prices.Of(u.company).At(cuts[i]).Amount(u.credits))}
		}
	}
	return nil
}
