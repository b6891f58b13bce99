package profile

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"intumwa/sms"
)

// TestStatesOnPage: docs/rules/choices.md 5.3 has the final states of receipts, and no other.
func TestStatesOnPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/rules/choices.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rule, _ := strings.Cut(string(page), "### 5.3 ")
	rule, _, _ = strings.Cut(rule, "Other states")
	stated := map[string]sms.Status{}
	for _, sentence := range regexp.MustCompile(`([A-Z, and]+): (sent|failed)\.`).FindAllStringSubmatch(
		strings.Join(strings.Fields(rule), " "), -1) {
		for _, state := range regexp.MustCompile(`[A-Z]{4,}`).FindAllString(sentence[1], -1) {
			stated[state] = map[string]sms.Status{"sent": sms.Sent, "failed": sms.Failed}[sentence[2]]
		}
	}
	if !maps.Equal(stated, defaultStates) {
		t.Errorf("the rule has %v, the code %v", slices.Sorted(maps.Keys(stated)), slices.Sorted(maps.Keys(defaultStates)))
	}
}
