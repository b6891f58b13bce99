package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"time"

	"intumwa/messages/statistics"
	"intumwa/sms"
	"intumwa/texts"
)

// adminReportCmd has the reports of a period.
type adminReportCmd struct {
	Quality     adminReportQualityCmd     `cmd:"" help:"What became of messages, how fast, why they failed."`
	Export      adminReportExportCmd      `cmd:"" help:"Print all messages of a company and month as CSV."`
	Money       adminReportMoneyCmd       `cmd:"" help:"Companies' balances, purchases, usage, refunds."`
	Conversions adminReportConversionsCmd `cmd:"" help:"How many people entered their code."`
	Invoice     adminReportInvoiceCmd     `cmd:"" help:"What carriers accepted, and what companies paid."`
}

// day is a flag: a day in Burundi (2026-03-01), or a month (2026-03).
type day struct {
	at    time.Time // midnight in Burundi, of a month its first
	month bool
}

// UnmarshalText implements kong's mapping.
func (d *day) UnmarshalText(text []byte) error {
	for _, layout := range []string{time.DateOnly, "2006-01"} {
		if at, err := time.ParseInLocation(layout, string(text), sms.Burundi); err == nil && at.Year() >= 2000 &&
			at.Year() <= 9999 {
			*d = day{at, layout != time.DateOnly}
			return nil
		}
	}
	return fmt.Errorf("%q is no day: 2026-03-01, or 2026-03 for a month", text)
}

// reportMost is the longest period of a report, in days.
const reportMost = 5 * 366

// reportDays has the flags of a report's period.
type reportDays struct {
	From day `required:"" help:"First day in Burundi, or a month: its first day." placeholder:"2026-07-01"`
	To   day `required:"" help:"Last day, included, or a month: its last day." placeholder:"2026-07-31"`
}

// period returns the midnights between which the period is.
func (r *reportDays) period() (from, to time.Time, err error) {
	from, to = r.From.at, r.To.at.AddDate(0, 0, 1)
	if r.To.month {
		to = r.To.at.AddDate(0, 1, 0)
	}
	if !from.Before(to) || to.After(from.AddDate(0, 0, reportMost)) {
		return from, to, fmt.Errorf("--from and --to are 1 to %d days", reportMost)
	}
	return from, to, nil
}

// countNow counts the messages whose last count is not of now, for a report of now.
func (o *operator) countNow(ctx context.Context) error {
	if o.away != nil { // nothing can be written
		return nil
	}
	return statistics.New(o.pool).TallyNow(ctx, countPatience)
}

// carrierID is a carrier's id in a CSV file.
type carrierID string

// csvFile writes lines of CSV as RFC 4180 has them.
func csvFile(w io.Writer, heads ...string) (row func(...any) error, flush func() error) {
	out := csv.NewWriter(w)
	out.UseCRLF = true
	head := out.Write(heads)
	row = func(values ...any) error {
		cells := make([]string, len(values))
		for i, value := range values {
			switch v := value.(type) {
			case string:
				cells[i] = texts.Cell(v)
			case carrierID:
				cells[i] = texts.CellID(string(v))
			case time.Time:
				cells[i] = v.In(sms.Burundi).Format(time.DateTime)
			default:
				cells[i] = fmt.Sprint(v)
			}
		}
		return out.Write(cells)
	}
	return row, func() error {
		out.Flush()
		return errors.Join(head, out.Error())
	}
}
