package dashboard

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

// TestCampaignTexts: columns with any name work in the text, and no brace leaves by accident.
func TestCampaignTexts(t *testing.T) {
	w := newWorld(t, nil)
	c, _ := w.merchant("aline", 100)
	const file = "phone_number;prénom;nom complet;montant-dû;n° de dossier\n79000001;Éric;Éric N.;25 000;7/24\n"
	for template, want := range map[string]string{
		"Bonjour {{prénom}}":                          "Bonjour Éric",
		"{{pre\u0301nom}}":                            "Éric",
		"{{nom complet}} doit {{ montant-dû }} FBu":   "Éric N. doit 25 000 FBu",
		"{{Nom Complet}}, {{montant_du}}, {{PRENOM}}": "Éric N., 25 000, Éric",
		"{{n° de dossier}} {{nom\u00a0complet}}":      "7/24 Éric N.",
		"{Murakoze} {{prénom}}":                       "{Murakoze} Éric",
	} {
		a := c.send("/campaigns", "DEMO", template, []byte(file))
		c.wants(a, http.StatusSeeOther)
		c.wants(c.get(a.Header.Get("Location")), http.StatusOK, want, "Ready to send")
	}
	for template, want := range map[string]string{
		"Bonjour {{nom":                     "at “{{nom” (line 1, character 9",
		"Bonjour\n{{prénom} merci":          "at “{{prénom} merci” (line 2, character 1",
		"{{prénom}} {{}}":                   "at “{{}}” (line 1, character 12",
		"{{{prénom}}}":                      "at “{{{prénom}}}”",
		"prénom}}":                          "at “}}”",
		"｛｛prénom｝｝":                        "at “｛｛prénom｝｝”",
		"Bonjour {prénom}":                  "“prénom” is a column, but it is in single braces in the text.",
		"Bonjour ｛Nom complet｝":             "“Nom complet” is a column",
		"Bonjour {{ville}} {{nom-complet}}": "The text uses “ville”, but no column has this name.",
	} {
		c.wants(c.send("/campaigns", "DEMO", template, []byte(file)), http.StatusUnprocessableEntity, want)
	}
	c.wants(c.send("/campaigns", "DEMO", "{{nom}}", []byte("phone;nom;Nom;nom\n79000001;A;B;C\n")),
		http.StatusUnprocessableEntity, "Several columns are named “nom”.")
	a := c.send("/campaigns", "DEMO", "{{nom}}",
		[]byte("phone;nom\n79000001;{{prénom}}\n79000002;#N/A\n79000003;#NOM?\n79000004;Aline\n"))
	c.wants(a, http.StatusSeeOther)
	c.wants(c.get(a.Header.Get("Location")), http.StatusOK,
		"A cell contains braces that would be sent as they are: “{{prénom}}”", "A formula gives the error #N/A instead",
		"#NOM?", "3 lines have errors")
	w.counts(0, `select count(*) from messages`)
}

// TestCampaignBlanks: the page warns of messages with an empty cell, counts them, and lets the user send or remove
// them.
func TestCampaignBlanks(t *testing.T) {
	w := newWorld(t, nil)
	c, _ := w.merchant("aline", 100)
	const file = "phone;prénom;ville;note\n79000001;Aline;Gitega;\n79000002;;Ngozi;x\n79000003;\u00a0;\t;x\n"
	draft := func(template string) string {
		a := c.send("/campaigns", "DEMO", template, []byte(file))
		c.wants(a, http.StatusSeeOther)
		return a.Header.Get("Location")
	}
	if a := c.get(draft("Bonjour {{note}} à tous")); !strings.Contains(a.body, "1 message has an empty cell") {
		t.Error("one empty cell is not counted")
	}
	if a := c.get(draft("Bonjour")); strings.Contains(a.body, "empty cell") {
		t.Error("a cell that the text does not use counts")
	}
	path := draft("Bonjour {{prénom}}, {{ville}}")
	c.wants(c.get(path), http.StatusOK, "2 messages have an empty cell", "prénom, ville", "Bonjour ,", "Ready to send",
		"Send 3 messages")
	c.wants(c.get(path+"/lines.csv"), http.StatusOK, "3,25779000002,Empty cell: prénom\r\n4,25779000003,\"Empty cell: "+
		"prénom, ville\"\r\n")
	c.wants(c.post(path+"/without", "what", "blank"), http.StatusSeeOther)
	if a := c.get(path); strings.Contains(a.body, "empty cell") || !strings.Contains(a.body, "Send 1 message") {
		t.Errorf("without them:\n%s", a.body)
	}
	c.wants(c.post(draft("Bonjour {{prénom}}")+"/send"), http.StatusSeeOther)
	w.counts(3, `select count(*) from messages`)
}

// TestCampaignNumbers: the page says what is wrong with a number, and whose number it is not.
func TestCampaignNumbers(t *testing.T) {
	w := newWorld(t, nil)
	c, _ := w.merchant("aline", 100)
	a := c.send("/campaigns", "DEMO", "Bonjour", []byte("phone;nom\n\u202a+257 79 00 00 "+
		"01\u202c;A\n79\u00a000\u00a000\u00a002;B\n'79000003;C\n\"=\"\"79000004\"\"\";D\n79.00.00.05;E\n7900000.0;F\n2,"+
		"5779E+10;G\n79000001 / 79000002;H\n;I\n079000006;J\n"))
	c.wants(a, http.StatusSeeOther)
	c.wants(c.get(a.Header.Get("Location")), http.StatusOK, "5 lines have errors", "&#43;25779000001", "&#43;25779000005",
		"is a decimal number", "the spreadsheet has shortened this number", "has more than one number",
		"The phone number is missing.", "has a 0 too many")
}

