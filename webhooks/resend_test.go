package webhooks

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
)

func TestResendByHand(t *testing.T) {
	refuse := make(chan bool, 100)
	for range 6 {
		refuse <- true
	}
	s := newSink(t, func(rw http.ResponseWriter, _ *http.Request) {
		select {
		case <-refuse:
			rw.WriteHeader(http.StatusServiceUnavailable)
		default:
			rw.WriteHeader(http.StatusAccepted)
		}
	})
	w := New(batchPool(t), quickly())
	setEndpoint(t, w, 1, s.URL)
	run(t, w)
	enqueue(t, w, 1, 5, 1)
	d := inState(t, w, 5, StateFailed)

	ctx := context.Background()
	if _, err := w.Resend(ctx, 2, d.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("another company's re-send: %v", err)
	}
	for i := range 2 { // a delivered one may be sent again too
		if _, err := w.Resend(ctx, 1, d.ID); err != nil {
			t.Fatal(err)
		}
		eventually(t, "re-sent", func() bool { return len(only(t, w, 5).Attempts) == 7+i })
		if got := inState(t, w, 5, "delivered"); got.Attempts[6+i].Status != http.StatusAccepted {
			t.Errorf("re-sent as %+v", got.Attempts[6+i])
		}
	}
	seen := s.requests()
	for _, r := range seen {
		if r.body != d.Body || r.header.Get("webhook-id") != d.WebhookID {
			t.Errorf("a re-send differs: %s %s", r.header.Get("webhook-id"), r.body)
		}
	}
	if len(seen) != 8 {
		t.Errorf("%d requests, want 8", len(seen))
	}
}

// behind runs do in one transaction after first in another, and commits first as soon
// as do waits for it.
func behind(t *testing.T, w *Webhooks, first func(tx pgx.Tx) error, do func() error) error {
	t.Helper()
	tx, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if err := first(tx); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- do() }()
	eventually(t, "it waits", func() bool { return testenv.Blocked(t, w.pool) })
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	return <-done
}

// TestResentTwiceAtOnce: of two simultaneous re-sends of a delivery neither fails, in
// the dashboard's transactions and in the command line's.
func TestResentTwiceAtOnce(t *testing.T) {
	for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.ReadCommitted} {
		w := New(batchPool(t), Options{AllowPrivate: true})
		setEndpoint(t, w, 1, "http://127.0.0.1:1/")
		perform(t, w, `INSERT INTO webhook_delivered (company_id, id, at, phone_number) VALUES (1, 8, now(), '')`)
		err := behind(t, w, func(tx pgx.Tx) error { return errOf(w.In(tx).Resend(t.Context(), 1, idSpan)) }, func() error {
			return postgres.Retry(t.Context(), func() error {
				return pgx.BeginTxFunc(t.Context(), w.pool.(*pgxpool.Pool), pgx.TxOptions{IsoLevel: level}, func(tx pgx.Tx) error {
					return errOf(w.In(tx).Resend(t.Context(), 1, idSpan))
				})
			})
		})
		if d := only(t, w, 1); err != nil || d.State != StatePending {
			t.Errorf("%s: %v, %s", level, err, d.State)
		}
	}
}
