package webhooks

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
	"intumwa/sms"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const patience = time.Minute

// batchPool is a pool with the options that Run needs.
func batchPool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return testenv.PoolWith(t, postgres.Options{MaxConns: 8, BatchUpdates: true, StatementTimeout: time.Minute})
}

// quickly returns options that complete a whole schedule within a test. A busy
// machine's delay of a call does not give it up.
func quickly() Options {
	return Options{
		AllowPrivate: true,
		Timeout:      patience,
		RetryDelays: []time.Duration{20 * time.Millisecond, 30 * time.Millisecond, 40 * time.Millisecond,
			50 * time.Millisecond, 60 * time.Millisecond},
		Idle:  20 * time.Millisecond,
		Drain: 2 * time.Second,
	}
}

// run runs w until the returned function is called, or the test ends.
func run(t testing.TB, w *Webhooks) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Run: %v", err)
			}
		case <-time.After(patience):
			t.Error("Run does not return")
		}
	})
	t.Cleanup(stop)
	return stop
}

func setEndpoint(t testing.TB, w *Webhooks, company int64, url string) Endpoint {
	t.Helper()
	e, err := w.SetEndpoint(context.Background(), company, Setting{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// enqueue records a company's messages [from, from+n) as sent.
func enqueue(t testing.TB, w *Webhooks, company, from int64, n int) int {
	t.Helper()
	at := time.Now()
	events := make([]Event, n)
	for i := range events {
		events[i] = Event{CompanyID: company, MessageID: from + int64(i), Name: Sent, PhoneNumber: "+25761234567", At: at}
	}
	return enqueueAll(t, w, events)
}

func enqueueAll(t testing.TB, w *Webhooks, events []Event) (inserted int) {
	t.Helper()
	ctx := context.Background()
	err := postgres.InTx(ctx, w.pool.(*pgxpool.Pool), func(tx pgx.Tx) error {
		var before, after int
		count := `SELECT (SELECT count(*) FROM webhook_deliveries) + (SELECT count(*) FROM webhook_called)`
		if err := tx.QueryRow(ctx, count).Scan(&before); err != nil {
			return err
		}
		if err := w.Enqueue(ctx, tx, events); err != nil {
			return err
		}
		err := tx.QueryRow(ctx, count).Scan(&after)
		inserted = after - before
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return inserted
}

func only(t testing.TB, w *Webhooks, message int64) Delivery {
	t.Helper()
	ctx := context.Background()
	var company int64
	if err := w.pool.QueryRow(ctx, `SELECT company_id FROM webhook_deliveries WHERE id / 8 = $1 UNION ALL SELECT company_id
		FROM webhook_called WHERE id / 8 = $1`, message).Scan(&company); err != nil {
		t.Fatal(err)
	}
	found, _, err := w.Deliveries(ctx, sms.CompanyID(company), Filter{MessageID: message}, 0, 2)
	if err != nil || len(found) != 1 {
		t.Fatalf("message %d has %d deliveries, %v", message, len(found), err)
	}
	return found[0]
}

func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

func inState(t testing.TB, w *Webhooks, message int64, state string) Delivery {
	t.Helper()
	var d Delivery
	eventually(t, "delivery "+state, func() bool {
		d = only(t, w, message)
		return d.State == state
	})
	return d
}

// request is one received request.
type request struct {
	at     time.Time
	header http.Header
	body   string
}

// sink is a receiver that records requests. answer may be nil: 204.
type sink struct {
	*httptest.Server
	mu   sync.Mutex
	seen []request
}

func newSink(t testing.TB, answer http.HandlerFunc) *sink {
	s := new(sink)
	s.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		at := time.Now()
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.seen = append(s.seen, request{at, r.Header, string(body)})
		s.mu.Unlock()
		if answer == nil {
			rw.WriteHeader(http.StatusNoContent)
			return
		}
		answer(rw, r)
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (s *sink) requests() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]request(nil), s.seen...)
}

func (s *sink) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seen)
}

// hang does not respond until the caller gives up.
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
