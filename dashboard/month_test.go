package dashboard

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"intumwa/billing"
	"intumwa/dashboard/web"
	"intumwa/internal/postgres"
)

// TestMonthPage: a company's month in both languages, without and with a price, as CSV, and for administrators.
func TestMonthPage(t *testing.T) {
	w := newWorld(t, nil)
	w.d.opts.Operator = web.Operator{Name: "Nyota <Ltd>", NIF: "4000123456", TradeRegister: "RC 123/45",
		Address: "Chaussée du Prince Rwagasore, Bujumbura", Email: "comptes@nyota.example"}
	w.d.wire()
	c, company := w.merchant("aline", 1000)
	w.exec(`INSERT INTO company_facts (company_id, nif, trade_register, address, phone, contact)
		VALUES ($1, '4000999999', 'RC 9', 'Gitega', '22222222', 'Aline')`, company.ID)
	w.exec(`INSERT INTO messages (ulid, company_id, user_id, phone_number, sender, body, encoding, segments, test, carrier)
		SELECT gen_random_uuid(), $1, 1, '+25779000001', 'DEMO', 'x', 0, 2, false, 'leo' FROM generate_series(1, 3)`,
		company.ID)
	w.exec(`INSERT INTO ledger (company_id, kind, amount, balance_after, ref) SELECT $1, 'send', -2, 1000 - 2 * i,
		gen_random_uuid() FROM generate_series(1, 3) i`, company.ID)
	w.exec(`INSERT INTO ledger (company_id, kind, amount, balance_after) VALUES ($1, 'correction', -94, 900)`, company.ID)
	a := c.get("/statement/month")
	c.wants(a, http.StatusOK, "Nyota &lt;Ltd&gt;", "NIF 4000123456", "RC 123/45", "Rwagasore", "comptes@nyota.example",
		"NIF 4000999999", "Gitega", "Provisional", "leo · Single", "−94", "−6", "900", "Usage less refunds")
	if strings.Contains(a.body, "BIF") {
		t.Error("without a price there is an amount")
	}
	month := billing.MonthOf(postgres.Now())
	admin := newClient(w)
	admin.inside("root@example.com")
	path := web.CompanyPath(company.ID) + "/month"
	admin.wants(admin.get(path), http.StatusOK, "Nyota", "leo · Single")
	for _, wrong := range []struct{ from, bif, text string }{
		{month.AddDate(0, 0, -1).Format(time.DateOnly), "5", "That month is over"}, {"", "5", "required"},
		{month.Format(time.DateOnly), "1e3", "from 0 to 1,000,000"},
		{month.AddDate(9, 0, 0).Format(time.DateOnly), "5", "too far away"}} {
		a := admin.post("/admin/prices", "company", "1", "valid_from", wrong.from, "bif", wrong.bif)
		if a.StatusCode != http.StatusUnprocessableEntity ||
			!strings.Contains(strings.ToLower(a.body), strings.ToLower(wrong.text)) && wrong.from != "" {
			t.Errorf("%v: %d\n%s", wrong, a.StatusCode, a.body)
		}
	}
	admin.wants(admin.post("/admin/prices", "company", "1", "valid_from", month.Format(time.DateOnly), "bif", "12,5"),
		http.StatusSeeOther)
	c.wants(c.get("/statement/month"), http.StatusOK, "12.50 BIF", "−75 BIF", "12,500 BIF", "−1,175 BIF")
	rows := c.lines(c.get("/statement/month.csv"))
	if len(rows) != 1+7 || strings.Join(rows[6], " ") != strings.Join(
		[]string{"Usage by carrier", "leo", rows[6][2], month.Format(time.DateOnly),
			month.AddDate(0, 1, -1).Format(time.DateOnly), "3", "-6", "12.50", "-75"}, " ") {
		t.Errorf("%q", rows)
	}
	c.post("/language", "to", "fr", "next", "/statement/month")
	c.wants(c.get("/statement/month"), http.StatusOK, "Provisoire", "Consommation moins remboursements", "12,50 BIF",
		"12\u202f500 BIF", "Achats")
	if file := c.get("/statement/month.csv").body; !strings.Contains(file, ";3;-6;12,50;-75\r\n") {
		t.Errorf("a spreadsheet in French cannot add up\n%s", file)
	}
	c.wants(c.get("/statement/month?month=2026-13"), http.StatusUnprocessableEntity, "Saisissez un mois")
	c.wants(c.get("/statement/month?month=2020-01"), http.StatusOK, "Solde initial")
	admin.wants(admin.post("/admin/tariffs", "carrier", "leo", "tariff_from", "2026-01-01", "tariff", "7.25"),
		http.StatusSeeOther)
	admin.wants(admin.get("/admin/money"), http.StatusOK, "7.25 BIF", "leo")
	if a := c.get("/admin/money"); a.StatusCode != http.StatusNotFound {
		t.Errorf("a customer gets %d", a.StatusCode)
	}
}
