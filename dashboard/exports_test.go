package dashboard

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"intumwa/accounts"
	"intumwa/internal/postgres"
	"intumwa/texts"
)

// TestExports: a person asks for a month, and downloads its file in any part. Other roles and companies get nothing.
func TestExports(t *testing.T) {
	w := stillWorld(t, nil)
	c, _, company := w.customer("aline", "ISOKO", 0)
	other, _, _ := w.customer("bob", "BOBCO", 0)
	now := postgres.Now().In(texts.Bujumbura)
	month := now.Format("2006-01")
	w.exec(`insert into messages (ulid, company_id, user_id, phone_number, sender, body, encoding, segments, test,
		created_at, carrier, status)
		select gen_random_uuid(), $1, 1, '+25779' || lpad(n::text, 6, '0'), 'ISOKO', '=text ' || n, 0, 1, false, $2, 'leo', 1
			from generate_series(1, 3000) n`, company.ID, now)

	c.wants(c.get("/messages"), http.StatusOK, `href="/messages/exports"`)
	c.wants(c.get("/messages/exports"), http.StatusOK, fmt.Sprintf(`<option value="%s"`, month),
		fmt.Sprintf(`<option value="%s"`, now.AddDate(0, 0, 1-now.Day()).AddDate(0, -24, 0).Format("2006-01")))
	for _, wrong := range []string{"", "2026", "x", "1999-12", now.AddDate(0, 0, 40).Format("2006-01")} {
		c.wants(c.post("/messages/exports", "month", wrong), http.StatusUnprocessableEntity)
	}
	c.wants(c.post("/messages/exports", "month", month, "bodies", "yes"), http.StatusSeeOther)
	c.wants(c.post("/messages/exports", "month", month), http.StatusConflict)
	path := fmt.Sprintf("/messages/exports/%d/messages.csv", w.count(`select id from exports`))
	c.wants(c.get("/messages/exports"), http.StatusOK, "data-live")
	c.wants(c.get(path), http.StatusNotFound)
	w.export()
	c.wants(c.get("/messages/exports"), http.StatusOK, `href="`+path+`"`, "3,000 messages")

	all := c.get(path)
	c.wants(all, http.StatusOK, "\ufeffmessage_id,id,", "25779003000", ",'=text 3000")
	if got := len(c.lines(all)); got != 3001 {
		t.Errorf("%d rows", got)
	}
	tag, size := all.Header.Get("ETag"), len(all.body)
	if tag == "" || all.Header.Get("Content-Length") != fmt.Sprint(size) || all.Header.Get("Accept-Ranges") != "bytes" ||
		!strings.Contains(all.Header.Get("Content-Disposition"), month+".csv") {
		t.Errorf("the file's head: %v", all.Header)
	}
	for _, from := range []int{0, 1, 262143, 262144, size - 1} {
		part := c.do(http.MethodGet, path, nil, "Range", fmt.Sprintf("bytes=%d-", from), "If-Range", tag)
		if part.StatusCode != http.StatusPartialContent || part.body != all.body[from:] {
			t.Errorf("from %d: %d, %d bytes", from, part.StatusCode, len(part.body))
		}
	}
	for name, headers := range map[string][]string{"another file's": {"Range", "bytes=5-", "If-Range", `"0-0"`},
		"several": {"Range", "bytes=0-0,5-5"}} {
		if a := c.do(http.MethodGet, path, nil, headers...); a.StatusCode != http.StatusOK || a.body != all.body {
			t.Errorf("%s: %d, %d bytes", name, a.StatusCode, len(a.body))
		}
	}
	if a := c.do(http.MethodGet, path, nil, "Range",
		fmt.Sprintf("bytes=%d-", size)); a.StatusCode != http.StatusRequestedRangeNotSatisfiable {
		t.Errorf("behind the end: %d", a.StatusCode)
	}
	if a := c.do(http.MethodHead, path, nil); a.StatusCode != http.StatusOK || a.body != "" ||
		a.Header.Get("Content-Length") != fmt.Sprint(size) {
		t.Errorf("HEAD: %d, %d bytes, %v", a.StatusCode, len(a.body), a.Header)
	}
	if a := c.do(http.MethodGet, path, nil, "If-None-Match", tag); a.StatusCode != http.StatusNotModified {
		t.Errorf("known: %d", a.StatusCode)
	}

	other.wants(other.get(path), http.StatusNotFound)
	other.wants(other.get("/messages/exports"), http.StatusOK, "No files")
	finance, _ := w.person(company, accounts.RoleFinance)
	finance.wants(finance.get("/messages/exports"), http.StatusForbidden)
	finance.wants(finance.get(path), http.StatusForbidden)
	finance.wants(finance.post("/messages/exports", "month", month), http.StatusForbidden)
	reader, _ := w.person(company, accounts.RoleReader)
	reader.wants(reader.get(path), http.StatusOK)
	if acts := w.acts(company.ID); !slices.Contains(acts, "messages.export") {
		t.Errorf("the company's acts: %v", acts)
	}
}

// TestAdminExports: an administrator's file has no texts and obscured numbers, and neither side sees the other's files.
func TestAdminExports(t *testing.T) {
	w := stillWorld(t, nil)
	c, _, company := w.customer("aline", "ISOKO", 0)
	now := postgres.Now().In(texts.Bujumbura)
	w.exec(`insert into messages (ulid, company_id, user_id, phone_number, sender, body, encoding, segments, test,
		created_at, carrier, status)
		values (gen_random_uuid(), $1, 1, '+25779123456', 'ISOKO', 'a secret', 0, 1, false, $2, 'leo', 1)`, company.ID, now)
	root := newClient(w)
	root.inside("root@example.com")
	page := fmt.Sprintf("/admin/companies/%d", company.ID)
	root.wants(root.get(page), http.StatusOK, page+"/exports")
	for _, who := range []struct {
		*client
		path string
	}{{c, "/messages/exports"}, {root, page + "/exports"}} {
		who.wants(who.post(who.path, "month", now.Format("2006-01"), "bodies", "yes"), http.StatusSeeOther)
		w.export()
	}
	files := regexp.MustCompile(`/exports/(\d+)/messages\.csv`)
	own, admins := files.FindAllString(c.get("/messages/exports").body, -1),
		files.FindAllString(root.get(page+"/exports").body, -1)
	if len(own) != 1 || len(admins) != 1 || own[0] == admins[0] {
		t.Fatalf("the company sees %v, the administrator %v", own, admins)
	}
	got := root.get(page + admins[0])
	root.wants(got, http.StatusOK, "2577XXXXX56")
	if strings.Contains(got.body, "secret") || strings.Contains(got.body, "79123456") {
		t.Errorf("the administrator reads\n%s", got.body)
	}
	c.wants(c.get("/messages"+own[0]), http.StatusOK, "a secret", "25779123456")
	root.wants(root.get(page+own[0]), http.StatusNotFound)
	c.wants(c.get("/messages"+admins[0]), http.StatusNotFound)
	c.wants(c.get(page+admins[0]), http.StatusNotFound)
}

// export writes all files that were asked for.
func (w *world) export() {
	w.t.Helper()
	for found := true; found; {
		var err error
		if found, err = w.d.deps.Exports.WriteNext(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
	}
}
