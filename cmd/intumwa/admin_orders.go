package main

import (
	"context"
	"crypto/sha256"
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"intumwa/accounts"
	"intumwa/billing"
	"intumwa/billing/orders"
	"intumwa/operations"
	"intumwa/sms"
)

type adminOrderCmd struct {
	Create adminOrderCreateCmd `cmd:"" help:"Order credits for a company, at its price."`
	List   adminOrderListCmd   `cmd:"" help:"List orders, the newest first."`
	Show   adminOrderShowCmd   `cmd:"" help:"Show an order with its payments."`
	Pay    adminOrderPayCmd    `cmd:"" help:"Record a payment. When an order is paid, the company gets its credits and an invoice."`
	Cancel adminOrderCancelCmd `cmd:"" help:"Cancel an order. What was received for it must be given back."`
}

type adminOrderCreateCmd struct {
	Company int64 `required:"" help:"The company." placeholder:"ID"`
	Credits int64 `help:"How many." xor:"size" required:"" placeholder:"N"`
	Amount  int64 `help:"Or what this many francs pay, with taxes." xor:"size" required:"" placeholder:"BIF"`
}

func (c *adminOrderCreateCmd) do(ctx context.Context, o *operator) (any, error) {
	if c.Credits < 0 || c.Amount < 0 {
		return nil, orders.ErrCredits
	}
	placed, err := o.by(nil).PlaceOrder(ctx, operations.Ask{Company: sms.CompanyID(c.Company), Credits: c.Credits,
		Francs: orders.Francs(c.Amount)})
	return done(o.viewOrder(placed), err)
}

// viewOrder is an order as it is printed. total is what it costs today; a paid one has the credits and total of its
// document.
func (o *operator) viewOrder(of orders.Order) object {
	credits, total := of.Credits, o.orders().Terms(of.Price).Sum(of.Credits).Total
	if of.Number != 0 {
		credits, total = of.Sold, of.Total
	}
	left := max(0, total-of.Received)
	if of.State() != orders.Open && of.State() != orders.Expired {
		left = 0
	}
	return object{{"order_id", of.ID}, {"company_id", of.Company}, {"credits", credits}, {"bif", of.Price},
		{"state", of.State()}, {"total", total}, {"received", of.Received}, {"left", left},
		{"reference", optional{of.Reference}}, {"slip", optional{of.Slip.Name}}, {"created_at", of.Created},
		{"expires_at", of.Expires()}, {"paid_at", of.PaidAt}, {"invoice", orNull(of.Document())},
		{"cancelled_at", of.Cancelled}, {"reason", optional{of.Reason}}}
}

type adminOrderListCmd struct {
	State   string `help:"Only those: open, paid, cancelled, expired." enum:",open,paid,cancelled,expired" default:""`
	Company int64  `help:"Only this company's." placeholder:"ID"`
	Before  int64  `help:"Only those with smaller ids: the next part." placeholder:"ID"`
	Limit   int    `help:"How many at most." default:"1000"`
}

func (c *adminOrderListCmd) do(ctx context.Context, o *operator) (any, error) {
	f := orders.Filter{Company: c.Company, State: orders.State(c.State)}
	return collect(c.Before, c.Limit, func(before int64, limit int) ([]orders.Order, int64, error) {
		return o.orders().List(ctx, f, before, limit)
	}, func(of orders.Order) any { return o.viewOrder(of) })
}

type adminOrderShowCmd struct {
	ID int64 `required:"" help:"The order."`
}

func (c *adminOrderShowCmd) do(ctx context.Context, o *operator) (any, error) {
	of, err := o.orders().Order(ctx, c.ID)
	if err != nil {
		return nil, err
	}
	payments, err := o.orders().Payments(ctx, c.ID)
	return done(deep{append(o.viewOrder(of), pair{"payments", views(payments, func(p orders.Recorded) object {
		return object{{"amount", p.Amount}, {"way", p.Way}, {"reference", p.Reference}, {"on", p.On.Format(time.DateOnly)},
			{"recorded_at", p.At}, {"recorded_by", p.By}}
	})})}, err)
}

