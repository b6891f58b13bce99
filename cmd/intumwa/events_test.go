package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
	"intumwa/messages"
	"intumwa/messages/lookup"
	"intumwa/sms"
	"intumwa/tools/rig"
	"intumwa/webhooks"
)

// TestEarlierEventsAreTheWebhooks: events made of messages that were final before a company's first request have the
// ids and, byte for byte, the bodies of their webhooks; so have those that are recorded.
func TestEarlierEventsAreTheWebhooks(t *testing.T) {
	t.Parallel()
	pool, err := postgres.Open(t.Context(), testenv.Database(t), postgres.Options{BatchUpdates: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	testenv.Companies(t, pool, 1)
	posted := make(chan [2]string, 10)
	endpoint := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		posted <- [2]string{r.Header.Get("webhook-id"), string(body)}
	}))
	t.Cleanup(endpoint.Close)
	store := messages.New(pool)
	hooks := webhooks.New(pool, webhooks.Options{AllowPrivate: true, History: outcomesOf(lookup.New(pool))})
	if _, err := hooks.SetEndpoint(t.Context(), 1, webhooks.Setting{URL: endpoint.URL}); err != nil {
		t.Fatal(err)
	}
	life := newLife(t.Context())
	life.run("webhooks", hooks.Run)
	t.Cleanup(life.end)
	if _, err := pool.Exec(t.Context(), `INSERT INTO messages (ulid, company_id, user_id, phone_number, sender, body,
		encoding, segments, test, carrier, client_reference, cost_center)
		SELECT gen_random_uuid(), 1, 1, '+2577912340' || n, 'ACME', 'x', 0, 1, n = 2, 'leo', CASE n WHEN 1 THEN '"é" <' WHEN 4
			THEN 'r' END, CASE WHEN n > 2 THEN 'Kirundo' END FROM generate_series(1, 4) n`); err != nil {
		t.Fatal(err)
	}
	for id := range int64(4) {
		final := messages.Final{MessageID: id + 1, Status: sms.Sent, At: time.Now().Add(-time.Duration(id) * time.Minute)}
		if id%2 == 1 {
			final.Status, final.Reason = sms.Failed, "expired"
		}
		if id == 2 {
			if _, _, err := hooks.Pull(t.Context(), 1, webhooks.Place{}, 1); err != nil {
				t.Fatal(err)
			}
		}
		if err := postgres.InTx(t.Context(), pool, func(tx pgx.Tx) error {
			settled, err := store.Finish(t.Context(), tx, []messages.Final{final}, messages.Rows{})
			if err != nil || len(settled) != 1 {
				return fmt.Errorf("%d settled: %w", len(settled), err)
			}
			m := settled[0] // as the dispatcher does
			e := webhooks.Event{CompanyID: m.CompanyID, MessageID: m.ID, Name: webhooks.Failed, PhoneNumber: string(m.Number),
				At: m.At, Reference: m.Reference, CostCenter: m.CostCenter}
			if m.Status == sms.Sent {
				e.Name = webhooks.Sent
			}
			return hooks.Enqueue(t.Context(), tx, []webhooks.Event{e})
		}); err != nil {
			t.Fatal(err)
		}
	}
	page, _, err := hooks.Pull(t.Context(), 1, webhooks.Place{}, 10)
	if err != nil || len(page) != 4 {
		t.Fatalf("%d events, %v", len(page), err)
	}
	bodies := map[string]string{}
	for range page {
		got := <-posted
		bodies[got[0]] = got[1]
	}
	for _, e := range page {
		if string(e.Body) != bodies[e.WebhookID] || bodies[e.WebhookID] == "" {
			t.Errorf("%s is\n%s\nits webhook\n%s", e.WebhookID, e.Body, bodies[e.WebhookID])
		}
	}
}

