package dashboard

import (
	"strings"
	"testing"
)

// The company's page says what the company may do now: its texts follow approval and verification.
func TestCompanyPageFollowsTheState(t *testing.T) {
	w := newWorld(t, nil)
	c, _, company := w.customer("alice", "ACME", 0)
	words, _ := w.d.words.ByTag("en")
	texts := []string{"company.approval.text", "company.approved.text", "company.verification.text",
		"company.verified.text", "company.verified.waits"}
	for _, state := range []struct {
		approved, verified bool
		says               string
	}{
		{false, false, "company.approval.text company.verification.text"},
		{true, false, "company.approved.text company.verification.text"},
		{true, true, "company.approved.text company.verified.text"},
		{false, true, "company.approval.text company.verified.waits"},
	} {
		w.exec(`update companies set approved = $2, verified = $3 where id = $1`, company.ID, state.approved, state.verified)
		page := c.get("/company")
		for _, key := range texts {
			if says := strings.Contains(page.body, words.T(key)); says != strings.Contains(state.says+" ", key+" ") {
				t.Errorf("approved %v, verified %v: %q %v", state.approved, state.verified, words.T(key), says)
			}
		}
		if strings.Contains(page.body, "seen your documents") {
			t.Error("the page claims that we have seen documents")
		}
	}
}