type adminOrderPayCmd struct {
	ID        int64  `required:"" help:"The order."`
	Amount    int64  `required:"" help:"Whole francs. A part keeps the order open." placeholder:"BIF"`
	Way       string `required:"" help:"bank, mobile or cash." enum:"bank,mobile,cash"`
	Reference string `required:"" help:"Of the payment, as bank or mobile money names it."`
	On        day    `help:"The day of the payment; today when not given." placeholder:"YYYY-MM-DD"`
	Again     bool   `help:"It is another payment, though its reference is recorded already."`
	More      bool   `help:"It pays for more credits than were ordered: sell as many as it pays for."`
}

func (c *adminOrderPayCmd) do(ctx context.Context, o *operator) (any, error) {
	if c.On.month {
		return nil, errors.New("--on is a day, such as 2026-08-01")
	}
	is, err := o.by(nil).PayOrder(ctx, c.ID, orders.Payment{Amount: orders.Francs(c.Amount), Way: c.Way,
		Reference: c.Reference, On: c.On.at, Again: c.Again, More: c.More})
	if err != nil {
		return nil, err
	}
	printed := o.viewOrder(is.Order)
	if is.Invoice != nil {
		printed = append(printed, pair{"sold", is.Invoice.Credits}, pair{"invoice_total", is.Invoice.Total},
			pair{"rest", is.Invoice.Rest()})
	}
	return printed, nil
}

type adminOrderCancelCmd struct {
	ID     int64  `required:"" help:"The order."`
	Reason string `required:"" aliases:"note" help:"Why; the company reads it."`
}

func (c *adminOrderCancelCmd) do(ctx context.Context, o *operator) (any, error) {
	of, err := o.by(nil).CancelOrder(ctx, 0, c.ID, c.Reason)
	if err == nil && of.Received > 0 {
		_, _ = fmt.Fprintf(o.stderr, "intumwa: %d francs were received for the order: give them back\n", of.Received)
	}
	return done(o.viewOrder(of), err)
}

type adminInvoiceCmd struct {
	List    adminInvoiceListCmd    `cmd:"" help:"List the documents of a period: invoices F…, credit notes A…, receipts R…"`
	Show    adminInvoiceShowCmd    `cmd:"" help:"Show a document with everything that it prints."`
	Credit  adminInvoiceCreditCmd  `cmd:"" help:"Correct an invoice by a credit note, which takes its credits back."`
	Pending adminInvoicePendingCmd `cmd:"" help:"List invoices and credit notes that the tax office does not have, with its words."`
	Report  adminInvoiceReportCmd  `cmd:"" help:"Report a refused invoice to the tax office again, or note how it was settled."`
	Skip    adminInvoiceSkipCmd    `cmd:"" help:"After a restore: go on after a number that customers or the tax office have."`
}

type adminInvoiceListCmd struct {
	reportDays

	Company int64 `help:"Only this company's." placeholder:"ID"`
	CSV     bool  `name:"csv" help:"Print CSV."`
}

// maxListed is the most documents of a list.
const maxListed = 50_000

func (c *adminInvoiceListCmd) do(ctx context.Context, o *operator) (any, error) {
	from, to, err := c.period()
	if err != nil {
		return nil, err
	}
	all, err := o.orders().Issued(ctx, c.Company, from, to, maxListed+1)
	if err == nil && len(all) > maxListed {
		err = fmt.Errorf("the period has more than %d documents: choose a shorter one", maxListed)
	}
	if err != nil || !c.CSV {
		return done(views(all, viewInvoice), err)
	}
	out := csv.NewWriter(o.stdout)
	out.UseCRLF = true
	return nil, out.WriteAll(orders.CSV(all))
}

// viewInvoice is a document as lists print it.
func viewInvoice(i orders.Invoice) object {
	return object{{"number", i.Name()}, {"kind", i.Kind}, {"order_id", i.Order}, {"company_id", i.Company},
		{"issued_at", i.Issued}, {"credits", i.Credits}, {"bif", i.Price}, {"net", i.Net}, {"total", i.Total},
		{"refers_to", optional{i.Corrected()}}, {"reason", optional{i.Reason}}}
}

