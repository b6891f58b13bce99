package orders_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/billing"
	"intumwa/billing/orders"
)

// An order of 1,000 credits at 10 francs and 18%: 11,800 francs.
func TestPay(t *testing.T) {
	for _, test := range []struct {
		name    string
		pays    []orders.Francs
		more    bool
		credits int64 // sold
		paid    orders.Francs
		rest    orders.Francs
		err     error
	}{
		{name: "whole", pays: []orders.Francs{11_800}, credits: 1000, paid: 11_800},
		{name: "in parts", pays: []orders.Francs{800, 10_000, 1000}, credits: 1000, paid: 11_800},
		{name: "a part", pays: []orders.Francs{11_799}},
		{name: "a little too much", pays: []orders.Francs{11_811}, credits: 1000, paid: 11_811, rest: 11},
		{name: "too much, not confirmed", pays: []orders.Francs{11_812}, err: &orders.MoreError{}},
		{name: "too much", pays: []orders.Francs{11_815}, more: true, credits: 1001, paid: 11_815, rest: 3},
		{name: "twice", pays: []orders.Francs{11_800, 11_800}, credits: 1000, paid: 11_800, err: orders.ErrPaid},
		{name: "nothing", pays: []orders.Francs{0}, err: orders.ErrAmount},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := open(t, 1, options)
			id := w.place(1, 1000, 1000)
			var sold *orders.Invoice
			var err error
			for _, francs := range test.pays {
				p := w.payment(francs)
				p.More = test.more
				var now *orders.Invoice
				if now, err = w.pay(id, p); now != nil {
					sold = now
				}
			}
			var more *orders.MoreError
			if !errors.Is(err, test.err) && !(errors.As(test.err, &more) && errors.As(err, &more)) {
				t.Errorf("error %v, want %v", err, test.err)
			}
			if got := w.balance(1); got != test.credits {
				t.Errorf("%d credits, want %d", got, test.credits)
			}
			if test.credits == 0 {
				if sold != nil || w.order(id).State() != orders.Open {
					t.Errorf("sold %+v; the order is %s", sold, w.order(id).State())
				}
				w.sound(0)
				return
			}
			if sold == nil || sold.Credits != test.credits || sold.Paid != test.paid || sold.Rest() != test.rest ||
				sold.Name() != "F000001" ||
				w.order(id).State() != orders.Paid || w.order(id).Document() != "F000001" {
				t.Errorf("sold %+v of %+v", sold, w.order(id))
			}
			w.sound(1)
		})
	}
}

// An order whose credits cost less than a franc is paid by its sum, though that is the price of more credits; the most
// that a payment is for are the credits of the largest order.
func TestPayBelowAFranc(t *testing.T) {
	w := open(t, 1, options)
	id := w.place(1, 1000, 1)
	var more *orders.MoreError
	if _, err := w.pay(id, w.payment(13)); !errors.As(err, &more) {
		t.Errorf("a franc more: %v", err)
	}
	if sold, err := w.pay(id, w.payment(12)); err != nil || sold == nil || sold.Credits != 1000 {
		t.Errorf("the sum: %+v, %v", sold, err)
	}
	id = w.place(1, orders.MaxCredits, 1000)
	p := w.payment(w.Terms(1000).Sum(orders.MaxCredits).Total + 1)
	p.More = true
	if _, err := w.pay(id, p); !errors.Is(err, orders.ErrAmount) {
		t.Errorf("more than the largest order: %v", err)
	}
	p.Amount--
	if sold, err := w.pay(id, p); err != nil || sold == nil || sold.Rest() != 0 {
		t.Errorf("the largest order: %+v, %v", sold, err)
	}
}

// A reference that was recorded before, in whatever spelling and for whatever order, must be confirmed.
func TestPayWithAReferenceAgain(t *testing.T) {
	w := open(t, 2, options)
	first, second := w.place(1, 10, 1000), w.place(2, 10, 1000)
	p := orders.Payment{Amount: 60, Way: orders.Mobile, Reference: "LU 77-1"}
	if _, err := w.pay(first, p); err != nil {
		t.Fatal(err)
	}
	for _, id := range []int64{first, second} {
		again := p
		again.Reference = "lu771"
		var repeated *orders.RepeatedError
		if _, err := w.pay(id, again); !errors.As(err, &repeated) || len(repeated.Orders) != 1 ||
			repeated.Orders[0] != first {
			t.Errorf("order %d: %v", id, err)
		}
		again.Again = true
		if _, err := w.pay(id, again); err != nil {
			t.Errorf("order %d, confirmed: %v", id, err)
		}
	}
	if a, b := w.balance(1), w.balance(2); a != 10 || b != 0 {
		t.Errorf("%d and %d credits", a, b)
	}
	w.sound(1)
}

// A form that is sent twice is one payment, also of a part.
func TestPayTheSameForm(t *testing.T) {
	w := open(t, 1, options)
	id := w.place(1, 1000, 1000)
	p := w.payment(5000)
	p.Once, p.Again = &[16]byte{1}, true
	if _, err := w.pay(id, p); err != nil {
		t.Fatal(err)
	}
	if _, err := w.pay(id, p); !errors.Is(err, billing.ErrGranted) || w.order(id).Received != 5000 {
		t.Errorf("%v, received %d", err, w.order(id).Received)
	}
}

