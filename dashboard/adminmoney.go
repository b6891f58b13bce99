package dashboard

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"intumwa/accounts"
	"intumwa/billing"
	"intumwa/messages/statistics"
	"intumwa/operations"
	"intumwa/reports"
	"intumwa/sms"
)

// moneyPage is the carriers' invoices of a month, their tariffs and the price of all companies.
type moneyPage struct {
	Invoices []reports.Invoice
	Title    string
	Path     string
	Month    string
	Prices   billing.Rates
	Tariffs  []tariffs
	Carriers []option
}

// tariffs are a carrier's tariffs.
type tariffs struct {
	Carrier string
	Rates   billing.Rates
}

// money is GET /admin/money.
func (d *Dashboard) money(v *visit) error {
	month := v.month()
	p := moneyPage{Title: v.lang.Month(month), Path: "/admin/money", Month: month.Format(monthFormat)}
	var err error
	if p.Invoices, err = reports.ReadInvoices(v.ctx(), d.reports(), "", 0, month, month.AddDate(0, 1, 0)); err != nil {
		return err
	}
	prices, err := d.rooms.Statements.PricesOf(v.ctx(), 0)
	if err != nil {
		return err
	}
	p.Prices = prices.Default
	all, err := d.rooms.Statements.Tariffs(v.ctx())
	if err != nil {
		return err
	}
	names := slices.Collect(maps.Keys(all))
	for i := range p.Invoices {
		names = append(names, p.Invoices[i].Carrier)
	}
	links, err := d.board.now(v.ctx())
	if err != nil {
		return err
	}
	for i := range links.Links {
		names = append(names, links.Links[i].Carrier)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		p.Carriers = append(p.Carriers, option{name, name})
		if len(all[name]) > 0 {
			p.Tariffs = append(p.Tariffs, tariffs{name, all[name]})
		}
	}
	return v.page(nil, "adminmoney", p)
}

// exportDifference is GET /admin/money.csv: the messages behind the difference of a carrier's invoice.
func (d *Dashboard) exportDifference(v *visit) error {
	month, carrier := v.month(), v.parameters("carrier").Value("carrier")
	if !v.form().ok() || carrier == "" {
		return d.money(v)
	}
	filter := statistics.InvoiceFilter{Carrier: carrier, From: month, To: month.AddDate(0, 1, 0)}
	t := tenant{User: v.session.User, Company: accounts.Company{ID: v.session.User.ID}} // whose turn the download takes
	return v.export(t, "invoice-"+month.Format(monthFormat), reports.DifferenceHeads, func(row func(...string) error) error {
		return d.rooms.Statistics.EachDiscrepancy(v.ctx(), filter, v.inTurn, func(m *statistics.Discrepancy) error {
			return row(strconv.FormatInt(m.MessageID, 10), m.ULID.String(), strconv.FormatInt(int64(m.Company), 10), cellTime(&m.AcceptedAt), cell(m.Carrier),
				m.Status.String(), strconv.FormatBool(m.Test), strconv.FormatInt(m.Accepted, 10), strconv.FormatInt(m.Charged, 10))
		})
	})
}

// rate reads a field with a rate's first day and one with its price; an empty price means none.
func (f *form) rate(from, bif string) (r billing.Rate) {
	f.required(from)
	r.From = f.day(from)
	if text := strings.TrimSpace(f.Value(bif)); text != "" {
		price, err := billing.ParsePrice(text)
		if err != nil {
			f.refuse(bif, "money.price.wrong")
		}
		r.Price = &price
	}
	return r
}

// refuseRate sets the error of a form whose rate was refused, and returns other errors.
func (f *form) refuseRate(from string, err error) error {
	switch {
	case errors.Is(err, billing.ErrPastMonth):
		f.refuse(from, "money.past")
	case errors.Is(err, billing.ErrFarAway), errors.Is(err, billing.ErrManyRates):
		f.refuse(from, "money.far")
	case errors.Is(err, operations.ErrCarrierName):
		f.refuse("carrier", "error.required")
	default:
		return err
	}
	return nil
}

// setPrice is POST /admin/prices: of a company, or without the field company of all.
func (d *Dashboard) setPrice(v *visit) error {
	f := v.form()
	page, back, company := d.money, "/admin/money", int64(0)
	if text := f.Value("company"); text != "" {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil || id <= 0 {
			return errNotFound
		}
		company, back = id, companyPath(id)+"/month"
		page = func(v *visit) error { return d.monthOf(v, sms.CompanyID(id)) }
	}
	rate := f.rate("valid_from", "bif")
	if f.ok() {
		err := v.by().SetPrice(v.ctx(), sms.CompanyID(company), rate)
		if err == nil {
			return v.redirect(back, "flash.price")
		}
		if err := f.refuseRate("valid_from", err); err != nil {
			return err
		}
	}
	return page(v)
}

// setTariff is POST /admin/tariffs.
func (d *Dashboard) setTariff(v *visit) error {
	f := v.form()
	rate, carrier := f.rate("tariff_from", "tariff"), strings.TrimSpace(f.required("carrier"))
	if f.ok() {
		err := v.by().SetTariff(v.ctx(), carrier, rate)
		if err == nil {
			return v.redirect("/admin/money", "flash.tariff")
		}
		if err := f.refuseRate("tariff_from", err); err != nil {
			return err
		}
	}
	return d.money(v)
}