type adminInvoiceShowCmd struct {
	Number string `required:"" help:"Such as F000012 or A000003; without a letter an invoice." placeholder:"F…"`
}

func (c *adminInvoiceShowCmd) do(ctx context.Context, o *operator) (any, error) {
	kind, number, err := orders.ParseName(c.Number)
	if err != nil {
		return nil, err
	}
	i, err := o.orders().Invoice(ctx, kind, number)
	if err != nil {
		return nil, err
	}
	notes := []orders.Invoice{}
	if kind == orders.Sale {
		if notes, err = o.orders().CreditNotes(ctx, number); err != nil {
			return nil, err
		}
	}
	return deep{slices.Concat(viewInvoice(i), object{{"taxes", views(i.Taxes, viewTax)}, {"paid", i.Paid},
		{"way", optional{i.Way}},
		{"seller", i.Seller}, {"customer", i.Customer}, {"issued_by", i.By},
		{"credit_notes", views(notes, func(n orders.Invoice) string { return n.Name() })}})}, nil
}

// viewTax is a tax of a document as it is printed.
func viewTax(t orders.TaxSum) object {
	rate := ""
	if t.Rate != 0 {
		rate = t.Rate.String() + "%"
	}
	return object{{"name", t.Name}, {"rate", optional{rate}}, {"per_sms", optional{t.PerSMS}}, {"on", optional{t.On}},
		{"ebms", optional{t.EBMS}}, {"sum", t.Sum}}
}

type adminInvoiceCreditCmd struct {
	Number  string `required:"" help:"The invoice." placeholder:"F…"`
	Reason  string `required:"" aliases:"note" help:"What was wrong; the credit note prints it. A repeated command changes nothing."`
	Credits string `help:"How many credits it takes back, or all that are left." default:"all" placeholder:"N|all"`
}

func (c *adminInvoiceCreditCmd) do(ctx context.Context, o *operator) (any, error) {
	kind, number, err := orders.ParseName(c.Number)
	if err == nil && kind != orders.Sale {
		err = orders.ErrNoInvoice
	}
	var credits int64
	if err == nil && c.Credits != "all" {
		if credits, err = strconv.ParseInt(c.Credits, 10, 64); err != nil || credits < 1 {
			err = accounts.Errorf(accounts.ErrInvalid, "--credits is a number from 1, or all")
		}
	}
	if err != nil {
		return nil, err
	}
	// The same command again may follow an answer that was lost.
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %s", number, c.Credits, strings.TrimSpace(c.Reason)))
	note, err := o.by(nil).CreditInvoice(ctx, number, orders.Credit{Credits: credits, Reason: c.Reason,
		Once: (*[16]byte)(sum[:])})
	if errors.Is(err, billing.ErrGranted) {
		err = accounts.Errorf(accounts.ErrExists, "%s has this credit note already, with these credits and this reason "+
			"(admin invoice show): for another one, word the reason otherwise", orders.Name(kind, number))
	}
	return done(viewInvoice(note), err)
}

type adminInvoiceSkipCmd struct {
	Last   string `required:"" help:"The last number that is used up, such as F000130." placeholder:"F…"`
	Reason string `required:"" aliases:"note" help:"Why; it stays on record."`
}

func (c *adminInvoiceSkipCmd) do(ctx context.Context, o *operator) (any, error) {
	kind, number, err := orders.ParseName(c.Last)
	if err != nil {
		return nil, err
	}
	first, err := o.by(nil).SkipInvoices(ctx, kind, number, c.Reason)
	if err != nil {
		return nil, err
	}
	lost := int64(0)
	if first > 0 {
		lost = number - first + 1
	}
	last, err := o.orders().Last(ctx)
	return done(object{{"kind", kind}, {"skipped", lost}, {"next", orders.Name(kind, last[kind]+1)}}, err)
}
