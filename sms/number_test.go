package sms_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nyaruka/phonenumbers"
	"pgregory.net/rapid"

	"intumwa/sms"
)

func TestParseForms(t *testing.T) {
	plan := sms.NewPlan()
	for _, tc := range []struct {
		in string
		ok bool
	}{
		{"+25779123456", true},
		{"25779123456", true},
		{"0025779123456", true},
		{"79123456", true},
		{"+257 79 12 34 56", true},
		{"(+257) 79-12.34.56", true},
		{" +257 79123456 ", true},
		{"+ 257 79123456", true},
		{"00 257 (79) 123456", true},
		{"7.9.1.2.3.4.5.6", true},

		{"", false},
		{"+", false},
		{"   ", false},
		{"079123456", false},
		{"7912345", false},
		{"791234567", false},
		{"+79123456", false},
		{"++25779123456", false},
		{"+257+79123456", false},
		{"2+5779123456", false},
		{"+0025779123456", false},
		{"+25679123456", false},
		{"0125779123456", false},
		{"79123456x3", false},
		{"79123456;ext=3", false},
		{"+257 79 ABC DEF", false},
		{"79\t123456", false},
		{"79123456\n", false},
		{"٧٩١٢٣٤٥٦", false},
		{"７９１２３４５６", false},
		{"79123456\xff", false},
		{"22123456", false},
		{"31123456", false},
		{strings.Repeat("7", 1<<16), false},
	} {
		got, ok := plan.Parse(tc.in)
		if ok != tc.ok || (ok && got != "+25779123456") {
			t.Errorf("Parse(%.40q) = %q, %v; want ok %v", tc.in, got, ok, tc.ok)
		}
	}
}

// TestPeoplesForms: what programs and people make of a number that stays the same number.
func TestPeoplesForms(t *testing.T) {
	plan := sms.NewPlan()
	for _, tc := range []struct{ source, in string }{
		{"iOS contacts: LRM and embedding marks", "\u202a+257 79 12 34 56\u202c"},
		{"WhatsApp", "\u200e+257\u00a079\u00a012\u00a034\u00a056\u200e"},
		{"isolates", "\u2068+25779123456\u2069"},
		{"a byte order mark at the start of a file", "\ufeff79123456"},
		{"zero width space, joiner, word joiner", "79\u200b12\u200d34\u206056"},
		{"soft hyphen of a web page", "79\u00ad12\u00ad34\u00ad56"},
		{"Arabic letter mark", "\u061c+25779123456"},
		{"only marks within", "+\u200e2\u200e5\u200e7\u200e7\u200e9\u200e1\u200e2\u200e3\u200e4\u200e5\u200e6"},
		{"French thousands of a spreadsheet", "79\u202f123\u202f456"},
		{"figure and ideographic spaces", "79\u2007123\u3000456"},
		{"non-breaking hyphen", "79\u201112\u201134\u201156"},
		{"en dash", "79\u201312\u201334\u201356"},
		{"minus sign", "79\u221212\u221234\u221256"},
		{"full-width hyphen", "79\uff0d12\uff0d34\uff0d56"},
		{"Excel: a number kept as text", "'79123456"},
		{"Excel: the same through a word processor", "\u201979123456"},
		{"a formula that keeps a number as text", `="79123456"`},
		{"the same, with a plus", `="+257 79 12 34 56"`},
		{"quotes that a CSV quoted twice", `"79123456"`},
		{"RFC 3966", "tel:+257-79-12-34-56"},
		{"RFC 3966 in capitals", "TEL:+25779123456"},
		{"dots between groups", "79.12.34.56"},
		{"dots between three groups", "79.123.456"},
		{"dots behind the country code", "+257.79.12.34.56"},
		{"one dot behind the country code", "+257.79123456"},
		{"the same without a plus", "257.79123456"},
		{"the same with 00", "00257.79123456"},
		{"dots of thousands", "25.779.123.456"},
		{"dots and spaces", "79. 12. 34. 56"},
		{"other separators and one dot", "00257 79-12.34(56)"},
		{"pairs with one dot", "79 12 34.56"},
	} {
		if got, ok := plan.Parse(tc.in); !ok || got != "+25779123456" {
			t.Errorf("%s: Parse(%q) = %q, %v", tc.source, tc.in, got, ok)
		}
	}
}

