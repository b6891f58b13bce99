package orders_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"intumwa/accounts"
	"intumwa/billing"
	"intumwa/billing/orders"
)

// sell sells credits at 10 francs and 18%.
func (w *world) sell(credits int64) orders.Invoice {
	w.t.Helper()
	sold, err := w.pay(w.place(1, credits, 1000), w.payment(w.Terms(1000).Sum(credits).Total))
	if err != nil || sold == nil {
		w.t.Fatalf("sold %+v, %v", sold, err)
	}
	return *sold
}

func (w *world) credit(of orders.Invoice, c orders.Credit) (note orders.Invoice, err error) {
	w.t.Helper()
	err = pgx.BeginFunc(w.t.Context(), w.pool, func(tx pgx.Tx) error {
		_, err := w.In(tx).Lock(w.t.Context(), of.Order)
		if err == nil {
			note, err = w.CreditInvoice(w.t.Context(), tx, of, c, "console")
		}
		return err
	})
	return note, err
}

// A document is stored as it was issued, with its taxes, seller and customer.
func TestInvoiceIsStored(t *testing.T) {
	w := open(t, 1, mixed)
	sold := w.sell(7)
	stored, err := w.Invoice(t.Context(), orders.Sale, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i := range sold.Taxes {
		sold.Taxes[i].From = time.Time{} // not stored
	}
	sold.Issued, stored.Issued = sold.Issued.UTC(), stored.Issued.UTC()
	if a, b := fmt.Sprintf("%+v", stored), fmt.Sprintf("%+v", sold); a != b {
		t.Errorf("stored %s\nissued %s", a, b)
	}
	if stored.Seller.NIF == "" || stored.Customer.Name == "" || stored.Net != 70 || stored.Total != 70+35+18+19 {
		t.Errorf("%+v", stored)
	}
	for _, change := range []string{`UPDATE invoices SET total = 0`, `DELETE FROM invoices`, `TRUNCATE invoices CASCADE`,
		`UPDATE order_payments SET francs = 1`, `DELETE FROM order_payments`} {
		if _, err := w.pool.Exec(t.Context(), change); err == nil || !strings.Contains(err.Error(), "insert only") {
			t.Errorf("%s: %v", change, err)
		}
	}
	page, err := w.After(t.Context(), orders.Sale, 0, 10)
	if err != nil || len(page) != 1 {
		t.Errorf("%d invoices, %v", len(page), err)
	}
	names, err := w.Documents(t.Context(), [][16]byte{sold.Ref, {1}})
	if err != nil || len(names) != 1 || names[sold.Ref] != "F000001" {
		t.Errorf("%v, %v", names, err)
	}
}

// Credit notes of an invoice are at most and together exactly it, whatever their sizes.
func TestCreditNotes(t *testing.T) {
	w := open(t, 1, mixed)
	n := int64(0)
	rapid.Check(t, func(t *rapid.T) {
		credits := rapid.Int64Range(1, 200).Draw(t, "credits")
		of, err := w.Invoice(w.t.Context(), orders.Sale, w.sell(credits).Number)
		if err != nil {
			t.Fatal(err)
		}
		n++
		taxes := func(i orders.Invoice) (sum orders.Francs) {
			for _, tax := range i.Taxes {
				if sum += tax.Sum; tax.Sum < 0 {
					t.Fatalf("%+v", i)
				}
			}
			return sum
		}
		var net, tax, total orders.Francs
		for left := credits; left > 0; {
			take := rapid.Int64Range(0, left).Draw(t, "take") // 0: all
			note, err := w.credit(of, orders.Credit{Credits: take, Reason: "a mistake"})
			if err != nil {
				t.Fatal(err)
			}
			n++
			if take == 0 {
				take = left
			}
			if first := w.Terms(1000).Sum(take); left == credits && (note.Net != first.Net || note.Total != first.Total) {
				t.Fatalf("the first note is %+v, want %+v", note, first)
			}
			left -= take
			net, tax, total = net+note.Net, tax+taxes(note), total+note.Total
			if note.Kind != orders.CreditNote || note.Corrected() != of.Name() || note.Credits != take || note.Net < 0 ||
				note.Net+taxes(note) != note.Total || total > of.Total {
				t.Fatalf("%+v of %+v", note, of)
			}
		}
		if net != of.Net || tax != taxes(of) || total != of.Total {
			t.Fatalf("credited %d, %d, %d of %+v", net, tax, total, of)
		}
		if _, err := w.credit(of, orders.Credit{Reason: "more"}); !errors.Is(err, orders.ErrCredited) {
			t.Fatalf("one more: %v", err)
		}
	})
	if got := w.balance(1); got != 0 {
		t.Errorf("%d credits are left", got)
	}
	w.sound(n)
}

func TestCreditNoteIsRefused(t *testing.T) {
	w := open(t, 1, options)
	of := w.sell(100)
	for name, test := range map[string]struct {
		orders.Credit

		err error
	}{
		"without a reason": {orders.Credit{}, orders.ErrReason},
		"too much":         {orders.Credit{Credits: 101, Reason: "x"}, accounts.ErrInvalid},
		"negative":         {orders.Credit{Credits: -1, Reason: "x"}, accounts.ErrInvalid},
	} {
		if _, err := w.credit(of, test.Credit); !errors.Is(err, test.err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	once := orders.Credit{Credits: 10, Reason: "x", Once: &[16]byte{9, 8, 7, 6, 5, 4, 3, 2, 1}}
	if _, err := w.credit(of, once); err != nil {
		t.Fatal(err)
	}
	if _, err := w.credit(of, once); !errors.Is(err, billing.ErrGranted) {
		t.Errorf("the same form: %v", err)
	}
	w.in(func(tx pgx.Tx) error { _, err := billing.Grant(t.Context(), tx, 1, -50, "spent"); return err })
	if _, err := w.credit(of, orders.Credit{Reason: "x"}); !errors.Is(err, billing.ErrNegative) {
		t.Errorf("more than the balance: %v", err)
	}
	w.sound(2)
}

// Orders are paid at once by many, each by two at a time, while others die: no number is missing or used twice.
func TestNumbersWithoutGap(t *testing.T) {
	const companies, each, workers = 5, 40, 8
	w := open(t, companies, options)
	var ids []int64
	w.in(func(tx pgx.Tx) error { // more than the page lets a company have open
		for company := range companies {
			for range each {
				var id int64
				if err := tx.QueryRow(t.Context(), `INSERT INTO orders (company_id, credits, centimes) VALUES ($1, 10, 1000)
					RETURNING id`, company+1).Scan(&id); err != nil {
					return err
				}
				ids = append(ids, id)
			}
		}
		return nil
	})
	queue := make(chan int64, 2*len(ids))
	for _, id := range ids {
		queue <- id
		queue <- id
	}
	close(queue)
	died := errors.New("died")
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for id := range queue {
				if id%3 == 0 { // the transaction ends after it has its number
					_ = pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error {
						if o, err := w.In(tx).Lock(t.Context(), id); err == nil {
							_, _ = w.Pay(t.Context(), tx, o, orders.Customer{}, orders.Payment{Amount: 118, Way: orders.Cash,
								Reference: fmt.Sprint("lost ", id), Again: true}, "console")
						}
						return died
					})
				}
				_, err := pay(context.WithoutCancel(t.Context()), w.pool, w.Store, id, orders.Payment{Amount: 118,
					Way: orders.Bank, Reference: fmt.Sprint("order ", id), Again: true})
				if err != nil && !errors.Is(err, orders.ErrPaid) {
					t.Errorf("order %d: %v", id, err)
				}
			}
		})
	}
	all.Wait()
	for company := range int64(companies) {
		if got := w.balance(company + 1); got != 10*each {
			t.Errorf("company %d has %d credits", company+1, got)
		}
	}
	w.sound(companies * each)
}

