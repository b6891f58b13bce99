package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"intumwa/campaigns/sheets"
	"intumwa/configs"
	"intumwa/messages/receipts"
	"intumwa/messages/statistics"
	"intumwa/reports"
	"intumwa/sms"
	"intumwa/texts"
)

type adminReportInvoiceCmd struct {
	reportDays

	Carrier  string `help:"Only this carrier." placeholder:"C"`
	Company  int64  `help:"Only the messages of this company." placeholder:"ID"`
	CSV      bool   `name:"csv" help:"Print CSV, a row for each link and tariff."`
	Messages bool   `help:"With --carrier: CSV of messages with a difference in segments."`
	Against  string `type:"existingfile" help:"With --carrier: its list of ids; print differences." placeholder:"FILE"`
}

// do prints an array with an invoice for each carrier.
func (c *adminReportInvoiceCmd) do(ctx context.Context, o *operator) (any, error) {
	from, to, err := c.moneyDays()
	if err != nil {
		return nil, err
	}
	filter := statistics.InvoiceFilter{Carrier: c.Carrier, Company: sms.CompanyID(c.Company), From: from, To: to}
	switch {
	case (c.Messages || c.Against != "") && c.Carrier == "":
		return nil, errors.New("--messages and --against need --carrier")
	case c.Messages:
		row, flush := csvFile(o.stdout, reports.DifferenceHeads...)
		return nil, errors.Join(o.reports().Statistics.EachDiscrepancy(ctx, filter, nil,
			func(d *statistics.Discrepancy) error {
				return row(reports.DifferenceRow(d)...)
			}), flush())
	case c.Against != "":
		return nil, o.against(ctx, c.Against, filter)
	}
	if err := o.countNow(ctx); err != nil {
		return nil, err
	}
	list, err := reports.ReadInvoices(ctx, o.reports(), c.Carrier, filter.Company, from, to)
	if err != nil {
		return nil, err
	}
	if !c.CSV {
		return views(list, func(i reports.Invoice) any { return deep{invoiceOf(&i, from, to)} }), nil
	}
	row, flush := csvFile(o.stdout, "carrier", "link", "from", "to", "accepted", "unanswered", "tariff_bif", "amount_bif",
		"charged", "charged_bif")
	for i := range list {
		for _, l := range list[i].Lines {
			err = errors.Join(err, row(list[i].Carrier, l.Link, l.From.Format(time.DateOnly), lastDay(l.To), l.Segments,
				l.Possible, priceCell(l.Tariff), l.Amount, "", ""))
		}
		err = errors.Join(err, row(list[i].Carrier, "", from.Format(time.DateOnly), lastDay(to), list[i].Accepted.Credits,
			list[i].Possible, "",
			list[i].Accepted.Amount, fmt.Sprint(list[i].Charged.Credits), list[i].Charged.Amount.String()))
	}
	return nil, errors.Join(err, flush())
}

// invoiceOf is an invoice as it is printed.
func invoiceOf(i *reports.Invoice, from, to time.Time) object {
	lines := []object{}
	for _, l := range i.Lines {
		lines = append(lines, object{{"link", l.Link}, {"from", l.From.Format(time.DateOnly)}, {"to", lastDay(l.To)},
			{"accepted", l.Segments},
			{"unanswered", l.Possible}, {"tariff", l.Tariff}, {"amount", l.Amount}})
	}
	return object{{"carrier", i.Carrier}, {"from", from.Format(time.DateOnly)}, {"to", lastDay(to)}, {"currency", "BIF"},
		{"accepted", i.Accepted.Credits},
		{"unanswered", i.Possible}, {"amount", i.Accepted.Amount}, {"charged", i.Charged.Credits},
		{"charged_amount", i.Charged.Amount},
		{"not_paid", i.Unpaid}, {"difference", i.Difference()}, {"margin", i.Margin()}, {"links", lines}}
}

