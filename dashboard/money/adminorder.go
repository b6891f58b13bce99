package money

import (
	"errors"
	"slices"
	"strconv"

	"intumwa/accounts"
	"intumwa/billing"
	"intumwa/billing/orders"
	"intumwa/dashboard/web"
	"intumwa/operations"
	"intumwa/texts"
)

// adminOrdersPage is the orders of all companies.
type adminOrdersPage struct {
	web.Listing[orders.Order]

	States []web.Option
	Names  map[int64]string // of their companies
}

// AdminOrders is GET /admin/orders: those to be paid, or of another state.
func (ps *Pages) AdminOrders(v *web.Visit) (err error) {
	f := v.Parameters("state", "company")
	p := adminOrdersPage{Names: map[int64]string{}, States: v.Options(string(orders.Open), "order.state.open",
		string(orders.Paid), "order.state.paid", string(orders.Expired), "order.state.expired", string(orders.Cancelled),
		"order.state.cancelled", "all", "order.state.all")}
	filter := orders.Filter{State: orders.Open}
	if state := f.Value("state"); web.Among(p.States, state) {
		filter.State = orders.State(state)
	}
	if filter.State == "all" {
		filter.State = ""
	}
	filter.Company, _ = strconv.ParseInt(f.Value("company"), 10, 64)
	p.Listing, err = web.List(v, "/admin/orders", web.RowsOnPage,
		func(before int64, limit int) ([]orders.Order, int64, error) {
			return ps.Deps.Orders.List(v.Ctx(), filter, before, limit)
		})
	for i := range p.Rows {
		id := p.Rows[i].Company
		if _, known := p.Names[id]; known || err != nil {
			continue
		}
		var c accounts.Company
		c, err = ps.Companies.CompanyByID(v.Ctx(), id)
		p.Names[id] = c.Name
	}
	return v.Page(err, "adminorders", p)
}

// AdminOrder is GET /admin/orders/:id.
func (ps *Pages) AdminOrder(v *web.Visit) error { return ps.adminOrder(v, nil) }

// adminOrder shows an order. warning is why a payment was not recorded.
func (ps *Pages) adminOrder(v *web.Visit, warning error) error {
	p, err := ps.readOrder(v.Ctx(), v.ID(), 0)
	if err != nil {
		return err
	}
	p.Key = v.Form().FormKey()
	p.Ways = v.Options(orders.Bank, "order.way.bank", orders.Mobile, "order.way.mobile", orders.Cash, "order.way.cash")
	p.Yes = v.Options("", "invoice.no", "yes", "invoice.yes")
	if repeated, ok := errors.AsType[*orders.RepeatedError](warning); ok {
		p.Repeated = repeated.Orders
	}
	if more, ok := errors.AsType[*orders.MoreError](warning); ok {
		p.More = more.Credits
	}
	p.Company, err = ps.Companies.CompanyByID(v.Ctx(), p.Order.Company)
	return v.Page(err, "adminorder", &p)
}

func adminOrderPath(id int64) string { return "/admin" + orderPath(id) }

// adminOrderDone responds to an act about an order.
func (ps *Pages) adminOrderDone(v *web.Visit, err error, flash string) error {
	if err == nil && v.Form().OK() {
		return v.Redirect(adminOrderPath(v.ID()), flash)
	}
	if err != nil {
		err = refuseOrder(v.Form(), err)
	}
	if err != nil {
		return err
	}
	return ps.adminOrder(v, nil)
}

// PayOrder is POST /admin/orders/:id/pay. The form's key identifies the payment: sent twice, it is recorded once.
func (ps *Pages) PayOrder(v *web.Visit) error {
	f := v.Form()
	amount, ok := whole(f.Value("amount"))
	if !ok {
		f.Refuse("amount", "order.amount.wrong")
	}
	on := f.Day("on")
	if !f.OK() {
		return ps.adminOrder(v, nil)
	}
	is, err := ps.By(v).PayOrder(v.Ctx(), v.ID(), orders.Payment{Amount: orders.Francs(amount), Way: f.Value("way"),
		Reference: f.Value("reference"), On: on, Once: once(f), Again: f.Value("again") == "yes",
		More: f.Value("more") == "yes"})
	_, repeated := errors.AsType[*orders.RepeatedError](err)
	_, more := errors.AsType[*orders.MoreError](err)
	switch {
	case repeated || more:
		f.Fail("order.confirm")
		return ps.adminOrder(v, err)
	case errors.Is(err, billing.ErrGranted): // the form was repeated
		o, err := ps.Deps.Orders.Order(v.Ctx(), v.ID())
		flash := "flash.order.part"
		if o.State() == orders.Paid {
			flash = "flash.order.paid"
		}
		return v.Done(err, adminOrderPath(v.ID()), flash)
	case err == nil && is.Invoice == nil:
		return v.Redirect(adminOrderPath(v.ID()), "flash.order.part")
	}
	return ps.adminOrderDone(v, err, "flash.order.paid")
}

