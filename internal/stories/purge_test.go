package stories

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Old messages leave while others are sent, with two gateways at work and a
// backup that holds its snapshot all the while; one gateway is killed in the
// middle. What is sent meanwhile is not touched, what has left is as if it had
// never been, and the books are right.
func TestOldDataLeaves(t *testing.T) {
	t.Parallel()
	busy(t)
	w := play(t, scene{
		carriers: []carrier{steady()},
		gateways: []tree{{}, {}},
		config:   tree{"retention": tree{"messages": "49h", "bodies": "25h"}},
	})
	past, shop := w.company("Kera", 1_000_000), w.company("Isoko", 1_000_000)
	first := past.sends(w.number(), "Amahoro mwese")
	past.sendsMany(&load{messages: 700}).finishes()
	w.drains()
	w.settles(settledWithin)
	w.audited()
	spent := past.credits()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	ages := func(age time.Duration) {
		t.Helper()
		if _, err := w.pool.Exec(ctx, `UPDATE messages SET created_at = now() - $1::interval WHERE company_id = $2`, age, past.id); err != nil {
			t.Fatal(err)
		}
	}

	l := shop.sendsMany(&load{messages: 1000, keyed: true, senders: 16, at: func(n int) *gateway { return w.gateways[n%2] }})
	backup, err := w.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = backup.Rollback(context.WithoutCancel(ctx)) }()
	if _, err := backup.Exec(ctx, `LOCK TABLE messages, outbox, segments, batches, sweeps, tallies IN ACCESS SHARE MODE`); err != nil {
		t.Fatal(err)
	}
	ages(30 * time.Hour)
	w.eventually(2*time.Minute, "what the old messages say leaves", func() bool {
		return ask[int](w, `SELECT count(*) FROM messages WHERE company_id = $1 AND body <> ''`, past.id) == 0
	})
	ages(50 * time.Hour)
	w.eventually(2*time.Minute, "old messages begin to leave", func() bool {
		return ask[int](w, `SELECT count(*) FROM messages WHERE company_id = $1`, past.id) < 701
	})
	w.gateway.kill()
	w.gateway.start()
	w.eventually(2*time.Minute, "the old messages leave", func() bool {
		return ask[int](w, `SELECT count(*) FROM messages WHERE company_id = $1`, past.id) == 0
	})
	if n := ask[int](w, `SELECT count(*) FROM segments s WHERE NOT EXISTS (SELECT FROM messages m WHERE m.id = s.message_id)`); n != 0 {
		t.Errorf("%d segments are left of them", n)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+w.gateway.api+"/v1/sms/"+first.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+past.token)
	response, err := w.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if _ = response.Body.Close(); response.StatusCode != http.StatusNotFound {
		t.Errorf("one of them is answered %d", response.StatusCode)
	}
	if now := past.credits(); now != spent {
		t.Errorf("%d credits, and before they left %d", now, spent)
	}
	if err := backup.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	l.finishes()
	w.drains()
	l.adds(window)
	var found struct {
		Purged int `json:"purged_messages"`
	}
	if err := w.admin(&found, "", "audit"); err != nil || found.Purged != 701 {
		t.Errorf("the audit says that %d have left (%v)", found.Purged, err)
	}
}
