package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"intumwa/internal/otp"
)

// verificationCode returns the code of a verification.
func (w *world) verificationCode(id string) string {
	w.t.Helper()
	var secret otp.Secret
	if err := w.pool.QueryRow(w.t.Context(), `SELECT secret FROM verifications WHERE ulid = $1`,
		[16]byte(ulid.MustParse(id))).Scan(&secret); err != nil {
		w.t.Fatal(err)
	}
	return secret.Code([]byte("key"))
}

// verified is the part of a response that the tests read.
type verified struct {
	ID         string `json:"id"`
	Status     string `json:"status"`
	SendsLeft  int    `json:"sends_left"`
	ChecksLeft int    `json:"checks_left"`
	SMS        string `json:"sms_id"`
	Remaining  int    `json:"remaining_items"`
}

func (w *world) verify(body string, header ...string) (v verified, got reply) {
	w.t.Helper()
	got = w.do("live", "POST", "/v1/verifications", body, header...)
	if got.status == http.StatusOK {
		if err := json.Unmarshal([]byte(got.body), &v); err != nil {
			w.t.Fatal(err)
		}
	}
	return v, got
}

// aSecondLater makes the last requests older than a double click.
func (w *world) aSecondLater() {
	w.exec(`UPDATE verifications SET sent_at = least(sent_at, now()) - interval '1 second',
		finished_at = finished_at - interval '1 second'`)
}

func (w *world) check(id, code string) reply {
	w.t.Helper()
	return w.do("live", "POST", "/v1/verifications/"+id+"/check", object("code", code))
}

// TestVerification: a code is sent like a message, charged like one, checked five times at most, and is nowhere.
func TestVerification(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	body := `{"phone_number":"79123456","sender":"ACME","locale":"en","client_reference":"login-7"}`
	v, got := w.verify(body)
	if got.status != 200 || v.Status != "pending" || v.SendsLeft != 4 || v.ChecksLeft != 5 || v.Remaining != 999 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	code := w.verificationCode(v.ID)
	wrong := strings.Map(func(r rune) rune { return '0' + ('9'-r)%10 }, code)
	for left := 4; left >= 1; left-- {
		sameJSON(t, w.check(v.ID, wrong).body, messageJSON("The code is not right."))
	}
	w.exec(`UPDATE verifications SET sent_at = now() + interval '1 minute'`)
	if _, again := w.verify(body); again.status != 200 || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("sent twice: %d %s", again.status, again.body)
	}
	w.aSecondLater()
	again, got := w.verify(body)
	if got.status != 200 || again.ID != v.ID || again.ChecksLeft != 1 || again.SendsLeft != 3 || again.SMS == v.SMS {
		t.Errorf("sent again: %d %s", got.status, got.body)
	}
	if got := w.check(v.ID, wrong); got.status != 400 {
		t.Errorf("the fifth wrong code: %d %s", got.status, got.body)
	}
	if got := w.check(v.ID, code); got.status != 429 || got.header.Get("Retry-After") == "" ||
		got.header.Get("X-Error-Code") != "verification_checks" {
		t.Errorf("the right code after five wrong ones: %d %s", got.status, got.body)
	}
	if _, got := w.verify(body); got.status != 429 || got.header.Get("X-Error-Code") != "verification_checks" {
		t.Errorf("another code after five wrong ones: %d %s", got.status, got.body)
	}
	if got := w.do("live", "GET", "/v1/verifications/"+v.ID, ""); got.status != 200 ||
		!strings.Contains(got.body, `"status":"max_attempts_reached"`) {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := w.do("other", "GET", "/v1/verifications/"+v.ID, ""); got.status != 404 {
		t.Errorf("another company's: %d", got.status)
	}
	if got := w.do("other", "POST", "/v1/verifications/"+v.ID+"/check", object("code", code)); got.status != 404 {
		t.Errorf("another company's check: %d", got.status)
	}
	if n := w.count(`SELECT count(*) FROM messages WHERE body LIKE '%' || $1 || '%'`, code); n != 0 {
		t.Error("the code is in a message's text")
	}
	if n := w.count(`SELECT count(*) FROM messages m JOIN outbox o ON o.message_id = m.id WHERE body LIKE '%******%'
		AND o.expires_at <= now() + interval '10 min' AND lane = 0`); n != 2 {
		t.Errorf("%d messages wait, not 2", n)
	}
	if n := w.count(`SELECT credits FROM balances WHERE company_id = $1`, w.company["live"]); n != 998 {
		t.Errorf("%d credits, not 998", n)
	}
}

