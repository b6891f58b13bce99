package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
	"intumwa/messages"
	"intumwa/sms"
	"intumwa/webhooks"
)

// TestEarlierEventsAreTheWebhooks: events made of messages that were final before a company's first request have the ids
// and, byte for byte, the bodies of their webhooks; so have those that are recorded.
func TestEarlierEventsAreTheWebhooks(t *testing.T) {
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
	hooks := webhooks.New(pool, webhooks.Options{AllowPrivate: true, History: outcomesOf(store)})
	if _, err := hooks.SetEndpoint(t.Context(), 1, webhooks.Setting{URL: endpoint.URL}); err != nil {
		t.Fatal(err)
	}
	life := newLife(t.Context())
	life.run("webhooks", hooks.Run)
	t.Cleanup(life.end)
	if _, err := pool.Exec(t.Context(), `INSERT INTO messages (ulid, company_id, user_id, phone_number, sender, body, encoding, segments, test, carrier, client_reference, cost_center)
		SELECT gen_random_uuid(), 1, 1, '+2577912340' || n, 'ACME', 'x', 0, 1, n = 2, 'leo', CASE n WHEN 1 THEN '"é" <' WHEN 4 THEN 'r' END, CASE WHEN n > 2 THEN 'Kirundo' END FROM generate_series(1, 4) n`); err != nil {
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
			e := webhooks.Event{CompanyID: m.CompanyID, MessageID: m.ID, Name: webhooks.Failed, PhoneNumber: string(m.Number), At: m.At, Reference: m.Reference, CostCenter: m.CostCenter}
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
