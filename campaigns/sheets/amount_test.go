package sheets

import (
	"testing"

	"intumwa/texts"
)

// TestAmounts: a French text has the numbers of a workbook as French readers write them.
func TestAmounts(t *testing.T) {
	texts, err := texts.Load()
	if err != nil {
		t.Fatal(err)
	}
	french, _ := texts.ByTag("fr")
	for _, test := range [][3]string{{"25,000", "25000", "25 000"}, {"25,000.50", "25000.5", "25 000,50"},
		{"1.5", "1.5", "1.5"}, {"15.5%", "0.155", "15,5%"}, {"04/05/2026", "46146", "04/05/2026"},
		{"25,000", "25,000", "25,000"}, {"a,b", "1", "a,b"}} {
		if got := amount(french, test[0], test[1]); got != test[2] {
			t.Errorf("%v: %q", test, got)
		}
	}
}
