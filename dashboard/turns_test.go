package dashboard

import (
	"bufio"
	"context"
	"encoding/csv"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"intumwa/accounts/keys"
	"intumwa/accounts/senders"
	"intumwa/campaigns"
	"intumwa/dashboard/web"
	"intumwa/texts"
)

// hold locks a table until release is called.
func (w *world) hold(table string) (release func()) {
	w.t.Helper()
	ctx := context.WithoutCancel(w.t.Context())
	tx, err := w.pool.Begin(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, `SET LOCAL idle_in_transaction_session_timeout = 0; LOCK TABLE `+table+
		` IN ACCESS EXCLUSIVE MODE`); err != nil {
		w.t.Fatal(err)
	}
	release = sync.OnceFunc(func() { _ = tx.Rollback(ctx) })
	w.t.Cleanup(release)
	return release
}

// getMany sends n requests at once and returns the channel of their responses.
func (c *client) getMany(n int, path string) <-chan answer {
	answers := make(chan answer, n)
	for range n {
		go func() { answers <- c.get(path) }()
	}
	return answers
}

func (w *world) next(answers <-chan answer) answer {
	w.t.Helper()
	select {
	case a := <-answers:
		return a
	case <-time.After(patience):
		w.t.Fatal("no response: more than their turns are at the database")
		return answer{}
	}
}

// TestTurnsOfOneUser: few slow pages of one user run at a time, and they do not delay another user's.
func TestTurnsOfOneUser(t *testing.T) {
	w := newWorld(t, func(_ *Deps, o *Options) { o.AtOnce, o.AtOnceOfOne = 4, 2 })
	greedy, _, _ := w.customer("aline", "ISOKO", 0)
	other, _, _ := w.customer("bob", "BOBCO", 0)
	for _, path := range []string{"/messages?status=failed", "/deliveries?state=delivered"} {
		release := w.hold(map[bool]string{true: "messages", false: "webhook_deliveries"}[strings.HasPrefix(
			path, "/messages")])
		answers := greedy.getMany(8, path)
		for range 6 {
			if a := w.next(answers); a.StatusCode != http.StatusTooManyRequests || a.Header.Get("Retry-After") == "" {
				t.Errorf("%s: %d", path, a.StatusCode)
			}
		}
		for range 5 {
			other.wants(other.get("/account"), http.StatusOK)
		}
		release()
		for range 2 { // on a busy machine they may have waited too long for the lock
			if a := w.next(answers); a.StatusCode != http.StatusOK {
				t.Logf("%s afterwards: %d", path, a.StatusCode)
			}
		}
	}
}

// TestInventedSessions: invented sessions and links do not exhaust the database's connections, and static pages need
// none.
func TestInventedSessions(t *testing.T) {
	w := newWorld(t, func(_ *Deps, o *Options) { o.AtOnce, o.AtOnceOfOne = 4, 2 })
	for table, path := range map[string]string{"sessions": "/sign-in", "mail_links": "/sign-up/x"} {
		stranger := newClient(w)
		if table == "sessions" {
			stranger.plant(strings.Repeat("x", 43))
		}
		release := w.hold(table)
		answers := stranger.getMany(8, path)
		for range 6 {
			if a := w.next(answers); a.StatusCode != http.StatusTooManyRequests {
				t.Errorf("%s: %d", path, a.StatusCode)
			}
		}
		stranger.wants(stranger.get("/robots.txt"), http.StatusOK)
		stranger.wants(stranger.get(w.d.assets.paths["style.css"]), http.StatusOK)
		release()
		w.next(answers)
		w.next(answers)
	}
}

// drip opens a connection that announces a body, and returns when the server reads or refuses it; line is the first
// line of the response.
func (c *client) drip(path, contentType string, length int) (conn net.Conn, line string) {
	c.t.Helper()
	address, err := url.Parse(c.w.url)
	if err != nil {
		c.t.Fatal(err)
	}
	if conn, err = net.Dial("tcp", address.Host); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = conn.Close() })
	_, _ = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nX-Forwarded-For: %s\r\nContent-Type: %s\r\nCookie: "+
		"intumwa-session=%s\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n",
		path, address.Host, c.address, contentType, c.cookie("intumwa-session"), length)
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	if line, err = bufio.NewReader(conn).ReadString('\n'); err != nil {
		c.t.Fatal(err)
	}
	return conn, line
}