// An expired order takes a payment that was made before it expired, a cancelled one none; one with a payment does not
// expire.
func TestPayAfterTheEnd(t *testing.T) {
	w := open(t, 1, options)
	age := func(id int64) {
		w.in(func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), `UPDATE orders SET created_at = now() - interval '31 days' WHERE id = $1`, id)
			return err
		})
	}
	late, intime, part := w.place(1, 10, 1000), w.place(1, 10, 1000), w.place(1, 10, 1000)
	if _, err := w.pay(part, w.payment(100)); err != nil {
		t.Fatal(err)
	}
	for _, id := range []int64{late, intime, part} {
		age(id)
	}
	if a, b := w.order(late).State(), w.order(part).State(); a != orders.Expired || b != orders.Open {
		t.Errorf("states %s and %s", a, b)
	}
	if _, err := w.pay(late, w.payment(118)); !errors.Is(err, orders.ErrExpired) {
		t.Errorf("late: %v", err)
	}
	p := w.payment(118)
	p.On = time.Now().Add(-3 * 24 * time.Hour)
	if sold, err := w.pay(intime, p); err != nil || sold == nil {
		t.Errorf("in time: %v", err)
	}
	if sold, err := w.pay(part, w.payment(18)); err != nil || sold == nil {
		t.Errorf("the rest: %v", err)
	}
	cancelled := w.place(1, 10, 1000)
	w.in(func(tx pgx.Tx) error {
		return w.In(tx).Cancel(t.Context(), *w.order(cancelled), "user 1", "", false)
	})
	if _, err := w.pay(cancelled, w.payment(118)); !errors.Is(err, orders.ErrCancelled) {
		t.Errorf("cancelled: %v", err)
	}
	for state, n := range map[orders.State]int{"": 4, orders.Open: 0, orders.Expired: 1, orders.Paid: 2,
		orders.Cancelled: 1} {
		if list, _, err := w.List(t.Context(), orders.Filter{State: state}, 0, 10); err != nil || len(list) != n {
			t.Errorf("%q: %d orders, %v", state, len(list), err)
		}
	}
	w.sound(2)
}

// Only an operator, with a reason, cancels an order for which money was received.
func TestCancel(t *testing.T) {
	w := open(t, 1, options)
	id := w.place(1, 10, 1000)
	if _, err := w.pay(id, w.payment(100)); err != nil {
		t.Fatal(err)
	}
	cancel := func(reason string, operator bool) error {
		return pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error {
			return w.In(tx).Cancel(t.Context(), *w.order(id), "console", reason, operator)
		})
	}
	if err := cancel("", false); !errors.Is(err, orders.ErrHasMoney) {
		t.Errorf("by the company: %v", err)
	}
	if err := cancel(" ", true); !errors.Is(err, orders.ErrReason) {
		t.Errorf("without a reason: %v", err)
	}
	if err := cancel("given back", true); err != nil || w.order(id).State() != orders.Cancelled {
		t.Errorf("by an operator: %v, %+v", err, w.order(id))
	}
	if err := cancel("again", true); !errors.Is(err, orders.ErrCancelled) {
		t.Errorf("again: %v", err)
	}
}

// Without a seller in the configuration a sale has a receipt of another series.
func TestReceipt(t *testing.T) {
	w := open(t, 1, orders.Options{Operator: orders.Seller{Name: "Intumwa"}})
	sold, err := w.pay(w.place(1, 10, 1000), w.payment(100))
	if err != nil || sold.Name() != "R000001" || sold.Seller.Name != "Intumwa" {
		t.Fatalf("%+v, %v", sold, err)
	}
	w.in(func(tx pgx.Tx) error {
		if _, err := w.CreditInvoice(t.Context(), tx, *sold, orders.Credit{Reason: "x"}, ""); !errors.Is(err,
			orders.ErrNoInvoice) {
			t.Errorf("a credit note of a receipt: %v", err)
		}
		return nil
	})
	w.sound(1)
}

// A company has a bounded number of open orders, and a form that is sent twice is one order.
func TestPlace(t *testing.T) {
	w := open(t, 1, options)
	place := func(credits int64, once *[16]byte) (orders.Order, error) {
		var o orders.Order
		err := pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) (err error) {
			o, _, err = w.In(tx).Place(t.Context(), orders.NewOrder{Company: 1, Credits: credits, Price: 30, Once: once})
			return err
		})
		return o, err
	}
	for _, credits := range []int64{0, -1, orders.MaxCredits + 1, 1} { // 1 costs 0.3 francs
		if _, err := place(credits, nil); !errors.Is(err, orders.ErrCredits) {
			t.Errorf("%d credits: %v", credits, err)
		}
	}
	a, err := place(10, &[16]byte{1})
	b, err2 := place(10, &[16]byte{1})
	if err = errors.Join(err, err2); err != nil || a.ID != b.ID {
		t.Errorf("orders %d and %d, %v", a.ID, b.ID, err)
	}
	for range orders.MaxOpen - 1 {
		w.place(1, 10, 1000)
	}
	if _, err := place(10, nil); !errors.Is(err, orders.ErrManyOpen) || !errors.Is(err, accounts.ErrTooMany) {
		t.Errorf("one more: %v", err)
	}
}
