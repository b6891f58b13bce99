package configs

import (
	"strings"
	"testing"

	"intumwa/billing/orders"
)

const minimalURL = "database: {url: \"postgres://u@127.0.0.1/n\"}\n"

const invoicing = `operator:
  name: Nyota SURL
  nif: "4000123456"
  trade_register: RC 1
  address: Rohero
  phone: "22220000"
  bank_accounts: ["BANCOBU 1, Nyota SURL"]
  taxes: [{name: TVA, rate: 18%, from: 2026-01-01, on: [Taxe SMS]}, {name: Taxe SMS, per_sms: 2.5, from: 2026-02-01}]
  invoices: {legal_form: SURL, activity_sector: Télécommunications, fiscal_center: DMC, commune: Mukaza,
    quarter: Rohero, vat_taxpayer: true}
`

// The operator's section as sales have it.
func TestSales(t *testing.T) {
	c := load(t, minimalURL+invoicing)
	if problems := c.Check(); len(problems) > 0 {
		t.Fatal(problems)
	}
	got := c.Operator.Sales()
	if len(got.Taxes) != 2 || got.Taxes[0].Rate != 180_000 || got.Taxes[0].On[0] != "Taxe SMS" ||
		got.Taxes[1].PerSMS != 250 {
		t.Errorf("taxes %+v", got.Taxes)
	}
	want := orders.Seller{Name: "Nyota SURL", NIF: "4000123456", TradeRegister: "RC 1", Address: "Rohero",
		Phone: "22220000", LegalForm: "SURL", Sector: "Télécommunications", FiscalCenter: "DMC", Commune: "Mukaza",
		Quarter: "Rohero", VAT: true}
	if got.Seller == nil || *got.Seller != want {
		t.Errorf("seller %+v", got.Seller)
	}
	without, _, _ := strings.Cut(invoicing, "  invoices:")
	if got := load(t, minimalURL+without).Operator.Sales(); got.Seller != nil || got.Operator.NIF != want.NIF {
		t.Errorf("without invoices: %+v", got)
	}
	if got := load(t, minimalURL).Operator.Sales(); got.Seller != nil || len(got.Taxes) > 0 {
		t.Errorf("not configured: %+v", got)
	}
}

func TestSalesAreChecked(t *testing.T) {
	for _, test := range []struct{ old, new, want string }{
		{"  nif: \"4000123456\"\n", "", "operator.nif: is required with operator.invoices: an invoice prints it"},
		{"commune: Mukaza,", "", "operator.invoices.commune: is required: an invoice prints it"},
		{"commune: Mukaza", "communne: Mukaza", "operator.invoices.communne: unknown key"},
		{"fiscal_center: DMC", "fiscal_center: X", "operator.invoices.fiscal_center: must be DGC, DMC or DPMC"},
		{"vat_taxpayer: true", "vat_taxpayer: ja", "operator.invoices.vat_taxpayer: must be true or false"},
		{"rate: 18%", "rate: 18", "operator.taxes[0]: a rate is 18% or 0.18: from 0 to 100%, with at most four decimals " +
			"in %"},
		{"rate: 18%, ", "", "operator.taxes[0]: needs rate or per_sms, not both"},
		{"per_sms: 2.5", "per_sms: x", "operator.taxes[1]: a price is a number of francs from 0 to 1000000, with at most " +
			"two decimals, such as 12.5"},
		{"from: 2026-01-01", "from: today", "operator.taxes[0]: from must be a day such as 2026-01-01"},
		{"on: [Taxe SMS]", "on: [TVA]", "operator.taxes[0].on: must name other taxes without such a list"},
		{"on: [Taxe SMS]", "on: [Taxe SMS, Taxe SMS]", "operator.taxes[0].on: must name a tax once: it would count twice"},
		{"{name: Taxe SMS,", "{name: Taxe SMS, ebms: tva,", "operator.taxes[1].ebms: must be vat, ct, tl, ott or tsce"},
		{"per_sms: 2.5, from: 2026-02-01}", "per_sms: 2, from: 2026-02-01}, {name: Taxe SMS, per_sms: 3, from: 2026-02-01}",
			"operator.taxes[2]: is the second of its name and day"},
		{"  phone:", "  email: nope\n  phone:", "operator.email: must be an address such as sales@example.com"},
		{"BANCOBU 1, Nyota SURL", strings.Repeat("x", 121),
			"operator.bank_accounts[0]: must be one line of 1 to 120 printable characters"},
	} {
		text := strings.Replace(invoicing, test.old, test.new, 1)
		var found []string
		for _, p := range load(t, minimalURL+text).Check() {
			found = append(found, p.Key+": "+p.Text)
		}
		if !strings.Contains(strings.Join(found, "\n"), test.want) {
			t.Errorf("%q: %q, want %q", test.new, found, test.want)
		}
	}
}