// TestCampaignFiles: the page says how it read a file, and previews its accents.
func TestCampaignFiles(t *testing.T) {
	w := newWorld(t, nil)
	c, _ := w.merchant("aline", 100)
	many := strings.Builder{}
	many.WriteString("Nom;Contact\n")
	for range 20 {
		many.WriteString("Jean;79000001\n")
	}
	many.WriteString("Hélène;79000002\nZoé;79000003\nÉric;79000004\nRené;79000005\n")
	old, err := charmap.Macintosh.NewEncoder().String(many.String())
	if err != nil {
		t.Fatal(err)
	}
	a := c.send("/campaigns", "DEMO", "Bonjour {{Nom}}", []byte(old))
	c.wants(a, http.StatusSeeOther)
	c.wants(c.get(a.Header.Get("Location")), http.StatusOK, "read as MacRoman", "Bonjour Hélène", "Bonjour Zoé",
		"Bonjour Éric", "Bonjour Jean", "Contact", "?again=1")
	c.wants(c.get("/campaigns?again=1"), http.StatusOK, "<details open>", "CP850")

	mixed := "sep=;\nphone;nom\n" + strings.Repeat("79000001;Hélène\n", 39) + "79000002;H\xe9l\xe8ne\n\x1a"
	a = c.send("/campaigns", "DEMO", "Bonjour {{nom}}", []byte(mixed))
	c.wants(a, http.StatusSeeOther)
	page := c.get(a.Header.Get("Location"))
	c.wants(page, http.StatusOK, "Bonjour Hélène", "1 line has an error", "the same encoding as the rest", "UTF-8")
	if strings.Contains(page.body, "HÃ") {
		t.Error("one line changed the encoding of the others")
	}
	upload := func(file string, values url.Values) answer {
		values.Set("sender", "DEMO")
		values.Set("template", "Bonjour {{nom}}")
		return c.upload("/campaigns", values, file)
	}
	a = upload("phone;nom\n79000001;\x8eric\n", url.Values{"encoding": {"CP850"}})
	c.wants(c.get(a.Header.Get("Location")), http.StatusOK, "Bonjour Äric", "CP850")
	c.wants(upload("phone;nom\n79000001;A\n", url.Values{"encoding": {"EBCDIC"}}), http.StatusUnprocessableEntity,
		"Choose one of the encodings.")

	// The column of the numbers.
	const two = "nom;Contact 1;Contact 2\nAline;79000001;79000002\n"
	c.wants(upload(two, url.Values{}), http.StatusUnprocessableEntity,
		"Both “Contact 1” and “Contact 2” have phone numbers.", "<details open>")
	a = upload(two, url.Values{"numbers": {"contact 2"}})
	c.wants(c.get(a.Header.Get("Location")), http.StatusOK, "&#43;25779000002", "Contact 2")
	c.wants(upload(two, url.Values{"numbers": {"mobile"}}), http.StatusUnprocessableEntity, "No column is named “mobile”.")
	c.wants(upload("nom;ville\nAline;Gitega\n", url.Values{}), http.StatusUnprocessableEntity,
		"No column has phone numbers of Burundi.")
	for file, want := range map[string]string{
		"numéro;nom;portable\n1;Aline;79000001\n2;Éric;79000002\n":            "&#43;25779000002", // the lines are numbered
		"nom;A joindre au\nAline;pas de numéro\nÉric;79 00 00 02\n":           "&#43;25779000002",
		"Clients de mai;;\n\nnom;tél;\nAline;79000002;\n":                     "&#43;25779000002", // a title
		"nom;date;appel\nAline;12/05/2026;79000002\nÉric;13/05/2026;2.5E10\n": "shortened this number",
	} {
		a = upload(file, url.Values{})
		c.wants(a, http.StatusSeeOther)
		c.wants(c.get(a.Header.Get("Location")), http.StatusOK, want)
	}

	// A workbook.
	book := string(newBook(t, func(f *excelize.File) {
		for cell, value := range map[string]any{"A1": "Téléphone", "B1": "nom", "A2": 25779000001, "B2": "Éric",
			"A3": 79000002.5, "B3": "Zoé", "A4": 79000003, "B4": "Ange"} {
			_ = f.SetCellValue("Sheet1", cell, value)
		}
		id, _ := f.NewStyle(&excelize.Style{NumFmt: 11})
		_ = f.SetCellStyle("Sheet1", "A2", "A2", id)
	}))
	a = upload(book, url.Values{})
	c.wants(a, http.StatusSeeOther)
	c.wants(c.get(a.Header.Get("Location")), http.StatusOK, "&#43;25779000001", "Bonjour Éric", "&#43;25779000003",
		"is a decimal number", "Sheet1", "Téléphone")
	c.wants(upload(book[:len(book)/2], url.Values{}), http.StatusUnprocessableEntity, "This file is damaged.")
}

// newBook returns a workbook as Excel writes it.
func newBook(t *testing.T, fill func(f *excelize.File)) []byte {
	t.Helper()
	f := excelize.NewFile()
	fill(f)
	var out bytes.Buffer
	if err := f.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// wideText encodes a text in UTF-16 with a byte order mark, like Excel.
func wideText(t *testing.T, text string) []byte {
	t.Helper()
	wide, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().Bytes([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return wide
}
