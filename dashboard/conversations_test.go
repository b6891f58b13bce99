package dashboard

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"intumwa/messages/lookup"
	"intumwa/sms"
)

// TestConversationsPages: a company sees what a number sent and what it got, in order, and answers once however often
// the form is submitted. Whoever only reads marks nothing as read. Other companies see nothing of it.
func TestConversationsPages(t *testing.T) {
	w := newWorld(t, nil)
	aline, user, alines := w.customer("aline", "ISOKO", 10)
	bob, _, bobs := w.customer("bob", "BOBCO", 10)
	aline.wants(aline.get("/conversations"), http.StatusOK, "No conversations yet")
	const kevin = "+25779000001"
	w.writes(alines, kevin, "Muraho")
	w.accept(alines.ID, user.ID, kevin, "leo")
	ids := w.writes(alines, kevin, "<b>Igiciro?</b>")
	w.writes(alines, "ECONET", "Promo")
	w.writes(bobs, kevin, "to Bob")
	w.exec(`insert into contacts (company_id, phone_number, name, name_key) values ($1, $2, 'Kévin N.', 'kevin n.')`,
		alines.ID, kevin)

	list := aline.get("/conversations")
	aline.wants(list, http.StatusOK, "Kévin N.", "2 unread", "1 unread", "&lt;b&gt;Igiciro?", "Mark all as read")
	if strings.Contains(list.body, "Muraho") || strings.Contains(list.body, "to Bob") {
		t.Errorf("the list:\n%s", list.body)
	}
	found := func(q string, want int) {
		t.Helper()
		if a := aline.get("/conversations?q=" + q); strings.Count(a.body, "/conversations/with?number=") != want {
			t.Errorf("%s finds:\n%s", q, a.body)
		}
	}
	found("k%C3%A9v", 1)
	found("muraho", 1)
	found("79+00+00+01", 1)
	found("79000002", 1) // to open it
	found("%25", 0)

	path := "/conversations/with?number=%2B25779000001"
	w.exec(`update users set role = 'reader' where id = $1`, user.ID)
	aline.wants(aline.get(path), http.StatusOK, "Igiciro?")
	aline.wants(aline.post("/conversations/with", "number", kevin, "sender", "ISOKO", "message", "x"),
		http.StatusForbidden)
	aline.wants(aline.get("/conversations"), http.StatusOK, "2 unread")
	w.exec(`update users set role = 'owner' where id = $1`, user.ID)

	aline.wants(aline.get("/conversations/with?number=%FF"), http.StatusNotFound)
	talk := aline.get(path)
	aline.wants(talk, http.StatusOK, "Kévin N.", "Muraho", "&lt;b&gt;Igiciro?", "Send the answer")
	sent, _, err := w.d.deps.Lookup.List(t.Context(), sms.CompanyID(alines.ID), lookup.Filter{Number: kevin}, 0, 9)
	if err != nil || len(sent) != 1 {
		t.Fatal(sent, err)
	}
	in, out := strings.Index(talk.body, "Muraho"), strings.Index(talk.body, sent[0].ULID.String())
	if again := strings.Index(talk.body, "Igiciro?"); in < 0 || out < in || again < out {
		t.Errorf("the order is %d, %d, %d:\n%s", in, out, again, talk.body)
	}
	if list := aline.get("/conversations"); strings.Contains(list.body, "2 unread") {
		t.Error("it is still unread")
	}
	key := regexp.MustCompile(`name="key" value="([^"]+)"`).FindStringSubmatch(talk.body)[1]
	for range 2 {
		a := aline.post("/conversations/with", "number", kevin, "sender", "ISOKO", "message", "Ni 3000", "key", key,
			"do", "send")
		if a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != path+"#latest" {
			t.Fatalf("%d to %s", a.StatusCode, a.Header.Get("Location"))
		}
	}
	w.counts(1, `select count(*) from messages where body = 'Ni 3000' and phone_number = $1`, kevin)
	w.credits(alines.ID, 9)
	aline.wants(aline.get(path), http.StatusOK, "Ni 3000")
	aline.wants(aline.post("/conversations/with", "number", kevin, "sender", "OTHER", "message", "x"),
		http.StatusUnprocessableEntity)
	measured := aline.post("/conversations/with", "number", kevin, "sender", "ISOKO", "message", strings.Repeat("x", 161),
		"do", "check")
	aline.wants(measured, http.StatusOK, "2 segments")

	w.exec(`update inbound_messages set answer = 'insufficient_credits' where id = $1`, ids[0])
	aline.wants(aline.get(path), http.StatusOK, "too few credits")
	aline.wants(aline.get("/conversations/with?number=ECONET"), http.StatusOK, "Promo")
	if a := aline.get("/conversations/with?number=ECONET"); strings.Contains(a.body, "Send the answer") {
		t.Error("a name can be answered")
	}
	for _, wrong := range []string{"", "?number=", "?number=NOBODY", "?number=%00"} {
		aline.wants(aline.get("/conversations/with"+wrong), http.StatusNotFound)
	}
	if a := bob.get(path); !strings.Contains(a.body, "to Bob") || strings.Contains(a.body, "Muraho") ||
		strings.Contains(a.body, "3000") || strings.Contains(a.body, "Kévin") {
		t.Errorf("another company sees:\n%s", a.body)
	}
	bob.wants(bob.post("/conversations/read", "up_to", "12345678"), http.StatusNotFound)
	latest := w.writes(alines, kevin, "Murakoze")
	bob.wants(bob.post("/conversations/read", "up_to", strconv.FormatInt(latest[0], 10)), http.StatusNotFound)
	aline.wants(aline.post("/conversations/read", "up_to", strconv.FormatInt(latest[0], 10)), http.StatusSeeOther)
	if a := aline.get("/conversations"); strings.Contains(a.body, "unread") {
		t.Errorf("not all are read:\n%s", a.body)
	}
}

// TestLongConversation: a page of a conversation has a bounded number of messages, and each message is on one page.
func TestLongConversation(t *testing.T) {
	w := newWorld(t, nil)
	aline, user, alines := w.customer("aline", "ISOKO", 0)
	const kevin = "+25779000001"
	for range 30 {
		w.writes(alines, kevin, "in")
		w.accept(alines.ID, user.ID, kevin, "leo")
		w.accept(alines.ID, user.ID, "+25779000002", "leo")
	}
	in, out, pages := 0, 0, 0
	for path := "/conversations/with?number=%2B25779000001"; path != ""; pages++ {
		a := aline.get(path)
		n, m := strings.Count(a.body, `<li class="in">`), strings.Count(a.body, `<li class="out">`)
		if in, out = in+n, out+m; n+m > 25 || n+m == 0 {
			t.Errorf("page %d has %d and %d messages", pages, n, m)
		}
		next := regexp.MustCompile(`href="([^"]+)" rel="next"`).FindStringSubmatch(a.body)
		if path = ""; next != nil {
			path = strings.ReplaceAll(next[1], "&amp;", "&")
		}
	}
	if in != 30 || out != 30 || pages != 3 {
		t.Errorf("%d received and %d sent on %d pages", in, out, pages)
	}
}
