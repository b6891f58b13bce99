package operations

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/accounts/companies"
	"intumwa/accounts/letter"
	"intumwa/billing"
	"intumwa/billing/orders"
	"intumwa/internal/postgres"
	"intumwa/sms"
)

// tell is [Actor.do] for acts whose refusals tell what somebody did before, such as that an order is paid: the refusal
// too is told after a COMMIT that a failover cannot take back. A refused act changes nothing.
func (a Actor) tell(ctx context.Context, work func(in within) (act, error)) error {
	var refused error
	err := a.do(ctx, locks, func(in within) (done act, err error) {
		refused = nil
		err = pgx.BeginFunc(ctx, in.Tx, func(tx pgx.Tx) (err error) {
			inner := in
			inner.Tx = tx
			done, err = work(inner)
			return err
		})
		if accounts.ForUser(err) || errors.Is(err, billing.ErrGranted) || errors.Is(err, billing.ErrNegative) {
			refused, done, err = err, act{}, nil
		}
		return done, err
	})
	if err == nil {
		err = refused
	}
	return err
}

// Ask is what a company orders: credits, or what a sum pays with its taxes.
type Ask struct {
	Company sms.CompanyID
	User    int64 // 0: an operator
	Credits int64
	Francs  orders.Francs     // if Credits is 0
	Price   *billing.Centimes // that was shown: [ErrChanged] for another; nil: not checked
	Once    *[16]byte         // key of the form; nil: none
	Told    bool              // the operator gets a letter
}

// PlaceOrder places an order at the company's price. The errors are [orders.ErrNoPrice], [orders.ErrCredits] and
// [orders.ErrManyOpen].
func (a Actor) PlaceOrder(ctx context.Context, ask Ask) (o orders.Order, err error) {
	err = a.tell(ctx, func(in within) (act, error) {
		if _, err := in.companies().CompanyByID(ctx, int64(ask.Company)); err != nil {
			return act{}, err
		}
		prices, err := billing.PricesOf(ctx, in.Tx, ask.Company)
		if err != nil {
			return act{}, err
		}
		price := prices.At(postgres.Now())
		if price == nil || *price == 0 {
			return act{}, orders.ErrNoPrice
		}
		if ask.Price != nil && *ask.Price != *price {
			return act{}, ErrChanged
		}
		credits := ask.Credits
		if credits == 0 && ask.Francs > 0 {
			credits = in.orders().Terms(*price).Afford(ask.Francs)
		}
		var placed bool
		o, placed, err = in.orders().Place(ctx, orders.NewOrder{Company: ask.Company, User: ask.User, Credits: credits,
			Price: *price, Once: ask.Once})
		if err != nil || !placed {
			return act{}, err
		}
		if ask.Told {
			if err := letter.WriteOf(ctx, in.Tx, letter.Order, ask.Company, o.ID,
				letter.OrderValues{Credits: o.Credits}); err != nil {
				return act{}, err
			}
		}
		return on("order.place", "order", o.ID, o.Company, nil, fields{"credits": o.Credits, "bif": o.Price}), nil
	})
	return o, err
}

// lock locks an order. company is the one that acts; 0: an operator.
func (in within) lock(ctx context.Context, company sms.CompanyID, id int64) (orders.Order, error) {
	o, err := in.orders().Lock(ctx, id)
	if err == nil && company != 0 && o.Company != int64(company) {
		err = accounts.Errorf(accounts.ErrNotFound, "there is no order %d", id)
	}
	return o, err
}

// SetOrderReference stores a company's reference of the payment of its order.
func (a Actor) SetOrderReference(ctx context.Context, company sms.CompanyID, id int64, reference string) error {
	return a.tell(ctx, func(in within) (act, error) {
		o, err := in.lock(ctx, company, id)
		if err == nil {
			err = in.orders().SetReference(ctx, o, reference)
		}
		if err != nil {
			return act{}, err
		}
		is, err := in.orders().Order(ctx, id)
		return on("order.reference", "order", id, o.Company, fields{"reference": o.Reference},
			fields{"reference": is.Reference}), err
	})
}

// SetOrderSlip stores a company's slip of the payment of its order.
func (a Actor) SetOrderSlip(ctx context.Context, company sms.CompanyID, id int64, name string, file []byte) error {
	return a.tell(ctx, func(in within) (act, error) {
		o, err := in.lock(ctx, company, id)
		if err == nil {
			err = in.orders().SetSlip(ctx, o, name, file)
		}
		if err != nil {
			return act{}, err
		}
		is, err := in.orders().Order(ctx, id)
		done := on("order.slip", "order", id, o.Company, recordedDocument(o.Slip), recordedDocument(is.Slip))
		done.hidden = true // the content
		return done, err
	})
}

// DeleteOrderSlip deletes the slip of an order.
func (a Actor) DeleteOrderSlip(ctx context.Context, id int64) error {
	return a.tell(ctx, func(in within) (act, error) {
		o, err := in.lock(ctx, 0, id)
		if err == nil {
			err = in.orders().DeleteSlip(ctx, id)
		}
		return on("order.slip_delete", "order", id, o.Company, recordedDocument(o.Slip), nil), err
	})
}

