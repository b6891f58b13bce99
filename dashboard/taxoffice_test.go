package dashboard

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"intumwa/billing/ebms"
	"intumwa/billing/orders"
	"intumwa/dashboard/web"
	"intumwa/sms"
	"intumwa/tools/ebmssim"
)

const officeSystem = "ws400000000100001"

// taxOffice is a simulated eBMS.
type taxOffice struct {
	sim *ebmssim.Sim
	web *httptest.Server
}

// newTaxOffice returns a simulated eBMS, and what makes a dashboard use it.
func newTaxOffice(t *testing.T) (*taxOffice, func(*Deps, *Options)) {
	t.Helper()
	sim, err := ebmssim.New(ebmssim.Options{Username: officeSystem, Password: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	o := &taxOffice{sim, httptest.NewServer(sim)}
	t.Cleanup(o.web.Close)
	return o, func(d *Deps, _ *Options) {
		d.TaxOffice = ebms.NewClient(ebms.Access{URL: o.web.URL, Username: officeSystem, Password: "secret"})
		d.Orders = orders.New(d.Pool, orders.Options{EBMS: officeSystem, Seller: &seller, Taxes: []orders.Tax{{Name: "TVA",
			Rate: 180_000, EBMS: "vat", From: time.Date(2020, 1, 1, 0, 0, 0, 0, sms.Burundi)}}})
	}
}

// reports runs the reports to the tax office.
func (w *world) reports() {
	w.run(func(ctx context.Context) error {
		return ebms.NewReporter(w.pool, ebms.Options{Client: w.d.deps.TaxOffice, Read: w.d.deps.Orders.ToReport, Log: w.d.log,
			Metrics: prometheus.NewRegistry()}).Run(ctx)
	})
}

// asksTaxOffice asks the tax office about a company's NIF, and decides about invoices that it refused.
func (p *person) asksTaxOffice(office *taxOffice, company int64) {
	w := p.w
	var nif string
	if err := w.pool.QueryRow(p.Context(), `select nif from company_facts where company_id = $1`, company).Scan(
		&nif); err != nil {
		p.Fatal(err)
	}
	p.open(web.CompanyPath(company))
	p.press("ebms.ask")
	p.sees("ebms.known", nif, "CONTRIBUABLE "+nif)
	office.sim.Faults(func(f *ebmssim.Faults) { f.UnknownTINs = []string{nif} })
	p.press("ebms.ask")
	p.sees("ebms.unknown", nif)
	office.sim.Faults(func(f *ebmssim.Faults) { f.BadGateway = true })
	p.press("ebms.ask")
	p.sees("ebms.away")
	office.sim.Faults(func(f *ebmssim.Faults) { *f = ebmssim.Faults{} })

	p.open("/admin/ebms")
	p.sees("ebms.none")
	p.look("admin-ebms-none")
	w.exec(`insert into orders (company_id, credits, centimes, paid_at) select $1, 1, 100, now() from generate_series(1, 2)`,
		company)
	w.exec(`insert into invoice_series values ('sale', 0, '-infinity') on conflict do nothing`)
	w.exec(`with i as (insert into invoices (kind, number, order_id, company_id, issued_at, issued_by, credits, centimes, net,
			taxes, total, paid, seller, customer, ref)
			select 'sale', 900000 + id, id, company_id, now(), 'x', 1, 100, 1, '[]', 1,
			1, '{}', jsonb_build_object('name', $2::text), gen_random_uuid() from orders o where company_id = $1
			and paid_at is not null and not exists (select from invoices where order_id = o.id) returning number)
		insert into ebms_reports (name, identifier, issued_at) select 'F' || number, 'x', now() from i`, company, hostile)
	w.until("both are refused", func() bool {
		return w.count(`select count(*) from ebms_reports where refused_at is not null`) == 2
	})
	var first, second string
	if err := w.pool.QueryRow(p.Context(), `select min(name), max(name) from ebms_reports where refused_at is not null`).Scan(
		&first, &second); err != nil {
		p.Fatal(err)
	}
	p.open("/admin/ebms")
	p.reads("payment_type is required and empty")
	p.look("admin-ebms")
	p.press("ebms.again", first)
	p.sees("flash.ebms.again")
	w.until("it is refused again", func() bool {
		return w.count(`select count(*) from ebms_reports where refused_at is not null`) == 2
	})
	p.open("/admin/ebms")
	w.exec(`update ebms_reports set claimed_until = now() + interval '1 minute' where name = $1`, first)
	p.press("ebms.again", first)
	p.sees("flash.ebms.claimed")
	w.exec(`update ebms_reports set claimed_until = null where name = $1`, first)
	p.tap("ebms.other", first)
	p.submit("ebms.settle", "flash.ebms.settled", "note", "On paper, 12 November")
	p.tap("ebms.other", second)
	p.press("ebms.without")
	p.sees("flash.ebms.again")
	w.exec(`update ebms_reports set finished_at = now() where finished_at is null`)
	p.press("ebms.again", second) // it was received meanwhile
	p.sees("flash.ebms.late")
	p.sees("ebms.none")
}

// TestNoteIsRefused: a note that is too long is refused for that, and changes nothing.
func TestNoteIsRefused(t *testing.T) {
	_, use := newTaxOffice(t)
	w := stillWorld(t, use)
	w.exec(`insert into ebms_reports (name, identifier, issued_at, refused_at) values ('F000001', 'x', now(), now())`)
	admin := newClient(w)
	admin.inside("root@example.com")
	admin.wants(admin.post("/admin/ebms", "invoice", "F000001", "do", "settled", "note", strings.Repeat("x", 501)),
		http.StatusUnprocessableEntity, "at most 500 characters", "F000001")
}