// StopOrder is POST /admin/orders/:id/cancel.
func (ps *Pages) StopOrder(v *web.Visit) error {
	_, err := ps.By(v).CancelOrder(v.Ctx(), 0, v.ID(), v.Form().Value("reason"))
	return ps.adminOrderDone(v, err, "flash.order.cancelled")
}

// DeleteSlip is POST /admin/orders/:id/slip/delete.
func (ps *Pages) DeleteSlip(v *web.Visit) error {
	return v.Done(ps.By(v).DeleteOrderSlip(v.Ctx(), v.ID()), adminOrderPath(v.ID()), "flash.document.deleted")
}

// CreditOrder is POST /admin/orders/:id/credit: a credit note of the order's invoice.
func (ps *Pages) CreditOrder(v *web.Visit) error {
	f := v.Form()
	o, err := ps.Deps.Orders.Order(v.Ctx(), v.ID())
	if err != nil {
		return err
	}
	if o.Kind != orders.Sale {
		return web.ErrNotFound
	}
	c := orders.Credit{Reason: f.Value("why"), Once: once(f)}
	if text := f.Value("credits"); text != "" {
		n, ok := whole(text)
		if c.Credits = n; !ok {
			f.Refuse("credits", "order.credit.wrong")
			return ps.adminOrder(v, nil)
		}
	}
	_, err = ps.By(v).CreditInvoice(v.Ctx(), o.Number, c)
	spent, isSpent := errors.AsType[*operations.SpentError](err)
	switch {
	case errors.Is(err, billing.ErrGranted): // the form was repeated
		return v.Redirect(adminOrderPath(o.ID), "flash.credited")
	case isSpent:
		f.Refuse("credits", "order.credit.spent", v.Lang.Number(spent.Credits))
		return ps.adminOrder(v, nil)
	case errors.Is(err, orders.ErrReason):
		f.Refuse("why", "order.reason.wrong")
		return ps.adminOrder(v, nil)
	case errors.Is(err, orders.ErrCredited), errors.Is(err, accounts.ErrInvalid):
		f.Refuse("credits", "order.credit.wrong")
		return ps.adminOrder(v, nil)
	}
	return v.Done(err, adminOrderPath(o.ID), "flash.credited")
}

// maxInvoices is the most documents of a month.
const maxInvoices = 50_000

// adminInvoicesPage is the documents of a month.
type adminInvoicesPage struct {
	Title  string
	Month  string
	Rows   []orders.Invoice
	Net    orders.Francs // without credit notes
	Total  orders.Francs
	Hidden int  // documents that only the file has
	Many   bool // more than Most, which a file has
	Most   int
}

// shownInvoices is the most documents of a month on its page.
const shownInvoices = 500

// AdminInvoices is GET /admin/invoices.
func (ps *Pages) AdminInvoices(v *web.Visit) error {
	month := month(v)
	p := adminInvoicesPage{Title: v.Lang.Month(month), Month: month.Format(monthFormat)}
	all, err := ps.Deps.Orders.Issued(v.Ctx(), 0, month, month.AddDate(0, 1, 0), maxInvoices+1)
	p.Most, p.Many = maxInvoices, len(all) > maxInvoices
	for i := range all {
		sign := orders.Francs(1)
		if all[i].Kind == orders.CreditNote {
			sign = -1
		}
		p.Net, p.Total = p.Net+sign*all[i].Net, p.Total+sign*all[i].Total
	}
	p.Rows = all[:min(len(all), shownInvoices)]
	p.Hidden = len(all) - len(p.Rows)
	return v.Page(err, "admininvoices", p)
}

// ExportInvoices is GET /admin/invoices.csv: a month for the bookkeeper.
func (ps *Pages) ExportInvoices(v *web.Visit) error {
	month := month(v)
	if !v.Form().OK() {
		return ps.AdminInvoices(v)
	}
	all, err := ps.Deps.Orders.Issued(v.Ctx(), 0, month, month.AddDate(0, 1, 0), maxInvoices+1)
	if err != nil {
		return err
	}
	if len(all) > maxInvoices {
		v.Form().Fail("invoices.many", v.Lang.Number(maxInvoices))
		return ps.AdminInvoices(v)
	}
	rows := orders.CSV(all)
	price := slices.Index(rows[0], "price")
	for i, head := range rows[0] {
		if key := texts.InvoiceHeads[head]; key != "" { // a tax has its own name
			rows[0][i] = v.Lang.T(key)
		}
	}
	// whose turn the download takes
	t := web.Tenant{User: v.Session.User, Company: accounts.Company{ID: v.Session.User.ID}}
	return v.Export(t, "invoices-"+month.Format(monthFormat), rows[0], func(row func(...string) error) error {
		for _, cells := range rows[1:] {
			cells[price] = v.Lang.CSVDecimal(cells[price])
			if err := row(cells...); err != nil {
				return err
			}
		}
		return nil
	})
}
