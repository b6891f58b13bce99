package dashboard

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/accounts"
	"intumwa/billing"
	"intumwa/campaigns"
	"intumwa/dashboard/web"
	"intumwa/messages/lookup"
	"intumwa/messages/statistics"
	"intumwa/texts"
)

// grant adjusts a company's balance.
func (w *world) grant(company, credits int64, note string) {
	w.t.Helper()
	if err := pgx.BeginFunc(w.t.Context(), w.pool, func(tx pgx.Tx) error {
		_, err := billing.Grant(w.t.Context(), tx, company, credits, note)
		return err
	}); err != nil {
		w.t.Fatal(err)
	}
}

// merchant is a customer with the sender ID DEMO.
func (w *world) merchant(name string, credits int64) (*client, accounts.Company) {
	w.t.Helper()
	c, _, company := w.customer(name, "DEMO", credits)
	return c, company
}

// send uploads a file as a campaign.
func (c *client) send(path, sender, template string, file []byte) answer {
	c.t.Helper()
	return c.upload(path, url.Values{"sender": {sender}, "template": {template}}, string(file))
}

// lines returns the rows of a downloaded file, without its byte order mark.
func (c *client) lines(a answer) [][]string {
	c.t.Helper()
	c.wants(a, http.StatusOK)
	text, marked := strings.CutPrefix(a.body, "\ufeff")
	if !marked || !strings.HasPrefix(a.Header.Get("Content-Type"), "text/csv") ||
		!strings.HasPrefix(a.Header.Get("Content-Disposition"), "attachment;") {
		c.t.Fatalf("not a file: %v\n%.100s", a.Header, a.body)
	}
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		c.t.Fatal(err)
	}
	return rows
}

