package money

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"intumwa/billing"
	"intumwa/billing/orders"
	"intumwa/dashboard/web"
	"intumwa/internal/postgres"
	"intumwa/reports"
	"intumwa/sms"
	"intumwa/texts"
)

const monthFormat = "2006-01" // of an input of type month

// month returns the month of the parameter month, else the one that is not over.
func month(v *web.Visit) time.Time {
	f := v.Parameters("month")
	text := f.Value("month")
	at, err := time.ParseInLocation(monthFormat, text, texts.Bujumbura)
	switch {
	case text == "":
		at = billing.MonthOf(postgres.Now())
		f.Values.Set("month", at.Format(monthFormat))
	case err != nil || at.Year() < 2000 || at.Year() > 9998:
		f.Refuse("month", "month.wrong")
		return billing.MonthOf(postgres.Now())
	}
	return at
}

// monthPage is a company's statement of a month.
type monthPage struct {
	reports.Statement

	Operator web.Operator
	At       time.Time
	Title    string
	Path     string           // address of the page
	Export   string           // of the file
	Priced   bool             // an amount is known
	Sales    []orders.Invoice // documents of the month
	Prices   []billing.Rate
	Default  []billing.Rate
}

func (ps *Pages) monthPage(v *web.Visit, company sms.CompanyID, path string) (p monthPage, err error) {
	month := month(v)
	p = monthPage{Operator: ps.Operator, At: postgres.Now(), Title: v.Lang.Month(month), Path: path}
	p.Operator.Name = cmp.Or(p.Operator.Name, "Intumwa")
	p.Export = web.Address(path+".csv", "month", month.Format(monthFormat))
	if p.Statement, err = reports.ReadStatement(v.Ctx(), ps.Reports, company, month, month.AddDate(0, 1, 0)); err != nil {
		return p, err
	}
	if p.Sales, err = ps.Deps.Orders.Issued(v.Ctx(), int64(company), month, month.AddDate(0, 1, 0),
		shownInvoices); err != nil {
		return p, err
	}
	for i := range p.Parts {
		p.Priced = p.Priced || p.Parts[i].Price != nil
	}
	return p, nil
}

// Monthly is GET /statement/month.
func (ps *Pages) Monthly(v *web.Visit, t web.Tenant) error {
	p, err := ps.monthPage(v, t.CompanyID(), "/statement/month")
	return v.Page(err, "month", p)
}

// ExportMonth is GET /statement/month.csv.
func (ps *Pages) ExportMonth(v *web.Visit, t web.Tenant) error {
	p, err := ps.monthPage(v, t.CompanyID(), "/statement/month")
	if err != nil || !v.Form().OK() {
		return v.Page(err, "month", p)
	}
	return sendMonth(v, t, p)
}

// AdminMonth is GET /admin/companies/:id/month.
func (ps *Pages) AdminMonth(v *web.Visit) error { return ps.monthOf(v, sms.CompanyID(v.ID())) }

func (ps *Pages) monthOf(v *web.Visit, company sms.CompanyID) error {
	p, err := ps.monthPage(v, company, web.CompanyPath(int64(company))+"/month")
	if err != nil {
		return err
	}
	prices, err := ps.Deps.Statements.PricesOf(v.Ctx(), company)
	p.Prices, p.Default = prices.Own, prices.Default
	return v.Page(err, "adminmonth", p)
}

// ExportAdminMonth is GET /admin/companies/:id/month.csv.
func (ps *Pages) ExportAdminMonth(v *web.Visit) error {
	p, err := ps.monthPage(v, sms.CompanyID(v.ID()), web.CompanyPath(v.ID())+"/month")
	if err != nil || !v.Form().OK() {
		return v.Page(err, "adminmonth", p)
	}
	t := web.Tenant{User: v.Session.User, Company: p.Company}
	return sendMonth(v, t, p)
}

