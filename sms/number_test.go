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
		{"79\u00a0123456", false},
		{"٧٩١٢٣٤٥٦", false},
		{"+25779123456\u200e", false},
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
	for _, seed := range []string{"+25779123456", "0025761000000", "(257) 29-00.00.00", "+257", "22 12 34 56", "++25779123456", "x", "٧٩١٢٣٤٥٦"} {
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
	if !sms.Number(obscured).IsObscured() || sms.Number("+25779123456").IsObscured() || sms.Number(obscured).Obscured() != obscured {
		t.Errorf("%s", obscured)
	}
	if n, ok := sms.NewPlan().Parse(obscured); ok {
		t.Errorf("it is parsed as %s", n)
	}
}
