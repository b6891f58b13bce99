package dashboard

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"sync"
	"testing"

	"intumwa/dashboard/web"
)

var versionField = regexp.MustCompile(`name="(version|facts)" value="([^"]*)"`)

// TestEveryKeyIsShown: keys that are created at once are all shown, once, and a double click creates one.
func TestEveryKeyIsShown(t *testing.T) {
	w := newWorld(t, nil)
	c, _, _ := w.owner()
	form := fieldOnPage("key").FindStringSubmatch(c.get("/keys").body)[1]
	for _, try := range []struct {
		name string
		key  []string // of each form
		keys int
	}{{"two tabs", []string{"", ""}, 2}, {"a double click", []string{form}, 1},
		{"two quick forms", []string{web.NewFormKey(), web.NewFormKey()}, 2}} {
		w.exec(`update api_tokens set revoked_at = now()`)
		var all sync.WaitGroup
		for i := range 4 {
			if len(try.key) > 1 && i >= len(try.key) {
				break
			}
			all.Go(func() {
				c.wants(c.post("/keys", "name", fmt.Sprint("Till ", i), "key", try.key[i%len(try.key)]), http.StatusSeeOther)
			})
		}
		all.Wait()
		w.counts(try.keys, `select count(*) from api_tokens where revoked_at is null`)
		shown := map[string]bool{}
		for _, key := range keyText.FindAllString(c.get("/keys").body, -1) {
			shown[key] = true
		}
		if len(shown) != try.keys {
			t.Errorf("%s: %d keys are shown, want %d", try.name, len(shown), try.keys)
		}
		if keyText.MatchString(c.get("/keys").body) {
			t.Errorf("%s: a key is shown twice", try.name)
		}
	}
}

// TestSecretOutlivesTest: a test event does not replace a secret that no page has shown yet.
func TestSecretOutlivesTest(t *testing.T) {
	w := newWorld(t, nil)
	c, _, _ := w.owner()
	c.wants(c.post("/webhook", "url", newReceiver(t).URL), http.StatusSeeOther)
	c.wants(c.post("/webhook/test"), http.StatusSeeOther)
	page := c.get("/deliveries")
	if secretOn(page) == "" {
		t.Error("the secret is never shown")
	}
	c.wants(page, http.StatusOK, "HTTP 204")
}

// TestOldPageDecidesNothing: an approval is about what the page showed.
func TestOldPageDecidesNothing(t *testing.T) {
	w := newWorld(t, nil)
	aline, _, company := w.owner()
	admin := newClient(w)
	admin.inside("root@example.com")
	ask := func(purpose string) {
		aline.wants(aline.post("/senders", "name", "REGIDESO", "purpose", purpose), http.StatusSeeOther)
	}
	state := func(approved, verified bool) {
		t.Helper()
		w.counts(1, fmt.Sprintf(`select count(*) from companies c join senders s on s.company_id = c.id where s.approved = %t
			and c.verified = %t`, approved, verified))
	}
	shown := func(path, name string) string {
		t.Helper()
		for _, found := range versionField.FindAllStringSubmatch(admin.get(path).body, -1) {
			if found[1] == name {
				return found[2]
			}
		}
		t.Errorf("%s posts no version", path)
		return ""
	}
	for _, page := range []string{"/admin/senders", web.CompanyPath(company.ID)} {
		ask("Bills of the water works")
		version := shown(page, "version")
		if _, err := w.senders.RefuseSender(t.Context(), 1, "x"); err != nil {
			t.Fatal(err)
		}
		ask("Lottery wins")
		for _, old := range []string{version, "", "x"} {
			a := admin.do(http.MethodPost, "/admin/senders/1/approve", url.Values{"version": {old}})
			admin.wants(a, http.StatusSeeOther)
			admin.wants(admin.get(a.Header.Get("Location")), http.StatusOK,
				"Not approved: the company asks for something else now")
			state(false, false)
		}
		admin.wants(admin.post("/admin/senders/1/approve", "version", shown(page, "version")), http.StatusSeeOther)
		state(true, false)
		if _, err := w.senders.RefuseSender(t.Context(), 1, "x"); err != nil {
			t.Fatal(err)
		}
	}

	facts := []string{"nif", "4000123456", "trade_register", "RC 12345", "address", "Bujumbura", "phone",
		"+257 79 00 01 01", "contact", "Aline N."}
	old := shown(web.CompanyPath(company.ID), "facts")
	aline.wants(aline.post("/company/facts", facts...), http.StatusSeeOther)
	for _, act := range []string{"approve", "verify"} {
		admin.wants(admin.post(web.CompanyPath(company.ID)+"/"+act, "facts", old), http.StatusSeeOther)
	}
	state(false, false)
	admin.wants(admin.post(web.CompanyPath(company.ID)+"/verify", "facts", shown(web.CompanyPath(company.ID), "facts")),
		http.StatusSeeOther)
	state(false, true)
}
