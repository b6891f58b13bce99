package dashboard

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"

	"intumwa/accounts"
	"intumwa/dashboard/testmode"
	"intumwa/dashboard/web"
)

// requested is the tests' API: it records requests and responds as set. cmd/intumwa tests the real one.
type requested struct {
	mu     sync.Mutex
	got    []apiRequest
	status int
	answer string
}

type apiRequest struct {
	*http.Request
	body string
}

// ServeHTTP implements [http.Handler].
func (r *requested) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, _ := io.ReadAll(request.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, apiRequest{request, string(body)})
	w.WriteHeader(r.status)
	_, _ = io.WriteString(w, r.answer)
}

func (r *requested) set(status int, answer string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status, r.answer = status, answer
}

// take returns the requests since the last take.
func (r *requested) take() []apiRequest {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { r.got = nil }()
	return r.got
}

const acceptedAnswer = `{"id":"01KJ5S3Y6QZ8T2W4X9V7B1N3M5","item_count":1,"remaining_items":4,"status":"queued",` +
	`"to":"+25701000001"}`

var (
	commandOnPage = regexp.MustCompile(`(?s)<code id="command">(.*?)</code>`)
	fieldOnPage   = func(name string) *regexp.Regexp { return regexp.MustCompile(`name="` + name + `" value="([^"]*)"`) }
)

// TestNewKeyRuns: the page of a new key has a command for the verified test number, or for the sandbox without one. Run
// sends the same request to the API and shows its response. All runs share one idempotency key until one is accepted.
func TestNewKeyRuns(t *testing.T) {
	w := newWorld(t, nil)
	u := w.user("aline@example.com", false)
	c := newClient(w)
	c.signIn(u.Email)
	makeKey := func(fields ...string) (key string, page answer) {
		t.Helper()
		c.wants(c.post("/keys", append(fields, "name", "Till")...), http.StatusSeeOther)
		page = c.get("/keys")
		return keyText.FindString(page.body), page
	}
	english, _ := w.d.words.ByTag("en")
	if _, page := makeKey(); strings.Contains(page.body, "curl") ||
		!strings.Contains(page.body, english.T("keys.try.company")) {
		t.Error("there is a command without a company")
	}

	w.company(u.Email, "Isoko")
	for _, number := range []string{"+25701000001", "+25779000101"} {
		if number != "+25701000001" {
			w.exec(`update users set test_number = $2, test_verified_at = now() where id = $1`, u.ID, number)
		}
		key, page := makeKey()
		command := html.UnescapeString(commandOnPage.FindStringSubmatch(page.body)[1])
		args := shellArguments(t, command)
		body := `{"phone_number":"` + number + `","sender":"INTUMWATEST","message":"` + english.T("first.example") + `"}`
		want := []string{"-X", "POST", "https://api.example.com/v1/sms", "-H", "Authorization: Bearer " + key, "-H",
			"Content-Type: application/json",
			"-H", "Accept: application/json", "-d", body}
		if strings.Join(args, "\n") != strings.Join(want, "\n") {
			t.Errorf("the command has the arguments %q, want %q", args, want)
		}

		run := func(page answer) answer { // without JavaScript
			t.Helper()
			fields := []string{}
			for _, name := range []string{"made", "number", "key"} {
				fields = append(fields, name, html.UnescapeString(fieldOnPage(name).FindStringSubmatch(page.body)[1]))
			}
			c.wants(c.post("/keys/run", fields...), http.StatusSeeOther)
			return c.get("/keys")
		}
		w.api.set(http.StatusServiceUnavailable, `{"message":"Service unavailable."}`)
		page = run(page)
		page.body = html.UnescapeString(page.body)
		// indented, and the command stays
		c.wants(page, http.StatusOK, "HTTP 503", `"message": "Service unavailable."`, key, command)
		w.api.set(http.StatusOK, acceptedAnswer)
		double := page
		c.wants(run(page), http.StatusOK, english.T("keys.run.follow"), "HTTP 200", "&#34;remaining_items&#34;: 4")
		run(run(double))
		requests := w.api.take()
		if len(requests) != 4 {
			t.Fatalf("%d requests", len(requests))
		}
		for i, r := range requests {
			h := r.Header
			if r.Method != http.MethodPost || r.URL.Path != "/v1/sms" || r.body != body || h.Get("Authorization") != "Bearer "+
				key ||
				h.Get("Content-Type") != "application/json" || h.Get("Accept") != "application/json" ||
				h.Get("X-Forwarded-For") != "192.0.2.1" {
				t.Errorf("request %d: %s %s %v %s", i, r.Method, r.URL, h, r.body)
			}
			if same := h.Get("Idempotency-Key") == requests[0].Header.Get("Idempotency-Key"); same != (i < 3) ||
				h.Get("Idempotency-Key") == "" {
				t.Errorf("request %d has the idempotency key of the first: %v", i, same)
			}
		}
	}

	if key, page := makeKey("scope", accounts.ScopeRead); strings.Contains(page.body, "curl") || key == "" {
		t.Errorf("a key that may only read comes with a command that sends, or not at all:\n%s", page.body)
	}

	other, _ := makeKey()
	b := newClient(w)
	b.signIn(w.user("bob@example.com", false).Email)
	b.post("/keys/run", "made", other, "number", "+25701000001", "key", web.NewFormKey())
	if strings.Contains(b.get("/keys").body, other) {
		t.Error("another user's key is shown")
	}
}

// TestInventedKeys: runs of examples with invented keys store little, whatever the keys are.
func TestInventedKeys(t *testing.T) {
	w := newWorld(t, nil)
	c, _, _ := w.owner()
	for i := range 40 {
		for _, key := range []string{fmt.Sprintf("%d|%s", i, strings.Repeat("x", 4000)), fmt.Sprintf("\x00%d", i),
			fmt.Sprintf("%d\xff", i)} {
			c.wants(c.post("/keys/run", "made", key, "number", "+25701000001"), http.StatusSeeOther)
		}
	}
	if size := w.count(`select max(octet_length(once::text)) from sessions`); size > 80<<10 {
		t.Errorf("a session stores %d bytes", size)
	}
}

// TestErrorKeepsNewKey: if the page fails, the new key remains for the next one.
func TestErrorKeepsNewKey(t *testing.T) {
	w := newWorld(t, nil)
	c, _, _ := w.owner()
	c.wants(c.post("/keys", "name", "Till"), http.StatusSeeOther)
	w.exec(`alter table balances rename test_used to away`)
	c.wants(c.get("/keys"), http.StatusServiceUnavailable)
	w.exec(`alter table balances rename away to test_used`)
	if page := c.get("/keys"); !keyText.MatchString(page.body) {
		t.Errorf("%s, and no key", page.Status)
	}
}

// shellArguments returns curl's arguments as a POSIX shell parses them.
func shellArguments(t *testing.T, command string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "sh", "-c", `curl() { printf '%s\0' "$@"; }`+"\n"+command).Output()
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// TestCommandIsQuoted: no text escapes its quotes in a POSIX shell.
func TestCommandIsQuoted(t *testing.T) {
	d := &testmode.Reader{APIURL: "https://api.example.com/v1"}
	body := testmode.Body("+25779000101", testSender, "l'été $(id) `id` \"a\" \\ !! <b>\n&")
	if args := shellArguments(t, d.Curl("7|abc", body)); args[len(args)-1] != body || len(args) != 11 {
		t.Errorf("%q", args)
	}
}
