package sms_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"intumwa/sms"
)

// values returns a map of variables; the text "null" becomes a null.
func values(pairs ...string) map[string]*string {
	m := make(map[string]*string)
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = &pairs[i+1]
		if pairs[i+1] == "null" {
			m[pairs[i]] = nil
		}
	}
	return m
}

func TestRender(t *testing.T) {
	vars := values("prénom", "Éric", "pre\u0301nom", "Aline", "имя", "И", "名前", "名", "اسم", "ا", "_é9", "1", "é_9", "2",
		"a", "1", "b", "{{a}}", "_x9", "é", "n", "null", "e", "")
	for text, want := range map[string]string{
		"":                                   "",
		"Muraho":                             "Muraho",
		"{{a}}":                              "1",
		"{{ a }}{{a}} {{\t\u00a0\u2003a\n}}": "11 1",
		"<{{n}}|{{e}}>":                      "<|>",
		"{{b}}":                              "{{a}}", // values are not rendered
		"{{{a}}}":                            "{1}",
		"{{{{a}}}}":                          "{{1}}",
		"{{_x9}}":                            "é",
		"{{9x}} {{a b}} {{a-b}} {{}} {{ }}":  "{{9x}} {{a b}} {{a-b}} {{}} {{ }}",
		"{{prénom}} {{ prénom }}":            "Éric Éric",
		"{{pre\u0301nom}}":                   "Aline", // its own name here; the API compares names in NFC
		"{{имя}} {{名前}} {{اسم}}":             "И 名 ا",
		"{{_é9}}{{é_9}}":                     "12",
		"{{\u0301a}} {{é-è}} {{a\u200b}} {{９}}": "{{\u0301a}} {{é-è}} {{a\u200b}} {{９}}",
		"｛｛a｝｝ {a} {{a} }":                      "｛｛a｝｝ {a} {{a} }",
		"{{a} {a}} {{ {{a}}":                    "{{a} {a}} {{ 1",
		"{{a":                                   "{{a",
		"{{\u200ba}}":                           "{{\u200ba}}", // not White_Space
		"{{a}}}} {{":                            "1}} {{",
		"{{e}}{{n}}":                            "",
		"{{A}}":                                 "", // missing: callers check Missing first
		"\xff{{a}}\xff":                         "\xff1\xff",
	} {
		if got := sms.ParseTemplate(text).Render(vars); got != want {
			t.Errorf("%q renders as %q, want %q", text, got, want)
		}
	}
}

func TestNamesAndMissing(t *testing.T) {
	tmpl := sms.ParseTemplate("{{b}} {{ a }} {{b}} {{C}} {{c}}")
	if got := tmpl.Names(); !slices.Equal(got, []string{"b", "a", "C", "c"}) {
		t.Errorf("Names() = %q", got)
	}
	if got := tmpl.Missing(values("a", "", "C", "null", "extra", "x")); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("Missing() = %q", got)
	}
	if got := tmpl.Missing(nil); len(got) != 4 {
		t.Errorf("Missing(nil) = %q", got)
	}
	if got := tmpl.Missing(values("a", "", "b", "", "c", "", "C", "")); got != nil {
		t.Errorf("Missing with all = %q", got)
	}
}

// TestColumns: in a campaign a column's name stands in the braces as it is, and no other double brace is left.
func TestColumns(t *testing.T) {
	vars := values("nom complet", "Aline N.", "montant-dû", "5", "n° de tél.", "79", "a", "1", "9x", "9")
	for text, want := range map[string]string{
		"{{nom complet}}, {{ montant-dû }}": "Aline N., 5",
		"{{\u00a0nom complet\u202f}}":       "Aline N.",
		"{{n° de tél.}} {{9x}}":             "79 9",
		"{{a}}{{a}} } {":                    "11 } {",
		"{a} ｛a｝ [a] <a>":                   "{a} ｛a｝ [a] <a>",
	} {
		tmpl := sms.ParseColumns(text)
		if got := tmpl.Render(vars); got != want || len(tmpl.Missing(vars)) > 0 {
			t.Errorf("%q renders as %q, want %q; missing %q", text, got, want, tmpl.Missing(vars))
		}
		if near, _, _, found := sms.FirstBrace(text); found {
			t.Errorf("%q has a brace at %q", text, near)
		}
	}
	for text, want := range map[string]struct {
		near         string
		line, column int
	}{
		"Bonjour {{nom":                {"{{nom", 1, 9},
		"Bonjour {{nom} merci":         {"{{nom} merci", 1, 9},
		"é\r\nÀ bientôt {{nom\n}":      {"{{nom", 2, 11},
		"{{a}} {{}}":                   {"{{}}", 1, 7},
		"{{ \n }}":                     {"{{", 1, 1},
		"{{{a}}}":                      {"{{{a}}}", 1, 1},
		"{{a}}}":                       {"{{a}}}", 1, 1},
		"{{a}} b}}":                    {"}}", 1, 8},
		"{{a {{b}}":                    {"{{a {{b}}", 1, 1},
		"{{a} }":                       {"{{a} }", 1, 1},
		"｛｛a｝｝":                        {"｛｛a｝｝", 1, 1},
		"a｝｝":                          {"｝｝", 1, 2},
		"{{" + strings.Repeat("x", 99): {"{{" + strings.Repeat("x", 18), 1, 1},
	} {
		near, line, column, found := sms.FirstBrace(text)
		if !found || near != want.near || line != want.line || column != want.column {
			t.Errorf("%q: %q at %d:%d, %v; want %+v", text, near, line, column, found, want)
		}
	}
}