// sendMonth responds with a month's statement as CSV, a row for each line.
func sendMonth(v *web.Visit, t web.Tenant, p monthPage) error {
	heads := v.Lang.Texts("month.line", "csv.carrier", "month.kind", "statement.from", "statement.to", "month.messages",
		"statement.amount", "month.price", "month.amount")
	return v.Export(t, "month-"+p.From.Format(monthFormat), heads, func(row func(...string) error) error {
		for _, l := range p.rows(v.Lang) {
			if err := row(l.Text, texts.Cell(l.Carrier), l.Kind, l.From.Format(time.DateOnly),
				l.To.AddDate(0, 0, -1).Format(time.DateOnly), l.Messages,
				strconv.FormatInt(l.Credits, 10), v.Lang.CSVDecimal(priceCell(l.Price)),
				v.Lang.CSVDecimal(l.Amount.String())); err != nil {
				return err
			}
		}
		return nil
	})
}

func priceCell(price *billing.Centimes) string {
	if price == nil {
		return ""
	}
	return price.String()
}

// monthRow is a line of a month's statement, in words.
type monthRow struct {
	Text, Carrier, Kind string
	Messages            string // empty: not of messages
	From, To            time.Time
	Credits             int64
	Price               *billing.Centimes
	Amount              *billing.Money
	Balance             bool // an opening or closing balance
	Part                bool // a line of the usage
}

// rows returns the lines in the order of the sum: opening balance, purchases, corrections, refunds, usage with its
// lines, closing balance.
func (p *monthPage) rows(l *texts.Language) (rows []monthRow) {
	add := func(key string, sum reports.Sum, balance bool) {
		rows = append(rows, monthRow{Text: l.T(key), From: p.From, To: p.To, Credits: sum.Credits, Amount: sum.Amount,
			Balance: balance})
	}
	add("statement.opening", reports.Sum{Credits: p.Opening}, true)
	add("month.purchases", p.Purchases, false)
	rows[1].Text += p.documents(false)
	add("month.corrections", p.Corrections, false)
	rows[2].Text += p.documents(true)
	add("month.refunds", p.Refunds, false)
	add("month.usage", reports.Sum{Credits: -p.Usage.Credits, Amount: p.Usage.Amount.Negative()}, false)
	for _, u := range p.Lines {
		row := monthRow{Text: l.T("month.usage.of"), Carrier: u.Carrier, From: u.From, To: u.To, Credits: -u.Credits,
			Price: u.Price, Amount: u.Amount.Negative(), Part: true}
		if u.Difference() {
			row.Text = l.T("month.notcounted")
		} else {
			row.Kind, row.Messages = l.T(texts.MessageKinds[u.Kind]), strconv.FormatInt(u.Messages, 10)
		}
		rows = append(rows, row)
	}
	add("statement.closing", reports.Sum{Credits: p.Closing}, true)
	return rows
}

// documents returns the names of the month's invoices and receipts, or of its credit notes, in parentheses.
func (p *monthPage) documents(notes bool) string {
	var names []string
	for i := range p.Sales {
		if (p.Sales[i].Kind == orders.CreditNote) == notes {
			names = append(names, p.Sales[i].Name())
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " (" + strings.Join(names, ", ") + ")"
}

// monthRows returns the lines of a month's statement for a page.
func monthRows(p *web.View, of monthPage) []monthRow { return of.rows(p.Language) }

// bif returns an amount with its currency; a dash for an unknown one.
func bif(p *web.View, amount *billing.Money) string {
	if amount == nil {
		return "–"
	}
	return p.T("money.bif", p.Amount(amount.String()))
}

// priceBIF is BIF of a price, which may be a pointer: nil is an unknown one.
func priceBIF(p *web.View, price any) string {
	switch price := price.(type) {
	case billing.Centimes:
		return bif(p, price.Of(1))
	case *billing.Centimes:
		if price != nil {
			return bif(p, price.Of(1))
		}
	}
	return "–"
}

// lastDay returns the last day of a period that ends at a midnight.
func lastDay(p *web.View, to time.Time) string { return p.Date(to.AddDate(0, 0, -1)) }