// TestEventsOverTwoProcesses: a consumer asks one of two processes after the other, and starts again from where it was.
// It gets an event whose transaction commits after a later one, is woken by another process's commit, and gets its
// answer when its process ends.
func TestEventsOverTwoProcesses(t *testing.T) {
	t.Parallel()
	rdb, prefix := testenv.Redis(t)
	s := newShell(t, fmt.Sprintf(`
database: {url: %q}
redis: {url: %q, prefix: %q}
carriers: [{name: leo, default: true, links: [{name: leo-1, address: '127.0.0.1:1', system_id: a, password: b}]}]
`, testenv.Database(t), redisURL(rdb), prefix))
	company := s.mustCompany("a@example.com")
	s.exec(`UPDATE users SET company_id = $1 WHERE email = 'a@example.com'`, company)
	token, _ := s.admin("", "token_id "+
		"token", "token", "create", "--user", "a@example.com", "--name", "core")["token"].(string)
	var log safeBuffer
	var end []func() // tells the process to; a second signal would kill it
	var doors, metrics []string
	for range 2 {
		door, ops := rig.FreeAddress(), rig.FreeAddress()
		p := exec.Command(os.Args[0], "serve", "--roles", "api", "--config", s.config)
		p.Env = append(os.Environ(), asProgram+"=1", "INTUMWA_API_LISTEN="+door, "INTUMWA_OPS_LISTEN="+ops)
		p.Stdout, p.Stderr = &log, &log
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		terminate := sync.OnceFunc(func() { _ = p.Process.Signal(syscall.SIGTERM) })
		t.Cleanup(func() {
			terminate()
			if err := p.Wait(); err != nil {
				t.Errorf("it ended with %v\n%s", err, log.String())
			}
		})
		eventually(t, "it is ready", func() bool {
			answer, err := http.Get("http://" + ops + "/readyz")
			if err == nil {
				answer.Body.Close()
			}
			return err == nil && answer.StatusCode == http.StatusOK
		})
		end, doors, metrics = append(end, terminate), append(doors, door), append(metrics, "http://"+ops+"/metrics")
	}
	var cursor string
	fetch := func(process int, wait string) (ids []string, next string) {
		req, _ := http.NewRequest("GET", "http://"+doors[process]+"/v1/events?wait="+wait+"&after="+cursor, nil)
		req.Header.Set("Authorization", "Bearer "+token)
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Error(err)
			return nil, cursor
		}
		defer answer.Body.Close()
		var page struct {
			Data       []struct{ ID string }
			NextCursor string `json:"next_cursor"`
		}
		if err := json.NewDecoder(answer.Body).Decode(&page); err != nil || answer.StatusCode != http.StatusOK {
			t.Errorf("%s, %v", answer.Status, err)
		}
		for _, e := range page.Data {
			ids = append(ids, e.ID)
		}
		return ids, page.NextCursor
	}
	number, _ := strconv.ParseInt(company, 10, 64)
	hooks := webhooks.New(s.pool(), webhooks.Options{}) // a dispatcher's
	begin := func(message int64) pgx.Tx {
		t.Helper()
		tx, err := s.pool().Begin(t.Context())
		if err == nil {
			_, err = tx.Exec(t.Context(), `SELECT pg_current_xact_id()`)
		}
		if err == nil {
			err = hooks.Enqueue(t.Context(), tx, []webhooks.Event{
				{CompanyID: number, MessageID: message, Name: webhooks.Sent, PhoneNumber: "+25779123400", At: time.Now()}})
		}
		if err != nil {
			t.Fatal(err)
		}
		return tx
	}
	commit := func(tx pgx.Tx) {
		t.Helper()
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	_, cursor = fetch(0, "0")
	late := begin(1)
	commit(begin(2))
	ids, next := fetch(1, "5")
	if fmt.Sprint(ids) != "[evt_16]" {
		t.Fatalf("before the late commit: %v", ids)
	}
	cursor = next // stored; the consumer is off
	commit(late)
	commit(begin(3))
	for n := range 2 { // it starts twice
		var all []string
		before := cursor
		for process := n; len(all) < 2; process = 1 - process {
			var some []string
			if some, cursor = fetch(process, "10"); some == nil {
				break
			}
			all = append(all, some...)
		}
		if fmt.Sprint(all) != "[evt_8 evt_24]" {
			t.Errorf("start %d: %v", n, all)
		}
		if n == 0 {
			cursor = before
		}
	}
	type result struct {
		ids  []string
		next string
		took time.Duration
	}
	waits := func(process int) chan result {
		done, start := make(chan result, 1), time.Now()
		go func() {
			ids, next := fetch(process, "30")
			done <- result{ids, next, time.Since(start)}
		}()
		eventually(t, "it waits", func() bool {
			answer, err := http.Get(metrics[process])
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			text, err := io.ReadAll(answer.Body)
			return err == nil && strings.Contains(string(text), "\nintumwa_http_requests_waiting 1\n")
		})
		return done
	}
	woken := waits(0)
	commit(begin(4))
	if got := <-woken; fmt.Sprint(got.ids) != "[evt_32]" || got.took > 20*time.Second {
		t.Errorf("woken: %v", got)
	} else {
		cursor = got.next
	}
	ending := waits(1)
	end[1]()
	if got := <-ending; got.ids != nil || got.next != cursor || got.took > 20*time.Second {
		t.Errorf("its process ends: %v", got)
	}
}
