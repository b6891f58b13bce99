package sheets

import (
	"slices"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"
	"golang.org/x/text/encoding/unicode"

	"intumwa/sms"
	"intumwa/texts"
)

// TestHabitsOfFiles: files as people have them, with the column of the numbers and the numbers that are read, or the
// reason of the refusal.
func TestHabitsOfFiles(t *testing.T) {
	texts, err := texts.Load()
	if err != nil {
		t.Fatal(err)
	}
	english, _ := texts.ByTag("en")
	const both = "+25779123456 +25771234567"
	book := func(fill func(f *excelize.File)) string { return string(newBook(t, fill)) }
	for habit, test := range map[string]struct{ file, template, column, numbers string }{
		"Excel, semicolons, Windows-1252": {"T\xe9l\xe9phone;Pr\xe9nom\r\n79123456;H\xe9l\xe8ne\r\n71234567;Zo\xe9\r\n", "",
			"Téléphone", both},
		"Excel, Unicode text": {string(
			wideText("phone\tnom\r\n79123456\tHélène\r\n71234567\tZoé\r\n", unicode.LittleEndian)), "", "phone", both},
		"LibreOffice, all quoted": {"\"phone\",\"nom\"\n\"79123456\",\"N., A\"\n\"71234567\",\"Zoé\"\n", "{{nom}}",
			"phone", both},
		"a program's decimals":          {"phone,nom\n79123456.0,A\n25771234567.0,B\n", "", "phone", both},
		"a decimal that is no number":   {"phone,nom\n79123456,A\n7912340.0,B\n", "", "phone", "+25779123456 -"},
		"+257 and blanks":               {"phone;nom\n+257 79 12 34 56;A\n(257) 71-23-45-67;B\n", "", "phone", both},
		"two columns, one has the name": {"Nom;Tel;Tel 2\nA;79123456;79000001\nB;71234567;79000002\n", "", "Tel", both},
		"two columns, none has": {"Nom;Maison;Bureau\nA;79123456;79000001\nB;71234567;79000002\n", "",
			"Both “Maison” and “Bureau” have phone numbers. Enter below the name of the column to use.", ""},
		"an id beside":           {"N°;Contact\n1;79123456\n2;71234567\n", "", "Contact", both},
		"a bare list":            {"79123456\n71234567\n", "", "A", both},
		"a bare list with names": {"Aline;79123456\nÉric;71234567\n", "", "B", both},
		"a bare list for a template": {"Aline;79123456\nÉric;71234567\n", "Bonjour {{nom}}",
			"The first line must contain the column names, such as phone_number.", ""},
		"the header on line 3": {"Clients, mars\n\nphone;nom\n79123456;A\n71234567;B\n", "{{nom}}", "phone", both},
		"Excel's texts":        {"phone;nom\n=\"79123456\";=\"A\"\n'71234567;B\n", "{{nom}}", "phone", both},
		"inches": {"phone,produit\n79123456,TV 32\" LG\n71234567,TV 40\"\n", "{{produit}}", "phone",
			both},
		"sep=":       {"sep=;\nphone;nom\n79123456;A\n71234567;B\n", "", "phone", both},
		"scientific": {"phone;nom\n2,57791E+10;A\n71234567;B\n", "", "phone", "- +25771234567"},
		"merged titles, the header on line 3, floats, a hidden sheet first, remarks beside": {book(func(f *excelize.File) {
			_, _ = f.NewSheet("Clients")
			_ = f.SetCellValue("Sheet1", "A1", "79000009")
			for cell, value := range map[string]any{"A1": "Relevé des clients", "A3": "Nom", "B3": "Téléphone", "A4": "Aline",
				"B4": 79123456.0, "A5": "Éric", "B5": 25771234567.0, "E5": "rappeler"} {
				_ = f.SetCellValue("Clients", cell, value)
			}
			_ = f.MergeCell("Clients", "A1", "D1")
			f.SetActiveSheet(1)
			_ = f.SetSheetVisible("Sheet1", false)
		}), "{{nom}}", "Téléphone", both},
		"formulas with results": {
			string(
				packedBook(
					t,
					sheetParts(
						`<sheetData><row r="1"><c r="A1" t="str"><f>"pho"&amp;"ne"</f><v>phone</v></c></row><row r="2"><c `+
							`r="A2"><f>79123455+1</f><v>79123456</v></c></row>
			<row r="3"><c r="A3" t="str"><f>"+257"&amp;"71234567"</f><v>+25771234567</v></c></row></sheetData>`, ""))), "",
			"phone", both},
		"control characters in cells": {book(func(f *excelize.File) {
			for cell, value := range map[string]any{"A1": "pho_x0000_ne", "A2": "_x0000_79123456", "A3": "71234_x001B_567"} {
				_ = f.SetCellValue("Sheet1", cell, value)
			}
		}), "", "phone", both},
		"empty columns at the end": {"phone;nom;;;\n79123456;A;;;\n71234567;B;;;\n;;;;\n", "", "phone", both},
	} {
		names := sms.ParseColumns(test.template).Names()
		r, wrong := Open(english, sms.NewPlan("6", "7"), []byte(test.file), Reading{}, names, 1000)
		if len(wrong) > 0 {
			if len(wrong) > 1 || wrong[0].Text != test.column {
				t.Errorf("%s: %v", habit, wrong)
			}
			continue
		}
		var numbers []string
		for row, err := r.Next(); err == nil; row, err = r.Next() {
			number, wrong := r.Number(&row)
			if wrong != "" {
				number = "-"
			}
			numbers = append(numbers, string(number))
		}
		if got := r.Head.Cells[r.Numbers]; got != test.column || !slices.Equal(numbers, strings.Fields(test.numbers)) {
			t.Errorf("%s: %s %v", habit, got, numbers)
		}
	}
}
