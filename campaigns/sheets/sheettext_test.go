package sheets

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

// in encodes a text.
func in(e encoding.Encoding, text string) []byte {
	encoded, err := e.NewEncoder().Bytes([]byte(text))
	if err != nil {
		panic(err)
	}
	return encoded
}

// TestEncodings: the accents of a file are read right whatever program wrote it, and the page can say how it was read.
func TestEncodings(t *testing.T) {
	const names = "phone_number;prénom\n79123456;Hélène\n71234567;Zoé\n"
	const capitals = "TELEPHONE;NOM\n79123456;NDAYIZEYE HÉLÈNE\n71234567;BÉATRICE\n"
	const sentence = "phone;texte\n79123456;C’est « déjà » l’été à Bujumbura\n71234567;où ça ? garçon, île, hôtel, " +
		"sûr, Noël\n"
	const start = "phone;nom\n79123456;Éric\n71234567;Évelyne\n"
	wide := func(e unicode.Endianness, b unicode.BOMPolicy) encoding.Encoding { return unicode.UTF16(e, b) }
	for _, test := range []struct {
		source string
		file   []byte
		want   string // text; "": names
		name   string
		sure   bool
	}{
		{"LibreOffice", []byte(names), "", "UTF-8", true},
		{"Excel: CSV UTF-8", []byte("\ufeff" + names), "", "UTF-8", true},
		{"Excel: CSV on Windows", in(charmap.Windows1252, names), "", "Windows-1252", false},
		{"Excel: CSV (Macintosh)", in(charmap.Macintosh, names), "", "MacRoman", false},
		{"Excel: CSV (MS-DOS)", in(charmap.CodePage850, names), "", "CP850", false},
		{"Windows, capitals", in(charmap.Windows1252, capitals), capitals, "Windows-1252", false},
		{"Macintosh, capitals", in(charmap.Macintosh, capitals), capitals, "MacRoman", false},
		{"MS-DOS, capitals", in(charmap.CodePage850, capitals), capitals, "CP850", false},
		{"Windows, sentences", in(charmap.Windows1252, sentence), sentence, "Windows-1252", false},
		{"Macintosh, sentences", in(charmap.Macintosh, sentence), sentence, "MacRoman", false},
		{"Windows, first letters", in(charmap.Windows1252, start), start, "Windows-1252", false},
		{"Macintosh, first letters", in(charmap.Macintosh, start), start, "MacRoman", false},
		{"MS-DOS, first letters", in(charmap.CodePage850, start), start, "CP850", false},
		{"Excel: Unicode text", in(wide(unicode.LittleEndian, unicode.UseBOM), names), "", "UTF-16", true},
		{"UTF-16 without a mark", in(wide(unicode.LittleEndian, unicode.IgnoreBOM), names), "", "UTF-16", true},
		{"big-endian UTF-16 without a mark", in(wide(unicode.BigEndian, unicode.IgnoreBOM), names), "", "UTF-16", true},
		{"only ASCII", []byte("phone\n79123456\n"), "phone\n79123456\n", "UTF-8", true},
		{"MS-DOS: control-Z at the end", append(in(charmap.CodePage850, names), 0x1a), "", "CP850", false},
		{"control-Z and padding", []byte(names + "\x1a\x00\x00\x00"), "", "UTF-8", true},
		{"only carriage returns", []byte(strings.ReplaceAll(names, "\n", "\r")), "", "UTF-8", true},
		{"FileMaker: vertical tabs", []byte("a\vb\n"), "a b\n", "UTF-8", true},
	} {
		got, err := decodeSheet(test.file, "")
		want := test.want
		if want == "" {
			want = names
		}
		if err != nil || got.text != want || got.encoding != test.name || got.sure != test.sure {
			t.Errorf("%s: %s (sure %v) %q, %v", test.source, got.encoding, got.sure, got.text, err)
		}
	}
}

