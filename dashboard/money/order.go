package money

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"time"

	"intumwa/accounts"
	"intumwa/accounts/companies"
	"intumwa/billing"
	"intumwa/billing/ebms"
	"intumwa/billing/orders"
	"intumwa/dashboard/web"
	"intumwa/internal/postgres"
	"intumwa/operations"
	"intumwa/sms"
	"intumwa/texts"
)

// ordersPage is a company's orders and the form of a new one.
type ordersPage struct {
	web.Listing[orders.Order]

	Price *billing.Centimes // of a credit; nil: none is set, and nothing can be ordered
	Sum   *orders.Sum       // of what the form asks for; nil: nothing yet
	Key   string            // of the form
}

// Orders is GET /orders. With the parameter credits or amount it shows what an order costs.
func (ps *Pages) Orders(v *web.Visit, t web.Tenant) (err error) {
	f := v.Parameters("credits", "amount")
	p := ordersPage{Key: f.FormKey()}
	prices, err := ps.Deps.Statements.PricesOf(v.Ctx(), t.CompanyID())
	if err != nil {
		return err
	}
	if p.Price = prices.At(postgres.Now()); p.Price != nil && *p.Price > 0 {
		terms := ps.Deps.Orders.Terms(*p.Price)
		if credits, asked := ps.asked(f, terms); asked && f.OK() {
			p.Sum = new(terms.Sum(credits))
		}
	} else {
		p.Price = nil
	}
	p.Listing, err = web.List(v, "/orders", web.RowsOnPage, func(before int64, limit int) ([]orders.Order, int64, error) {
		return ps.Deps.Orders.List(v.Ctx(), orders.Filter{Company: t.Company.ID}, before, limit)
	})
	return v.Page(err, "orders", p)
}

// asked returns the number of credits that the form asks for; asked is false if it is empty.
func (ps *Pages) asked(f *web.Form, terms orders.Terms) (credits int64, asked bool) {
	field := "credits"
	if f.Value(field) == "" {
		field = "amount"
	}
	if f.Value(field) == "" {
		return 0, false
	}
	n, ok := whole(f.Value(field))
	if credits = n; ok && field == "amount" {
		credits = terms.Afford(orders.Francs(n))
	}
	if !ok || credits < 1 || credits > orders.MaxCredits || terms.Sum(credits).Total < 1 {
		f.Refuse(field, "order."+field+".wrong")
	}
	return credits, true
}