// grammar is rule api 4.3 as a regular expression; its classes list Unicode White_Space.
var grammar = regexp.MustCompile(
	`\{\{[\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}]*([\p{L}_][\p{L}\p{M}\p{Nd}_]*)[\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}]*\}\}`)

// checkTemplate compares a template with the regular expression.
func checkTemplate(t testing.TB, text string) {
	t.Helper()
	tmpl := sms.ParseTemplate(text)
	vars := make(map[string]*string)
	var names []string
	want := grammar.ReplaceAllStringFunc(text, func(match string) string {
		name := grammar.FindStringSubmatch(match)[1]
		if !slices.Contains(names, name) {
			names = append(names, name)
			value := "<{{" + name + "}}>"
			vars[name] = &value
		}
		return "<{{" + name + "}}>"
	})
	if got := tmpl.Names(); !slices.Equal(got, names) {
		t.Fatalf("%q has the names %q, want %q", text, got, names)
	}
	if got := tmpl.Missing(nil); !slices.Equal(got, names) {
		t.Fatalf("%q misses %q, want %q", text, got, names)
	}
	if got := tmpl.Render(vars); got != want {
		t.Fatalf("%q renders as %q, want %q", text, got, want)
	}
}

func TestTemplateGrammar(t *testing.T) {
	pieces := rapid.SampledFrom([]string{"{", "{{", "}", "}}", "a", "_b1", "9", " ", "\u00a0", "\n", "é", "\u0301", "٣",
		"😀", "{{a}}", "{{ b }}"})
	rapid.Check(t, func(rt *rapid.T) {
		checkTemplate(t, strings.Join(rapid.SliceOfN(pieces, 0, 40).Draw(rt, "pieces"), ""))
	})
}

// TestHostileTemplates runs inputs that would show quadratic time.
func TestHostileTemplates(t *testing.T) {
	const n = 1 << 18
	for _, text := range []string{
		strings.Repeat("{", n),
		strings.Repeat("{{ ", n),
		strings.Repeat("{{a", n),
		"{{" + strings.Repeat(" ", n),
		"{{" + strings.Repeat("a", n) + strings.Repeat("{{", n),
		strings.Repeat("{{a }", n),
	} {
		start := time.Now()
		if _, _, _, found := sms.FirstBrace(text); !found || len(sms.ParseColumns(text).Names()) > 0 &&
			!strings.Contains(text, "}}") {
			t.Errorf("%.20q... has no brace, or a column", text)
		}
		if got := sms.ParseTemplate(text); len(got.Names()) != 0 {
			t.Errorf("%.20q... has names", text)
		}
		if spent := time.Since(start); spent > 15*time.Second {
			t.Errorf("%.20q... took %v", text, spent)
		}
	}
}

func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{"", "Muraho {{name}}, {{ code }}", "{{{a}}}", "{{a} {{", "{{\u2003_a9\u0085}}",
		"\xff{{a}}", strings.Repeat("{", 600)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) { checkTemplate(t, text) })
}

func BenchmarkRender(b *testing.B) {
	tmpl := sms.ParseTemplate("Muraho {{name}}, kode yawe ni {{ code }}. Izorangira {{date}}. Murakoze, {{name}}.")
	vars := values("name", "Ange Niyonzima", "code", "123456", "date", "2026-11-20")
	b.ReportAllocs()
	for b.Loop() {
		tmpl.Render(vars)
	}
}

func BenchmarkParseTemplate(b *testing.B) {
	text := strings.Repeat("Muraho {{name}}, {{ code }}. ", 20)
	b.ReportAllocs()
	for b.Loop() {
		sms.ParseTemplate(text)
	}
}
