package smppserver_test

import (
	"testing"

	"github.com/oklog/ulid/v2"

	"intumwa/accounts/keys"
	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
	"intumwa/smpp"
)

// TestAcceptedIsOnTheStandby: a submit_sm whose COMMIT got no answer is accepted when its message is found on the
// standby, not as soon as it can be seen.
func TestAcceptedIsOnTheStandby(t *testing.T) {
	t.Parallel()
	server := testenv.NewPostgresServer(t)
	pool, err := postgres.Open(t.Context(), server.URL(), postgres.Options{BatchUpdates: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	w := newBankOn(t, pool, 100, keys.SMPPLimits{})
	p := w.start()
	r := w.bound(p, nil).submit(nil)
	id, err := ulid.ParseStrict(r.MessageID)
	if r.Outcome != smpp.Accepted || err != nil {
		t.Fatalf("%+v, %v", r, err)
	}
	p.stop() // its commits would wait too
	standby := testenv.NewStandby(t, server)
	standby.Away()
	answer := make(chan error, 1)
	go func() { answer <- p.server.Outcome(id) }()
	standby.Until("the answer waits for the standby", func() bool { return standby.Waiting() == 1 }, answer)
	standby.Back()
	if err := <-answer; err != nil {
		t.Errorf("when it is safe: %v", err)
	}
}
