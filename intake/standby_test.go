package intake

import (
	"context"
	"crypto/sha256"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
	"intumwa/messages"
	"intumwa/queue"
	"intumwa/sms"
)

// TestAcceptedIsOnTheStandby: a COMMIT that waits for a standby which is away, and that
// the server gives up waiting for, can be seen in the database and is on no other server.
// Neither the first request nor its repetition is told that it was accepted until it is.
func TestAcceptedIsOnTheStandby(t *testing.T) {
	t.Parallel()
	server := testenv.NewPostgresServer(t)
	pool, err := postgres.Open(t.Context(), server.URL(), postgres.Options{BatchUpdates: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	d := newDistrictOn(t, pool, 100)
	rdb, prefix := testenv.Redis(t)
	routes, err := sms.NewRoutes([]sms.Route{{Carrier: "leo", Default: true}})
	if err != nil {
		t.Fatal(err)
	}
	in := New(pool, d.accounts, messages.New(pool), queue.New(rdb, queue.Options{Prefix: prefix}), routes, Options{TestSender: "TEST", TestQuota: 5})
	running, end := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = in.Run(running) }()
	t.Cleanup(func() { end(); <-ended })

	admin, err := pgx.Connect(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(context.Background())
	standbys := func(names string) {
		t.Helper()
		for _, statement := range []string{"ALTER SYSTEM SET synchronous_standby_names = '" + names + "'", "SELECT pg_reload_conf()"} {
			if _, err := admin.Exec(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
	}
	// waiting are the sessions whose COMMIT waits for a standby.
	waiting := func() (pids []int32) {
		t.Helper()
		rows, err := admin.Query(t.Context(), `SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' ORDER BY backend_start`)
		if err == nil {
			pids, err = pgx.CollectRows(rows, pgx.RowTo[int32])
		}
		if err != nil {
			t.Fatal(err)
		}
		return pids
	}
	giveUp := func() {
		t.Helper()
		for _, pid := range waiting() {
			if _, err := admin.Exec(t.Context(), `SELECT pg_terminate_backend($1)`, pid); err != nil {
				t.Fatal(err)
			}
		}
	}
	visible := func() (n int) {
		t.Helper()
		if err := admin.QueryRow(t.Context(), `SELECT count(*) FROM messages`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	until := func(what string, holds func() bool, answer <-chan error) {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); !holds(); {
			select {
			case err := <-answer:
				t.Fatalf("not until %s, and it was answered already: %v", what, err)
			case <-time.After(20 * time.Millisecond):
			}
			if time.Now().After(deadline) {
				t.Fatal("not in time: " + what)
			}
		}
	}
	send := func() <-chan error {
		answer := make(chan error, 1)
		go func() {
			_, err := in.Send(context.Background(), d.principal, d.request("once", &Key{Name: "k", Request: sha256.Sum256([]byte("once"))}))
			answer <- err
		}()
		return answer
	}

	standbys("nobody")
	// Commits wait from when the checkpointer has heard of it: one that tells so is tried.
	tried := make(chan struct{}, 1)
	for end := time.Now().Add(30 * time.Second); len(waiting()) == 0; {
		conn, err := pgx.Connect(t.Context(), server.URL())
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, _ = conn.Exec(context.Background(), `SELECT pg_logical_emit_message(true, 'a commit', '')`) // its end is what counts
			_ = conn.Close(context.Background())
			tried <- struct{}{}
		}()
		for answered := false; !answered && len(waiting()) == 0; {
			select {
			case <-tried:
				answered = true
			case <-time.After(10 * time.Millisecond):
			}
		}
		if time.Now().After(end) {
			t.Fatal("no commit waits for the standby")
		}
	}
	giveUp()
	<-tried
	if n := len(waiting()); n != 0 {
		t.Fatalf("%d commits wait before the first is made", n)
	}
	first := send()
	until("the commit waits for the standby", func() bool { return len(waiting()) == 1 }, first)
	if n := visible(); n != 0 {
		t.Fatalf("%d messages can be seen before their commit", n)
	}
	giveUp()
	until("what the server gave up waiting for can be seen", func() bool { return visible() == 1 }, first)
	until("the answer waits until it is safe", func() bool { return len(waiting()) == 1 }, first)
	repeated := send()
	until("the repetition waits as well", func() bool { return len(waiting()) == 2 }, repeated)

	standbys("")
	if err := <-first; err != nil {
		t.Errorf("when it is safe: %v", err)
	}
	if err := <-repeated; err != nil {
		t.Errorf("the repetition, when it is safe: %v", err)
	}
	d.books(t, 99, 1)
}
