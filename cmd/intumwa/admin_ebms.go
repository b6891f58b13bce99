package main

import (
	"context"
	"errors"
	"time"

	"intumwa/billing/ebms"
	"intumwa/billing/orders"
)

// adminInvoicePendingCmd lists what the tax office does not have, those last that nobody reports.
type adminInvoicePendingCmd struct {
	Limit int `help:"How many at most." default:"1000"`
}

// reportOf is a report to the tax office as it is printed.
func reportOf(r ebms.Report) object {
	return object{{"invoice", r.Name}, {"state", r.State()}, {"issued_at", r.Issued}, {"tries", r.Tries},
		{"next_attempt", nextAttempt(r)}, {"reason", r.Words}, {"without_nif", optional{r.WithoutNIF}},
		{"note", optional{r.Note}}, {"identifier", r.Identifier}}
}

// nextAttempt is when the gateway tries again; nil if it waits for a person.
func nextAttempt(r ebms.Report) any {
	if r.State() != ebms.Waiting {
		return nil
	}
	return r.Due
}

func (c *adminInvoicePendingCmd) do(ctx context.Context, o *operator) (any, error) {
	if c.Limit < 1 {
		return nil, errors.New("--limit must be at least 1")
	}
	all, err := ebms.Pending(ctx, o.pool, c.Limit)
	list := views(all, reportOf)
	if left := c.Limit - len(all); err == nil && left > 0 {
		var rest []orders.Unqueued
		rest, err = o.orders().Unqueued(ctx, left)
		for _, i := range rest {
			list = append(list, object{{"invoice", orders.Name(i.Kind, i.Number)}, {"state", "unqueued"},
				{"issued_at", i.Issued}, {"tries", optional{0}}, {"next_attempt", optional{(*time.Time)(nil)}},
				{"reason", "issued without ebms.url: report it by hand, then record it with admin invoice report --settled"}})
		}
	}
	return list, err
}

// adminInvoiceReportCmd decides about an invoice that the tax office refused.
type adminInvoiceReportCmd struct {
	Number     string `required:"" help:"The invoice or credit note, as admin invoice pending names it." placeholder:"F000012"`
	WithoutNIF bool   `name:"without-nif" help:"Report it without the customer's NIF, which the OBR does not know."`
	Settled    string `help:"Do not report it: how you settled it with the OBR." placeholder:"TEXT"`
}

func (c *adminInvoiceReportCmd) do(ctx context.Context, o *operator) (any, error) {
	if c.WithoutNIF && c.Settled != "" {
		return nil, errors.New("--settled does not report it, so --without-nif cannot be given as well")
	}
	is, err := o.by(nil).ReportInvoice(ctx, c.Number, ebms.Retry{WithoutNIF: c.WithoutNIF, Settled: c.Settled})
	return done(reportOf(is), err)
}