// TestNumberFaults: texts from which a spreadsheet took a number's digits, and others that look like a number, never
// become one. The fault tells why.
func TestNumberFaults(t *testing.T) {
	plan := sms.NewPlan()
	for _, tc := range []struct {
		source, in string
		want       sms.NumberFault
	}{
		{"a decimal that has eight digits", "7912340.0", sms.NumberDecimal},
		{"with its country code", "2577912340.0", sms.NumberDecimal},
		{"pandas: a column of floats", "79123456.0", sms.NumberDecimal},
		{"the same with a country code", "25779123456.0", sms.NumberDecimal},
		{"two decimals", "791234.00", sms.NumberDecimal},
		{"two decimals behind a space", "+257 791234.00", sms.NumberDecimal},
		{"two decimals of thousands with a country code", "257\u202f791\u202f234.00", sms.NumberDecimal},
		{"thousands and two decimals", "791\u202f234.00", sms.NumberDecimal},
		{"a decimal comma", "79123456,0", sms.NumberDecimal},
		{"six decimals", "79.123456", sms.NumberDecimal},
		{"a last group of one digit", "7.912.345.6", sms.NumberDecimal},
		{"a quoted decimal", `="7912340.0"`, sms.NumberDecimal},
		{"a marked decimal", "\u200e7912340\u200e.0", sms.NumberDecimal},
		{"Excel, 11 digits in a narrow column", "2.5779E+10", sms.NumberScientific},
		{"with a decimal comma", "2,5779E+10", sms.NumberScientific},
		{"small letter, no plus", "2.57791e10", sms.NumberScientific},
		{"all digits", "2.5779123456E+10", sms.NumberScientific},
		{"no point", "3E+10", sms.NumberScientific},
		{"eight digits", "7,91E+07", sms.NumberScientific},
		{"two numbers", "79123456 / 71123456", sms.NumberSeveral},
		{"two numbers, a comma", "79123456, 71123456", sms.NumberSeveral},
		{"two numbers, a line", "79123456\n71123456", sms.NumberSeveral},
		{"two numbers, nothing but a space", "79123456 71123456", sms.NumberSeveral},
		{"two numbers, a word", "79123456 ou +257 71 12 34 56", sms.NumberSeveral},
		{"three numbers", "79123456;71123456;61123456", sms.NumberSeveral},
		{"a trunk prefix in brackets", "+257 (0)79 12 34 56", sms.NumberTrunk},
		{"a trunk prefix", "079123456", sms.NumberTrunk},
		{"a trunk prefix behind the country code", "257079123456", sms.NumberTrunk},
		{"seven digits", "7912345", sms.NumberOther},
		{"a date", "12/05/2026", sms.NumberOther},
		{"a name", "Aline", sms.NumberOther},
		{"empty", "", sms.NumberOther},
		{"a dot at the end", "79123456.", sms.NumberOther},
		{"a dot at the start", ".79123456", sms.NumberOther},
		{"two dots together", "79..123456", sms.NumberOther},
		{"a formula", "=79123456", sms.NumberOther},
		{"half a formula", `="79123456`, sms.NumberOther},
		{"only a quote", "'", sms.NumberOther},
		{"a slash", "79/123456", sms.NumberOther},
		{"RFC 3966 with a parameter", "tel:+25779123456;ext=3", sms.NumberOther},
		{"an error of a formula", "#REF!", sms.NumberOther},
		{"other digits", "٧٩١٢٣٤٥٦", sms.NumberOther},
		{"a full-width plus", "\uff0b25779123456", sms.NumberOther},
		{"a tab within", "79\t123456", sms.NumberOther},
		{"a fixed line", "22123456", sms.NumberOther},
		{"a neighbour's country", "+250 788 123 456", sms.NumberOther},
	} {
		if got, ok := plan.Parse(tc.in); ok {
			t.Errorf("%s: Parse(%q) = %q", tc.source, tc.in, got)
		}
		if got := plan.Fault(tc.in); got != tc.want {
			t.Errorf("%s: Fault(%q) = %d, want %d", tc.source, tc.in, got, tc.want)
		}
	}
}

func TestNumberParts(t *testing.T) {
	n := sms.Number("+25779123456")
	for what, pair := range map[string][2]string{
		"National":     {n.National(), "79123456"},
		"Digits":       {n.Digits(), "25779123456"},
		"Masked":       {n.Masked(), "+25779****56"},
		"Country":      {n.Country(), "BI"},
		"Obscured":     {n.Obscured(), "+2577XXXXX56"},
		"bad obscured": {sms.Number("79123456").Obscured(), "X"},
		"bad mask":     {sms.Number("79123456").Masked(), "****"},
		"bad part":     {sms.Number("x").National() + sms.Number("").Digits(), ""},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s = %q, want %q", what, pair[0], pair[1])
		}
	}
}

