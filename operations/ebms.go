package operations

import (
	"cmp"
	"context"
	"errors"

	"intumwa/billing/ebms"
	"intumwa/billing/orders"
)

// ReportInvoice makes an invoice or credit note that the tax office does not have due again, or notes how an operator
// settled it with the office. The errors are those of [ebms.Again] and [orders.ParseName].
func (a Actor) ReportInvoice(ctx context.Context, name string, to ebms.Retry) (is ebms.Report, err error) {
	kind, number, err := orders.ParseName(name)
	if err != nil {
		return is, err
	}
	name = orders.Name(kind, number)
	state := func(r ebms.Report) fields {
		return fields{"state": r.State(), "without_nif": r.WithoutNIF, "note": r.Note}
	}
	err = a.tell(ctx, func(in within) (act, error) {
		var was ebms.Report
		was, is, err = ebms.Again(ctx, in.Tx, name, to)
		unqueued := errors.Is(err, ebms.ErrNoReport) // it was issued before the eBMS was configured, or does not exist
		if err != nil && !unqueued {
			return act{}, err
		}
		i, missing := in.orders().Invoice(ctx, kind, number)
		if err = cmp.Or(missing, err); unqueued && missing == nil && to.Settled != "" && kind != orders.Receipt {
			err = ebms.Queue(ctx, in.Tx, ebms.Queued{Name: name, RefersTo: i.Corrected(), Issued: i.Issued})
			if err == nil {
				was, is, err = ebms.Again(ctx, in.Tx, name, to)
			}
		}
		return act{name: "invoice.report", subject: "invoice " + name, company: i.Company, before: state(was),
			after: state(is)}, err
	})
	return is, err
}
