package dashboard

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"intumwa/dashboard/web"
	"intumwa/internal/otp"
	"intumwa/sms"
)

// code returns the one-time code of the last message to a number.
func (w *world) code(number string) string {
	w.t.Helper()
	var secret otp.Secret
	if err := w.pool.QueryRow(w.t.Context(), `select secret from messages where phone_number = $1 and secret is not null
		order by id desc limit 1`, number).Scan(&secret); err != nil {
		w.t.Fatal(err)
	}
	return secret.Code([]byte("key"))
}

// TestVerificationsPage: a user tries a verification with the own number. The list has no code.
func TestVerificationsPage(t *testing.T) {
	w := newWorld(t, nil)
	aline, user, company := w.customer("aline", "ISOKO", 10)
	bob, _, _ := w.customer("bob", "BOBCO", 10)
	const number = "+25779000001"
	aline.wants(aline.get("/verifications"), http.StatusOK, "No verifications yet", "Verify your test number first")
	aline.wants(aline.post("/verifications", "sender", "ISOKO", "locale", "en"), http.StatusUnprocessableEntity,
		"Verify your test number first")
	w.exec(`update users set test_number = $1, test_verified_at = now() where id = $2`, number, user.ID)
	try := func(sender string) answer {
		return aline.post("/verifications", "key", aline.key("/verifications"), "sender", sender, "locale", "en")
	}
	started := try("ISOKO")
	aline.wants(started, http.StatusSeeOther)
	path := started.Header.Get("Location")
	code := w.code(number)
	page := aline.get(path)
	aline.wants(page, http.StatusOK, "A code is on its way", number[1:], "Pending", "ISOKO")
	check := strings.Replace(path, "?of=", "/", 1) + "/check"
	bob.wants(bob.post(check, "code", code), http.StatusNotFound)
	if a := bob.get(path); strings.Contains(a.body, number) {
		t.Error("another company's verification is shown")
	}
	wrong := map[bool]string{true: "111111", false: "000000"}[code == "000000"]
	aline.wants(aline.post(check, "code", wrong), http.StatusSeeOther)
	aline.wants(aline.get(path), http.StatusOK, "This code is wrong")
	aline.wants(aline.post(check, "code", code), http.StatusSeeOther)
	page = aline.get(path)
	aline.wants(page, http.StatusOK, "The verification is approved", "Approved")
	list, err := w.d.deps.Verifications.List(t.Context(), sms.CompanyID(company.ID), 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/verifications", "/messages", "/messages/" + list[0].Message.String()} {
		if a := aline.get(path); strings.Contains(a.body, code) {
			t.Errorf("%s shows the code", path)
		}
	}
	w.exec(`update verifications set finished_at = finished_at - interval '1 second'`) // no double click
	aline.wants(aline.post(check, "code", code), http.StatusSeeOther)
	aline.wants(aline.get(path), http.StatusOK, "This verification has ended")
	w.credits(company.ID, 9)
	for range 5 {
		aline.wants(try(testSender), http.StatusSeeOther)
	}
	aline.wants(try(testSender), http.StatusTooManyRequests, "Too many codes")
	w.credits(company.ID, 9)
	w.exec(`insert into verifications (ulid, company_id, user_id, phone_number, sender, locale, secret, test, expires_at,
		state, message, carrier, client_reference)
		select gen_random_uuid(), $1, 1, '+25779000002', 'ISOKO', 'en', '', false, now(), 4, gen_random_uuid(), 'leo',
			'ref-' || n from generate_series(1, 30) n`, company.ID)
	first := aline.get("/verifications")
	aline.wants(first, http.StatusOK, "ref-30", "Not delivered")
	if n := strings.Count(first.body, "ref-"); n != web.MessagesOnPage {
		t.Errorf("%d rows", n)
	}
	aline.wants(aline.get(nextPage.FindStringSubmatch(first.body)[1]), http.StatusOK, "ref-1<", "Approved")
}

