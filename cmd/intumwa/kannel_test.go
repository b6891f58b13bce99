package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"intumwa/internal/testenv"
	"intumwa/tools/rig"
)

// kannelReports receives the calls of a dlr-url.
type dlrReports struct {
	mu   sync.Mutex
	seen []string
}

func (r *dlrReports) ServeHTTP(_ http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, q.RequestURI)
}

// of returns those of one message, by the beginning of their path.
func (r *dlrReports) of(prefix string) (list []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, uri := range r.seen {
		if strings.HasPrefix(uri, prefix) {
			list = append(list, strings.TrimPrefix(uri, prefix))
		}
	}
	slices.Sort(list)
	return list
}

// TestKannel: a client that only knows Kannel sends through a whole gateway and gets its reports. Its password, which
// is in every query string, is never in the log, at the most talkative level.
func TestKannel(t *testing.T) {
	t.Parallel()
	carrier, smsc := playCarrier(t, "leo", "")
	rdb, prefix := testenv.Redis(t)
	heard := new(dlrReports)
	sink := httptest.NewServer(heard)
	defer sink.Close()
	door, config := rig.FreeAddress(), fmt.Sprintf(`
log: {level: debug}
api: {listen: %q}
ops: {listen: "127.0.0.1:0"}
dashboard: {listen: "127.0.0.1:0"}
accounts: {otp_key: 0123456789abcdef0123456789abcdef}
database: {url: %q}
redis: {url: %q, prefix: %q}
webhooks: {allow_private: true}
carriers: [{name: leo, prefixes: ["79", "61"], links: [{name: leo-1, address: %q, system_id: a, password: p}]}]
`, rig.FreeAddress(), testenv.Database(t), redisURL(rdb), prefix, smsc)
	s := newShell(t, config)
	s.admin("correct horse", "user_id email", "user", "create", "--email", "a@example.com", "--name", "A",
		"--password-stdin")
	company := number(s.admin("", "company_id credits", "company", "create", "--owner", "a@example.com", "--name", "A",
		"--approved", "--verified", "--credits", "12")["company_id"])
	s.admin("", "sender_id name approved", "sender", "create", "--company", company, "--name", "INFO", "--approved")
	key, secret,
		_ := strings.Cut(fmt.Sprint(s.admin("", "token_id token", "token", "create", "--user", "a@example.com", "--name",
		"t")["token"]), "|")
	if err := os.WriteFile(s.config, []byte("kannel: {listen: \""+door+"\"}\n"+config), 0o600); err != nil {
		t.Fatal(err)
	}
	log := s.serve("api,dispatcher,webhooks")
	log.has(t, "event=ready")

	get := func(query string) (int, string) {
		t.Helper()
		answer, err := http.Get("http://" + door + "/cgi-bin/sendsms?" + query)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(body)
	}
	login := "username=" + key + "&password=" + secret
	send := func(to, path, more string) string {
		return login + "&from=INFO&text=Muraho&to=" + to + "&dlr-mask=27&dlr-url=" + url.QueryEscape(sink.URL+path) + more
	}
	for _, each := range []struct {
		query  string
		status int
		body   string
	}{
		{send("79123400", "/1?%d", ""), 202, "0: Accepted for delivery"},
		{send("79123401", "/2?%d", ""), 202, "0: Accepted for delivery"}, // fails at the handset
		{send("79123402", "/3?%d", ""), 202, "0: Accepted for delivery"}, // the carrier refuses it
		{send("79123403+61234500", "/4/%p?%d", "&account=both"), 202, "0: Accepted for delivery"},
		{send("79123400", "/5?d=%d&P=%P&i=%i&F=%F&A=%A&I=%I", "&text=2"), 202, "0: Accepted for delivery"},
		{send("79123400", "/6?%d", "&deferred=60"), 202, "3: Queued for later delivery"},
		{send("79123400", "/7?%d%k&o=%o", "&account=INV-7"), 202, "0: Accepted for delivery"},
		{send("79123400", "/8?%d", "&coding=0&udh=%05%00%03%CC%02%01"), 202, "0: Accepted for delivery"},
		{send("79123400", "/8?%d", "&coding=0&udh=%05%00%03%CC%02%02"), 202, "0: Accepted for delivery"},
		{login + "&from=INFO&to=79123400&udh=%05%00%03%CC%02%01&text=" + strings.Repeat("x", 154), 400,
			"The message is too long."},
		{login + "&from=INFO&text=x&to=29123400", 403, "Not routable. Do not try again."},
		{login + "&from=INFO&text=x&to=22123400", 400, "The phone number must be a valid Burundi (+257) number."},
		{login + "&from=NONE&text=x&to=79123400", 400, "Sender not found."},
		{login + "&from=INFO&text=&to=79123400", 400, "The message content is required."},
		{login + "&from=INFO&to=79123400&text=" + strings.Repeat("x", 600), 400,
			"Insufficient SMS credits. This message requires 4 credits."},
		{"username=" + key + "&password=" + strings.Repeat("x", 40) + "&from=INFO&text=x&to=79123400", 403,
			"Authorization failed for sendsms"},
		{"from=INFO&text=x", 403, "Authorization failed for sendsms"},
	} {
		if status, body := get(each.query); status != each.status || body != each.body {
			t.Errorf("%s: %d %q, want %d %q", strings.ReplaceAll(each.query, secret, "SECRET"), status, body, each.status,
				each.body)
		}
	}
	for prefix, want := range map[string][]string{
		"/1?": {"1", "8"}, "/2?": {"2", "8"}, "/3?": {"16"}, "/4/%2B25779123403?": {"1", "8"},
		"/4/%2B25761234500?": {"1", "8"},
		"/7?":                {"1&o=INV-7", "8&o=INV-7"}, "/8?": {"1", "1", "8", "8"},
	} {
		eventually(t, "the reports "+prefix, func() bool { return slices.Equal(heard.of(prefix), want) })
	}
	full := regexp.MustCompile(`^1&P=INFO&i=leo&F=(\w+)&A=id%3A(\w+)\+stat%3ADELIVRD\+err%3A000&I=[0-9A-Z]{26}$`)
	eventually(t, "the full report", func() bool {
		return slices.ContainsFunc(heard.of("/5?d="), func(uri string) bool {
			found := full.FindStringSubmatch(uri)
			return found != nil && found[1] == found[2]
		})
	})
	s.holds(`SELECT count(*) FROM messages WHERE client_reference = 'both' AND batch_id IS NOT NULL`, 2)
	s.holds(`SELECT count(*) FROM messages WHERE channel IS DISTINCT FROM 3`, 0)
	s.holds(`SELECT count(*) FROM messages WHERE part IS NOT NULL AND segments = 1`, 2)
	s.holds(`SELECT count(*) FROM scheduled`, 1)
	s.holds(`SELECT count(*) FROM webhook_callbacks`, 1)  // of the scheduled one
	s.holds(`SELECT 12 - credits::int FROM balances`, 10) // one for each that was accepted
	var id int64
	if err := s.pool().QueryRow(t.Context(), `SELECT id FROM messages WHERE phone_number = '+25779123401'`).Scan(
		&id); err != nil {
		t.Fatal(err)
	}
	if _, shown, _ := s.run("", "admin", "message", "show", "--id", fmt.Sprint(id), "--json"); !strings.Contains(
		shown, `"event":"dlr.final","state":"delivered"`) {
		t.Errorf("message show has %s", shown)
	}
	if carrier.Stats().Sessions != 1 {
		t.Errorf("%d sessions", carrier.Stats().Sessions)
	}
	for line := range strings.Lines(log.String()) {
		for _, canary := range []string{secret, "Muraho", "79123400", "dlr-url"} {
			if strings.Contains(line, canary) {
				t.Errorf("the log contains %q: %s", canary, line)
			}
		}
	}
}
