package ebms

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Kinds of invoices (invoice_type).
const (
	Sale       = "FN"
	CreditNote = "FA"
)

// Ways of payment (payment_type).
const (
	Cash   = "1"
	Bank   = "2"
	Credit = "3"
	Other  = "4"
)

// Place is the time zone of the dates of invoices: Burundi has had no summer time.
var Place = time.FixedZone("CAT", 2*60*60)

// Invoice is an invoice or a credit note, as addInvoice_confirm takes it.
type Invoice struct {
	Identifier string
	Number     string
	Kind       string // Sale or CreditNote
	Issued     time.Time
	Payment    string // Cash, Bank, Credit or Other
	RefersTo   string // number of a credit note's invoice
	Reason     string // of a credit note
	Seller     Seller
	Customer   Customer
	Lines      []Line
}

// Seller is the taxpayer that issues the invoice. The tags are the keys of the eBMS.
type Seller struct {
	Type         string `json:"tp_type"` // 1 natural person, 2 legal person
	Name         string `json:"tp_name"`
	NIF          string `json:"tp_TIN"`
	Trade        string `json:"tp_trade_number"`
	Postal       string `json:"tp_postal_number"`
	Phone        string `json:"tp_phone_number"`
	Province     string `json:"tp_address_province"`
	Commune      string `json:"tp_address_commune"`
	Quarter      string `json:"tp_address_quartier"`
	Avenue       string `json:"tp_address_avenue"`
	Street       string `json:"tp_address_rue"`
	Number       string `json:"tp_address_number"`
	VAT          string `json:"vat_taxpayer"` // this and the next two are 0 or 1
	Consumption  string `json:"ct_taxpayer"`
	Flat         string `json:"tl_taxpayer"`
	FiscalCentre string `json:"tp_fiscal_center"` // DGC, DMC or DPMC
	Sector       string `json:"tp_activity_sector"`
	LegalForm    string `json:"tp_legal_form"`
}

// Customer is who bought.
type Customer struct {
	Name    string `json:"customer_name"`
	NIF     string `json:"customer_TIN"` // must be known to the OBR; may be empty
	Address string `json:"customer_address"`
	VAT     string `json:"vat_customer_payer"` // 0, 1 or empty
}

// Line is one line of an invoice. Amounts are decimal numbers of francs.
type Line struct {
	Designation string `json:"item_designation"`
	Quantity    string `json:"item_quantity"`
	Price       string `json:"item_price"`        // of one
	Consumption string `json:"item_ct"`           // taxe de consommation
	Flat        string `json:"item_tl"`           // prélèvement forfaitaire libératoire
	OTT         string `json:"item_ott_tax"`      // tax on OTT services
	TSCE        string `json:"item_tsce_tax"`     // tax on electronic communication services
	Net         string `json:"item_price_nvat"`   // price × quantity, with the taxes above but Flat
	VAT         string `json:"vat"`               // the amount, not the rate
	Gross       string `json:"item_price_wvat"`   // Net + VAT
	Total       string `json:"item_total_amount"` // Gross + Flat
}

// Identifier returns what identifies an invoice at the eBMS and is printed on it. issued is cut to a second.
func Identifier(nif, systemID string, issued time.Time, number string) string {
	return nif + "/" + systemID + "/" + issued.In(Place).Format("20060102150405") + "/" + number
}

// MaxIdentifier is the longest identifier, in characters.
const MaxIdentifier = 90

// date is the form of dates.
const date = "2006-01-02 15:04:05"

// body is the request.
type body struct {
	Number       string `json:"invoice_number"`
	Date         string `json:"invoice_date"`
	Kind         string `json:"invoice_type"`
	Payment      string `json:"payment_type"`
	Currency     string `json:"invoice_currency"`
	Identifier   string `json:"invoice_identifier"`
	RefersTo     string `json:"invoice_ref"`
	CancelledRef string `json:"cancelled_invoice_ref"`
	Reason       string `json:"cn_motif"`
	Seller
	Customer
	Lines []Line `json:"invoice_items"`
}

func (v *Invoice) body() body {
	return body{Number: v.Number, Date: v.Issued.In(Place).Format(date), Kind: v.Kind, Payment: v.Payment, Currency: "BIF",
		Identifier: v.Identifier, RefersTo: v.RefersTo, Reason: v.Reason, Seller: v.Seller, Customer: v.Customer,
		Lines: v.Lines}
}

// field is a value with the bounds of the eBMS.
type field struct {
	key, value string
	most       int // characters; 0: no bound
	required   bool
	words      []string // the permitted values
}

