package orders_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"intumwa/billing"
	"intumwa/billing/orders"
	"intumwa/sms"
)

// The worked cases of docs/rules/choices.md 15.2.
func TestSums(t *testing.T) {
	perSMS := orders.Tax{Name: "Taxe SMS", PerSMS: 500}
	onBoth := orders.Tax{Name: "TVA", Rate: 180_000, On: []string{"Taxe SMS"}}
	for _, test := range []struct {
		name    string
		credits int64
		price   billing.Centimes
		taxes   []orders.Tax
		net     orders.Francs
		sums    string
		total   orders.Francs
	}{
		{"no tax", 100_000, 1000, nil, 1_000_000, "[]", 1_000_000},
		{"18%", 100_000, 1000, []orders.Tax{vat}, 1_000_000, "[180000]", 1_180_000},
		{"half a franc goes up", 1, 1250, nil, 13, "[]", 13},
		{"less than half goes down", 1, 1249, nil, 12, "[]", 12},
		{"the tax of the rounded price", 1, 1250, []orders.Tax{vat}, 13, "[2]", 15}, // 2.34
		{"half a franc of tax goes up", 25, 100, []orders.Tax{vat}, 25, "[5]", 30},  // 4.5
		{"a sum per SMS", 100_000, 1000, []orders.Tax{perSMS}, 1_000_000, "[500000]", 1_500_000},
		{"half a franc per SMS", 3, 1000, []orders.Tax{{Name: "Taxe SMS", PerSMS: 50}}, 30, "[2]", 32},
		{"two taxes, each of the price", 1000, 1000, []orders.Tax{perSMS, vat}, 10_000, "[5000 1800]", 16_800},
		{"a tax on a tax", 1000, 1000, []orders.Tax{onBoth, perSMS}, 10_000, "[2700 5000]", 17_700},
		{"two rates", 7, 999, []orders.Tax{vat, {Name: "Taxe", Rate: 25_000}}, 70, "[13 2]", 85}, // 12.6, 1.75
		{"the largest order", orders.MaxCredits, billing.MaxPrice, []orders.Tax{vat}, 1e14, "[18000000000000]", 118e12},
	} {
		sum := orders.Terms{Price: test.price, Taxes: test.taxes}.Sum(test.credits)
		sums := []orders.Francs{}
		for _, tax := range sum.Taxes {
			sums = append(sums, tax.Sum)
		}
		if sum.Net != test.net || fmt.Sprint(sums) != test.sums || sum.Total != test.total {
			t.Errorf("%s: %d %v %d, want %d %s %d", test.name, sum.Net, sums, sum.Total, test.net, test.sums, test.total)
		}
	}
}

// What a sum affords costs at most the sum, and one credit more costs more.
func TestAfford(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		terms := orders.Terms{Price: billing.Centimes(rapid.Int64Range(1, 100_000).Draw(t, "price"))}
		for i := range rapid.IntRange(0, 3).Draw(t, "taxes") {
			tax := orders.Tax{Name: fmt.Sprint(i), Rate: orders.Rate(rapid.Int64Range(0, 1_000_000).Draw(t, "rate"))}
			if rapid.Bool().Draw(t, "per SMS") {
				tax = orders.Tax{Name: fmt.Sprint(i), PerSMS: billing.Centimes(rapid.Int64Range(1, 1000).Draw(t, "sum"))}
			} else if i > 0 && rapid.Bool().Draw(t, "on") && len(terms.Taxes[0].On) == 0 {
				tax.On = []string{"0"}
			}
			terms.Taxes = append(terms.Taxes, tax)
		}
		sum := orders.Francs(rapid.Int64Range(0, 1_000_000_000).Draw(t, "sum"))
		n := terms.Afford(sum)
		exact := terms.Sum(n)
		total := exact.Net
		for _, tax := range exact.Taxes {
			total += tax.Sum
		}
		if total != exact.Total || exact.Total > sum || n < orders.MaxCredits && terms.Sum(n+1).Total <= sum {
			t.Fatalf("%d francs afford %d credits for %+v", sum, n, exact)
		}
	})
}

func TestTaxesInForce(t *testing.T) {
	day := func(month time.Month) time.Time { return time.Date(2026, month, 1, 0, 0, 0, 0, sms.Burundi) }
	taxes := []orders.Tax{{Name: "TVA", Rate: 180_000, From: day(3)}, {Name: "Taxe SMS", PerSMS: 500, From: day(1)},
		{Name: "TVA", Rate: 200_000, From: day(6)}, {Name: "Taxe SMS", From: day(9)}}
	for at, want := range map[time.Time]string{
		day(1).Add(-1): "", day(1): "Taxe SMS 0 5;", day(3): "TVA 18 0;Taxe SMS 0 5;",
		day(6).Add(-1): "TVA 18 0;Taxe SMS 0 5;", day(6): "TVA 20 0;Taxe SMS 0 5;", day(9): "TVA 20 0;",
	} {
		got := ""
		for _, tax := range orders.InForce(taxes, at) {
			got += fmt.Sprint(tax.Name, " ", tax.Rate, " ", tax.PerSMS, ";")
		}
		if got != want {
			t.Errorf("%v: %q, want %q", at, got, want)
		}
	}
}

func TestParseRate(t *testing.T) {
	for text, want := range map[string]orders.Rate{"18%": 180_000, "18 %": 180_000, "0.18": 180_000, "0,18": 180_000,
		"2.5%": 25_000, "0": 0, "100%": 1_000_000, "1": 1_000_000, "0.0001%": 1} {
		if got, err := orders.ParseRate(text); err != nil || got != want {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "%", "18", "101%", "1.5", "-1%", "18%%", ".5", "1.%", "0.00001%", "x"} {
		if got, err := orders.ParseRate(text); err == nil {
			t.Errorf("%q is %d", text, got)
		}
	}
}