// against compares the accepted segments with a carrier's own list.
func (o *operator) against(ctx context.Context, file string, filter statistics.InvoiceFilter) (err error) {
	format := receipts.Auto
	if i := slices.IndexFunc(o.config.Carriers, func(c configs.Carrier) bool { return c.Name == filter.Carrier }); i >= 0 {
		format = idFormats[o.config.Carriers[i].MessageIDFormat]
	}
	comparison, err := receipts.NewComparison("", format)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, comparison.Close()) }()
	if err := eachListed(file, comparison.Theirs); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if err := o.reports().Statistics.EachAccepted(ctx, filter, nil, func(a *statistics.AcceptedSegment) error {
		return comparison.Ours(a.Key, strings.Join(
			[]string{a.CarrierID, fmt.Sprint(a.MessageID), a.ULID.String(), fmt.Sprint(int64(a.Company)), a.Link,
				a.SubmittedAt.In(sms.Burundi).Format(time.DateTime)}, "\x00"))
	}); err != nil {
		return err
	}
	return o.printComparison(comparison, filter)
}

// eachListed calls do with the ids of a carrier's list: a workbook or a text of any length.
func eachListed(file string, do func(id string) error) error {
	list, err := os.Open(file)
	if err != nil {
		return err
	}
	defer list.Close() // it was only read
	in := bufio.NewReaderSize(list, maxListBook)
	begin, err := in.Peek(1024)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return err
	case !sheets.IsBook(begin):
		return reports.EachListed(in, do)
	}
	book, err := in.Peek(maxListBook)
	if !errors.Is(err, io.EOF) {
		return errors.Join(err, errors.New("a workbook has 64 MiB at most; save it as CSV"))
	}
	err = reports.EachListedRow(func(row func(int, []string) error) error { return sheets.EachExact(book, row) }, do)
	if _, unreadable := errors.AsType[*sheets.Error](err); unreadable {
		texts, loadErr := texts.Load()
		if loadErr != nil {
			return loadErr
		}
		english, _ := texts.ByTag("en")
		return errors.New(sheets.ProblemOf(english, err).Text)
	}
	return err
}

const maxListBook = 64 << 20

// ourFields are what is printed of a segment that only we have.
var ourFields = []string{"carrier_message_id", "message_id", "id", "company_id", "link", "submitted_at"}

// printComparison prints the differences as they are read: CSV, or with --json one object with two arrays.
func (o *operator) printComparison(comparison *receipts.Comparison, filter statistics.InvoiceFilter) error {
	out := bufio.NewWriter(o.stdout)
	if !o.asJSON {
		row, flush := csvFile(out, append([]string{"only"}, ourFields...)...)
		err := comparison.Result(func(found receipts.Compared) error {
			_, err := fmt.Fprintf(o.stderr, "intumwa: %d ids on both lists, read as %s; only we have %d, only they have %d\n",
				found.Both, found.Format, found.OnlyOurs, found.OnlyTheirs)
			return err
		}, func(text string) error {
			id, rest, _ := strings.Cut(text, "\x00")
			values := []any{"ours", carrierID(id)}
			for value := range strings.SplitSeq(rest, "\x00") {
				values = append(values, value)
			}
			return row(values...)
		}, func(id string) error { return row("theirs", carrierID(id), "", "", "", "", "") })
		return errors.Join(err, flush(), out.Flush())
	}
	separator := ""
	say := func(value any) error {
		_, err := io.WriteString(out, separator)
		separator = ","
		return errors.Join(err, printJSON(out, value))
	}
	second := false
	next := func() (err error) {
		if !second {
			second, separator = true, ""
			_, err = io.WriteString(out, `],"only_theirs":[`)
		}
		return err
	}
	err := comparison.Result(func(found receipts.Compared) error {
		head, err := object{{"carrier", filter.Carrier}, {"from", filter.From.Format(time.DateOnly)},
			{"to", lastDay(filter.To)}, {"read_as", found.Format.String()},
			{"both", found.Both}, {"only_ours_count", found.OnlyOurs}, {"only_theirs_count", found.OnlyTheirs}}.MarshalJSON()
		if err == nil {
			_, err = fmt.Fprintf(out, `%s,"only_ours":[`, head[:len(head)-1])
		}
		return err
	}, func(text string) error {
		values := strings.Split(text, "\x00")
		o := object{}
		for i, field := range ourFields {
			o = append(o, pair{field, values[i]})
		}
		return say(o)
	}, func(id string) error { return errors.Join(next(), say(id)) })
	if err == nil {
		if err = next(); err == nil {
			_, err = io.WriteString(out, "]}\n")
		}
	}
	return errors.Join(err, out.Flush())
}