func (f field) check() error {
	n := utf8.RuneCountInString(f.value)
	switch {
	case f.required && strings.TrimSpace(f.value) == "":
		return fmt.Errorf("%s is required and empty", f.key)
	case f.most > 0 && n > f.most:
		return fmt.Errorf("%s has %d characters, and the eBMS takes %d", f.key, n, f.most)
	case !utf8.ValidString(f.value):
		return fmt.Errorf("%s is not valid UTF-8", f.key)
	case len(f.words) == 0 || f.value == "" && !f.required:
		return nil
	}
	for _, word := range f.words {
		if f.value == word {
			return nil
		}
	}
	return fmt.Errorf("%s must be one of %s", f.key, strings.Join(f.words, ", "))
}

var (
	yesNo = []string{"0", "1"}
	kinds = []string{Sale, CreditNote}
	pays  = []string{Cash, Bank, Credit, Other}
)

// Centres are the tax offices of tp_fiscal_center.
var Centres = []string{"DGC", "DMC", "DPMC"}

// Check returns the first mistake in a seller's fields. Where the specification contradicts itself, the longer length
// holds.
func (s *Seller) Check() error {
	return first([]field{
		{"tp_type", s.Type, 0, true, []string{"1", "2"}}, {"tp_name", s.Name, 100, true, nil},
		{"tp_TIN", s.NIF, 30, true, nil}, {"tp_trade_number", s.Trade, 30, true, nil},
		{"tp_postal_number", s.Postal, 20, false, nil}, {"tp_phone_number", s.Phone, 20, true, nil},
		{"tp_address_province", s.Province, 50, false, nil}, {"tp_address_commune", s.Commune, 50, true, nil},
		{"tp_address_quartier", s.Quarter, 50, true, nil}, {"tp_address_avenue", s.Avenue, 50, false, nil},
		{"tp_address_rue", s.Street, 50, false, nil}, {"tp_address_number", s.Number, 10, false, nil},
		{"vat_taxpayer", s.VAT, 0, true, yesNo}, {"ct_taxpayer", s.Consumption, 0, true, yesNo},
		{"tl_taxpayer", s.Flat, 0, true, yesNo}, {"tp_fiscal_center", s.FiscalCentre, 0, true, Centres},
		{"tp_activity_sector", s.Sector, 250, true, nil}, {"tp_legal_form", s.LegalForm, 50, true, nil},
	})
}

// Check returns the first mistake that the eBMS would refuse, naming its key.
func (v *Invoice) Check() error {
	err := first([]field{
		{"invoice_number", v.Number, 30, true, nil}, {"invoice_type", v.Kind, 0, true, kinds},
		{"payment_type", v.Payment, 0, true, pays}, {"invoice_identifier", v.Identifier, MaxIdentifier, true, nil},
		{"invoice_ref", v.RefersTo, 30, v.Kind == CreditNote, nil}, {"cn_motif", v.Reason, 500, v.Kind == CreditNote, nil},
		{"customer_name", v.Customer.Name, 100, true, nil}, {"customer_TIN", v.Customer.NIF, 30, false, nil},
		{"customer_address", v.Customer.Address, 100, false, nil},
		{"vat_customer_payer", v.Customer.VAT, 0, false, yesNo},
	})
	if err == nil {
		err = v.Seller.Check()
	}
	if err == nil && len(v.Lines) == 0 {
		err = fmt.Errorf("invoice_items is required and empty")
	}
	for i := range v.Lines {
		if err == nil {
			err = v.Lines[i].check(i + 1)
		}
	}
	return err
}

func (l *Line) check(n int) error {
	if err := (field{"item_designation", l.Designation, 500, true, nil}).check(); err != nil {
		return fmt.Errorf("line %d: %w", n, err)
	}
	for _, a := range [][2]string{{"item_quantity", l.Quantity}, {"item_price", l.Price}, {"item_ct", l.Consumption},
		{"item_tl", l.Flat}, {"item_ott_tax", l.OTT}, {"item_tsce_tax", l.TSCE}, {"item_price_nvat", l.Net},
		{"vat", l.VAT}, {"item_price_wvat", l.Gross}, {"item_total_amount", l.Total}} {
		if _, err := strconv.ParseFloat(a[1], 64); err != nil || strings.Trim(a[1], "0123456789.") != "" {
			return fmt.Errorf("line %d: %s must be a number that is not negative", n, a[0])
		}
	}
	return nil
}

func first(fields []field) error {
	for _, f := range fields {
		if err := f.check(); err != nil {
			return err
		}
	}
	return nil
}