// TestVerificationTexts: a company asks for a text of its own, and an administrator decides what was shown.
func TestVerificationTexts(t *testing.T) {
	w := newWorld(t, nil)
	aline, _, company := w.customer("aline", "ISOKO", 10)
	root := newClient(w)
	root.inside("root@example.com")
	for text, wrong := range map[string]string{"": "", "ISOKO": "must contain the code",
		"{{code}} {{name}}": "Only {{code}}", "{{code}} @": "takes more room",
		"{{code}}" + strings.Repeat("a", 152): "one segment"} {
		a := aline.post("/verifications/text", "locale", "fr", "text", text)
		aline.wants(a, http.StatusUnprocessableEntity)
		if !strings.Contains(a.body, wrong) {
			t.Errorf("%q: not %q", text, wrong)
		}
	}
	aline.wants(aline.post("/verifications/text", "locale", "de", "text", "{{code}}"), http.StatusUnprocessableEntity,
		"one of the languages")
	aline.wants(aline.post("/verifications/text", "locale", "fr", "text", "ISOKO : {{code}}"), http.StatusSeeOther)
	aline.wants(aline.get("/verifications"), http.StatusOK, "Waiting for approval", "ISOKO : {{code}}")
	shown := root.get("/admin/verifications")
	root.wants(shown, http.StatusOK, "ISOKO : {{code}}", "/admin/companies/"+strconv.FormatInt(company.ID, 10))
	version := regexp.MustCompile(`name="version" value="([^"]+)"`).FindStringSubmatch(shown.body)[1]
	aline.wants(aline.post("/verifications/text", "locale", "fr", "text", "ISOKO {{code}}"), http.StatusSeeOther)
	root.wants(root.post("/admin/verifications/1/approve", "version", version), http.StatusSeeOther)
	shown = root.get("/admin/verifications")
	root.wants(shown, http.StatusOK, "The company has since changed the text")
	version = regexp.MustCompile(`name="version" value="([^"]+)"`).FindStringSubmatch(shown.body)[1]
	root.wants(root.post("/admin/verifications/1/approve", "version", version), http.StatusSeeOther)
	aline.wants(aline.get("/verifications"), http.StatusOK, "In use")
	used := func() (text string) {
		t.Helper()
		if err := w.pool.QueryRow(t.Context(), `select coalesce(used, '') from verification_texts`).Scan(&text); err != nil {
			t.Fatal(err)
		}
		return text
	}
	aline.wants(aline.post("/verifications/text", "locale", "fr", "text", "New {{code}}"), http.StatusSeeOther)
	aline.wants(aline.get("/verifications"), http.StatusOK, "In use", "ISOKO {{code}}", "New {{code}}",
		"Waiting for approval")
	if got := used(); got != "ISOKO {{code}}" {
		t.Errorf("a text that waits withdraws the one before: %q", got)
	}
	root.wants(root.post("/admin/verifications/1/refuse", "reason", "too short"), http.StatusSeeOther)
	aline.wants(aline.get("/verifications"), http.StatusOK, "In use", "ISOKO {{code}}", "Refused", "too short")
	if got := used(); got != "ISOKO {{code}}" {
		t.Errorf("a text that is refused withdraws the one before: %q", got)
	}
	aline.wants(aline.post("/verifications/text", "locale", "fr", "text", "New {{code}}"), http.StatusSeeOther)
	root.wants(root.post("/admin/verifications/1/approve", "version",
		regexp.MustCompile(`name="version" value="([^"]+)"`).FindStringSubmatch(root.get("/admin/verifications").body)[1]),
		http.StatusSeeOther)
	if got := used(); got != "New {{code}}" {
		t.Errorf("approved: %q", got)
	}
	root.wants(root.post("/admin/verifications/1/refuse", "reason", ""), http.StatusUnprocessableEntity)
	root.wants(root.post("/admin/verifications/1/refuse", "reason", "no warning"), http.StatusSeeOther)
	aline.wants(aline.get("/verifications"), http.StatusOK, "Refused", "no warning")
	if got := used(); got != "" {
		t.Errorf("refused after its approval: %q", got)
	}
	root.wants(root.post("/admin/verifications/99/approve", "version", version), http.StatusNotFound)

	today := time.Now().UTC().Add(2 * time.Hour)
	w.exec(`insert into conversions (day, carrier, block, company_id, asked, converted)
		values ($1, 'leo', '+2577900', 1, 40, 30), ($1::date - 20, 'lumitel', '+2576100', 1, 20, 1)`,
		today.Format(time.DateOnly))
	a := root.get("/admin/verifications")
	root.wants(a, http.StatusOK, "2577900", "75.0 %")
	if strings.Contains(a.body, "lumitel") {
		t.Error("seven days have twenty")
	}
	root.wants(root.get("/admin/verifications?days=30"), http.StatusOK, "2576100", "5.0 %")
}
