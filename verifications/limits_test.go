package verifications

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestLimitsPage: docs/rules/choices.md 9.1 has the limits.
func TestLimitsPage(t *testing.T) {
	page, err := os.ReadFile("../docs/rules/choices.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rule, _ := strings.Cut(string(page), "### 9.1 ")
	rule = strings.Join(strings.Fields(rule), " ")
	for _, limit := range []string{
		fmt.Sprintf("%d messages and %d wrong codes of a verification", MostSends, MostChecks),
		fmt.Sprintf("%d wrong codes of a number at a company", wrongCodes),
		fmt.Sprintf("%d messages to a number and %d to an `end_user_id` of a company", sendsToNumber, sendsToEndUser),
		fmt.Sprintf("%d to a number of all companies", sendsToAny),
	} {
		if !strings.Contains(rule, limit) {
			t.Errorf("the rule lacks %q", limit)
		}
	}
}
