package orders

import (
	"slices"
	"strconv"
	"time"

	"intumwa/sms"
	"intumwa/texts"
)

// CSV returns documents as rows for a bookkeeper's spreadsheet, the heads first: a column for each tax that one of them
// has, with credit notes as negative sums.
func CSV(all []Invoice) [][]string {
	var taxes []string
	for i := range all {
		for _, t := range all[i].Taxes {
			if !slices.Contains(taxes, t.Name) {
				taxes = append(taxes, t.Name)
			}
		}
	}
	heads := []string{"number", "kind", "date", "company", "customer", "nif", "order", "refers_to", "credits", "price",
		"net"}
	for _, name := range taxes {
		heads = append(heads, texts.Cell(name))
	}
	rows := [][]string{append(heads, "total", "paid", "way", "reason")}
	for i := range all {
		of := &all[i]
		sign := int64(1)
		if of.Kind == CreditNote {
			sign = -1
		}
		number := func(n int64) string { return strconv.FormatInt(sign*n, 10) }
		row := []string{of.Name(), string(of.Kind), of.Issued.In(sms.Burundi).Format(time.DateOnly),
			strconv.FormatInt(of.Company, 10), texts.Cell(of.Customer.Name), texts.Cell(of.Customer.NIF),
			strconv.FormatInt(of.Order, 10),
			of.Corrected(), number(of.Credits), of.Price.String(), number(int64(of.Net))}
		for _, name := range taxes {
			sum := Francs(0)
			for _, t := range of.Taxes {
				if t.Name == name {
					sum += t.Sum
				}
			}
			row = append(row, number(int64(sum)))
		}
		rows = append(rows, append(row, number(int64(of.Total)), number(int64(of.Paid)), of.Way, texts.Cell(of.Reason)))
	}
	return rows
}