// fillMessages stores a company's messages of the last days, most of them final.
func fillMessages(t testing.TB, pool *pgxpool.Pool, company int64, n, days int) {
	t.Helper()
	const piece = 20_000 // small enough for a busy machine
	for from := 1; from <= n; from += piece {
		if _, err := pool.Exec(context.Background(), `INSERT INTO messages (ulid, company_id, user_id, phone_number, sender,
			body, encoding, segments, test, created_at, carrier, status, sent_at, failed_at, failure_reason)
			SELECT gen_random_uuid(), $1, 1, '+2577' || lpad((i % 10000000)::text, 7, '0'), 'DEMO', 'Hello ' || i, 0, 1, false,
				at, CASE WHEN i % 3 = 0 THEN 'lumitel' ELSE 'leo' END, CASE WHEN i % 10 = 0 THEN 2 ELSE 1 END,
				CASE WHEN i % 10 <> 0 THEN at END, CASE WHEN i % 10 = 0 THEN at END, CASE WHEN i % 10 = 0 THEN 'UNDELIV' END
			FROM (SELECT i, now() - make_interval(secs => ($2 - i)::float8 * $3 * 86400 / $2) AS at
			FROM generate_series($4::int, $5::int) i) x`,
			company, n, days, from, min(from+piece-1, n)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := pool.Exec(context.Background(), `ANALYZE messages`); err != nil {
		t.Fatal(err)
	}
}

// TestStatementPage: the ledger by page, kind and day; in print with its balances.
func TestStatementPage(t *testing.T) {
	w := newWorld(t, nil)
	c, company := w.merchant("aline", 0)
	w.exec(`INSERT INTO ledger (company_id, kind, amount, balance_after, note, created_at)
		VALUES ($1, 'adjustment', 1000, 1000, 'invoice 7', now() - interval '2 days')`, company.ID)
	w.exec(`
		INSERT INTO ledger (company_id, kind, amount, balance_after, ref, created_at)
		SELECT $1, CASE WHEN i % 10 = 0 THEN 'refund' ELSE 'send' END, CASE WHEN i % 10 = 0 THEN 1 ELSE -1 END,
			1000 - i + 2 * (i / 10), gen_random_uuid(), now() - interval '1 day' FROM generate_series(1, 300) i`, company.ID)
	a := c.get("/statement")
	c.wants(a, http.StatusOK, "760", "statement.csv", "before=")
	if n := strings.Count(a.body, "data-label=\"Balance\""); n != web.RowsOnPage {
		t.Errorf("%d rows on a page", n)
	}
	all := c.pages("/statement")
	if len(all) != 7 { // 301 rows
		t.Fatalf("%d pages", len(all))
	}
	c.wants(all[6], http.StatusOK, "invoice 7")
	a = c.get("/statement?kind=adjustment")
	if n := strings.Count(a.body, "data-label=\"Balance\""); n != 1 {
		t.Errorf("%d adjustments", n)
	}
	for strange, status := range map[string]int{"?kind=x%00&from=2026-99-99&to='": 422, "?before=-1": 200,
		"?before=99999999999999999999": 200, "?from=0001-01-01&to=9999-12-31": 422} {
		c.wants(c.get("/statement"+strange), status)
	}
	yesterday := time.Now().Add(-24 * time.Hour).In(texts.Bujumbura).Format(time.DateOnly)
	c.wants(c.get("/statement?from="+yesterday+"&to="+yesterday), http.StatusOK, "Opening balance</dt><dd>1,000<",
		"Closing balance</dt><dd>760<")
	sheet := c.get("/statement/print?from=" + yesterday)
	c.wants(sheet, http.StatusOK, "Statement of credits", "aline", "Carried forward")
	next := regexp.MustCompile(`href="(/statement/print\?[^"]*after=\d+[^"]*)"`).FindStringSubmatch(sheet.body)
	if next == nil {
		t.Fatal("no second sheet")
	}
	second := c.get(strings.ReplaceAll(next[1], "&amp;", "&"))
	c.wants(second, http.StatusOK, "Brought forward", "Closing balance")
	for threshold, value := range map[string]string{"50": "50", "5, 50;500": "500, 50, 5"} {
		c.wants(c.post("/statement/threshold", "threshold", threshold), http.StatusSeeOther)
		c.wants(c.get("/statement"), http.StatusOK, `value="`+value+`"`)
	}
	for _, wrong := range []string{"x", "-1", "1.5", "99999999999999999999", "1000000001", "1 2 3 4 5 6"} {
		c.wants(c.post("/statement/threshold", "threshold", wrong), http.StatusUnprocessableEntity, "five whole numbers")
	}
	rows := c.lines(c.get("/statement.csv"))
	if len(rows) != 302 || rows[1][2] != "1000" || rows[2][2] != "-1" || rows[301][3] != "760" {
		t.Errorf("%d rows: %q ... %q", len(rows), rows[:3], rows[len(rows)-1])
	}
}

// formula is what a spreadsheet would run.
var formula = regexp.MustCompile(`^[=+\-@\t\r\n]`)

// TestFilesContainNoFormula: no cell of a file is a formula, whatever notes, texts and reasons contain.
func TestFilesContainNoFormula(t *testing.T) {
	w := newWorld(t, nil)
	c, company := w.merchant("aline", 0)
	for i, evil := range []string{"=HYPERLINK(\"http://evil.example\")", "+1+1", "-2", "@SUM(A1)", "\t=1", "\r=1", "\n=1",
		"\"=1\"", "=1,=2;=3\r\n=4"} {
		w.grant(company.ID, int64(i+1), evil)
		w.exec(`INSERT INTO messages (ulid, company_id, user_id, phone_number, sender, body, encoding, segments, test,
			carrier, failure_reason)
			VALUES (gen_random_uuid(), $1, 1, '+25779000001', 'DEMO', $2, 0, 1, false, 'leo', $2)`, company.ID, evil)
	}
	number := regexp.MustCompile(`^-?\d+$`)
	for _, path := range []string{"/statement.csv", "/messages.csv"} {
		rows := c.lines(c.get(path))
		if len(rows) != 10 {
			t.Errorf("%s has %d rows", path, len(rows))
		}
		for _, row := range rows {
			for _, text := range row {
				if formula.MatchString(text) && !number.MatchString(text) {
					t.Errorf("%s: %q", path, text)
				}
			}
		}
	}
	a := c.do(http.MethodGet, "/messages.csv", nil, "Accept-Language", "fr")
	if head, _,
		_ := strings.Cut(
		a.body, "\r\n"); head != "\ufeffMessage;Date (UTC+2);Numéro;Expéditeur;État;Segments;Opérateur;Lot;Envoyé le "+
		"(UTC+2);Échec le (UTC+2);Motif;Texte;Votre référence;Centre de coûts" {
		t.Errorf("the French file begins with %q", head)
	}
}

// TestMessagesFile: the filters of a file.
func TestMessagesFile(t *testing.T) {
	w := newWorld(t, nil)
	c, company := w.merchant("aline", 100)
	batch := c.campaign("Hi {{name}}", "phone_number,name\n79000001,A\n79000002,B\n")
	fillMessages(t, w.pool, company.ID, 50, 2)
	for query, want := range map[string]int{
		"": 53, "?batch=" + batch: 3, "?q=" + batch: 3, "?status=failed": 6, "?status=sent": 46, "?status=pending&batch=" +
			batch: 3, "?q=79000001": 2,
		"?batch=01ARZ3NDEKTSV4RRFFQ69G5FAV": 1, "?batch=x": 1, "?status=x": 1, "?q=%3D1": 1, "?from=2999-01-01": 1,
		"?to=2001-01-01": 1, "?from=2001-01-01": 53,
	} {
		if rows := c.lines(c.get("/messages.csv" + query)); len(rows) != want {
			t.Errorf("%q has %d lines, want %d", query, len(rows), want)
		}
	}
	c.wants(c.get("/messages?status=failed&q=79000001"), http.StatusOK, "Nothing found")
	c.wants(c.get("/messages?status=failed"), http.StatusOK, `href="/messages.csv?status=failed"`)
}

// campaign uploads and confirms a campaign and returns the batch's ULID.
func (c *client) campaign(template, file string) (batch string) {
	c.t.Helper()
	a := c.send("/campaigns", "DEMO", template, []byte(file))
	c.wants(a, http.StatusSeeOther)
	a = c.post(a.Header.Get("Location") + "/send")
	c.wants(a, http.StatusSeeOther)
	batch, found := strings.CutPrefix(a.Header.Get("Location"), "/batches/")
	if !found || len(batch) != 26 {
		c.t.Fatalf("leads to %s", a.Header.Get("Location"))
	}
	return batch
}

// TestLongFile: a company has two downloads at a time, a disconnect frees a slot, and an interrupted file is visibly
// incomplete.
func TestLongFile(t *testing.T) {
	var lookups *pgxpool.Pool
	w := newWorld(t, func(r *Deps, _ *Options) {
		var err error
		if lookups, err = pgxpool.NewWithConfig(t.Context(), r.Pool.Config()); err != nil {
			t.Fatal(err)
		}
		r.Lookup = lookup.New(lookups)
	})
	c, company := w.merchant("aline", 0)
	other, _ := w.merchant("bob", 0)
	fillMessages(t, w.pool, company.ID, 10_000, 30)
	w.exec(`update messages set body = repeat('x', 1500)`) // more than the socket buffers
	open := func(c *client) (*http.Response, context.CancelFunc) {
		ctx, cancel := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+"/messages.csv", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := c.http.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cancel(); _ = response.Body.Close() })
		return response, cancel
	}
	_, leave := open(c)  //nolint:bodyclose // open closes it when the test ends
	second, _ := open(c) //nolint:bodyclose // open closes it when the test ends
	third := c.get("/messages.csv")
	c.wants(third, http.StatusTooManyRequests, "Too many downloads")
	if third.Header.Get("Retry-After") == "" {
		t.Error("it does not state when to come again")
	}
	c.wants(c.get("/statement"), http.StatusOK)
	other.wants(other.get("/messages.csv"), http.StatusOK)
	leave() // in the middle
	w.until("the place of a reader who left is free", func() bool {
		a, free := open(c) //nolint:bodyclose // open closes it when the test ends
		free()
		return a.StatusCode == http.StatusOK
	})
	if _, err := io.CopyN(io.Discard, second.Body, 1000); err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{})
	go func() { lookups.Close(); close(closed) }()
	if n, err := io.Copy(io.Discard, second.Body); err == nil {
		t.Errorf("%d bytes and no error", n)
	}
	<-closed
}