// TestSlowForms: slow forms and uploads hold no turn, and one company's uploads leave room for another's.
func TestSlowForms(t *testing.T) {
	w := newWorld(t, func(_ *Deps, o *Options) { o.AtOnce, o.AtOnceOfOne = 2, 1 })
	slow, _, _ := w.customer("aline", "ISOKO", 0)
	other, _, _ := w.customer("bob", "BOBCO", 0)
	for range 2 {
		for _, path := range []string{"/opt-outs", "/sign-in", "/webhook", "/keys"} {
			if _, line := slow.drip(path, "application/x-www-form-urlencoded", 1000); !strings.Contains(line, " 100 ") {
				t.Errorf("%s: %s", path, line)
			}
		}
	}
	refused := 0
	for i := range 6 {
		path := []string{"/campaigns", "/company/document"}[i%2]
		if _, line := slow.drip(path, "multipart/form-data; boundary=x", campaigns.MaxSmallFile); strings.Contains(
			line, " 429 ") {
			refused++
		}
	}
	if refused != 6-web.UploadsOfCompany {
		t.Errorf("%d files of 6 were refused", refused)
	}
	// A large file takes one of few places, and a company has one of them.
	large, _, _ := w.customer("carol", "CAROL", 0)
	for i, want := range []string{" 100 ", " 429 "} {
		if _, line := large.drip("/campaigns", "multipart/form-data; boundary=x", campaigns.MaxFile); !strings.Contains(
			line, want) {
			t.Errorf("large file %d: %s", i+1, line)
		}
	}
	for range 3 {
		slow.wants(slow.get("/account"), http.StatusOK)
		other.wants(other.send("/campaigns", "BOBCO", "Muraho {{izina}}", []byte("phone_number,izina\n79000001,A\n")),
			http.StatusSeeOther)
	}
}

// TestManyCompaniesUpload: one person's many companies do not block others' uploads.
func TestManyCompaniesUpload(t *testing.T) {
	w := newWorld(t, func(_ *Deps, o *Options) { o.TrustedProxies = []string{"127.0.0.1"} })
	for path, most := range map[string]int{"/campaigns": web.UploadsOfAddress,
		"/company/document": web.DocumentsOfAddress} {
		refused := 0
		for i := range most/web.UploadsOfCompany + 1 {
			slow, _, _ := w.customer(fmt.Sprintf("mallory%d-%d", most, i), fmt.Sprintf("MAL%dX%d", most, i), 0)
			for range web.UploadsOfCompany {
				if _, line := slow.drip(path, "multipart/form-data; boundary=x", campaigns.MaxSmallFile); strings.Contains(
					line, " 429 ") {
					refused++
				}
			}
		}
		if refused != web.UploadsOfCompany {
			t.Errorf("%s: %d files were refused", path, refused)
		}
	}
	other, _, _ := w.customer("bob", "BOBCO", 0)
	other.address = "192.0.2.2"
	other.wants(other.send("/campaigns", "BOBCO", "Muraho {{izina}}", []byte("phone_number,izina\n79000001,A\n")),
		http.StatusSeeOther)
	other.wants(other.uploadAs("/company/document", nil, "certificate.pdf", aCertificate), http.StatusSeeOther)
}

// TestOpenFormsAreShort: forms without a session are short, so slow ones cost little memory.
func TestOpenFormsAreShort(t *testing.T) {
	w := newWorld(t, nil)
	c, _, _ := w.customer("aline", "ISOKO", 0)
	long := strings.Repeat("x", web.MaxOpenForm)
	for _, path := range []string{"/sign-in", "/sign-up", "/password", "/messages/new", "/language"} {
		stranger := newClient(w)
		stranger.wants(stranger.post(path, "email", long), http.StatusRequestEntityTooLarge)
	}
	c.wants(c.post("/messages/new", "message", long, "do", "check"), http.StatusOK)
}

// TestChangesAreLimited: a user's permanent audit rows are limited.
func TestChangesAreLimited(t *testing.T) {
	const most = 6
	w := newWorld(t, func(r *Deps, _ *Options) {
		r.Tries.Changes = limit(t, most, time.Hour)
	})
	c, u, _ := w.customer("aline", "ISOKO", 0)
	other, _, _ := w.customer("bob", "BOBCO", 0)
	for range most / 2 {
		c.wants(c.post("/opt-outs", "number", "79000001"), http.StatusSeeOther)
		c.wants(c.post("/opt-outs/remove", "number", "79000001"), http.StatusSeeOther)
	}
	c.wants(c.post("/opt-outs", "number", "79000001"), http.StatusTooManyRequests, "Too many changes")
	c.wants(c.post("/keys", "name", "one more"), http.StatusTooManyRequests)
	c.wants(c.post("/messages/new", "message", "x", "do", "check"), http.StatusOK)
	other.wants(other.post("/opt-outs", "number", "79000001"), http.StatusSeeOther)
	w.counts(most, `select count(*) from audit_log where actor = $1`, fmt.Sprintf("user %d", u.ID))
}

