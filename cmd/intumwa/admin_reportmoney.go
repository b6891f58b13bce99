package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"intumwa/billing"
	"intumwa/messages/statistics"
	"intumwa/reports"
	"intumwa/sms"
)

// moneyDays is [reportDays.period] of a report about money.
func (r *reportDays) moneyDays() (from, to time.Time, err error) {
	from, to, err = r.period()
	if err == nil && to.After(from.AddDate(0, 0, reports.MaxPeriod)) {
		err = fmt.Errorf("--from and --to are 1 to %d days", reports.MaxPeriod)
	}
	return from, to, err
}

// lastDay is the last day of a period that ends at a midnight.
func lastDay(to time.Time) string { return to.AddDate(0, 0, -1).Format(time.DateOnly) }

func (o *operator) reports() reports.Deps {
	return reports.Deps{Companies: o.companies(), Ledger: billing.New(o.pool), Statistics: statistics.New(o.pool)}
}

// priceCell is a price in CSV, empty if there is none.
func priceCell(price *billing.Centimes) string {
	if price == nil {
		return ""
	}
	return price.String()
}

type adminReportMoneyCmd struct {
	reportDays

	Company int64  `help:"Only this company." placeholder:"ID"`
	Carrier string `help:"Only the usage lines of this carrier; the sums are of all." placeholder:"C"`
	CSV     bool   `name:"csv" help:"Print CSV, a row for each line of each statement."`
}

// do prints one company's statement, or an array of all companies'.
func (c *adminReportMoneyCmd) do(ctx context.Context, o *operator) (any, error) {
	from, to, err := c.moneyDays()
	if err != nil {
		return nil, err
	}
	if err := o.countNow(ctx); err != nil {
		return nil, err
	}
	if c.CSV {
		row, flush := csvFile(o.stdout, "company_id", "company", "from", "to", "line", "carrier", "kind", "messages",
			"credits", "price_bif", "amount_bif", "provisional")
		return nil, errors.Join(c.each(ctx, o, from, to, func(s *reports.Statement) error { return moneyRows(s, row) }),
			flush())
	}
	list := []any{}
	err = c.each(ctx, o, from, to, func(s *reports.Statement) error {
		list = append(list, deep{moneyOf(s)})
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case c.Company != 0:
		return list[0], nil
	}
	return list, nil
}

// each reads the statement of the company, or of each.
func (c *adminReportMoneyCmd) each(ctx context.Context, o *operator, from, to time.Time,
	do func(*reports.Statement) error) error {
	deps := o.reports()
	one := func(company int64) error {
		s, err := reports.ReadStatement(ctx, deps, sms.CompanyID(company), from, to)
		if err != nil {
			return err
		}
		if c.Carrier != "" {
			s.Lines = slices.DeleteFunc(s.Lines, func(u reports.Usage) bool { return !u.Difference() && u.Carrier != c.Carrier })
		}
		return do(&s)
	}
	if c.Company != 0 {
		return one(c.Company)
	}
	for after := int64(0); ; {
		page, err := deps.Companies.Companies(ctx, after, listPage)
		if err != nil {
			return err
		}
		for _, company := range page {
			if err := one(company.ID); err != nil {
				return err
			}
			after = company.ID
		}
		if len(page) < listPage {
			return nil
		}
	}
}

// moneyOf is a statement as it is printed.
func moneyOf(s *reports.Statement) object {
	lines := []object{}
	for _, l := range s.Lines {
		if !l.Difference() {
			lines = append(lines, object{{"carrier", l.Carrier}, {"kind", l.Kind}, {"from", l.From.Format(time.DateOnly)},
				{"to", lastDay(l.To)},
				{"messages", l.Messages}, {"credits", l.Credits}, {"price", l.Price}, {"amount", l.Amount}})
		}
	}
	o := object{{"company_id", s.Company.ID}, {"company", s.Company.Name}, {"from", s.From.Format(time.DateOnly)},
		{"to", lastDay(s.To)}, {"currency", "BIF"},
		{"provisional", s.Provisional}, {"opening", s.Opening}}
	for _, sum := range sumsOf(s) {
		o = append(o, pair{sum.name, sum.Credits}, pair{sum.name + "_amount", sum.Amount})
	}
	return append(o, pair{"closing", s.Closing}, pair{"usage_lines", lines}, pair{"not_counted", s.NotCounted()})
}

type namedSum struct {
	name string
	reports.Sum
}

func sumsOf(s *reports.Statement) []namedSum {
	return []namedSum{{"purchases", s.Purchases}, {"usage", s.Usage}, {"refunds", s.Refunds},
		{"corrections", s.Corrections}, {"net_usage", s.Net}}
}

// moneyRows writes a statement as CSV.
func moneyRows(s *reports.Statement, row func(...any) error) error {
	write := func(from, to time.Time, line, carrier, kind string, messages any, credits int64, price *billing.Centimes,
		amount *billing.Money) error {
		return row(s.Company.ID, s.Company.Name, from.Format(time.DateOnly), lastDay(to), line, carrier, kind, messages,
			credits, priceCell(price), amount, s.Provisional)
	}
	err := write(s.From, s.To, "opening", "", "", "", s.Opening, nil, nil)
	for _, sum := range sumsOf(s) {
		err = errors.Join(err, write(s.From, s.To, sum.name, "", "", "", sum.Credits, nil, sum.Amount))
	}
	err = errors.Join(err, write(s.From, s.To, "closing", "", "", "", s.Closing, nil, nil))
	for _, l := range s.Lines {
		line, messages := "usage_line", strconv.FormatInt(l.Messages, 10)
		if l.Difference() {
			line, messages = "not_counted", ""
		}
		err = errors.Join(err, write(l.From, l.To, line, l.Carrier, l.Kind, messages, l.Credits, l.Price, l.Amount))
	}
	return err
}