// TestCampaign: a campaign is checked, previewed, and sent once however often it is confirmed.
func TestCampaign(t *testing.T) {
	w := newWorld(t, nil)
	c, company := w.merchant("aline", 100)
	a := c.send("/campaigns", "DEMO", "Bonjour {{ prenom }}, {{montant}} FBu",
		wideText(t, "Téléphone;Prénom;Montant\r\n+257 79 00 00 00;Éric;25 000\r\n71000000;Łucja;1\r\n"))
	c.wants(a, http.StatusSeeOther)
	draft := a.Header.Get("Location")
	c.wants(c.get(draft), http.StatusOK, "Bonjour Éric, 25 000 FBu", "Bonjour Łucja, 1 FBu", "Send 2 messages", "UCS-2",
		"&#43;25779000000")
	w.credits(company.ID, 100)
	var wait sync.WaitGroup
	places := make(chan string, 8)
	for range cap(places) {
		wait.Go(func() { places <- c.post(draft + "/send").Header.Get("Location") })
	}
	wait.Wait()
	close(places)
	var batch string
	for place := range places {
		if place != "" && batch != "" && place != batch {
			t.Errorf("two batches: %s and %s", place, batch)
		}
		batch = cmp.Or(place, batch) // none: the first click is in progress
	}
	if again := c.post(draft + "/send").Header.Get("Location"); again != batch {
		t.Errorf("confirmed later: %s, before %s", again, batch)
	}
	w.credits(company.ID, 98)
	c.wants(c.get(batch), http.StatusOK, "people", "Your campaign is on its way.")
	w.settle()
	c.wants(c.get(batch), http.StatusOK, "Sent</dt><dd>2<")
	// The back button leads to no page that could send it again.
	for method, path := range map[string]string{http.MethodGet: draft, http.MethodPost: draft + "/drop"} {
		if to := c.do(method, path, nil).Header.Get("Location"); to != batch {
			t.Errorf("%s %s leads to %s, not to %s", method, path, to, batch)
		}
	}
	dropped := c.send("/campaigns", "DEMO", "Bonjour", []byte("phone_number\n79000000\n")).Header.Get("Location")
	c.wants(c.post(dropped+"/drop"), http.StatusSeeOther)
	c.wants(c.post(dropped+"/send"), http.StatusNotFound)
}

