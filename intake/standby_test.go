package intake

import (
	"context"
	"crypto/sha256"
	"testing"

	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
)

// TestAcceptedIsOnTheStandby: a COMMIT for which the server stops waiting while the standby is away is visible, and on
// no other server. Neither the first request nor its repetition is accepted before the standby has it.
func TestAcceptedIsOnTheStandby(t *testing.T) {
	t.Parallel()
	server := testenv.NewPostgresServer(t)
	pool, err := postgres.Open(t.Context(), server.URL(), postgres.Options{BatchUpdates: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	d := newDistrictOn(t, pool, 100)
	in := d.process(t)
	standby := testenv.NewStandby(t, server)
	visible := func() (n int) {
		t.Helper()
		if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM messages`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	send := func() <-chan error {
		answer := make(chan error, 1)
		go func() {
			_, err := in.Send(context.Background(), d.principal,
				d.request("once", &Key{Name: "k", Request: sha256.Sum256([]byte("once"))}))
			answer <- err
		}()
		return answer
	}

	standby.Away()
	first := send()
	standby.Until("the commit waits for the standby", func() bool { return standby.Waiting() == 1 }, first)
	if n := visible(); n != 0 {
		t.Fatalf("%d messages can be seen before their commit", n)
	}
	standby.GiveUp()
	standby.Until("what the server gave up waiting for can be seen", func() bool { return visible() == 1 }, first)
	standby.Until("the answer waits until it is safe", func() bool { return standby.Waiting() == 1 }, first)
	repeated := send()
	standby.Until("the repetition waits as well", func() bool { return standby.Waiting() == 2 }, repeated)

	standby.Back()
	if err := <-first; err != nil {
		t.Errorf("when it is safe: %v", err)
	}
	if err := <-repeated; err != nil {
		t.Errorf("the repetition, when it is safe: %v", err)
	}
	d.checkLedger(t, 99, 1)
}
