package dashboard

import (
	"cmp"
	"strconv"
	"time"

	"intumwa/billing"
	"intumwa/internal/postgres"
	"intumwa/reports"
	"intumwa/sms"
	"intumwa/texts"
)

// Operator is who runs the installation, at the head of printed statements. Empty fields are left out.
type Operator struct{ Name, NIF, TradeRegister, Address, Phone, Email string }

const monthFormat = "2006-01" // of an input of type month

// month returns the month of the parameter month, else the one that is not over.
func (v *visit) month() time.Time {
	f := v.parameters("month")
	text := f.Value("month")
	at, err := time.ParseInLocation(monthFormat, text, texts.Bujumbura)
	switch {
	case text == "":
		at = billing.MonthOf(postgres.Now())
		f.values.Set("month", at.Format(monthFormat))
	case err != nil || at.Year() < 2000 || at.Year() > 9998:
		f.refuse("month", "month.wrong")
		return billing.MonthOf(postgres.Now())
	}
	return at
}

// reports are the packages that reports read, on the pool of look-ups.
func (d *Dashboard) reports() reports.Rooms {
	return reports.Rooms{Companies: d.rooms.Companies, Ledger: d.rooms.Statements, Statistics: d.rooms.Statistics}
}

// monthPage is a company's statement of a month.
type monthPage struct {
	reports.Statement

	Operator Operator
	At       time.Time
	Title    string
	Path     string // address of the page
	Export   string // of the file
	Priced   bool   // an amount is known
	Prices   []billing.Rate
	Default  []billing.Rate
}

func (v *visit) monthPage(company sms.CompanyID, path string) (p monthPage, err error) {
	month := v.month()
	p = monthPage{Operator: v.d.opts.Operator, At: postgres.Now(), Title: v.lang.Month(month), Path: path}
	p.Operator.Name = cmp.Or(p.Operator.Name, "Intumwa")
	p.Export = address(path+".csv", "month", month.Format(monthFormat))
	if p.Statement, err = reports.ReadStatement(v.ctx(), v.d.reports(), company, month, month.AddDate(0, 1, 0)); err != nil {
		return p, err
	}
	for i := range p.Parts {
		p.Priced = p.Priced || p.Parts[i].Price != nil
	}
	return p, nil
}

// monthly is GET /statement/month.
func (d *Dashboard) monthly(v *visit, t tenant) error {
	p, err := v.monthPage(t.company(), "/statement/month")
	return v.page(err, "month", p)
}

// exportMonth is GET /statement/month.csv.
func (d *Dashboard) exportMonth(v *visit, t tenant) error {
	p, err := v.monthPage(t.company(), "/statement/month")
	if err != nil || !v.form().ok() {
		return v.page(err, "month", p)
	}
	return v.exportStatement(t, p)
}

// adminMonth is GET /admin/companies/:id/month.
func (d *Dashboard) adminMonth(v *visit) error { return d.monthOf(v, sms.CompanyID(v.id())) }

func (d *Dashboard) monthOf(v *visit, company sms.CompanyID) error {
	p, err := v.monthPage(company, companyPath(int64(company))+"/month")
	if err != nil {
		return err
	}
	prices, err := d.rooms.Statements.PricesOf(v.ctx(), company)
	p.Prices, p.Default = prices.Own, prices.Default
	return v.page(err, "adminmonth", p)
}

// exportAdminMonth is GET /admin/companies/:id/month.csv.
func (d *Dashboard) exportAdminMonth(v *visit) error {
	p, err := v.monthPage(sms.CompanyID(v.id()), companyPath(v.id())+"/month")
	if err != nil || !v.form().ok() {
		return v.page(err, "adminmonth", p)
	}
	t := tenant{User: v.session.User, Company: p.Company}
	return v.exportStatement(t, p)
}

// exportStatement responds with a month's statement as CSV, a row for each line.
func (v *visit) exportStatement(t tenant, p monthPage) error {
	heads := v.texts("month.line", "csv.carrier", "month.kind", "statement.from", "statement.to", "month.messages", "statement.amount", "month.price", "month.amount")
	return v.export(t, "month-"+p.From.Format(monthFormat), heads, func(row func(...string) error) error {
		for _, l := range p.rows(v.lang) {
			if err := row(l.Text, cell(l.Carrier), l.Kind, l.From.Format(time.DateOnly), l.To.AddDate(0, 0, -1).Format(time.DateOnly), l.Messages,
				strconv.FormatInt(l.Credits, 10), v.lang.CSVDecimal(priceCell(l.Price)), v.lang.CSVDecimal(l.Amount.String())); err != nil {
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
		rows = append(rows, monthRow{Text: l.T(key), From: p.From, To: p.To, Credits: sum.Credits, Amount: sum.Amount, Balance: balance})
	}
	add("statement.opening", reports.Sum{Credits: p.Opening}, true)
	add("month.purchases", p.Purchases, false)
	add("month.corrections", p.Corrections, false)
	add("month.refunds", p.Refunds, false)
	add("month.usage", reports.Sum{Credits: -p.Usage.Credits, Amount: p.Usage.Amount.Negative()}, false)
	for _, u := range p.Lines {
		row := monthRow{Text: l.T("month.usage.of"), Carrier: u.Carrier, From: u.From, To: u.To, Credits: -u.Credits, Price: u.Price, Amount: u.Amount.Negative(), Part: true}
		if u.Difference() {
			row.Text = l.T("month.notcounted")
		} else {
			row.Kind, row.Messages = l.T(kindTexts[u.Kind]), strconv.FormatInt(u.Messages, 10)
		}
		rows = append(rows, row)
	}
	add("statement.closing", reports.Sum{Credits: p.Closing}, true)
	return rows
}

// MonthRows returns the lines of a month's statement for a page.
func (p *view) MonthRows(of monthPage) []monthRow { return of.rows(p.Language) }

// BIF returns an amount with its currency; a dash for an unknown one.
func (p *view) BIF(amount *billing.Money) string {
	if amount == nil {
		return "–"
	}
	return p.T("money.bif", p.Amount(amount.String()))
}

// PriceBIF is BIF of a price.
func (p *view) PriceBIF(price *billing.Centimes) string {
	if price == nil {
		return "–"
	}
	return p.BIF(price.Of(1))
}

// LastDay returns the last day of a period that ends at a midnight.
func (p *view) LastDay(to time.Time) string { return p.Date(to.AddDate(0, 0, -1)) }
