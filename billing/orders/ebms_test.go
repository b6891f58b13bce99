package orders_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"intumwa/billing"
	"intumwa/billing/ebms"
	"intumwa/billing/orders"
	"intumwa/sms"
)

const system = "ws400000000100001"

// reported has taxes in all fields of the eBMS.
var reported = orders.Options{EBMS: system, Seller: &orders.Seller{Name: "Intumwa SURL", NIF: "4000000001",
	TradeRegister: "12345/20", LegalForm: "SURL", Sector: "Télécommunications", FiscalCenter: "DMC", VAT: true,
	Commune: "Mukaza", Quarter: "Rohero", Phone: "22222222"}, Taxes: []orders.Tax{
	{Name: "TVA", Rate: 180_000, On: []string{"Taxe SMS"}, EBMS: "vat", From: vat.From},
	{Name: "Taxe SMS", PerSMS: 500, EBMS: "tsce", From: vat.From},
	{Name: "OTT", Rate: 10_000, EBMS: "ott", From: vat.From}, {Name: "PFL", Rate: 20_000, EBMS: "tl", From: vat.From}}}

// TestToReport: an invoice and its credit note are queued when they are issued, with the identifier, and are what the
// eBMS takes.
func TestToReport(t *testing.T) {
	w := open(t, 1, reported)
	id := w.place(1, 1000, 1250)
	sold, err := w.pay(id, orders.Payment{Amount: 1_000_000, Way: orders.Mobile, Reference: "x", More: true})
	if err != nil || sold == nil {
		t.Fatal(sold, err)
	}
	stored, err := w.Invoice(t.Context(), orders.Sale, sold.Number)
	if err != nil || stored.Taxes[1].PerSMS != 500 {
		t.Fatalf("stored %+v, %v", stored, err)
	}
	var note orders.Invoice
	w.in(func(tx pgx.Tx) (err error) {
		note, err = w.In(tx).CreditInvoice(t.Context(), tx, stored, orders.Credit{Credits: 1, Reason: "test"}, "a")
		return err
	})
	found, err := w.Reported(t.Context(), sold.Name(), note.Name())
	if err != nil || len(found) != 2 || found[sold.Name()].Identifier != fmt.Sprintf("4000000001/%s/%s/F000001", system,
		sold.Issued.In(sms.Burundi).Format("20060102150405")) {
		t.Errorf("%+v, %v", found, err)
	}
	off := reported
	off.EBMS = ""
	if kept, err := orders.New(w.pool, off).Reported(t.Context(), sold.Name()); err != nil || len(kept) != 1 {
		t.Errorf("without an eBMS: %+v, %v", kept, err)
	}
	for _, i := range []*orders.Invoice{sold, &note} {
		v, err := w.ToReport(t.Context(), i.Name())
		if err != nil {
			t.Fatal(err)
		}
		v.Identifier = found[i.Name()].Identifier
		if err := v.Check(); err != nil {
			t.Error(err)
		}
		l := v.Lines[0]
		if v.Number != i.Name() || l.Total != fmt.Sprint(i.Total) || v.RefersTo != i.Corrected() || v.Reason != i.Reason ||
			v.Payment != ebms.Other || v.Customer.Name != i.Customer.Name {
			t.Errorf("%+v", v)
		}
	}
	v, err := w.ToReport(t.Context(), sold.Name())
	if err != nil {
		t.Fatal(err)
	}
	n := sold.Credits
	net := n*125/10 + n%2 // half a franc up
	ott, tl, tsce := round(net, 1), round(net, 2), 5*n
	gross := net + ott + tsce + round(net+tsce, 18)
	want := ebms.Line{Designation: "Crédits SMS", Quantity: fmt.Sprint(n), Price: "12.50", Consumption: "0",
		Flat: fmt.Sprint(tl), OTT: fmt.Sprint(ott), TSCE: fmt.Sprint(tsce), Net: fmt.Sprint(net + ott + tsce),
		VAT: fmt.Sprint(round(net+tsce, 18)), Gross: fmt.Sprint(gross), Total: fmt.Sprint(gross + tl)}
	if !reflect.DeepEqual(v.Lines[0], want) {
		t.Errorf("%+v\nwant %+v", v.Lines[0], want)
	}
}

// round is a percentage in whole francs, half a franc up.
func round(of, percent int64) int64 { return (of*percent + 50) / 100 }

// TestUnreportable: without a field for a tax an invoice cannot be reported; long texts of a customer are cut; without
// an eBMS nothing is queued, and receipts never are.
func TestUnreportable(t *testing.T) {
	o := reported
	o.Taxes = []orders.Tax{vat}
	w := open(t, 2, o)
	customer := orders.Customer{Name: strings.Repeat("é", 101), NIF: "4000999999"}
	sell := func(s *orders.Store, price billing.Centimes) (sold *orders.Invoice) {
		t.Helper()
		id := w.place(1, 100, price)
		w.in(func(tx pgx.Tx) error {
			order, err := s.In(tx).Lock(t.Context(), id)
			if err == nil {
				sold, err = s.In(tx).Pay(t.Context(), tx, order, customer, w.payment(orders.Francs(price)*118/100), "a")
			}
			return err
		})
		return sold
	}
	sold := sell(w.Store, 1000)
	if _, err := w.ToReport(t.Context(), sold.Name()); !isUnsendable(err) ||
		!strings.Contains(err.Error(), "the tax TVA") {
		t.Error(err)
	}
	o.Taxes = []orders.Tax{{Name: "TVA", Rate: 180_000, EBMS: "vat", From: vat.From}}
	sold = sell(orders.New(w.pool, o), 1000)
	if v, err := w.ToReport(t.Context(), sold.Name()); err != nil || v.Customer.Name != strings.Repeat("é", 99)+"…" {
		t.Errorf("%+v, %v", v, err)
	}
	o.EBMS = ""
	late := sell(orders.New(w.pool, o), 1000)
	o.EBMS, o.Seller = system, nil
	if sold = sell(orders.New(w.pool, o), 1000); sold.Kind != orders.Receipt {
		t.Error(sold.Kind)
	}
	list, err := w.Unqueued(t.Context(), 10)
	if err != nil || len(list) != 1 || list[0].Number != late.Number {
		t.Errorf("not queued: %+v, %v", list, err)
	}
	if f, err := w.Audit(t.Context()); err != nil || f != (orders.Faults{Invoices: 4, Unqueued: 1}) {
		t.Errorf("%+v, %v", f, err)
	}
	if c, err := ebms.Count(t.Context(), w.pool); err != nil || c.Waiting != 2 {
		t.Errorf("%+v, %v", c, err)
	}
}

func isUnsendable(err error) bool { _, is := errors.AsType[*ebms.Unsendable](err); return is }
