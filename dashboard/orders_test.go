package dashboard

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/billing"
	"intumwa/billing/orders"
	"intumwa/dashboard/web"
	"intumwa/internal/postgres"
	"intumwa/sms"
)

// seller has everything that an invoice prints.
var seller = orders.Seller{Name: "Nyota SURL", NIF: "4000123456", TradeRegister: "RC 123/45", LegalForm: "SURL",
	Sector: "Télécommunications", FiscalCenter: "DPMC", VAT: true, Address: "Chaussée Rwagasore", PostalNumber: "77",
	Province: "Bujumbura Mairie", Commune: "Mukaza", Quarter: "Rohero I", Avenue: "Av. de la JRR", Street: "Rue 12",
	House: "9", Phone: "22220000", Email: "comptes@nyota.example"}

// sells makes a world sell credits with VAT and invoices, at 10 francs.
func sells(t *testing.T) func(*Deps, *Options) {
	return func(d *Deps, o *Options) {
		d.Orders = orders.New(d.Pool, orders.Options{Seller: &seller, Taxes: []orders.Tax{{Name: "TVA", Rate: 180_000,
			From: time.Date(2020, 1, 1, 0, 0, 0, 0, sms.Burundi)}}})
		o.Operator = web.Operator{Name: seller.Name, Email: seller.Email, BankAccounts: []string{"BANCOBU 1234567-89, Nyota"},
			MobileMoney: []string{"Lumicash, marchand 4711"}}
		if err := pgx.BeginFunc(t.Context(), d.Pool, func(tx pgx.Tx) error {
			price := billing.Centimes(1000)
			_, err := billing.SetPrice(t.Context(), tx, 0, billing.Rate{From: billing.MonthOf(postgres.Now()), Price: &price})
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOrderPages: from an order to its invoice and credit note, as customer and administrator see them.
func TestOrderPages(t *testing.T) {
	w := newWorld(t, sells(t))
	c, company := w.merchant("aline", 5)
	w.exec(`INSERT INTO company_facts (company_id, nif, trade_register, address, phone, contact)
		VALUES ($1, '4000999999', 'RC 9', 'Gitega', '22222222', 'Aline')`, company.ID)
	c.wants(c.get("/orders?amount=11,800"), http.StatusOK, "1,000", "10,000 BIF", "TVA 18 %", "1,800 BIF", "11,800 BIF")
	c.wants(c.get("/orders?credits=0"), http.StatusUnprocessableEntity, "whole number of credits")
	if a := c.post("/orders", "credits", "1000", "price", "9"); a.StatusCode != http.StatusUnprocessableEntity ||
		!strings.Contains(a.body, "price has changed") {
		t.Errorf("with an old price: %d", a.StatusCode)
	}
	key := strings.Repeat("0a", 16)
	for range 2 {
		c.wants(c.post("/orders", "credits", "1000", "price", "10", "key", key), http.StatusSeeOther)
	}
	c.wants(c.get("/orders"), http.StatusOK, "Order 1", "To be paid")
	c.wants(c.get("/orders/1"), http.StatusOK, "11,800 BIF", "Left to pay")
	c.wants(c.get("/orders/1/proforma"), http.StatusOK, "Proforma of order 1", "not an invoice", "BANCOBU", "Lumicash",
		"4000123456", "4000999999", "RC 9", "1,800 BIF")
	c.wants(c.post("/orders/1/reference", "reference", "VIR 77"), http.StatusSeeOther)
	c.wants(c.uploadAs("/orders/1/slip", url.Values{}, "slip.pdf", "%PDF-1.4 paid"), http.StatusSeeOther)
	c.wants(c.uploadAs("/orders/1/slip", url.Values{}, "slip.pdf", "text"), http.StatusUnprocessableEntity)
	if a := c.get("/orders/1/slip"); a.StatusCode != http.StatusOK || a.body != "%PDF-1.4 paid" {
		t.Errorf("the slip: %d %q", a.StatusCode, a.body)
	}

	other, _ := w.merchant("benoit", 5)
	for _, path := range []string{"/orders/1", "/orders/1/proforma", "/orders/1/slip", "/admin/orders", "/admin/orders/1",
		"/admin/invoices", "/admin/invoices.csv"} {
		if a := other.get(path); a.StatusCode != http.StatusNotFound {
			t.Errorf("another company gets %d of %s", a.StatusCode, path)
		}
	}
	for _, path := range []string{"/orders/1/cancel", "/orders/1/reference", "/admin/orders/1/pay"} {
		if a := other.post(path, "reference", "x"); a.StatusCode != http.StatusNotFound {
			t.Errorf("another company gets %d of %s", a.StatusCode, path)
		}
	}

	admin := newClient(w)
	admin.inside("root@example.com")
	admin.wants(admin.get("/admin/orders"), http.StatusOK, "Order 1", "aline", "VIR 77")
	admin.wants(admin.get("/admin/orders/1"), http.StatusOK, "VIR 77", "slip.pdf", "11,800 BIF")
	if a := admin.get("/admin/orders/1/slip"); a.body != "%PDF-1.4 paid" {
		t.Errorf("the slip: %d", a.StatusCode)
	}
	pay := func(key, amount, reference string, more ...string) answer {
		return admin.post("/admin/orders/1/pay", append([]string{"key", strings.Repeat(key, 16), "amount", amount, "way",
			"bank", "reference", reference, "on", ""}, more...)...)
	}
	admin.wants(pay("01", "x", "VIR 77"), http.StatusUnprocessableEntity, "whole number of francs")
	for range 2 { // a double click
		admin.wants(pay("02", "5 000", "VIR 77"), http.StatusSeeOther)
	}
	admin.wants(admin.get("/admin/orders/1"), http.StatusOK, "5,000 BIF", "6,800 BIF",
		"The payment is recorded. The order stays open.")
	c.wants(c.get("/orders/1/proforma"), http.StatusOK, "6,800 BIF", "A part is paid: the price holds.")
	c.wants(c.post("/orders/1/cancel"), http.StatusUnprocessableEntity, "is recorded")
	admin.wants(pay("03", "6800", "vir-77"), http.StatusUnprocessableEntity, "another payment", "Order 1")
	admin.wants(pay("03", "8000", "vir-77", "again", "yes"), http.StatusUnprocessableEntity, "1,101", "not recorded yet")
	for range 2 {
		admin.wants(pay("03", "6810", "vir-77", "again", "yes"), http.StatusSeeOther)
	}
	admin.wants(pay("04", "10", "VIR 78"), http.StatusUnprocessableEntity, "paid already")
	c.wants(c.get("/orders/1"), http.StatusOK, "Paid", "F000001")
	c.wants(c.get("/invoices/F000001"), http.StatusOK, "Invoice F000001", "Nyota SURL", "4000123456", "RC 123/45", "SURL",
		"Télécommunications", "DPMC", "Rohero I", "Mukaza", "Bujumbura Mairie", "Rue 12", "Subject to VAT: yes", "aline",
		"4000999999", "Gitega", "10,000 BIF", "TVA 18 %", "1,800 BIF", "11,800 BIF", "VIR 77", "10 BIF")
	w.exec(`INSERT INTO ebms_reports (name, identifier, issued_at) VALUES ('F000001', 'identifier7', now())`)
	if a := c.get("/invoices/F000001"); !strings.Contains(a.body, "identifier7") ||
		strings.Contains(a.body, "Not yet reported") {
		t.Errorf("an invoice that was queued for the tax office: %s", a.body)
	}
	if a := other.get("/invoices/F000001"); a.StatusCode != http.StatusNotFound {
		t.Errorf("another company gets %d of an invoice", a.StatusCode)
	}
	c.wants(c.get("/statement"), http.StatusOK, "Top-up", "/invoices/F000001", "+1,000")
	c.wants(c.get("/statement/print"), http.StatusOK, "F000001")
	c.wants(c.get("/statement/month"), http.StatusOK, "Purchases (F000001)")
	if file := c.get("/statement.csv").body; !strings.Contains(file, ",F000001,") {
		t.Errorf("the statement's file: %s", file)
	}

	credit := func(key string, more ...string) answer {
		return admin.post("/admin/orders/1/credit", append([]string{"key", strings.Repeat(key, 16)}, more...)...)
	}
	admin.wants(credit("05", "credits", "100", "why", ""), http.StatusUnprocessableEntity, "Enter a reason")
	admin.wants(credit("05", "credits", "1001", "why", "x"), http.StatusUnprocessableEntity, "not left")
	for range 2 {
		admin.wants(credit("05", "credits", "100", "why", "typed wrong"), http.StatusSeeOther)
	}
	w.grant(company.ID, -200, "spent")
	admin.wants(credit("06", "why", "all of it"), http.StatusUnprocessableEntity, "fewer credits: 705")
	c.wants(c.get("/invoices/A000001"), http.StatusOK, "Credit note A000001", "Corrects invoice F000001: typed wrong",
		"1,180 BIF")
	c.wants(c.get("/statement"), http.StatusOK, "typed wrong", "A000001")
	admin.wants(admin.get("/admin/invoices"), http.StatusOK, "F000001", "A000001", "corrects F000001", "10,620 BIF")
	rows := admin.lines(admin.get("/admin/invoices.csv"))
	if len(rows) != 3 || strings.Join(rows[1][4:8], "|") != "aline|4000999999|1|" ||
		strings.Join(rows[2][7:13], "|") != "F000001|-100|10|-1000|-180|-1180" {
		t.Errorf("%q", rows)
	}
	c.post("/language", "to", "fr", "next", "/")
	c.wants(c.get("/invoices/F000001"), http.StatusOK, "Facture F000001", "Crédits SMS", "Assujetti à la TVA", "oui",
		"11\u202f800 BIF")
	subjects := []string{w.mail("aline@example.com", 0).Subject, w.mail("aline@example.com", 1).Subject}
	slices.Sort(subjects) // several senders work at once
	if !slices.Equal(subjects, []string{"Facture d’avoir A000001", "La commande 1 est payée"}) {
		t.Errorf("the mails are %q", subjects)
	}
}

// TestOrdersWithoutPrice: a company without a price sees why it cannot order; without taxes and invoices an order still
// works, and has a receipt.
func TestOrdersWithoutPrice(t *testing.T) {
	w := stillWorld(t, func(d *Deps, o *Options) {
		d.Orders = orders.New(d.Pool, orders.Options{Operator: orders.Seller{Name: "Nyota SURL", NIF: "4000123456"}})
		o.Operator.Name = "Renamed SURL" // after the sale
	})
	c, company := w.merchant("aline", 0)
	c.wants(c.get("/orders"), http.StatusOK, "No price of a credit")
	w.exec(`INSERT INTO credit_prices (company_id, valid_from, centimes) VALUES ($1, '2026-01-01', 1250)`, company.ID)
	c.wants(c.get("/orders?credits=3"), http.StatusOK, "38 BIF")
	c.wants(c.post("/orders", "credits", "3", "price", "12.50"), http.StatusSeeOther)
	c.wants(c.post("/orders", "credits", "3", "price", "12.50"), http.StatusSeeOther)
	c.wants(c.post("/orders/2/cancel"), http.StatusSeeOther)
	c.wants(c.get("/orders/2"), http.StatusOK, "Cancelled")
	admin := newClient(w)
	admin.inside("root@example.com")
	admin.wants(admin.post("/admin/orders/1/pay", "amount", "38", "way", "cash", "reference", "1", "on", ""),
		http.StatusSeeOther)
	c.wants(c.get("/invoices/R000001"), http.StatusOK, "Receipt R000001", "not an invoice", "38 BIF", "Nyota SURL",
		"4000123456")
	admin.wants(admin.post("/admin/orders/2/pay", "amount", "38", "way", "cash", "reference", "2", "on", ""),
		http.StatusUnprocessableEntity, "cancelled")

	c.wants(c.post("/orders", "credits", "3", "price", "12.50"), http.StatusSeeOther)
	admin.wants(admin.post("/admin/orders/3/pay", "amount", "1000", "way", "cash", "reference", "3", "on", "", "more",
		"yes"), http.StatusSeeOther)
	c.wants(c.get("/orders"), http.StatusOK, `<span class="number">80</span>`) // what was sold, not what was ordered
	admin.wants(admin.get("/admin/orders?state=paid"), http.StatusOK, `<span class="number">80</span>`)
}
