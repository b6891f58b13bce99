package api

import (
	"strconv"
	"strings"
	"testing"

	"intumwa/accounts/companies"
	"intumwa/accounts/testnumbers"
	"intumwa/internal/otp"
)

// code returns the one-time code of the last SMS to a number.
func (w *world) code(number string) string {
	w.t.Helper()
	var secret otp.Secret
	var body string
	if err := w.pool.QueryRow(w.t.Context(), `SELECT secret, body FROM messages WHERE phone_number = $1 AND company_id = 0
		ORDER BY id DESC LIMIT 1`, number).
		Scan(&secret, &body); err != nil {
		w.t.Fatal(err)
	}
	code := secret.Code([]byte("key"))
	if strings.Contains(body, code) || !strings.Contains(secret.Reveal([]byte("key"), body), code) {
		w.t.Fatalf("code %s, text %q", code, body)
	}
	return code
}

// later ages all codes by more than a minute, so another one can be requested.
func (w *world) later() {
	w.exec(`UPDATE test_number_codes SET created_at = created_at - interval '61 s'`)
}

func testMode(number string, verified bool, left, remaining int) string {
	out := vars{"phone_number": nil, "verified": verified, "replacements_left": left, "sender": testSender,
		"quota": vars{"segments": 5, "remaining": remaining}}
	if number != "" {
		out["phone_number"] = number
	}
	return encode(out)
}

// The quick start: enter a number, type the code, send.
func TestVerifyTestNumber(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	const path, verify = "/v1/test-number", "/v1/test-number/verify"
	sameJSON(t, w.do("new", "GET", path, "").body, testMode("", false, 3, 5))
	sameJSON(t, w.do("new", "POST", verify, `{"code":"123456"}`).body,
		messageJSON("There is no code to confirm. Ask for a new one."))

	got := w.do("new", "PUT", path, `{"phone_number":"79 12 34 56"}`)
	if got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	sameJSON(t, got.body, testMode("+25779123456", false, 3, 5))
	code := w.code("+25779123456")
	if n := w.count(`SELECT count(*) FROM messages m JOIN outbox o ON o.message_id = m.id WHERE m.company_id = 0
		AND o.company_id = 0
		AND m.sender = $1 AND NOT m.test AND o.carrier = 'leo' AND o.expires_at < now() + interval '11 min'`,
		testSender); n != 1 {
		t.Errorf("%d codes on their way, not 1", n)
	}
	if n := w.count(`SELECT count(*) FROM ledger WHERE kind <> 'adjustment'`) +
		w.count(`SELECT sum(test_used) FROM balances`); n != 0 {
		t.Error("a code was charged")
	}
	sameJSON(t, w.do("new", "GET", "/v1/sms", "").body, `{"data":[],"next_cursor":null}`)

	got = w.do("new", "PUT", path, `{"phone_number":"79 12 34 56"}`)
	wait, _ := strconv.Atoi(got.header.Get("Retry-After"))
	if got.status != 429 || wait < 1 || wait > 61 {
		t.Errorf("another at once: %d, wait %d", got.status, wait)
	}
	sameJSON(t, got.body, messageJSON("Too Many Attempts."))

	wrong := "000000"
	if code == wrong {
		wrong = "000001"
	}
	sameJSON(t, w.do("new", "POST", verify, object("code", wrong)).body, messageJSON("The code is not right."))
	if got := w.do("new", "POST", "/v1/sms", single("79123456", testSender, "x")); got.status != 400 {
		t.Errorf("before it is verified: %d", got.status)
	}
	got = w.do("new", "POST", verify, object("code", code[:3]+" "+code[3:]))
	if got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	sameJSON(t, got.body, testMode("+25779123456", true, 3, 5))
	w.sent("new", single("79123456", testSender, long(161)))
	sameJSON(t, w.do("new", "GET", path, "").body, testMode("+25779123456", true, 3, 3))
	w.later()
	sameJSON(t, w.do("new", "PUT", path, `{"phone_number":"79123456"}`).body,
		messageJSON("This number is already your verified test number."))
}

func TestTestNumberRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	const path, verify = "/v1/test-number", "/v1/test-number/verify"
	for _, c := range []struct {
		as, method, path, body string
		status                 int
		want                   string
	}{
		{"new", "PUT", path, `{}`, 422, failsFirst("phone_number", "The phone number is required.")},
		{"new", "PUT", path, `{"phone_number":"22201234"}`, 422,
			failsFirst("phone_number", "The phone number must be a valid Burundi (+257) number.")},
		{"new", "PUT", path, `{"phone_number":"29123456"}`, 400, messageJSON("No carrier serves this phone number.")},
		{"new", "PUT", path, `{`, 400, messageJSON("The request body is not valid JSON.")},
		{"new", "POST", verify, `{}`, 422, failsFirst("code", "The code is required.")},
		{"new", "POST", verify, `{"code":"12345"}`, 422, failsFirst("code", "The code must be 6 digits.")},
		{"new", "POST", verify, `{"code":"12345a"}`, 422, failsFirst("code", "The code must be 6 digits.")},
		{"new", "POST", verify, `{"code":123456}`, 422, failsFirst("code", "The code must be 6 digits.")},
	} {
		got := w.do(c.as, c.method, c.path, c.body)
		if got.status != c.status {
			t.Errorf("%s %s: %d", c.method, c.body, got.status)
		}
		sameJSON(t, got.body, c.want)
	}
	if n := w.count(`SELECT count(*) FROM messages`) + w.count(`SELECT count(*) FROM test_number_codes`); n != 0 {
		t.Error("a refused request left something")
	}

	if got := w.do("new", "PUT", path, `{"phone_number":"79123456"}`); got.status != 200 {
		t.Fatal(got.body)
	}
	code := w.code("+25779123456")
	wrong := strings.Map(func(r rune) rune { return '0' + ('9'-r)%10 }, code)
	for range 5 {
		sameJSON(t, w.do("new", "POST", verify, object("code", wrong)).body, messageJSON("The code is not right."))
	}
	sameJSON(t, w.do("new", "POST", verify, object("code", code)).body,
		messageJSON("The code was mistyped too often. Ask for a new one."))
	w.later()
	if got := w.do("new", "PUT", path, `{"phone_number":"79123456"}`); got.status != 200 {
		t.Fatal(got.body)
	}
	w.exec(`UPDATE test_number_codes SET created_at = created_at - interval '10 min'`)
	sameJSON(t, w.do("new", "POST", verify, object("code", w.code("+25779123456"))).body,
		messageJSON("The code has expired. Ask for a new one."))
	w.exec(`UPDATE users SET test_verified_at = now(), test_replacements = 3 WHERE id = $1`, w.users["new"])
	w.later()
	sameJSON(t, w.do("new", "PUT", path, `{"phone_number":"79123459"}`).body,
		messageJSON("The test number cannot be replaced any more."))
	w.gets("new", path, 200, testMode("+25779123456", true, 0, 5))
}

// The code's text is in its user's language, one free segment.
func TestCodeInTheUsersLanguage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	for i, c := range []struct{ language, begins string }{
		{"fr", "Votre code de vérification Intumwa est "}, {"en", "Your Intumwa verification code is "},
		{"rn", "Kode yawe ya Intumwa ni "},
	} {
		if err := w.deps.People.SetLanguage(t.Context(), w.users["new"], c.language); err != nil {
			t.Fatal(err)
		}
		w.later()
		number := "7912346" + string(rune('0'+i))
		if got := w.do("new", "PUT", "/v1/test-number", `{"phone_number":"`+number+`"}`); got.status != 200 {
			t.Fatalf("%s: %d %s", c.language, got.status, got.body)
		}
		if n := w.count(`SELECT count(*) FROM messages WHERE phone_number = $1 AND starts_with(body, $2) AND segments = 1
			AND encoding = 0`,
			"+257"+number, c.begins); n != 1 {
			t.Errorf("%s: no code in this language", c.language)
		}
	}
}

// Too many free codes a day: 429 with the time to wait. A company with credits does not share that limit.
func TestFreeCodesAreLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{TestNumbers: func(o *testnumbers.Options) { o.FreeCodes = 1 }}).settle()
	const path = "/v1/test-number"
	if got := w.do("new", "PUT", path, `{"phone_number":"79123456"}`); got.status != 200 {
		t.Fatal(got.body)
	}
	w.customer("newer", &companies.NewCompany{})
	w.credits("newer", 5) // not approved
	got := w.do("newer", "PUT", path, `{"phone_number":"79223456"}`)
	sameJSON(t, got.body, messageJSON("Too many one-time codes were sent today."))
	if wait, _ := strconv.Atoi(got.header.Get("Retry-After")); got.status != 429 ||
		got.header.Get("X-Error-Code") != "code_limit" || wait < 86_000 || wait > 86_401 {
		t.Errorf("%d %v", got.status, got.header)
	}
	if got := w.do("approved", "PUT", path, `{"phone_number":"79323456"}`); got.status != 200 {
		t.Errorf("a company with credits: %d %s", got.status, got.body)
	}
}