// TestConcurrentRequestsKeepLimits: concurrent requests do not exceed the limits of waiting sender IDs and of keys.
func TestConcurrentRequestsKeepLimits(t *testing.T) {
	w := newWorld(t, nil)
	u := w.user("aline@example.com", false)
	w.company("aline@example.com", "Isoko")
	w.exec(`insert into api_tokens (user_id, name, secret_hash)
		select $1, 'old', sha256(n::text::bytea) from generate_series(2, $2) n`, u.ID, keys.MaxTokens)
	var all sync.WaitGroup
	for i := range 8 {
		c := newClient(w)
		c.signIn("aline@example.com")
		for n := range 2 {
			all.Go(func() {
				c.post("/senders", "name", fmt.Sprintf("S%dN%d", i, n), "purpose", "Order news")
				c.post("/keys", "name", "new")
			})
		}
	}
	all.Wait()
	w.counts(senders.MaxWaiting, `select count(*) from senders`)
	w.counts(keys.MaxTokens, `select count(*) from api_tokens`)
}

// TestCellsForEverySeparator: even a program with another cell separator finds no formula.
func TestCellsForEverySeparator(t *testing.T) {
	for text, want := range map[string]string{
		"Muraho; nzoza ejo, saa 3": "Muraho; nzoza ejo, saa 3", "a-b=c": "a-b=c", "": "", "-5": "'-5", "a;=1": "a;'=1",
		`a,"=1`: `a,"'=1`,
		"a\n=1": "a\n'=1", "\t=1": "'\t'=1", "a;;\"\"@x": "a;;\"\"'@x", "a;\uff1d1": "a;'\uff1d1", "\r\n": "'\r\n",
	} {
		if got := texts.Cell(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
	formulas := regexp.MustCompile("^\"*[=+\\-@\uff1d\uff0b\uff0d\uff20]")
	for _, evil := range []string{`hi;=HYPERLINK("http://evil.example","x")`, "hi,=1+1", "hi\t+1+1", "hi\n@SUM(A1)",
		`hi;"=1+1"`, `=1;=2,=3`, `;;"";-1`} {
		for _, comma := range []rune{',', ';'} {
			var file strings.Builder
			out := csv.NewWriter(&file)
			out.Comma = comma
			_ = out.Write([]string{"1", texts.Cell(evil), "end"}) // a strings.Builder never fails
			out.Flush()
			for _, piece := range strings.FieldsFunc(file.String(),
				func(r rune) bool { return strings.ContainsRune(",;\t\r\n", r) }) {
				if formulas.MatchString(piece) {
					t.Errorf("%q, separated by %q: a formula in %q", evil, comma, file.String())
				}
			}
		}
	}
}

// TestHeadConsumesNothing: a HEAD request reads no rows and consumes no one-time secret.
func TestHeadConsumesNothing(t *testing.T) {
	w := newWorld(t, nil)
	c, _, _ := w.customer("aline", "ISOKO", 0)
	for table, path := range map[string]string{"messages": "/messages.csv", "opt_outs": "/opt-outs.csv",
		"ledger": "/statement.csv", "inbound_messages": "/received.csv"} {
		release := w.hold(table)
		if a := c.do(http.MethodHead, path, nil); a.StatusCode != http.StatusOK ||
			!strings.HasPrefix(a.Header.Get("Content-Type"), "text/csv") {
			t.Errorf("%s: %d %s", path, a.StatusCode, a.Header.Get("Content-Type"))
		}
		release()
	}
	c.wants(c.post("/keys", "name", "for my shop"), http.StatusSeeOther)
	c.wants(c.do(http.MethodHead, "/keys", nil), http.StatusOK)
	shown := regexp.MustCompile(`\d+\|[0-9A-Za-z]{40}`)
	if a := c.get("/keys"); !shown.MatchString(a.body) {
		t.Errorf("the new key is not shown:\n%s", a.body)
	}
}
