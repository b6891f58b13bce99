package orders

import (
	"context"
	"fmt"
	"strconv"

	"intumwa/billing/ebms"
)

// queue queues an invoice or credit note for the tax office, in the transaction that issues it.
func (s *Store) queue(ctx context.Context, i *Invoice) error {
	if s.opts.EBMS == "" || i.Kind == Receipt {
		return nil
	}
	return ebms.Queue(ctx, s.db, ebms.Queued{Name: i.Name(), RefersTo: i.Corrected(), Issued: i.Issued,
		Identifier: ebms.Identifier(i.Seller.NIF, s.opts.EBMS, i.Issued, i.Name())})
}

// Reported returns what became of documents at the tax office, by their names. One keeps its identifier when no eBMS is
// configured any more.
func (s *Store) Reported(ctx context.Context, names ...string) (map[string]ebms.Report, error) {
	return ebms.Reports(ctx, s.db, names...)
}

// ToReport returns an invoice or credit note as the tax office takes it, but its identifier. The error is an
// [*ebms.Unsendable] if that is impossible.
func (s *Store) ToReport(ctx context.Context, name string) (*ebms.Invoice, error) {
	kind, number, err := ParseName(name)
	if err != nil {
		return nil, err
	}
	i, err := s.Invoice(ctx, kind, number)
	if err != nil {
		return nil, err
	}
	v := &ebms.Invoice{Number: i.Name(), Kind: ebms.Sale, Issued: i.Issued, Payment: payments[i.Way],
		RefersTo: i.Corrected(), Reason: i.Reason, Seller: i.Seller.EBMS(),
		Customer: ebms.Customer{Name: cut(i.Customer.Name), NIF: i.Customer.NIF, Address: cut(i.Customer.Address)}}
	if i.Kind == CreditNote {
		v.Kind = ebms.CreditNote
	}
	of := map[string]Francs{}
	for _, tax := range i.Taxes {
		switch tax.EBMS {
		case "vat", "ct", "tl", "ott", "tsce":
			of[tax.EBMS] += tax.Sum
		default:
			return nil, &ebms.Unsendable{Cause: fmt.Errorf("when it was issued, operator.taxes did not say what the eBMS calls "+
				"the tax %s", tax.Name)}
		}
	}
	net := i.Net + of["ct"] + of["ott"] + of["tsce"]
	gross := net + of["vat"]
	v.Lines = []ebms.Line{{Designation: "Crédits SMS", Quantity: strconv.FormatInt(i.Credits, 10), Price: i.Price.String(),
		Consumption: of["ct"].text(), Flat: of["tl"].text(), OTT: of["ott"].text(), TSCE: of["tsce"].text(),
		Net: net.text(), VAT: of["vat"].text(), Gross: gross.text(), Total: (gross + of["tl"]).text()}}
	return v, nil
}

// text is a sum as the eBMS takes it.
func (f Francs) text() string { return strconv.FormatInt(int64(f), 10) }

// payments are the ways of payments at the eBMS; it has none for mobile money.
var payments = map[string]string{Bank: ebms.Bank, Mobile: ebms.Other, Cash: ebms.Cash}

// cut shortens a text of the customer to the length that the eBMS takes: the printed invoice has the whole.
func cut(text string) string {
	const most = 100
	if all := []rune(text); len(all) > most {
		return string(all[:most-1]) + "…"
	}
	return text
}

// EBMS returns the seller as the tax office takes it.
func (s *Seller) EBMS() ebms.Seller {
	yes := func(is bool) string {
		if is {
			return "1"
		}
		return "0"
	}
	kind := "2"
	if s.Natural {
		kind = "1"
	}
	return ebms.Seller{Type: kind, Name: s.Name, NIF: s.NIF, Trade: s.TradeRegister, Postal: s.PostalNumber,
		Phone: s.Phone, Province: s.Province, Commune: s.Commune, Quarter: s.Quarter, Avenue: s.Avenue, Street: s.Street,
		Number: s.House, VAT: yes(s.VAT), Consumption: yes(s.CT), Flat: yes(s.TL), FiscalCentre: s.FiscalCenter,
		Sector: s.Sector, LegalForm: s.LegalForm}
}
