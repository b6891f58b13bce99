package dashboard

import (
	"net/http"
	"testing"
	"time"
)

// TestKeyLimits: a key has the limits of its form, and the list shows them.
func TestKeyLimits(t *testing.T) {
	w := newWorld(t, nil)
	c, u, _ := w.owner()
	c.wants(c.post("/keys", "name", "Plain", "scope", "", "days", "", "networks", ""), http.StatusSeeOther)
	c.wants(c.post("/keys", "name", "Till", "scope", "send", "days", "90", "networks", "196.2.8.7, 10.0.0.0/8"),
		http.StatusSeeOther)
	keys, err := w.keys.TokensOf(t.Context(), u.ID)
	if err != nil || len(keys) != 2 {
		t.Fatal(keys, err)
	}
	till, plain := keys[0], keys[1]
	if !plain.May("send") || !plain.May("read") || plain.ExpiresAt != nil || !plain.From("192.0.2.1") {
		t.Errorf("without limits: %+v", plain)
	}
	if !till.May("send") || till.May("read") || till.From("192.0.2.1") || !till.From("196.2.8.7") ||
		!till.From("10.1.2.3") ||
		till.ExpiresAt == nil || till.ExpiresAt.Sub(till.CreatedAt).Round(24*time.Hour) != 90*24*time.Hour {
		t.Errorf("with limits: %+v", till)
	}
	c.wants(c.get("/keys"), http.StatusOK, "Send only", "196.2.8.7/32, 10.0.0.0/8", "until")
	for field, wrong := range map[string]string{"scope": "admin", "days": "31", "networks": "the office"} {
		c.wants(c.post("/keys", "name", "Wrong", field, wrong), http.StatusUnprocessableEntity, `id="f-`+field+`-wrong"`)
	}
}
