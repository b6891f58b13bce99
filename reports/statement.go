// Package reports puts together what several packages know about money: a company's statement from the ledger, its
// prices and the counts of messages; a carrier's invoice from what it accepted, its tariff and what companies were
// charged.
//
// Every amount is exact ([billing.Money]). An amount is nil where a price is not known.
//
// # Which price applies
//
// Days are those of Burundi. Usage is priced on the day of the request that was charged; purchases, corrections and
// refunds on the day of their ledger row. What a carrier accepts is priced by its tariff on the day on which it took
// the segment.
package reports

import (
	"context"
	"time"

	"intumwa/accounts"
	"intumwa/accounts/companies"
	"intumwa/billing"
	"intumwa/messages/statistics"
	"intumwa/sms"
)

// MaxPeriod is the longest period of a report, in days.
const MaxPeriod = 366

// Deps are the packages that reports read.
type Deps struct {
	Companies  *companies.Store
	Ledger     *billing.Ledger
	Statistics *statistics.Store
}

// Statement is a company's money in a period. Always opening balance + purchases + corrections + refunds − usage =
// closing balance, and the credits of Lines are the usage.
type Statement struct {
	Company accounts.Company
	Facts   companies.Facts
	billing.Period

	Lines       []Usage
	Purchases   Sum
	Corrections Sum
	Refunds     Sum
	Usage       Sum
	Net         Sum  // usage without refunds: what the period's messages cost
	Provisional bool // the period is not over, or not all of its messages are counted
}

// Sum is a number of credits and its amount.
type Sum struct {
	Credits int64          `json:"credits"`
	Amount  *billing.Money `json:"amount"`
}

// Usage is a line of a statement: the credits of the messages of one carrier and kind at one price. Carrier and Kind
// are empty for the difference between the ledger and the counts of messages, which may be negative.
type Usage struct {
	Carrier  string            `json:"carrier"`
	Kind     string            `json:"kind"` // of statistics.Kinds
	From     time.Time         `json:"-"`
	To       time.Time         `json:"-"` // exclusive
	Messages int64             `json:"messages"`
	Price    *billing.Centimes `json:"price"`
	Sum
}

// Difference reports whether the line is not of messages.
func (u *Usage) Difference() bool { return u.Carrier == "" }

// NotCounted is the usage in the ledger that the counts of messages do not have.
func (s *Statement) NotCounted() (credits int64) {
	for i := range s.Lines {
		if s.Lines[i].Difference() {
			credits += s.Lines[i].Credits
		}
	}
	return credits
}

// ReadStatement reads a company's statement from midnight to midnight in Burundi, to exclusive. The errors are
// [accounts.ErrNotFound] and those of Postgres.
func ReadStatement(ctx context.Context, deps Deps, company sms.CompanyID, from, to time.Time) (s Statement, err error) {
	if s.Company, err = deps.Companies.CompanyByID(ctx, int64(company)); err != nil {
		return s, err
	}
	if s.Facts, err = deps.Companies.FactsOf(ctx, company); err != nil {
		return s, err
	}
	if s.Period, err = deps.Ledger.Summary(ctx, company, from, to); err != nil {
		return s, err
	}
	counted, err := usageOf(ctx, deps.Statistics, company, from, to, len(s.Parts) > 1)
	if err != nil {
		return s, err
	}
	s.Provisional = s.Open
	for i := range s.Parts {
		part := &s.Parts[i]
		lines, rest := linesOf(part, counted)
		s.Lines = append(s.Lines, lines...)
		if rest != 0 {
			s.Provisional = true
			s.Lines = append(s.Lines, Usage{From: part.From, To: part.To, Price: part.Price, Sum: Sum{rest, part.Amount(rest)}})
		}
	}
	sum := func(of func(*billing.Part) int64) (sum Sum) {
		sum.Credits, sum.Amount = s.Sum(of)
		return sum
	}
	s.Purchases = sum(func(p *billing.Part) int64 { return p.Purchases })
	s.Corrections = sum(func(p *billing.Part) int64 { return p.Corrections })
	s.Refunds = sum(func(p *billing.Part) int64 { return p.Refunds })
	s.Usage = sum(func(p *billing.Part) int64 { return p.Usage })
	s.Net = Sum{s.Usage.Credits - s.Refunds.Credits, s.Usage.Amount.Minus(s.Refunds.Amount)}
	return s, nil
}

// linesOf returns the lines of a part, and the usage in the ledger that they do not explain.
func linesOf(part *billing.Part, counted []used) (lines []Usage, rest int64) {
	rest = part.Usage
	for _, u := range counted {
		if u.day.Before(part.From) || !u.day.Before(part.To) || u.credits == 0 {
			continue
		}
		at := len(lines)
		for i := range lines {
			if lines[i].Carrier == u.carrier && lines[i].Kind == u.kind {
				at = i
			}
		}
		if at == len(lines) {
			lines = append(lines, Usage{Carrier: u.carrier, Kind: u.kind, From: part.From, To: part.To, Price: part.Price})
		}
		lines[at].Messages += u.messages
		lines[at].Credits += u.credits
		rest -= u.credits
	}
	for i := range lines {
		lines[i].Amount = part.Amount(lines[i].Credits)
	}
	return lines, rest
}
