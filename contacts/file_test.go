package contacts_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xuri/excelize/v2"

	"intumwa/contacts"
)

// TestFiles: a file that was written can be imported again and gives the same contacts, and no text in it is a formula.
func TestFiles(t *testing.T) {
	d := newImporting(t)
	class3, choir := d.group(1, "Classe 3/A"), d.group(1, "Chorale")
	full := entry("+25779000001", "Aline <N> & \"fils\"", class3, choir)
	full.Language, full.Fields = new("rn"), map[string]*string{"solde": new("25 000"), "formule": new("=1+1"),
		"dette": new("-500"), "mot": new("a;-b"), "guillemet": new("'-x")}
	full.Consent = &contacts.Consent{Source: "form", At: time.Date(2026, 9, 1, 8, 0, 0, 0, time.UTC)}
	d.put(1, full, entry("+25779000002", "", choir), entry("+25779000003", "-Éric"))
	d.put(2, entry("+25779000004", "another's"))
	list := func(company int64) (shownAll []string) {
		page, _, err := d.Store.List(t.Context(), company, contacts.Filter{Number: "+"}, "", 100)
		d.must(err)
		for _, c := range page {
			shownAll = append(shownAll, shown(c))
		}
		return shownAll
	}
	before := list(1)
	for i, format := range contacts.Formats {
		var file bytes.Buffer
		if n, err := d.Write(t.Context(), &file, d.lang, 1, 0, format); n != 3 || err != nil {
			t.Fatal(format, n, err)
		}
		company := int64(10 + i)
		x := d.check(contacts.File{Company: company, Name: "x." + format, Content: file.Bytes()})
		if done := d.merge(x); counts(done) != "3 new, 0 changed, 0 unchanged, 0 refused, 0 repeated" {
			t.Errorf("%s: %s", format, counts(done))
		}
		got := list(company)
		for i := range got {
			if a, b := strings.Split(got[i], ","), strings.Split(before[i], ","); !slices.Equal(slices.Sorted(
				slices.Values(a)), slices.Sorted(slices.Values(b))) {
				t.Errorf("%s: %q, not %q", format, got[i], before[i])
			}
		}
		switch format {
		case contacts.CSV:
			if !strings.Contains(file.String(), "\n25779000001,") || !strings.Contains(file.String(), ",'=1+1") ||
				!strings.Contains(file.String(), "2026-09-01 10:00:00") {
				t.Error(file.String())
			}
		case contacts.XLSX:
			book, err := excelize.OpenReader(&file)
			d.must(err)
			if formula, err := book.GetCellFormula("Contacts", "G2"); formula != "" || err != nil {
				t.Error(formula, err)
			}
			if value, err := book.GetCellValue("Contacts", "B2"); value != *full.Name || err != nil {
				t.Error(value, err)
			}
		}
	}
	var file bytes.Buffer
	if n, err := d.Write(t.Context(), &file, d.lang, 1, choir, contacts.CSV); n != 2 || err != nil {
		t.Error(n, err)
	}
	in := full
	for i := range 400 {
		in.Groups = append(in.Groups, d.group(3, fmt.Sprintf("%099d", i)))
	}
	in.Groups = in.Groups[2:]
	d.put(3, in)
	file.Reset()
	_, err := d.Write(t.Context(), &file, d.lang, 3, 0, contacts.XLSX)
	d.must(err)
	book, err := excelize.OpenReader(&file)
	d.must(err)
	if groups, err := book.GetCellValue("Contacts", "D2"); err != nil || len(groups) != 323*101+99 {
		t.Errorf("a cell of %d characters, %v", len(groups), err)
	}
}
