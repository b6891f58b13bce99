package stories

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"
)

// Four processes share eight sessions of PostgreSQL by a PgBouncer in transaction mode, which
// is killed under load and started again. Nothing is lost and nothing arrives twice, and all
// that there is to the gateway works: batches, scheduled messages, receipts, webhooks,
// look-ups, pages, commands, and changes that hold in every process at once.
func TestPgBouncer(t *testing.T) {
	t.Parallel()
	busy(t)
	kills := chaos(4)
	pair := steady()
	pair.links = 2
	w := play(t, scene{carriers: []carrier{pair}, sessions: 8,
		gateways: []tree{{"roles": "api,dashboard"}, {"roles": "api"}, {"roles": "dispatcher,webhooks"}, {"roles": "dispatcher,webhooks"}}})
	shop, other := w.company("Isoko", 1_000_000), w.company("Ikawa", 1000)

	batch := other.campaign(120)
	later := other.schedules(40, map[string]any{"send_at": soon(time.Hour)})[0]
	w.comes(200 * time.Millisecond)
	dropped := other.schedules(10, map[string]any{"send_at": soon(time.Hour)})[0]
	var stopped cancelled
	other.requests(http.MethodDelete, "/v1/sms/batches/"+dropped, nil, &stopped)
	if stopped.Cancelled != 10 || stopped.Credits != 10 {
		t.Errorf("of 10 scheduled messages %+v", stopped)
	}
	for id, n := range map[string]int{batch: 120, later: 40} {
		w.eventually(finalWithin, "a batch is sent", func() bool {
			var seen struct {
				Counts struct {
					Sent int `json:"sent"`
				} `json:"counts"`
			}
			other.requests(http.MethodGet, "/v1/sms/batches/"+id, nil, &seen)
			return seen.Counts.Sent == n
		})
	}
	if text := other.visits("/messages"); !strings.Contains(text, "Ikawa") {
		t.Errorf("the page of messages is\n%s", text)
	}

	l := shop.sendsMany(&load{messages: 6000 * kills, pause: 20 * time.Millisecond, at: func(n int) *gateway { return w.gateways[n%2] }})
	for kill := range kills {
		l.reaches(int(l.accepted.Load()) + 400)
		before := l.answered()[http.StatusServiceUnavailable]
		w.pooler.Kill()
		w.eventually(15*time.Second, "customers are told that the service is away", func() bool {
			return l.answered()[http.StatusServiceUnavailable] > before
		})
		w.pooler.Start()
		back, accepted, carried := time.Now(), int(l.accepted.Load()), w.lumitel.Stats().Accepted
		w.eventually(15*time.Second, "messages are accepted and carried again", func() bool {
			return int(l.accepted.Load()) > accepted+100 && w.lumitel.Stats().Accepted > carried+100
		})
		t.Logf("kill %d: accepting and carrying again %v after PgBouncer was back", kill+1, time.Since(back).Round(time.Millisecond))
	}
	// Those that are lent, and of each process at most one for short and one for each lock.
	if n := ask[int](w, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'intumwa'`); n > 8+3*len(w.gateways) {
		t.Errorf("PostgreSQL has %d sessions of four processes", n)
	}
	l.ends()
	w.drains()
	l.onlyAnswers(http.StatusOK, http.StatusServiceUnavailable)
	l.adds(0)

	var result map[string]any
	w.orders(&result, "", "company", "set", "--id", shop.number(), "--approved=false")
	for _, g := range w.gateways[:2] {
		w.eventually(atOnce, "what was taken back holds on "+g.name, func() bool {
			return shop.triesAt(g, w.number(), "x").status == http.StatusBadRequest
		})
	}
}

// The primary dies behind a PgBouncer, its standby is promoted, and PgBouncer is told of the
// new one. Every 200 arrives, and sending goes on within ten seconds.
func TestPgBouncerFailsOver(t *testing.T) {
	t.Parallel()
	busy(t)
	w := play(t, scene{carriers: []carrier{steady()}, standby: true, sessions: 8, config: tree{"database": tree{"require_standby": true}}})
	shop := w.company("Isoko", 1_000_000)
	deaths := chaos(3)
	l := shop.sendsMany(&load{messages: 4000 * deaths, pause: 40 * time.Millisecond})
	for death := range deaths {
		l.reaches(int(l.accepted.Load()) + 400)
		before := l.answered()[http.StatusServiceUnavailable]
		w.postgresPair.Crash()
		w.eventually(15*time.Second, "customers are told that the service is away", func() bool {
			return l.answered()[http.StatusServiceUnavailable] > before
		})
		w.goesOnAfter(l, death, func() {
			w.postgresPair.Promote()
			w.pooler.Lead(databaseOf(w.postgresPair.Primary))
		})
		w.pool.Reset()
		w.postgresPair.Follow()
	}
	l.ends()
	w.drains()
	l.onlyAnswers(http.StatusOK, http.StatusServiceUnavailable)
	l.adds(window * deaths)
}

// visits signs in at the first gateway's dashboard and opens a page of it.
func (c *company) visits(page string) string {
	c.w.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		c.w.t.Fatal(err)
	}
	browser := &http.Client{Transport: c.w.client.Transport, Jar: jar, Timeout: c.w.client.Timeout}
	base := "http://" + c.w.gateway.dashboard
	signedIn, err := browser.PostForm(base+"/sign-in", url.Values{"email": {c.email}, "password": {c.password}})
	if err != nil {
		c.w.t.Fatal(err)
	}
	_ = signedIn.Body.Close()
	response, err := browser.Get(base + page)
	if err != nil {
		c.w.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || response.Request.URL.Path != page {
		c.w.t.Errorf("%s leads to %s, %d (%v)", page, response.Request.URL.Path, response.StatusCode, err)
	}
	return string(text)
}