func TestCarrierPrefixesWidenThePlan(t *testing.T) {
	plan := sms.NewPlan("22", "64", "8", "50501234", "3", "31", "", "7x", "123456789")
	for national, want := range map[string]bool{
		"22000000": true, "22999999": true, "21999999": false, "23000000": false,
		"64123456": true, "63123456": false,
		"80000000": true, "89999999": true, "90000000": false, "99999999": false,
		"50501234": true, "50501233": false, "50501235": false,
		"30000000": true, "39999999": true, "12345678": false, "00000000": false,
	} {
		if _, ok := plan.Parse(national); ok != want {
			t.Errorf("Parse(%s) = %v, want %v", national, ok, want)
		}
	}
}

// mobileHere is libphonenumber's result, except where our list differs: it accepts all of 61–69, we exclude 63 and 64.
func mobileHere(t testing.TB, national string) bool {
	number, err := phonenumbers.Parse("+257"+national, "BI")
	if err != nil {
		t.Fatalf("phonenumbers.Parse(%s): %v", national, err)
	}
	mobile := phonenumbers.IsValidNumber(number) && phonenumbers.GetNumberType(number) == phonenumbers.MOBILE
	return mobile && national[:2] != "63" && national[:2] != "64"
}

func TestPlanAgreesWithLibphonenumber(t *testing.T) {
	plan := sms.NewPlan()
	for prefix := range 10_000 {
		for _, tail := range []string{"0000", "5678", "9999"} {
			national := fmt.Sprintf("%04d%s", prefix, tail)
			if _, ok := plan.Parse(national); ok != mobileHere(t, national) {
				t.Fatalf("Parse(%s) = %v, libphonenumber disagrees: has a range moved?", national, ok)
			}
		}
	}
}

func TestPlanIsItsPrefixes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prefixes := rapid.SliceOfN(rapid.StringMatching(`[0-9]{1,8}`), 0, 12).Draw(t, "prefixes")
		national := rapid.StringMatching(`[0-9]{8}`).Draw(t, "national")
		if len(prefixes) > 0 && rapid.Bool().Draw(t, "near") {
			national = (rapid.SampledFrom(prefixes).Draw(t, "prefix") + national)[:8]
		}
		_, want := sms.NewPlan().Parse(national)
		for _, prefix := range prefixes {
			want = want || strings.HasPrefix(national, prefix)
		}
		if _, ok := sms.NewPlan(prefixes...).Parse(national); ok != want {
			t.Fatalf("Parse(%s) = %v, want %v", national, ok, want)
		}
	})
}

// FuzzNumber compares with libphonenumber where both should agree: it accepts each number that we accept, as the same
// one.
func FuzzNumber(f *testing.F) {
	for _, seed := range []string{"+25779123456", "0025761000000", "(257) 29-00.00.00", "+257", "22 12 34 56",
		"++25779123456", "x", "٧٩١٢٣٤٥٦"} {
		f.Add(seed)
	}
	plan := sms.NewPlan()
	f.Fuzz(func(t *testing.T, in string) {
		got, ok := plan.Parse(in)
		if !ok {
			if got != "" {
				t.Fatalf("Parse(%q) refused with %q", in, got)
			}
			return
		}
		if len(got) != 12 || !strings.HasPrefix(string(got), "+257") || !mobileHere(t, got.National()) {
			t.Fatalf("Parse(%q) = %q", in, got)
		}
		if again, ok := plan.Parse(string(got)); !ok || again != got {
			t.Fatalf("Parse(Parse(%q)) = %q, %v", in, again, ok)
		}
		// Its grammar of separators is narrower (never two in a row, not at every place): give it only digits and the
		// plus sign.
		bare := strings.Map(func(r rune) rune {
			if r == '+' || r >= '0' && r <= '9' {
				return r
			}
			return -1
		}, in)
		oracle, err := phonenumbers.Parse(bare, "BI")
		if err != nil {
			t.Fatalf("Parse(%q) = %q, libphonenumber: %v", in, got, err)
		}
		if theirs := phonenumbers.Format(oracle, phonenumbers.E164); theirs != string(got) {
			t.Fatalf("Parse(%q) = %q, libphonenumber %q", in, got, theirs)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	plan := sms.NewPlan("61", "62", "68", "69")
	for _, in := range []string{"+25779123456", "79123456", "+257 79 12 34 56"} {
		b.Run(in, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := plan.Parse(in); !ok {
					b.Fatal("refused")
				}
			}
		})
	}
}

// TestObscured: an obscured number is invalid in every form.
func TestObscured(t *testing.T) {
	obscured := sms.Number("+25779123456").Obscured()
	if !sms.Number(obscured).IsObscured() || sms.Number("+25779123456").IsObscured() ||
		sms.Number(obscured).Obscured() != obscured {
		t.Errorf("%s", obscured)
	}
	if n, ok := sms.NewPlan().Parse(obscured); ok {
		t.Errorf("it is parsed as %s", n)
	}
}
