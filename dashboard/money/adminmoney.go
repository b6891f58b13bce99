package money

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"intumwa/accounts"
	"intumwa/billing"
	"intumwa/dashboard/web"
	"intumwa/messages/statistics"
	"intumwa/operations"
	"intumwa/reports"
	"intumwa/sms"
	"intumwa/texts"
)

// moneyPage is the carriers' invoices of a month, their tariffs and the price of all companies.
type moneyPage struct {
	Invoices []reports.Invoice
	Title    string
	Path     string
	Month    string
	Prices   billing.Rates
	Tariffs  []tariffs
	Carriers []web.Option
}

// tariffs are a carrier's tariffs.
type tariffs struct {
	Carrier string
	Rates   billing.Rates
}

// Money is GET /admin/money.
func (ps *Pages) Money(v *web.Visit) error {
	month := month(v)
	p := moneyPage{Title: v.Lang.Month(month), Path: "/admin/money", Month: month.Format(monthFormat)}
	var err error
	if p.Invoices, err = reports.ReadInvoices(v.Ctx(), ps.Reports, "", 0, month, month.AddDate(0, 1, 0)); err != nil {
		return err
	}
	prices, err := ps.Deps.Statements.PricesOf(v.Ctx(), 0)
	if err != nil {
		return err
	}
	p.Prices = prices.Default
	all, err := ps.Deps.Statements.Tariffs(v.Ctx())
	if err != nil {
		return err
	}
	names := slices.Collect(maps.Keys(all))
	for i := range p.Invoices {
		names = append(names, p.Invoices[i].Carrier)
	}
	carriers, err := ps.Carriers(v.Ctx())
	if err != nil {
		return err
	}
	names = append(names, carriers...)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		p.Carriers = append(p.Carriers, web.Option{Value: name, Text: name})
		if len(all[name]) > 0 {
			p.Tariffs = append(p.Tariffs, tariffs{name, all[name]})
		}
	}
	return v.Page(nil, "adminmoney", p)
}

// ExportDifference is GET /admin/money.csv: the messages behind the difference of a carrier's invoice.
func (ps *Pages) ExportDifference(v *web.Visit) error {
	month, carrier := month(v), v.Parameters("carrier").Value("carrier")
	if !v.Form().OK() || carrier == "" {
		return ps.Money(v)
	}
	filter := statistics.InvoiceFilter{Carrier: carrier, From: month, To: month.AddDate(0, 1, 0)}
	// whose turn the download takes
	t := web.Tenant{User: v.Session.User, Company: accounts.Company{ID: v.Session.User.ID}}
	return v.Export(t, "invoice-"+month.Format(monthFormat), reports.DifferenceHeads,
		func(row func(...string) error) error {
			return ps.Deps.Statistics.EachDiscrepancy(v.Ctx(), filter, v.InTurn, func(m *statistics.Discrepancy) error {
				return row(strconv.FormatInt(m.MessageID, 10), m.ULID.String(), strconv.FormatInt(int64(m.Company), 10),
					texts.CellTime(&m.AcceptedAt), texts.Cell(m.Carrier),
					m.Status.String(), strconv.FormatBool(m.Test), strconv.FormatInt(m.Accepted, 10), strconv.FormatInt(m.Charged, 10))
			})
		})
}

// rate reads a field with a rate's first day and one with its price; an empty price means none.
func rate(f *web.Form, from, bif string) (r billing.Rate) {
	f.Required(from)
	r.From = f.Day(from)
	if text := strings.TrimSpace(f.Value(bif)); text != "" {
		price, err := billing.ParsePrice(text)
		if err != nil {
			f.Refuse(bif, "money.price.wrong")
		}
		r.Price = &price
	}
	return r
}

// refuseRate sets the error of a form whose rate was refused, and returns other errors.
func refuseRate(f *web.Form, from string, err error) error {
	switch {
	case errors.Is(err, billing.ErrPastMonth):
		f.Refuse(from, "money.past")
	case errors.Is(err, billing.ErrFarAway), errors.Is(err, billing.ErrManyRates):
		f.Refuse(from, "money.far")
	case errors.Is(err, operations.ErrCarrierName):
		f.Refuse("carrier", "error.required")
	default:
		return err
	}
	return nil
}

// SetPrice is POST /admin/prices: of a company, or without the field company of all.
func (ps *Pages) SetPrice(v *web.Visit) error {
	f := v.Form()
	page, back, company := ps.Money, "/admin/money", int64(0)
	if text := f.Value("company"); text != "" {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil || id <= 0 {
			return web.ErrNotFound
		}
		company, back = id, web.CompanyPath(id)+"/month"
		page = func(v *web.Visit) error { return ps.monthOf(v, sms.CompanyID(id)) }
	}
	rate := rate(f, "valid_from", "bif")
	if f.OK() {
		err := ps.By(v).SetPrice(v.Ctx(), sms.CompanyID(company), rate)
		if err == nil {
			return v.Redirect(back, "flash.price")
		}
		if err := refuseRate(f, "valid_from", err); err != nil {
			return err
		}
	}
	return page(v)
}

// SetTariff is POST /admin/tariffs.
func (ps *Pages) SetTariff(v *web.Visit) error {
	f := v.Form()
	rate, carrier := rate(f, "tariff_from", "tariff"), strings.TrimSpace(f.Required("carrier"))
	if f.OK() {
		err := ps.By(v).SetTariff(v.Ctx(), carrier, rate)
		if err == nil {
			return v.Redirect("/admin/money", "flash.tariff")
		}
		if err := refuseRate(f, "tariff_from", err); err != nil {
			return err
		}
	}
	return ps.Money(v)
}
