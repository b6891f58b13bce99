package dashboard

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"intumwa/messages/retention"
)

// TestPurgedMessages: a message without its text is shown as such; a purged message is not found.
func TestPurgedMessages(t *testing.T) {
	w := newWorld(t, nil)
	c, _, _ := w.customer("aline", "ISOKO", 10)
	if _, err := w.testNumbers.SetTestNumber(t.Context(), "aline@example.com", "+25779000001", true); err != nil {
		t.Fatal(err)
	}
	a := c.post("/messages/new", "key", c.key("/messages/new"), "sender", "ISOKO", "number", "79222222", "message",
		"Amahoro mwese")
	c.wants(a, http.StatusSeeOther)
	path := a.Header.Get("Location")
	if body := c.get(path).body; !strings.Contains(body, "Amahoro mwese") {
		t.Errorf("the text is not there:\n%s", body)
	}
	w.exec(`WITH gone AS (DELETE FROM outbox) UPDATE messages SET status = 1, created_at = now() - interval '3 days'`)
	purge := func(p retention.Purge) {
		t.Helper()
		if n, _, err := retention.New(w.pool).Purge(t.Context(), p, 48*time.Hour); err != nil || n != 1 {
			t.Fatal(n, err)
		}
	}
	purge(retention.PurgeBodies)
	for _, page := range []string{path, "/messages"} {
		body := c.get(page).body
		if strings.Contains(body, "Amahoro mwese") || !strings.Contains(body, "Le texte a été supprimé.") &&
			!strings.Contains(body, "The text was deleted.") {
			t.Errorf("%s:\n%s", page, body)
		}
	}
	purge(retention.PurgeMessages)
	c.wants(c.get(path), http.StatusNotFound)
	if body := c.get("/messages").body; strings.Contains(body, path) {
		t.Errorf("it is in the list:\n%s", body)
	}
}
