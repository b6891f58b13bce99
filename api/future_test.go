package api

import (
	"encoding/json"
	"fmt"
	"html"
	"regexp"
	"testing"
)

// The scheduled-send examples on the page and in the document are still accepted: their times lie in the future.
func TestScheduledExamplesAreAccepted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	for _, language := range editionLanguages {
		page := html.UnescapeString(w.do("", "GET", "/docs?lang="+language, "").body)
		example := regexp.MustCompile(`(?s)-d '(\{\s+"sender": "ACME",\s+"send_at".*?\n  \})'`).FindStringSubmatch(page)
		if example == nil {
			t.Fatalf("%s: the page has no scheduled send", language)
		}
		if got := w.do("live", "POST", "/v1/sms/bulk", example[1]); got.status != 200 {
			t.Errorf("%s: the page's example: %d %s", language, got.status, got.body)
		}
	}
	var document struct {
		Components struct {
			Schemas map[string]struct{ Examples []any }
		}
	}
	if err := json.Unmarshal([]byte(w.do("", "GET", "/v1/openapi.json", "").body), &document); err != nil {
		t.Fatal(err)
	}
	schemas := document.Components.Schemas
	body := fmt.Sprintf(
		`{"phone_number": "+25779123400", "sender": "ACME", "message": "Bonjour", "send_at": %q, "expire_at": %q}`,
		schemas["SendAt"].Examples[0], schemas["ExpireAt"].Examples[0])
	if got := w.do("live", "POST", "/v1/sms", body); got.status != 200 {
		t.Errorf("the document's example: %d %s", got.status, got.body)
	}
}
