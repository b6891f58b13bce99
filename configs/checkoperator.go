package configs

import (
	"errors"
	"fmt"
	"maps"
	"net/mail"
	"slices"
	"time"
	"unicode"
	"unicode/utf8"

	"intumwa/billing"
	"intumwa/billing/orders"
	"intumwa/sms"
)

// Bounds of the operator's lists.
const (
	maxAccounts = 10
	maxAccount  = 120 // characters
	maxTaxes    = 100
)

// ebmsTaxes are the names of taxes in the tax office's system.
var ebmsTaxes = []string{"", "vat", "ct", "tl", "ott", "tsce"}

// invoiceFact is a key of operator.invoices.
type invoiceFact struct {
	text     func(*orders.Seller) *string // nil: true or false
	most     int                          // characters
	required bool
	flag     func(*orders.Seller) *bool
}

// invoiceFacts are the keys of operator.invoices.
var invoiceFacts = map[string]invoiceFact{
	"legal_form":      {text: func(s *orders.Seller) *string { return &s.LegalForm }, most: 50, required: true},
	"activity_sector": {text: func(s *orders.Seller) *string { return &s.Sector }, most: 250, required: true},
	"fiscal_center":   {text: func(s *orders.Seller) *string { return &s.FiscalCenter }, most: 4, required: true},
	"commune":         {text: func(s *orders.Seller) *string { return &s.Commune }, most: 50, required: true},
	"quarter":         {text: func(s *orders.Seller) *string { return &s.Quarter }, most: 50, required: true},
	"province":        {text: func(s *orders.Seller) *string { return &s.Province }, most: 50},
	"avenue":          {text: func(s *orders.Seller) *string { return &s.Avenue }, most: 50},
	"street":          {text: func(s *orders.Seller) *string { return &s.Street }, most: 50},
	"house":           {text: func(s *orders.Seller) *string { return &s.House }, most: 10},
	"postal_number":   {text: func(s *orders.Seller) *string { return &s.PostalNumber }, most: 20},
	"natural_person":  {flag: func(s *orders.Seller) *bool { return &s.Natural }},
	"vat_taxpayer":    {flag: func(s *orders.Seller) *bool { return &s.VAT }},
	"ct_taxpayer":     {flag: func(s *orders.Seller) *bool { return &s.CT }},
	"tl_taxpayer":     {flag: func(s *orders.Seller) *bool { return &s.TL }},
}

// operator checks what proformas and invoices print.
func (k *checker) operator(o *Operator) {
	for path, list := range map[string][]string{"operator.bank_accounts": o.BankAccounts,
		"operator.mobile_money": o.MobileMoney} {
		if len(list) > maxAccounts {
			k.problem(path, "must not have more than %d lines", maxAccounts)
		}
		for i, line := range list {
			if line == "" || utf8.RuneCountInString(line) > maxAccount || !printable(line) {
				k.problem(fmt.Sprintf("%s[%d]", path, i), "must be one line of 1 to %d printable characters", maxAccount)
			}
		}
	}
	if at, err := mail.ParseAddress(o.Email); o.Email != "" && (err != nil || at.Address != o.Email) {
		k.problem("operator.email", "must be an address such as sales@example.com")
	}
	k.taxes(o.Taxes)
	k.invoices(o)
}

// invoices checks that an invoice can print everything that it must.
func (k *checker) invoices(o *Operator) {
	if len(o.Invoices) == 0 {
		return
	}
	for _, need := range []struct{ key, value string }{{"name", o.Name}, {"nif", o.NIF},
		{"trade_register", o.TradeRegister}, {"address", o.Address}, {"phone", o.Phone}} {
		if need.value == "" {
			k.problem("operator."+need.key, "is required with operator.invoices: an invoice prints it")
		}
	}
	for key, fact := range invoiceFacts {
		if fact.required && o.Invoices[key] == "" {
			k.problem("operator.invoices."+key, "is required: an invoice prints it")
		}
	}
	for _, key := range slices.Sorted(maps.Keys(o.Invoices)) {
		value, path := o.Invoices[key], "operator.invoices."+key
		switch fact, known := invoiceFacts[key]; {
		case !known:
			k.problem(path, "unknown key")
		case fact.flag != nil && value != "true" && value != "false":
			k.problem(path, "must be true or false")
		case fact.text != nil && (utf8.RuneCountInString(value) > fact.most || !printable(value)):
			k.problem(path, "must be one line of at most %d printable characters", fact.most)
		case key == "fiscal_center" && value != "" && !slices.Contains([]string{"DGC", "DMC", "DPMC"}, value):
			k.problem(path, "must be DGC, DMC or DPMC")
		}
	}
}

func printable(text string) bool {
	for _, r := range text {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return utf8.ValidString(text)
}

// taxes checks each tax, and that a tax and a day have one entry.
func (k *checker) taxes(taxes []Tax) {
	if len(taxes) > maxTaxes {
		k.problem("operator.taxes", "must not have more than %d entries", maxTaxes)
	}
	on := map[string]bool{} // whether a tax has a list
	for _, t := range taxes {
		on[t.Name] = on[t.Name] || len(t.On) > 0
	}
	days := map[[2]string]bool{}
	for i := range taxes {
		t, path := &taxes[i], fmt.Sprintf("operator.taxes[%d]", i)
		_, err := t.sale()
		switch day := [2]string{t.Name, t.From}; {
		case err != nil:
			k.problem(path, "%s", err)
		case days[day]:
			k.problem(path, "is the second of its name and day")
		default:
			days[day] = true
		}
		for n, name := range t.On {
			if slices.Contains(t.On[:n], name) {
				k.problem(path+".on", "must name a tax once: it would count twice")
			}
			if has, known := on[name]; !known || has {
				k.problem(path+".on", "must name other taxes without such a list")
			}
		}
		if !slices.Contains(ebmsTaxes, t.EBMS) {
			k.problem(path+".ebms", "must be vat, ct, tl, ott or tsce")
		}
	}
}

// sale returns the tax as sales have it.
func (t *Tax) sale() (s orders.Tax, err error) {
	s = orders.Tax{Name: t.Name, On: t.On, EBMS: t.EBMS}
	if s.From, err = time.ParseInLocation(time.DateOnly, t.From, sms.Burundi); err != nil {
		return s, errors.New("from must be a day such as 2026-01-01")
	}
	switch {
	case (t.Rate == "") == (t.PerSMS == ""):
		err = errors.New("needs rate or per_sms, not both")
	case t.Rate != "":
		s.Rate, err = orders.ParseRate(t.Rate)
	case len(t.On) > 0:
		err = errors.New("on is only for a rate")
	default:
		s.PerSMS, err = billing.ParsePrice(t.PerSMS)
	}
	return s, err
}

// Sales are the operator's taxes, and its company as invoices print it. The configuration has been checked.
func (o *Operator) Sales() (options orders.Options) {
	for i := range o.Taxes {
		if t, err := o.Taxes[i].sale(); err == nil {
			options.Taxes = append(options.Taxes, t)
		}
	}
	options.Operator = orders.Seller{Name: o.Name, NIF: o.NIF, TradeRegister: o.TradeRegister, Address: o.Address,
		Phone: o.Phone, Email: o.Email}
	if len(o.Invoices) == 0 {
		return options
	}
	options.Seller = new(options.Operator)
	for key, value := range o.Invoices {
		switch fact := invoiceFacts[key]; {
		case fact.text != nil:
			*fact.text(options.Seller) = value
		case fact.flag != nil:
			*fact.flag(options.Seller) = value == "true"
		}
	}
	return options
}