// TestCampaignRefused: an invalid file is refused with the line, and nothing is charged.
func TestCampaignRefused(t *testing.T) {
	w := newWorld(t, nil)
	c, company := w.merchant("aline", 3)
	const head, template = "phone_number,name\n", "Hi {{name}}"
	for name, try := range map[string]struct {
		template, file string
		texts          []string
	}{
		"a column":        {"Hi {{nom}}", head + "79000001,A\n", []string{"uses “nom”", "Line 1"}},
		"no head":         {template, "79000001,A\n79000002,B\n", []string{"The first line must contain"}},
		"empty":           {template, head, []string{"needs a line"}},
		"NUL":             {template, head + "79000001,\x00\n", []string{"This file is not text."}},
		"half a workbook": {template, "PK\x03\x04x", []string{"This file is damaged."}},
		"an old workbook": {template, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", []string{"then XLSX without a password, or CSV"}},
		"an endless row":  {template, head + strings.Repeat("x", 16<<10+1), []string{"The line is too long."}},
		"nothing":         {template, "", []string{"Choose a file."}},
		"too large":       {template, head + strings.Repeat("\n", campaigns.MaxFile), []string{"larger than 8 MiB"}},
		"a long text":     {strings.Repeat("x", 601), head + "79000001,A\n", []string{"at most 600 characters"}},
		"NUL in a text":   {"x\x00", head + "79000001,A\n", []string{"no message can have"}},
	} {
		a := c.send("/campaigns", "DEMO", try.template, []byte(try.file))
		if a.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d", name, a.StatusCode)
		}
		for _, text := range try.texts {
			if !strings.Contains(a.body, text) {
				t.Errorf("%s: the page lacks %q\n%s", name, text, a.body)
			}
		}
	}
	c.wants(c.send("/campaigns", "OTHER", template, []byte(head+"79000001,A\n")), http.StatusUnprocessableEntity,
		"Choose one of your approved sender IDs.")
	a := c.send("/campaigns", "DEMO", template, bytes.Repeat([]byte("79000001,A\n"), 1<<20))
	c.wants(a, http.StatusRequestEntityTooLarge, "That is too large")
	c.wants(c.post("/campaigns", "sender", "DEMO"), http.StatusForbidden)
	// Anyone can create a company, so files are small until it may send campaigns.
	w.exec(`update companies set verified = false where id = $1`, company.ID)
	c.wants(c.send("/campaigns", "DEMO", template, []byte(head+strings.Repeat("79000001,A\n", campaigns.MaxTried+1))),
		http.StatusUnprocessableEntity, "more than 500 recipients")
	c.wants(c.send("/campaigns", "DEMO", template, []byte(head+strings.Repeat("\n", campaigns.MaxSmallFile+web.MaxForm))),
		http.StatusRequestEntityTooLarge)
	w.exec(`update companies set verified = true where id = $1`, company.ID)
	// More than the credits cover: the page reports it, and a confirmation is refused.
	a = c.send("/campaigns", "DEMO", template, []byte(head+strings.Repeat("79000001,A\n", 4)))
	c.wants(a, http.StatusSeeOther)
	c.wants(c.get(a.Header.Get("Location")), http.StatusOK, "You have 3 credits; this campaign needs 4.")
	c.wants(c.post(a.Header.Get("Location")+"/send"), http.StatusUnprocessableEntity, "You do not have enough credits.")
	w.counts(0, `select count(*) from messages`)
	w.credits(company.ID, 3)
	// Drafts are bounded in number and age.
	for range 15 {
		c.wants(c.send("/campaigns", "DEMO", template, []byte(head+"79000001,A\n")), http.StatusSeeOther)
	}
	w.counts(10, `select count(*) from campaigns`)
	last := c.send("/campaigns", "DEMO", template, []byte(head+"79000001,A\n")).Header.Get("Location")
	w.exec(`update campaigns set created_at = now() - interval '13 hours'`)
	c.wants(c.post(last+"/send"), http.StatusNotFound)
	if err := w.campaigns.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.counts(0, `select (select count(*) from campaigns) + (select count(*) from campaign_rows)`)
}

