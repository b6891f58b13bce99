package dispatcher

import (
	"testing"
	"time"

	"intumwa/dispatcher/core"
	"intumwa/dispatcher/settling"
	"intumwa/inbound/handsets"
	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
	"intumwa/smpp"
	"intumwa/sms"
)

// TestAcknowledgedIsOnTheStandby: a settlement is committed, but the server gave up
// waiting for its standby: it is visible in the database and on no other server. Its
// repetition and a repeated receipt wait for the standby before they succeed.
func TestAcknowledgedIsOnTheStandby(t *testing.T) {
	t.Parallel()
	server := testenv.NewPostgresServer(t)
	pool, err := postgres.Open(t.Context(), testenv.Patient(server.URL()), postgres.Options{BatchUpdates: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	b := newBenchOn(t, pool)
	standby := testenv.NewStandby(t, server)
	said := func(key, state string) func() settling.Settlement {
		return func() settling.Settlement {
			return settling.Settlement{Receipts: []settling.Arrival{b.receipt(key, state)}}
		}
	}
	known := b.begun(1)
	b.by(known, accepted("known"))
	open := b.begun(1)
	answer := settling.Settlement{Results: []core.Result{accepted("open")(open, 1)}}
	text := "Amahoro"
	for _, c := range []struct {
		name   string
		comes  func() settling.Settlement // the first time
		repeat func() settling.Settlement // the second time
	}{
		{"a receipt", said("known", "DELIVRD"), said("known", "DELIVRD")},
		{"a receipt that contradicts", said("known", "UNDELIV"), said("known", "UNDELIV")},
		{"one of no message", said("unknown", "DELIVRD"), said("unknown", "DELIVRD")},
		{"a handset's text", func() settling.Settlement {
			return settling.Settlement{Receipts: []settling.Arrival{
				{PDU: &smpp.Delivery{}, Inbound: &handsets.Inbound{At: time.Now(), Carrier: "lumitel", Link: "l1",
					Source: "25761000001", Destination: "1234", Body: &text, Octets: []byte(text)}}}}
		}, nil},
		{"an answer", func() settling.Settlement { return answer },
			func() settling.Settlement { answer.Again = true; return answer }},
	} {
		if c.repeat == nil {
			c.repeat = c.comes
		}
		commit := func(w settling.Settlement) <-chan error {
			done := make(chan error, 1)
			go func() { done <- b.s.Commit(w) }()
			return done
		}
		standby.Away()
		first := commit(c.comes())
		standby.Until(c.name+" waits for the standby", func() bool { return standby.Waiting() == 1 }, first)
		standby.GiveUp()
		if err := <-first; err == nil {
			t.Errorf("%s: it is done with, and on no standby", c.name)
		}
		again := commit(c.repeat())
		standby.Until("the repetition of "+c.name+" waits as well", func() bool { return standby.Waiting() == 1 }, again)
		standby.Back()
		if err := <-again; err != nil {
			t.Errorf("%s: when it is safe: %v", c.name, err)
		}
	}
	if status, _ := b.status(known.Msg.ID); status != sms.Sent {
		t.Errorf("the message is %v", status)
	}
	b.clean()
}
