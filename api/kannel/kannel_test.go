package kannel

import (
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// api answers as told and keeps the last request.
type api struct {
	status int
	body   string
	code   string

	path, bearer string
	sent         map[string]any
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.path, a.sent = r.URL.Path, nil
	a.bearer = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	text, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(text, &a.sent)
	if a.bearer == "panic|x" {
		panic("a fault")
	}
	if a.code != "" {
		w.Header()["X-Error-Code"] = []string{a.code}
	}
	w.Header().Set("Retry-After", "7")
	status, body := a.status, a.body
	if status == 200 && len(a.sent) == 0 {
		status, body = 422,
			`{"message":"The phone number is required.","errors":{"phone_number":["The phone number is required."]}}`
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

func newDoor(a *api) http.Handler {
	return New(Options{API: a, Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(),
		CheckCallback: func(u string) error {
			if strings.HasPrefix(u, "https://") {
				return nil
			}
			return sms.Refusal{Text: "The webhook URL must start with https://."}
		}})
}

func call(t *testing.T, door http.Handler, method, target, body, contentType string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	w := httptest.NewRecorder()
	door.ServeHTTP(w, r)
	return w
}

const login = "username=5&password=secret"

// TestAnswers: where a row says 1.4.5, Debian's Kannel 1.4.5 (smsbox, with a bearerbox and fakesmsc) gave the same
// answer to the same request.
func TestAnswers(t *testing.T) {
	door := newDoor(&api{status: 200, body: "{}"})
	for _, each := range []struct {
		source, query string
		status        int
		body          string
	}{
		{"1.4.5", login + "&to=79123456&from=INFO&text=hi", 202, "0: Accepted for delivery"},
		{"1.4.5", "user=5&pass=secret&to=79123456&from=I&text=alias", 202, "0: Accepted for delivery"},
		{"1.4.5", login + "&from=INFO&text=hi", 400, "Missing receiver number, rejected"},
		{"1.4.5", login + "&from=INFO&text=hi&to=", 400, "Empty receiver number not allowed, rejected"},
		{"1.4.5", login + "&text=hi&to=79123456", 400, "Sender missing and no global set, rejected"},
		{"1.4.5", login + "&from=&text=hi&to=79123456", 400, "Sender missing and no global set, rejected"},
		{"1.4.5", login + "&from=I&to=79123456+61234567+79123456&text=x", 202, "0: Accepted for delivery"},
		{"1.4.5", login + "&from=I&to=79123456&text=x&dlr-mask=99", 400, "DLR-Mask field misformed, rejected"},
		{"1.4.5", login + "&from=I&to=79123456&text=x&coding=7", 400, "Coding field misformed, rejected"},
		{"1.4.5", login + "&from=I&to=79123456&text=x&validity=-5", 400, "Validity field misformed, rejected"},
		{"1.4.5", login + "&from=I&to=79123456&text=x&validity=0", 202, "0: Accepted for delivery"},
		{"1.4.5", login + "&from=I&to=79123456&text=x&priority=9", 400, "Priority field misformed, rejected"},
		{"1.4.5", login + "&from=I&to=79123456&text=x&mclass=9", 400, "MClass field misformed, rejected"},
		{"1.4.5", login + "&from=I&to=79123456&text=100%+sure", 202, "0: Accepted for delivery"},
		{"1.4.5", login + "&from=I&to=79123456&text=x&charset=klingon", 400, "Charset or body misformed, rejected"},
		{"1.4.5", login + "&from=I&to=79123456&text=%00%41&coding=2", 202, "0: Accepted for delivery"},
		{"1.4.5", login + "&from=I&to=79123456&text=x&account=bad%5B", 400, "Account field misformed or too long, rejected"},

		{"1.4.5 begins so", login + "&from=I&to=79123456&text=x&dlr-mask=31&dlr-url=ftp://x/y", 400,
			"DLR-URL field misformed, rejected: it must start with https://."},
		{"issue", login + "&from=I&to=79123456&text=x&deferred=5", 202, "3: Queued for later delivery"},
		{"smsbox.c", login + "&from=I&to=79123456&text=x&deferred=-2", 400, "Deferred field misformed, rejected"},
		{"smsbox.c", login + "&from=I&to=79123456&text=x&deferred=soon", 400, "Deferred field misformed, rejected"},
		{"smsbox.c", login + "&from=I&to=79123456&text=x&account=" + strings.Repeat("a", 65), 400,
			"Account field misformed or too long, rejected"},

		{"ours", login + "&from=I&to=79123456&text=x&udh=%05%00%03", 400,
			"udh is not supported but for the parts of a long text, rejected"},
		// ports
		{"ours", login + "&from=I&to=79123456&text=x&udh=%06%05%04%0B%84%0B%84", 400,
			"udh is not supported but for the parts of a long text, rejected"},
		{"1.4.5", login + "&from=I&to=79123456&text=x&coding=0&udh=%05%00%03%CC%02%01", 202, "0: Accepted for delivery"},
		{"1.4.5", login + "&from=I&to=79123456&text=x&coding=0&udh=%06%08%04%01%CC%02%02", 202, "0: Accepted for delivery"},
		{"ours", login + "&from=I&to=79123456&text=x&udh=", 202, "0: Accepted for delivery"},
		{"ours", login + "&from=I&to=79123456&text=x&udh=-1", 202, "0: Accepted for delivery"},
		{"ours", login + "&from=I&to=79123456&text=x&mwi=0", 400, "mwi is not supported, rejected"},
		{"ours", login + "&from=I&to=79123456&text=x&pid=127", 400, "pid is not supported, rejected"},
		{"ours", login + "&from=I&to=79123456&text=x&pid=0&rpi=-1&alt-dcs=1&compress=0", 202, "0: Accepted for delivery"},
		{"smsbox.c", login + "&from=I&to=79123456&text=x&alt-dcs=2", 400, "Alt-DCS field misformed, rejected"},
		{"smsbox.c", login + "&from=I&to=79123456&text=x&validity=1440.0&dlr-mask=31;&deferred=0m", 202,
			"0: Accepted for delivery"},
		{"smsbox.c", login + "&from=I&to=79123456&text=x&validity=.5", 400, "Validity field misformed, rejected"},
		{"ours", login + "&from=I&to=79123456&text=x&binfo=gold", 202, "0: Accepted for delivery"},
		{"ours", login + "&from=I&to=79123456&text=x&mclass=0", 400, "MClass 0 is not supported, rejected"},
		{"ours", login + "&from=I&to=79123456&text=x&mclass=1", 202, "0: Accepted for delivery"},
		{"ours", login + "&from=I&to=79123456&text=x&coding=1", 400, "Coding 1 (8-bit data) is not supported, rejected"},
		{"ours", login + "&from=I&to=79123456&text=%00A%00&coding=2", 400, "Charset or body misformed, rejected"},
		{"ours", login + "&from=I&to=79123456&text=%D8%00&coding=2", 400, "Charset or body misformed, rejected"},
		{"ours", login + "&from=I&to=79123456&text=%FF", 400, "Charset or body misformed, rejected"},
		{"ours", login + "&from=I&to=79123456&text=x&dlr-mask=abc", 400, "DLR-Mask field misformed, rejected"},
		{"ours", login + "&from=I&to=79123456&text=x&smsc=OTHER&priority=3&unknown=1", 202, "0: Accepted for delivery"},
	} {
		w := call(t, door, http.MethodGet, Path+"?"+each.query, "", "")
		if w.Code != each.status || w.Body.String() != each.body {
			t.Errorf("%s (%s): %d %q, want %d %q", each.query, each.source, w.Code, w.Body, each.status, each.body)
		}
	}
}

// TestRequests: what the API gets.
func TestRequests(t *testing.T) {
	a := &api{status: 200, body: "{}"}
	door := newDoor(a)
	const to = login + "&to=79123456&from=INFO"
	single := func(text string, more ...string) map[string]any {
		m := map[string]any{"phone_number": "79123456", "sender": "INFO", "message": text}
		for i := 0; i < len(more); i += 2 {
			m[more[i]] = more[i+1]
		}
		return m
	}
	utf16 := func(text string) string { // as RapidPro's courier encodes it
		var b strings.Builder
		for _, r := range text {
			b.WriteByte(byte(r >> 8))
			b.WriteByte(byte(r))
		}
		return url.QueryEscape(b.String())
	}
	for _, each := range []struct {
		query, path string
		want        map[string]any
	}{
		{to + "&text=Bonjour+%C3%A0+tous", "/v1/sms", single("Bonjour à tous")},
		{to + "&text=caf%E9&charset=ISO-8859-1", "/v1/sms", single("café")},
		{to + "&text=5%80&charset=windows-1252", "/v1/sms", single("5€")},
		{to + "&text=5%A4&charset=iso-8859-15", "/v1/sms", single("5€")},
		{to + "&coding=0&text=%E2%82%AC", "/v1/sms", single("€")},
		{to + "&coding=2&text=" + utf16("Амахоро"), "/v1/sms", single("Амахоро")},
		{to + "&coding=2&charset=UTF-8&text=%D0%90", "/v1/sms", single("А")},
		{to + "&coding=2&charset=UTF-16&text=%FF%FE%41%00", "/v1/sms", single("A")},
		{to + "&coding=2&charset=UTF-16LE&text=%41%00", "/v1/sms", single("A")},
		{to + "&coding=2&text=%D8%3D%DE%00", "/v1/sms", single("😀")},
		{to + "&text=100%+sure", "/v1/sms", single("100% sure")},
		{to + "&text=a%3Db%26c", "/v1/sms", single("a=b&c")},
		{to + "&text=x&text=y", "/v1/sms", single("x")},
		{to + "&text=x&account=INV-7", "/v1/sms", single("x", "client_reference", "INV-7")},
		{login + "&to=%2B25779123456&from=INFO&text=x", "/v1/sms",
			map[string]any{"phone_number": "+25779123456", "sender": "INFO", "message": "x"}},
		// + is a blank here, and numbers count once
		{login + "&to=+79123456+79123456&from=INFO&text=x", "/v1/sms", single("x")},
		{login + "&to=79123456+%2B25779123456+25779123456+0025779123456&from=INFO&text=x", "/v1/sms", single("x")},
		{login + "&to=79123456+%0961234567&from=INFO&text=x&account=a", "/v1/sms/bulk",
			map[string]any{"sender": "INFO", "messages": []any{
				map[string]any{"phone_number": "79123456", "message": "x", "client_reference": "a"},
				map[string]any{"phone_number": "61234567", "message": "x", "client_reference": "a"}}}},
	} {
		w := call(t, door, http.MethodGet, Path+"?"+each.query, "", "")
		got, _ := json.Marshal(a.sent)
		want, _ := json.Marshal(each.want)
		if w.Code != 202 || a.path != each.path || string(got) != string(want) || a.bearer != "5|secret" {
			t.Errorf("%s: %d %s, %s %s as %s, want %s", each.query, w.Code, w.Body, a.path, got, a.bearer, want)
		}
	}
}

func TestLogin(t *testing.T) {
	a := &api{status: 200, body: "{}"}
	door := newDoor(a)
	for query, bearer := range map[string]string{
		"username=5&password=secret":              "5|secret",
		"user=5&pass=secret":                      "5|secret",
		"username=5&password=5%7Csecret":          "5|secret", // the whole key
		"username=6&password=5%7Csecret":          "6|5|secret",
		"username=&password=5%7Csecret":           "|5|secret",
		"":                                        "|",
		"password=secret&username=5&username=900": "5|secret",
	} {
		if call(t, door, http.MethodGet, Path+"?to=79123456&from=I&text=x&"+query, "", ""); a.bearer != bearer {
			t.Errorf("%s: %q, want %q", query, a.bearer, bearer)
		}
	}
}

func TestTimes(t *testing.T) {
	a := &api{status: 200, body: "{}"}
	door := newDoor(a)
	for _, each := range []struct {
		query        string
		send, expire time.Duration
	}{
		{"", 0, 0}, {"&deferred=0&validity=0", 0, 0}, {"&deferred=-1&validity=-1", 0, 0}, {"&deferred=&validity=", 0, 0},
		{"&deferred=90", 90 * time.Minute, 0},
		{"&validity=10", 0, 10 * time.Minute},
		{"&deferred=60&validity=600", time.Hour, 10 * time.Hour},
		{"&validity=10080", 0, 3 * 24 * time.Hour}, // a week: as long as carriers try
	} {
		now := postgres.Now()
		call(t, door, http.MethodGet, Path+"?"+login+"&to=79123456&from=I&text=x"+each.query, "", "")
		for field, want := range map[string]time.Duration{"send_at": each.send, "expire_at": each.expire} {
			text, given := a.sent[field].(string)
			at, _ := time.Parse(time.RFC3339, text)
			if given != (want > 0) || given && at.Sub(now.Add(want)).Abs() > time.Minute {
				t.Errorf("%s: %s is %q", each.query, field, text)
			}
		}
	}
}

// TestRefusals: what becomes of the API's answers.
func TestRefusals(t *testing.T) {
	const query = login + "&to=79123456&from=I&text=x"
	for _, each := range []struct {
		api    api
		query  string
		status int
		body   string
	}{
		{api{status: 401}, query, 403, "Authorization failed for sendsms"},
		{api{status: 401}, "to=79123456", 403, "Authorization failed for sendsms"}, // before its mistakes, as in Kannel
		{api{status: 403, code: "token_network"}, query, 403, "Authorization failed for sendsms"},
		{api{status: 429}, query, 503, "Temporal failure, try again later."},
		{api{status: 429}, login, 503, "Temporal failure, try again later."},
		{api{status: 503}, query, 503, "Temporal failure, try again later."},
		{api{status: 500}, query, 503, "Temporal failure, try again later."},
		{api{status: 400, code: "no_carrier", body: `{"message":"No carrier serves this phone number."}`}, query, 403,
			"Not routable. Do not try again."},
		{api{status: 400, code: "sender_not_registered", body: `{"message":"Sender not registered with this carrier."}`},
			query, 400, "Sender not registered with this carrier."},
		{api{status: 400, body: `{"message":"Insufficient SMS credits. This message requires 1 credit."}`}, query, 400,
			"Insufficient SMS credits. This message requires 1 credit."},
		{api{
			status: 422,
			body: `{"message":"The phone number must be a valid Burundi (+257) number.","errors":{"phone_number":["The ` +
				`phone number must be a valid Burundi (+257) number."]}}`},
			query, 400, "The phone number must be a valid Burundi (+257) number."},
		{api{
			status: 422,
			body: `{"message":"The given data was invalid.","errors":{"messages.1.phone_number":["The ` +
				`messages.1.phone_number field must be a valid Burundi (+257) number."],"messages.2.phone_number":["x"]}}`},
			query + "&to=1", 400, "Receiver #2: the to field must be a valid Burundi (+257) number."},
		{api{
			status: 422,
			body: `{"message":"The send_at must be at most 30 days ahead.","errors":{"send_at":["The send_at must be at ` +
				`most 30 days ahead."]}}`},
			query, 400, "The deferred must be at most 30 days ahead."},
	} {
		w := call(t, newDoor(&each.api), http.MethodGet, Path+"?"+each.query, "", "")
		if w.Code != each.status || w.Body.String() != each.body {
			t.Errorf("%d %s: %d %q, want %d %q", each.api.status, each.api.body, w.Code, w.Body, each.status, each.body)
		}
		if w.Header().Get("Retry-After") != "7" || w.Header().Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("headers %v", w.Header())
		}
	}
}

func TestMethods(t *testing.T) {
	a := &api{status: 200, body: "{}"}
	door := newDoor(a)
	const form, query = "application/x-www-form-urlencoded", login + "&to=79123456&from=I&text=x"
	for _, each := range []struct {
		method, target, body, kind string
		status                     int
	}{
		{"POST", Path, query, form, 202},
		{"POST", Path, query, form + "; charset=UTF-8", 202},
		{"POST", Path + "?" + login, "to=79123456&from=I&text=x", form, 202}, // courier's send_url may have parameters
		{"POST", Path, "<message/>", "text/xml", 400},                        // Kannel's other POSTs
		{"POST", Path, query, "", 400},
		{"POST", Path, query + strings.Repeat("x", maxBody), form, 413},
		{"PUT", Path, query, form, 405},
		{"GET", "/", "", "", 404},
		{"GET", Path + "/?" + query, "", "", 404},
		{"GET", "/cgi-bin/sendota?" + query, "", "", 404},
	} {
		if w := call(t, door, each.method, each.target, each.body, each.kind); w.Code != each.status {
			t.Errorf("%s %s: %d %s, want %d", each.method, each.target, w.Code, w.Body, each.status)
		}
	}
}

// TestFaultTellsNothing: a panic is answered and logged without the request.
func TestFaultTellsNothing(t *testing.T) {
	var log strings.Builder
	door := New(Options{API: &api{}, Log: slog.New(slog.NewTextHandler(&log, nil)), Metrics: prometheus.NewRegistry()})
	w := call(t, door, http.MethodGet, Path+"?username=panic&password=x&to=79123456&from=I&text=canary", "", "")
	if w.Code != 503 || w.Body.String() != later {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if !strings.Contains(log.String(), "handler_panicked") || strings.Contains(log.String(), "canary") {
		t.Errorf("the log is %q", log.String())
	}
}

func FuzzUnescape(f *testing.F) {
	for _, text := range []string{"a+b", "%41", "100%", "%4", "%zz%", "%%41"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got := unescape(url.QueryEscape(text)); got != text {
			t.Errorf("%q became %q", text, got)
		}
		_ = unescape(text)
	})
}

// TestStatusesAreCounted: a metric has the usual statuses from the start.
func TestStatusesAreCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	New(Options{API: &api{}, Metrics: registry})
	families, err := registry.Gather()
	if err != nil || len(families) != 1 {
		t.Fatal(families, err)
	}
	statuses := map[string]bool{}
	for _, m := range families[0].GetMetric() {
		statuses[m.GetLabel()[0].GetValue()] = true
	}
	if got := slices.Sorted(maps.Keys(statuses)); !slices.Equal(got, []string{"202", "400", "403", "503"}) {
		t.Error(got)
	}
}