// whole parses a whole number, which may have blanks, or commas as in 1,000,000.
func whole(text string) (n int64, ok bool) {
	text = strings.NewReplacer(" ", "", "\u202f", "", "\u00a0", "").Replace(text)
	if groups := strings.Split(text, ","); len(groups) > 1 {
		for i, g := range groups {
			if len(g) != 3 && (i > 0 || len(g) == 0 || len(g) > 3) {
				return 0, false
			}
		}
		text = strings.Join(groups, "")
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n > 0 && n <= int64(orders.MaxFrancs)
}

// once returns the key of a form.
func once(f *web.Form) *[16]byte {
	var key [16]byte
	_, _ = hex.Decode(key[:], []byte(f.FormKey())) // hexadecimal, as FormKey checks
	return &key
}

// PlaceOrder is POST /orders. The form has the price that was shown.
func (ps *Pages) PlaceOrder(v *web.Visit, t web.Tenant) error {
	f := v.Form()
	price, err := billing.ParsePrice(f.Value("price"))
	credits, ok := whole(f.Value("credits"))
	if err != nil || !ok {
		f.Refuse("credits", "order.credits.wrong")
		return ps.Orders(v, t)
	}
	o, err := ps.By(v).PlaceOrder(v.Ctx(), operations.Ask{Company: t.CompanyID(), User: t.User.ID, Credits: credits,
		Price: &price, Once: once(f), Told: ps.Operator.Email != ""})
	switch {
	case errors.Is(err, operations.ErrChanged), errors.Is(err, orders.ErrNoPrice):
		f.Fail("order.changed")
		return ps.Orders(v, t)
	case errors.Is(err, orders.ErrCredits):
		f.Refuse("credits", "order.credits.wrong")
		return ps.Orders(v, t)
	case errors.Is(err, orders.ErrManyOpen):
		f.Fail("order.many", orders.MaxOpen)
		return ps.Orders(v, t)
	}
	return v.Done(err, orderPath(o.ID), "flash.order")
}

func orderPath(id int64) string { return "/orders/" + strconv.FormatInt(id, 10) }

// orderPage is one order.
type orderPage struct {
	orders.Order

	Sum      orders.Sum // what it costs today, or has cost
	Payments []orders.Recorded
	Notes    []orders.Invoice // credit notes of its invoice
	Company  accounts.Company // only for administrators
	Key      string           // of the form
	Ways     []web.Option
	Yes      []web.Option // no or yes
	Repeated []int64      // orders that had the reference of the form
	More     int64        // credits that the payment of the form pays for
}

// Left returns what is left to pay.
func (p *orderPage) Left() orders.Francs { return max(0, p.Sum.Total-p.Received) }

func (ps *Pages) readOrder(ctx context.Context, id, company int64) (p orderPage, err error) {
	if p.Order, err = ps.Deps.Orders.Order(ctx, id); err != nil {
		return p, err
	}
	if company != 0 && p.Order.Company != company {
		return p, accounts.ErrNotFound
	}
	p.Sum = ps.Deps.Orders.Terms(p.Price).Sum(p.Credits)
	if p.Number != 0 {
		i, err := ps.Deps.Orders.Invoice(ctx, p.Kind, p.Number)
		if err != nil {
			return p, err
		}
		p.Sum = i.Sum
		if p.Kind == orders.Sale {
			if p.Notes, err = ps.Deps.Orders.CreditNotes(ctx, p.Number); err != nil {
				return p, err
			}
		}
	}
	p.Payments, err = ps.Deps.Orders.Payments(ctx, id)
	return p, err
}

// Order is GET /orders/:id.
func (ps *Pages) Order(v *web.Visit, t web.Tenant) error {
	p, err := ps.readOrder(v.Ctx(), v.ID(), t.Company.ID)
	return v.Page(err, "order", &p)
}

// refuseOrder sets the error of a form about an order, and returns other errors.
func refuseOrder(f *web.Form, err error) error {
	for _, known := range []struct {
		err   error
		field string
		key   string
	}{
		{orders.ErrPaid, "", "order.refused.paid"}, {orders.ErrCancelled, "", "order.refused.cancelled"},
		{orders.ErrExpired, "", "order.refused.expired"}, {orders.ErrHasMoney, "", "order.refused.money"},
		{orders.ErrReference, "reference", "order.reference.wrong"}, {orders.ErrReason, "reason", "order.reason.wrong"},
		{orders.ErrAmount, "amount", "order.amount.wrong"}, {orders.ErrPaidOn, "on", "order.on.wrong"},
		{orders.ErrWay, "way", "error.required"},
	} {
		switch {
		case !errors.Is(err, known.err):
		case known.field == "":
			f.Fail(known.key)
			return nil
		default:
			f.Refuse(known.field, known.key)
			return nil
		}
	}
	return err
}

// orderDone responds to a change of an order.
func (ps *Pages) orderDone(v *web.Visit, t web.Tenant, err error, flash string) error {
	if err == nil && v.Form().OK() {
		return v.Redirect(orderPath(v.ID()), flash)
	}
	if err != nil {
		err = refuseOrder(v.Form(), err)
	}
	if err != nil {
		return err
	}
	return ps.Order(v, t)
}

// SetReference is POST /orders/:id/reference.
func (ps *Pages) SetReference(v *web.Visit, t web.Tenant) error {
	err := ps.By(v).SetOrderReference(v.Ctx(), t.CompanyID(), v.ID(), v.Form().Value("reference"))
	return ps.orderDone(v, t, err, "flash.order.reference")
}

// CancelOrder is POST /orders/:id/cancel.
func (ps *Pages) CancelOrder(v *web.Visit, t web.Tenant) error {
	_, err := ps.By(v).CancelOrder(v.Ctx(), t.CompanyID(), v.ID(), "")
	return ps.orderDone(v, t, err, "flash.order.cancelled")
}

// UploadSlip is POST /orders/:id/slip.
func (ps *Pages) UploadSlip(v *web.Visit, t web.Tenant) error {
	err := v.ReceiveDocument(t.Company.ID, ps.Papers, func(name string, file []byte) error {
		return ps.By(v).SetOrderSlip(v.Ctx(), t.CompanyID(), v.ID(), name, file)
	})
	return ps.orderDone(v, t, err, "flash.order.slip")
}

// Slip is GET /orders/:id/slip.
func (ps *Pages) Slip(v *web.Visit, t web.Tenant) error {
	return ps.sendSlip(v, t.Company.ID, t.Company.ID)
}

// AdminSlip is GET /admin/orders/:id/slip.
func (ps *Pages) AdminSlip(v *web.Visit) error { return ps.sendSlip(v, v.Session.User.ID, 0) }

// sendSlip responds with an order's slip. owner has the turn; company is whose order it must be, 0: any.
func (ps *Pages) sendSlip(v *web.Visit, owner, company int64) error {
	var o orders.Order
	return v.SendDocument(owner, v.ID(), func() (_ accounts.Document, err error) {
		if o, err = ps.Deps.Orders.Order(v.Ctx(), v.ID()); err == nil && company != 0 && o.Company != company {
			err = accounts.ErrNotFound
		}
		return o.Slip, err
	}, func(_ accounts.Document, from, size int) ([]byte, error) {
		return ps.Deps.Orders.SlipPart(v.Ctx(), o, from, size)
	})
}

// paperPage is a proforma, or a document of a sale, for the screen and for A4 paper.
type paperPage struct {
	Operator web.Operator
	Back     string
	Seller   *orders.Seller // nil: the operator's few facts are printed, on a receipt those of its day
	Customer orders.Customer
	Number   int64 // of the company
	Order    int64
	Sum      orders.Sum
	Invoice  *orders.Invoice // nil: a proforma
	Report   *ebms.Report    // to the tax office; nil: it is not reported
	Reports  bool            // the tax office is told of invoices
	Payments []orders.Recorded
	Received orders.Francs // of a proforma
	At       time.Time
	Expires  time.Time
}

// Left returns what is left to pay.
func (p *paperPage) Left() orders.Francs { return max(0, p.Sum.Total-p.Received) }

// Proforma is GET /orders/:id/proforma.
func (ps *Pages) Proforma(v *web.Visit, t web.Tenant) error {
	o, err := ps.readOrder(v.Ctx(), v.ID(), t.Company.ID)
	if err != nil {
		return err
	}
	if state := o.State(); state != orders.Open {
		return v.Redirect(orderPath(o.ID), "")
	}
	facts, err := ps.Companies.FactsOf(v.Ctx(), t.CompanyID())
	p := paperPage{Operator: ps.Operator, Back: orderPath(o.ID), Seller: ps.Deps.Orders.Seller(),
		Customer: operations.CustomerOf(t.Company, facts), Number: t.Company.ID, Order: o.ID, Sum: o.Sum,
		Received: o.Received, At: postgres.Now(), Expires: o.Expires()}
	p.Operator.Name = cmp.Or(p.Operator.Name, "Intumwa")
	return v.Page(err, "proforma", &p)
}

// Invoice is GET /invoices/:name.
func (ps *Pages) Invoice(v *web.Visit, t web.Tenant) error {
	return ps.invoice(v, t.Company.ID, "/orders/")
}

// AdminInvoice is GET /admin/invoices/:name.
func (ps *Pages) AdminInvoice(v *web.Visit) error { return ps.invoice(v, 0, "/admin/orders/") }

// invoice shows a document. company is whose it must be, 0: any.
func (ps *Pages) invoice(v *web.Visit, company int64, back string) error {
	kind, number, err := orders.ParseName(v.C.Param("name"))
	if err != nil {
		return web.ErrNotFound
	}
	i, err := ps.Deps.Orders.Invoice(v.Ctx(), kind, number)
	if err == nil && company != 0 && i.Company != company {
		err = accounts.ErrNotFound
	}
	p := paperPage{Back: back + strconv.FormatInt(i.Order, 10), Customer: i.Customer,
		Number: i.Company, Order: i.Order, Sum: i.Sum, Invoice: &i, At: i.Issued, Reports: ps.Unsent != nil}
	if s := &i.Seller; i.Kind == orders.Receipt {
		p.Operator = web.Operator{Name: s.Name, NIF: s.NIF, TradeRegister: s.TradeRegister, Address: s.Address,
			Phone: s.Phone, Email: s.Email}
	} else {
		p.Seller = s
	}
	p.Operator.Name = cmp.Or(p.Operator.Name, "Intumwa")
	if err == nil {
		var reports map[string]ebms.Report
		reports, err = ps.Deps.Orders.Reported(v.Ctx(), i.Name())
		if r, has := reports[i.Name()]; has {
			p.Report = &r
		}
	}
	if err == nil && kind != orders.CreditNote {
		p.Payments, err = ps.Deps.Orders.Payments(v.Ctx(), i.Order)
	}
	return v.Page(err, "invoice", &p)
}

// companyReader reads the facts of companies.
type companyReader interface {
	CompanyByID(ctx context.Context, id int64) (accounts.Company, error)
	FactsOf(ctx context.Context, company sms.CompanyID) (companies.Facts, error)
}

// Title returns the title of a document.
func (p *paperPage) Title() string { return texts.Documents[string(p.Invoice.Kind)] }

// francs returns an amount with its currency.
func francs(p *web.View, amount orders.Francs) string {
	return p.T("money.bif", p.Number(int64(amount)))
}

// documentOf returns the name of a ledger row's document, "" for none.
func documentOf(names map[[16]byte]string, ref *[16]byte) string {
	if ref == nil {
		return ""
	}
	return names[*ref]
}