// After a restore the numbers that others have are skipped, and the audit knows them.
func TestSkip(t *testing.T) {
	w := open(t, 1, options)
	w.sell(1)
	skip := func(last int64, reason string) (first int64, err error) {
		err = pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error {
			first, err = w.In(tx).Skip(t.Context(), orders.Sale, last, reason)
			return err
		})
		return first, err
	}
	if _, err := skip(5, ""); !errors.Is(err, orders.ErrReason) {
		t.Errorf("without a reason: %v", err)
	}
	if first, err := skip(5, "restored"); first != 2 || err != nil {
		t.Errorf("from %d, %v", first, err)
	}
	if first, err := skip(5, "restored"); first != 0 || err != nil {
		t.Errorf("again from %d, %v", first, err)
	}
	if _, err := skip(5_000_000, "typed wrong"); !errors.Is(err, accounts.ErrInvalid) {
		t.Errorf("far away: %v", err)
	}
	if of := w.sell(1); of.Number != 6 {
		t.Errorf("the next is %d", of.Number)
	}
	w.sound(2)
}

// The audit finds what is not as it should be.
func TestAuditFinds(t *testing.T) {
	w := open(t, 1, options)
	w.sell(10)
	for _, test := range []struct {
		name, change string
		want         orders.Faults
	}{
		{"a lost number", `UPDATE invoice_series SET last = last + 1`, orders.Faults{Invoices: 1, Numbers: 1}},
		{"a lost invoice", `ALTER TABLE invoices DISABLE TRIGGER ALL; DELETE FROM invoices`,
			orders.Faults{Uninvoiced: 2, Numbers: 1}},
		{"a lost purchase", `ALTER TABLE ledger DISABLE TRIGGER ALL; DELETE FROM ledger`,
			orders.Faults{Invoices: 1, Unbooked: 1}},
		{"other credits", `ALTER TABLE invoices DISABLE TRIGGER ALL; UPDATE invoices SET credits = 9`,
			orders.Faults{Invoices: 1, Uninvoiced: 1, Unbooked: 1}},
	} {
		w.in(func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), test.change); err != nil {
				return err
			}
			if got, err := w.In(tx).Audit(t.Context()); err != nil || got != test.want {
				t.Errorf("%s: %+v, %v", test.name, got, err)
			}
			_, err := tx.Exec(t.Context(), `ROLLBACK; BEGIN`)
			return err
		})
	}
	w.sound(1)
}

func TestNames(t *testing.T) {
	for text, want := range map[string]string{"F000012": "F000012", " f12 ": "F000012", "12": "F000012", "a3": "A000003",
		"R1": "R000001", "1234567": "F1234567"} {
		kind, number, err := orders.ParseName(text)
		if got := orders.Name(kind, number); err != nil || got != want {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "F", "F0", "X1", "F-1", "F1F"} {
		if _, _, err := orders.ParseName(text); err == nil {
			t.Errorf("%q is a name", text)
		}
	}
}