// tally counts messages for the charts until a condition holds, without waiting for the dashboard's own.
func (w *world) tally(what string, condition func() bool) {
	w.t.Helper()
	w.until(what, func() bool {
		if err := statistics.New(w.pool).TallyNow(w.t.Context(), time.Minute); err != nil {
			w.t.Fatal(err)
		}
		return condition()
	})
}

// TestCharts: the page's counts match the messages by day and carrier, without other companies' messages.
func TestCharts(t *testing.T) {
	w := newWorld(t, nil)
	c, company := w.merchant("aline", 0)
	other, _ := w.merchant("bob", 0)
	c.wants(c.get("/charts"), http.StatusOK, "No messages in this period")
	fillMessages(t, w.pool, company.ID, 9_000, 80)
	w.tally("they are counted", func() bool {
		return strings.Contains(c.get("/charts?days=90").body, "9,000 messages: 8,100 sent, 900 failed, 0 pending")
	})
	for query, days := range map[string]int{"": 30, "?days=7": 7, "?days=90": 90, "?days=9000000": 30, "?days=x": 30} {
		a := c.get("/charts" + query)
		c.wants(a, http.StatusOK, "<desc", "leo", "lumitel")
		if n := strings.Count(a.body, `data-label="Day"`); n != days {
			t.Errorf("%q: %d days", query, n)
		}
		if len(a.body) > 100_000 || strings.Contains(a.body, "style=") {
			t.Errorf("%q: %d bytes, or a style", query, len(a.body))
		}
	}
	other.wants(other.get("/charts?days=90"), http.StatusOK, "No messages in this period")
}