// TestVerificationOnce: of a hundred checks at once with the right code one approves. The others are told the same, and
// that they repeat it.
func TestVerificationOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	v, _ := w.verify(`{"phone_number":"79123456","sender":"ACME","code_length":4}`)
	code := w.verificationCode(v.ID)
	var mu sync.Mutex
	statuses := map[int]int{}
	first := 0
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			got := w.check(v.ID, code)
			mu.Lock()
			defer mu.Unlock()
			statuses[got.status]++
			if got.status == 200 && got.header.Get("Idempotent-Replayed") == "" {
				first++
			}
		})
	}
	all.Wait()
	if first != 1 || statuses[200] < 2 || statuses[200]+statuses[409]+statuses[429] != 100 {
		t.Errorf("%v, %d the first", statuses, first)
	}
	w.aSecondLater()
	if got := w.check(v.ID, code); got.status != 409 {
		t.Errorf("later: %d %s", got.status, got.body)
	}
	if n := w.count(`SELECT sum(converted) FROM conversions`); n != 1 {
		t.Errorf("%d conversions, not 1", n)
	}
}

// TestVerificationLimits: five sends of one verification, 20 to a number within an hour, and the company's own limit.
// What is refused is neither charged nor counted.
func TestVerificationLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{Verifications: 24}).settle()
	refused := func(body string) {
		t.Helper()
		if _, got := w.verify(body); got.status != 429 || got.header.Get("X-Error-Code") != "verification_limit" ||
			got.header.Get("Retry-After") == "" {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	body := func(n int) string {
		return fmt.Sprintf(`{"phone_number":"79123456","sender":"ACME","amount":"%d","payee":"B"}`, n)
	}
	for n := range 4 {
		for range 5 {
			if _, got := w.verify(body(n)); got.status != 200 {
				t.Fatalf("%d %s", got.status, got.body)
			}
			w.aSecondLater()
		}
		refused(body(n))
	}
	refused(body(4))
	for n := range 4 {
		if _, got := w.verify(fmt.Sprintf(`{"phone_number":"7912345%d","sender":"ACME","end_user_id":"u"}`,
			n)); got.status != 200 {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	refused(`{"phone_number":"79123450","sender":"ACME"}`)
	if n := w.count(`SELECT credits FROM balances WHERE company_id = $1`, w.company["live"]); n != 1000-24 {
		t.Errorf("%d credits", n)
	}
}

// TestVerificationRefused: a message that is refused is not counted, and a repetition with its key sends nothing.
func TestVerificationRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	w.exec(`UPDATE balances SET credits = 1 WHERE company_id = $1`, w.company["live"])
	body := `{"phone_number":"79123456","sender":"ACME"}`
	v, got := w.verify(body, keyHeader, "k")
	if got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if _, again := w.verify(body, keyHeader, "k"); again.body != got.body {
		t.Errorf("repeated: %d %s", again.status, again.body)
	}
	for n := range 6 {
		if _, got := w.verify(body, keyHeader, fmt.Sprint(n)); got.status != 400 {
			t.Errorf("without credits: %d %s", got.status, got.body)
		}
	}
	if n := w.count(`SELECT sends FROM verifications WHERE ulid = $1`, [16]byte(ulid.MustParse(v.ID))); n != 1 {
		t.Errorf("%d messages are counted", n)
	}
	if _, got := w.verify(`{"phone_number":"68123456","sender":"ACME"}`); got.status != 400 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if n := w.count(`SELECT count(*) FROM verifications`); n != 1 {
		t.Errorf("%d verifications", n)
	}
}

// TestVerificationOfPayment: the check must repeat what the text showed.
func TestVerificationOfPayment(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	v, got := w.verify(`{"phone_number":"79123456","sender":"ACME","amount":"25 000 FBu","payee":"Chez Évariste"}`)
	if got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	code := w.verificationCode(v.ID)
	path := "/v1/verifications/" + v.ID + "/check"
	if got := w.do("live", "POST", path, object("code", code)); got.status != 422 ||
		got.header.Get("X-Error-Code") != "payment_required" {
		t.Errorf("without the payment: %d %s", got.status, got.body)
	}
	if got := w.do("live", "POST", path, object("code", code, "amount", "26 000 FBu", "payee",
		"Chez Évariste")); got.status != 400 {
		t.Errorf("another amount: %d %s", got.status, got.body)
	}
	if got := w.do("live", "POST", path, object("code", code[:3]+" "+code[3:], "amount", "25 000 FBu", "payee",
		"Chez Évariste")); got.status != 200 || !strings.Contains(got.body, `"status":"approved"`) {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := w.check(v.ID, code); got.status != 422 && got.status != 409 {
		t.Errorf("again: %d %s", got.status, got.body)
	}
}

// TestVerificationAsTyped: people and pages write codes, languages and payments in many forms. A check of another form
// is no wrong code.
func TestVerificationAsTyped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	for given, want := range map[string]string{"": "fr", "fr-FR": "fr", "fr_BI": "fr", "FR": "fr", "rn-BI": "rn",
		" sw_KE.UTF-8": "sw", "eng": "en", "run-Latn-BI": "rn"} {
		body := object("phone_number", "79123456", "sender", "ACME", "locale", given, "client_reference", given)
		if given == "" {
			body = `{"phone_number":"79123456","sender":"ACME"}`
		}
		w.exec(`DELETE FROM verifications`)
		if _, got := w.verify(body); got.status != 200 || !strings.Contains(got.body, `"locale":"`+want+`"`) {
			t.Errorf("%q: %d %s", given, got.status, got.body)
		}
	}
	w.exec(`DELETE FROM verifications`)
	const asked, shown = "25\u202f000 – 26\u00a0000\u2007FBu", "25 000 - 26 000 FBu"
	v, got := w.verify(object("phone_number", "79123456", "sender", "ACME", "amount", asked, "payee",
		"L’Ève ça,  E\u0301"))
	if got.status != 200 || !strings.Contains(got.body, `"amount":"`+shown+`","payee":"L'Eve ca, É"`) {
		t.Fatalf("%d %s", got.status, got.body)
	}
	code := w.verificationCode(v.ID)
	arabic := strings.Map(func(r rune) rune { return r - '0' + '٠' }, code)
	wide := strings.Map(func(r rune) rune { return r - '0' + '０' }, code)
	typed := []string{code[:3] + "-" + code[3:], code[:3] + " " + code[3:], code[:3] + "\u00a0" + code[3:],
		code[:3] + "\u2009–\u202f" + code[3:], "\u200e" + code + "\u200f", "\u202a" + code + "\u202c", code + "\r\n",
		"\t" + code + "\u2028", arabic, wide, "\ufeff" + wide}
	payments := [][2]string{{asked, "L’Ève ça, É"}, {shown, "L'Eve ca, É"}, {"25 000 — 26 000 FBu", " L‘Ève ça, É"}}
	for n, code := range typed {
		w.exec(`UPDATE verifications SET state = 0, finished_at = NULL`)
		payment := payments[n%len(payments)]
		for range 2 { // a refused form is no check
			if got := w.do("live", "POST", "/v1/verifications/"+v.ID+"/check",
				object("code", code+"x", "amount", payment[0], "payee", payment[1])); got.status != 422 {
				t.Errorf("%q: %d %s", code+"x", got.status, got.body)
			}
		}
		if got := w.do("live", "POST", "/v1/verifications/"+v.ID+"/check",
			object("code", code, "amount", payment[0], "payee", payment[1])); got.status != 200 {
			t.Errorf("%q %q: %d %s", code, payment, got.status, got.body)
		}
	}
	if n := w.count(`SELECT wrong FROM verifications`); n != 0 {
		t.Errorf("%d wrong codes", n)
	}
}

// TestVerificationEnds: cancelled and expired ones take no code, and the event comes once, for endpoints that ask for
// it.
func TestVerificationEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	w.exec(`INSERT INTO webhook_endpoints (company_id, url, secret, active, events)
		VALUES ($1, 'https://127.0.0.1:1/', 'x', true, '{verification.finished}')`, w.company["live"])
	one, _ := w.verify(`{"phone_number":"79123456","sender":"ACME"}`)
	two, _ := w.verify(`{"phone_number":"79123457","sender":"ACME"}`)
	three, _ := w.verify(`{"phone_number":"79123458","sender":"ACME"}`)
	cancel := "/v1/verifications/" + one.ID + "/cancel"
	if got := w.do("live", "POST", cancel, ""); got.status != 200 || !strings.Contains(got.body, `"status":"cancelled"`) {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := w.do("live", "POST", cancel, ""); got.status != 409 {
		t.Errorf("cancelled again: %d %s", got.status, got.body)
	}
	if got := w.check(one.ID, w.verificationCode(one.ID)); got.status != 409 {
		t.Errorf("the code of a cancelled one: %d %s", got.status, got.body)
	}
	w.exec(`UPDATE verifications SET expires_at = now() WHERE state = 0`)
	w.exec(`UPDATE messages SET status = 2, failed_at = now() WHERE phone_number = '+25779123458'`)
	w.exec(`WITH sent AS (DELETE FROM outbox o USING messages m WHERE m.id = o.message_id
		AND m.phone_number = '+25779123457' RETURNING m.id)
		INSERT INTO segments (carrier, key, link, message_id, segment, total, submitted_at) SELECT 'leo', '1', 'leo', id, 1,
			1, now() FROM sent`)
	if got := w.check(two.ID, w.verificationCode(two.ID)); got.status != 400 ||
		got.header.Get("X-Error-Code") != "code_expired" {
		t.Errorf("the code of an expired one: %d %s", got.status, got.body)
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- w.deps.Intake.RunVerifications(ctx) }()
	for deadline := time.Now().Add(20 * time.Second); w.count(`SELECT count(*) FROM verifications WHERE state = 0`) > 0 &&
		time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for id, want := range map[string]string{one.ID: "cancelled", two.ID: "expired", three.ID: "failed"} {
		if got := w.do("live", "GET", "/v1/verifications/"+id, ""); !strings.Contains(got.body, `"status":"`+want+`"`) {
			t.Errorf("want %s: %s", want, got.body)
		}
		if n := w.count(`SELECT count(*) FROM webhook_undelivered WHERE data LIKE '%' || $1 || '%'
			AND data LIKE '%"status":"' || $2 || '"%'`, id, want); n != 1 {
			t.Errorf("%d events of %s", n, want)
		}
	}
	if fresh, got := w.verify(`{"phone_number":"79123457","sender":"ACME"}`); got.status != 200 || fresh.ID == two.ID {
		t.Errorf("another one: %d %s", got.status, got.body)
	}
}

// TestVerificationRefusals are the refusals of its fields.
func TestVerificationRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	const start = `{"phone_number":"79123456","sender":"ACME"`
	for _, c := range []struct{ body, field, code string }{
		{`{}`, "phone_number", "phone_number_required"},
		{`{"phone_number":"79123456"}`, "sender", "sender_required"},
		{start + `,"locale":"de"}`, "locale", "locale_invalid"},
		{start + `,"code_length":3}`, "code_length", "code_length_invalid"},
		{start + `,"code_length":"6"}`, "code_length", "code_length_invalid"},
		{start + `,"code_length":6.5}`, "code_length", "code_length_invalid"},
		{start + `,"ttl":59}`, "ttl", "ttl_invalid"},
		{start + `,"ttl":3601}`, "ttl", "ttl_invalid"},
		{start + `,"amount":"*"}`, "amount", "amount_invalid"},
		{start + `,"amount":"1","payee":"{{code}}"}`, "payee", "payee_invalid"},
		{start + `,"amount":"1"}`, "payee", "payment_incomplete"},
		{start + `,"app_hash":"short"}`, "app_hash", "app_hash_invalid"},
		{start + `,"web_domain":"https://a.bi"}`, "web_domain", "web_domain_invalid"},
		{start + `,"web_domain":"a.bi","app_hash":"FA+9qCX9VSu"}`, "web_domain", "web_domain_with_app_hash"},
		{start + `,"end_user_id":"a\n"}`, "end_user_id", "end_user_id_invalid"},
		{start + `,"client_reference":5}`, "client_reference", "client_reference_not_a_string"},
	} {
		if _, got := w.verify(c.body); got.status != 422 || got.header.Get("X-Error-Code") != c.code ||
			!strings.Contains(got.body, `"`+c.field+`"`) {
			t.Errorf("%s: %d %s %s", c.body, got.status, got.header.Get("X-Error-Code"), got.body)
		}
	}
	if _, got := w.verify(start + `,"amount":"` + strings.Repeat("9", 20) + `","payee":"` + strings.Repeat("W", 30) +
		`","locale":"sw","code_length":10,"web_domain":"` + strings.Repeat("a", 37) + `.bi"}`); got.status != 400 ||
		got.header.Get("X-Error-Code") != "verification_too_long" {
		t.Errorf("too long: %d %s", got.status, got.body)
	}
	v, _ := w.verify(start + `}`)
	for body, code := range map[string]string{`{}`: "code_required", `{"code":"123"}`: "code_invalid",
		`{"code":123456}`: "code_invalid", `{"code":"12345a"}`: "code_invalid"} {
		if got := w.do("live", "POST", "/v1/verifications/"+v.ID+"/check", body); got.status != 422 ||
			got.header.Get("X-Error-Code") != code {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
	}
	if got := w.check("1024", "123456"); got.status != 404 {
		t.Errorf("%d", got.status)
	}
	if n := w.count(`SELECT count(*) FROM verifications WHERE wrong > 0`); n != 0 {
		t.Error("an invalid request counts as a wrong code")
	}
}

// TestFeedback: a report on a message counts once, and can be changed.
func TestFeedback(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	sent := w.do("live", "POST", "/v1/sms", single("79123456", "ACME", "x"))
	var m struct{ ID string }
	if err := json.Unmarshal([]byte(sent.body), &m); err != nil {
		t.Fatal(err)
	}
	path := "/v1/sms/" + m.ID + "/feedback"
	for _, converted := range []bool{true, true, false, false, true} {
		if got := w.do("live", "POST", path, fmt.Sprintf(`{"converted":%t}`, converted)); got.status != 200 {
			t.Fatalf("%d %s", got.status, got.body)
		}
		want := 0
		if converted {
			want = 1
		}
		if asked, is := w.count(`SELECT asked FROM conversions`), w.count(`SELECT converted FROM conversions`); asked != 1 ||
			is != int64(want) {
			t.Errorf("%d of %d, want %d of 1", is, asked, want)
		}
	}
	if got := w.do("live", "POST", path, `{"converted":"yes"}`); got.status != 422 ||
		got.header.Get("X-Error-Code") != "converted_invalid" {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := w.do("other", "POST", path, `{"converted":true}`); got.status != 404 {
		t.Errorf("another company's message: %d", got.status)
	}
}
