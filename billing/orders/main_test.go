package orders_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/billing"
	"intumwa/billing/orders"
	"intumwa/internal/testenv"
	"intumwa/sms"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// vat is a tax of 18% from a day long ago.
var vat = orders.Tax{Name: "TVA", Rate: 180_000, From: time.Date(2020, 1, 1, 0, 0, 0, 0, sms.Burundi)}

// options issue invoices with VAT.
var options = orders.Options{Taxes: []orders.Tax{vat}, Seller: &orders.Seller{Name: "Intumwa SURL", NIF: "4000000001"}}

// mixed has taxes on each credit, of whole and of half francs, and one on another tax.
var mixed = orders.Options{Seller: options.Seller, Taxes: []orders.Tax{
	{Name: "TVA", Rate: 180_000, On: []string{"Taxe SMS"}, From: vat.From},
	{Name: "Taxe SMS", PerSMS: 500, From: vat.From}, {Name: "Redevance", PerSMS: 250, From: vat.From}}}

// world is a database with a company and its orders.
type world struct {
	*orders.Store

	t    testing.TB
	pool *pgxpool.Pool
	n    int // references
}

// open creates companies with the ids 1 to n.
func open(t testing.TB, n int, o orders.Options) *world {
	t.Helper()
	pool := testenv.Pool(t)
	w := &world{orders.New(pool, o), t, pool, 0}
	w.in(func(tx pgx.Tx) error {
		for i := range n {
			if err := billing.Open(t.Context(), tx, int64(i+1)); err != nil {
				return err
			}
		}
		return nil
	})
	return w
}

func (w *world) in(do func(pgx.Tx) error) {
	w.t.Helper()
	if err := pgx.BeginFunc(w.t.Context(), w.pool, do); err != nil {
		w.t.Fatal(err)
	}
}

// place orders credits at a price in centimes and returns the order's id.
func (w *world) place(company sms.CompanyID, credits int64, price billing.Centimes) (id int64) {
	w.t.Helper()
	w.in(func(tx pgx.Tx) error {
		o, _, err := w.In(tx).Place(w.t.Context(), orders.NewOrder{Company: company, Credits: credits, Price: price})
		id = o.ID
		return err
	})
	return id
}

// payment is a payment of francs with a reference of its own.
func (w *world) payment(francs orders.Francs) orders.Payment {
	w.n++
	return orders.Payment{Amount: francs, Way: orders.Bank, Reference: fmt.Sprint("virement ", w.n)}
}

// pay pays in its own transaction.
func (w *world) pay(id int64, p orders.Payment) (sold *orders.Invoice, err error) {
	w.t.Helper()
	return pay(w.t.Context(), w.pool, w.Store, id, p)
}

func pay(ctx context.Context, pool *pgxpool.Pool, s *orders.Store, id int64, p orders.Payment) (sold *orders.Invoice,
	err error) {
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		o, err := s.In(tx).Lock(ctx, id)
		if err == nil {
			sold, err = s.Pay(ctx, tx, o, orders.Customer{Name: "Isôko SARL"}, p, "console")
		}
		return err
	})
	return sold, err
}

// order returns an order.
func (w *world) order(id int64) *orders.Order {
	w.t.Helper()
	o, err := w.Order(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return &o
}

func (w *world) balance(company int64) int64 {
	w.t.Helper()
	credits, err := billing.New(w.pool).Balance(w.t.Context(), company)
	if err != nil {
		w.t.Fatal(err)
	}
	return credits
}

// sound fails the test unless ledger and documents, of which there are n, agree.
func (w *world) sound(n int64) {
	w.t.Helper()
	faults, err := w.Audit(w.t.Context())
	if err != nil || faults != (orders.Faults{Invoices: n}) {
		w.t.Errorf("audit: %+v, %v; want %d documents and no fault", faults, err, n)
	}
	_, mismatches, err := billing.New(w.pool).Audit(w.t.Context())
	if err != nil || mismatches != 0 {
		w.t.Errorf("audit of the ledger: %d mismatches, %v", mismatches, err)
	}
}