// TestOneBadLine: a line in another encoding does not change the others, and is marked.
func TestOneBadLine(t *testing.T) {
	var file bytes.Buffer
	file.WriteString("phone;prénom\n")
	for i := range 39 {
		fmt.Fprintf(&file, "791234%02d;Hélène %d\n", i, i)
	}
	good := file.String()
	for name, bad := range map[string]string{"Windows-1252": "79123499;H\xe9l\xe8ne\n",
		"a cut character": "79123499;H\xc3\n", "a lone byte": "79123499;\xff\n"} {
		got, err := decodeSheet([]byte(good+bad+"79123498;Zoé\n"), "")
		if err != nil || !strings.HasPrefix(got.text, good) || !strings.HasSuffix(got.text, "Zoé\n") ||
			got.encoding != "UTF-8" || len(got.foreign) != 1 || !got.foreign[41] {
			t.Errorf("%s: %s, foreign %v, %v", name, got.encoding, got.foreign, err)
		}
		rows, err := readAll([]byte(good + bad + "79123498;Zoé\n"))
		for i, row := range rows {
			if row.Foreign != (i == 40) {
				t.Errorf("%s: row %d is foreign: %v, %v", name, i, row.Foreign, err)
			}
		}
	}
	// The other way round: a line in UTF-8 within an old file is UTF-8.
	got, err := decodeSheet([]byte("p;n\n1;H\xe9l\xe8ne\n2;Zo\xe9\n3;Zoé\n"), "")
	if err != nil || got.text != "p;n\n1;Hélène\n2;Zoé\n3;Zoé\n" || got.encoding != "Windows-1252" ||
		len(got.foreign) > 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestChosenEncoding: the user's choice stands above the guess.
func TestChosenEncoding(t *testing.T) {
	file := []byte("p;n\n1;\x8e\xe9\n")
	for want, text := range map[string]string{"MacRoman": "éÈ", "Windows-1252": "Žé", "CP850": "ÄÚ"} {
		if got, err := decodeSheet(file, want); err != nil || !strings.Contains(got.text, text) || !got.sure ||
			got.encoding != want {
			t.Errorf("%s: %+v, %v", want, got, err)
		}
	}
	if got, err := decodeSheet([]byte("n\nZoé\n"), "Windows-1252"); err != nil || got.text != "n\nZoÃ©\n" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := decodeSheet(in(unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), "n\nZoé\n"),
		"UTF-16"); err != nil || got.text != "n\nZoé\n" {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestSheetForms: what spreadsheets write besides the rows does not change them.
func TestSheetForms(t *testing.T) {
	const want = `phone,nom,montant|79123456,Aline,25,5|71234567,Éric,18`
	for _, test := range []struct{ source, file, want string }{
		{"Excel's line about the separator", "sep=;\nphone;nom;montant\n79123456;Aline;25,5\n71234567;Éric;18\n", ""},
		{"the same with a mark, quotes and capitals",
			"\ufeff\"SEP=;\"\r\nphone;nom;montant\r\n79123456;Aline;25,5\r\n71234567;Éric;18\r\n", ""},
		{"the same for tabs", "sep=\t\nphone\tnom\tmontant\n79123456\tAline\t25,5\n71234567\tÉric\t18\n", ""},
		{"the same, as a spreadsheet saves it again", "sep=;;;\nphone;nom;montant\n79123456;Aline;25,5\n71234567;Éric;18\n",
			""},
		{"bars", "phone|nom|montant\n79123456|Aline|25,5\n71234567|Éric|18\n", ""},
		{"decimal commas between semicolons", "phone;nom;montant\n79123456;Aline;25,5\n71234567;Éric;18,0\n",
			"phone,nom,montant|79123456,Aline,25,5|71234567,Éric,18,0"},
		{"commas in the names of columns", "Nom, prénom;Téléphone\nN., Aline;79123456\nM., Éric;71234567\n",
			"Nom, prénom,Téléphone|N., Aline,79123456|M., Éric,71234567"},
		{"empty cells at the end of lines", "phone;nom;montant\n79123456;Aline;25,5;;;\n71234567;Éric;18;\n", ""},
		{"columns that once had something", "phone;nom;montant;;;;\n79123456;Aline;25,5;;;;\n71234567;Éric;18;;;;\n;;;;;;\n",
			""},
		{"a hundred of them", "phone;nom;montant" + strings.Repeat(";", 100) + "\n79123456;Aline;25,5" +
			strings.Repeat(";", 100) + "\n71234567;Éric;18\n", ""},
		{"cells that Excel leaves out at the end", "phone;nom;montant\n79123456;Aline;25,5\n71234567;Éric\n",
			"phone,nom,montant|79123456,Aline,25,5|71234567,Éric"},
		{"no-break and zero width spaces around", "phone;nom;montant\n\u00a079123456\u200b;\ufeffAline " +
			";25,5\n71234567;Éric;18\n", ""},
		{"a title", "Clients de mars, à rappeler\n\nphone;nom;montant\n79123456;Aline;25,5\n71234567;Éric;18\n",
			"Clients de mars, à rappeler|" + want},
		{"a title over merged cells", "Clients;;;\n;;;\nphone;nom;montant\n79123456;Aline;25,5\n71234567;Éric;18\n",
			"Clients|" + want},
		{"blank lines before tabs", "\r\n\t\t\r\nphone\tnom\tmontant\r\n79123456\tAline\t25,5\r\n71234567\tÉric\t18\r\n", ""},
		{"a title and one line", "Clients\nphone;nom\n79123456;Aline\n", "Clients|phone,nom|79123456,Aline"},
		{"Excel's formula of a text",
			"phone;nom;montant\n=\"79123456\";\"=\"\"Aline\"\"\";25,5\n=\"71234567\";=\"Éric\";18\n", ""},
		{"a separator in it", "phone;nom\n79123456;=\"N;A\"\n", "phone,nom|79123456,N;A"},
		{"inches", "phone,produit\n79123456,TV 32\" Samsung\n71234567,TV 40\"\n",
			`phone,produit|79123456,TV 32" Samsung|71234567,TV 40"`},
		{"inches in quotes", "phone,produit\n79123456,\"TV 32\" Samsung\"\n71234567,x\n",
			`phone,produit|79123456,TV 32" Samsung|71234567,x`},
		{"a nickname first", "phone,nom\n79123456,\"Jojo\" Ndayi\n71234567,x\n",
			`phone,nom|79123456,"Jojo" Ndayi|71234567,x`},
		{"blanks around quotes", "phone, nom\n79123456, \"N, A\" \n", "phone,nom|79123456,N, A"},
		{"control-Z", "phone;nom;montant\n79123456;Aline;25,5\n71234567;Éric;18\n\x1a", ""},
		{"a line break within quotes", "phone;nom\n79123456;\"Aline\nN.\"\n71234567;Éric\n",
			"phone,nom|79123456,Aline\nN.|71234567,Éric"},
		{"blank lines first", "\n\n;;\nphone;nom;montant\n79123456;Aline;25,5\n71234567;Éric;18\n", ""},
		{"a name that begins like the line about the separator", "sep=x\n79123456\n", "sep=x|79123456"},
	} {
		rows, err := readAll([]byte(test.file))
		var got []string
		for _, r := range rows {
			got = append(got, strings.Join(r.Cells, ","))
		}
		if test.want == "" {
			test.want = want
		}
		if strings.Join(got, "|") != test.want || err != nil {
			t.Errorf("%s: %q, %v", test.source, strings.Join(got, "|"), err)
		}
	}
}

func TestColumnName(t *testing.T) {
	for name, want := range map[string]string{"Prénom": "prenom", "pre\u0301nom": "prenom",
		" Nom  complet ": "nom_complet", "montant-dû": "montant_du", "N° de Tél.": "n°_de_tel",
		"phone\u00a0number": "phone_number", "l’élève": "l'eleve", "\ufeffphone_number": "phone_number",
		"PHONE NUMBER": "phone_number"} {
		if got := ColumnName(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