// CancelOrder cancels an order: a company its own, if nothing was received for it; with company 0 an operator any, with
// a reason, and the owner gets a letter.
func (a Actor) CancelOrder(ctx context.Context, company sms.CompanyID, id int64, reason string) (o orders.Order,
	err error) {
	err = a.tell(ctx, func(in within) (act, error) {
		was, err := in.lock(ctx, company, id)
		if err == nil {
			err = in.orders().Cancel(ctx, was, a.name, reason, company == 0)
		}
		if err == nil {
			o, err = in.orders().Order(ctx, id)
		}
		if err == nil && company == 0 {
			err = letter.WriteOf(ctx, in.Tx, letter.OrderStopped, sms.CompanyID(o.Company), id,
				letter.OrderValues{Credits: o.Credits, Reason: o.Reason})
		}
		done := on("order.cancel", "order", id, was.Company, fields{"state": was.State()}, fields{"state": orders.Cancelled,
			"received": was.Received})
		done.reason = o.Reason
		return done, err
	})
	return o, err
}

// Payment is the result of a payment.
type Payment struct {
	Order   orders.Order
	Invoice *orders.Invoice // nil: a part of the sum
}

// PayOrder records a payment. The errors are those of [orders.Store.Pay].
func (a Actor) PayOrder(ctx context.Context, id int64, p orders.Payment) (is Payment, err error) {
	err = a.tell(ctx, func(in within) (act, error) {
		o, err := in.lock(ctx, 0, id)
		if err != nil {
			return act{}, err
		}
		customer, err := in.customer(ctx, o.Company)
		if err != nil {
			return act{}, err
		}
		is = Payment{}
		if is.Invoice, err = in.orders().Pay(ctx, in.Tx, o, customer, p, a.name); err != nil {
			return act{}, err
		}
		if is.Order, err = in.orders().Order(ctx, id); err != nil {
			return act{}, err
		}
		after := fields{"received": is.Order.Received, "amount": p.Amount, "way": p.Way, "reference": p.Reference}
		if !p.On.IsZero() {
			after["paid_on"] = p.On.Format(time.DateOnly)
		}
		if i := is.Invoice; i != nil {
			after["invoice"], after["credits"], after["total"] = i.Name(), i.Credits, i.Total
			err = letter.WriteOf(ctx, in.Tx, letter.OrderPaid, sms.CompanyID(o.Company), id,
				letter.OrderValues{Credits: i.Credits, Document: i.Name()})
		}
		return on("order.pay", "order", id, o.Company, fields{"received": o.Received}, after), err
	})
	return is, err
}

// customer returns a company as documents name it.
func (in within) customer(ctx context.Context, company int64) (orders.Customer, error) {
	c, err := in.companies().CompanyByID(ctx, company)
	var f companies.Facts
	if err == nil {
		f, err = in.companies().FactsOf(ctx, sms.CompanyID(company))
	}
	return CustomerOf(c, f), err
}

// CustomerOf returns a company as documents name it.
func CustomerOf(c accounts.Company, f companies.Facts) orders.Customer {
	return orders.Customer{Name: c.Name, NIF: f.NIF, TradeRegister: f.TradeRegister, Address: f.Address}
}

// CreditInvoice issues a credit note of an invoice and takes the credits back. The errors are those of
// [orders.Store.CreditInvoice].
func (a Actor) CreditInvoice(ctx context.Context, number int64, c orders.Credit) (note orders.Invoice, err error) {
	err = a.tell(ctx, func(in within) (act, error) {
		of, err := in.orders().Invoice(ctx, orders.Sale, number)
		if err == nil {
			_, err = in.orders().Lock(ctx, of.Order)
		}
		if err == nil {
			note, err = in.orders().CreditInvoice(ctx, in.Tx, of, c, a.name)
		}
		if errors.Is(err, billing.ErrNegative) {
			have, err2 := billing.Balance(ctx, in.Tx, of.Company)
			err = errors.Join(err2, &SpentError{have})
		}
		if err == nil {
			err = letter.WriteOf(ctx, in.Tx, letter.CreditNote, sms.CompanyID(of.Company), note.Number,
				letter.OrderValues{Credits: note.Credits, Document: note.Name(), Reason: note.Reason})
		}
		done := act{name: "invoice.credit", subject: "invoice " + of.Name(), company: of.Company,
			after: fields{"credit_note": note.Name(), "credits": note.Credits, "total": note.Total}, reason: note.Reason}
		return done, err
	})
	return note, err
}

// SpentError means that a company has too few credits left for a credit note. It is a [billing.ErrNegative].
type SpentError struct{ Credits int64 }

// Error returns the text for the user.
func (e *SpentError) Error() string {
	return fmt.Sprintf("the company has %d credits left: a credit note takes at most these", e.Credits)
}

func (e *SpentError) Unwrap() error { return billing.ErrNegative }

// ForUser marks the text.
func (e *SpentError) ForUser() {}

// SkipInvoices makes the numbers of a kind go on after last, because a restore lost the invoices up to it. It returns
// the first lost number; 0 when none are lost.
func (a Actor) SkipInvoices(ctx context.Context, kind orders.Kind, last int64, reason string) (first int64, err error) {
	err = a.tell(ctx, func(in within) (act, error) {
		if first, err = in.orders().Skip(ctx, kind, last, reason); err != nil || first == 0 {
			return act{}, err
		}
		return act{name: "invoice.skip", subject: "invoices " + string(kind), reason: reason,
			after: fields{"first": orders.Name(kind, first), "last": orders.Name(kind, last)}}, nil
	})
	return first, err
}
