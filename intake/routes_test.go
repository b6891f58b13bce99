package intake

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"intumwa/internal/notices"
	"intumwa/sms"
)

// TestRetiredIsKnown: each process routes by the retired carriers from its start on, and soon after a change by another
// process; new routes keep them.
func TestRetiredIsKnown(t *testing.T) {
	t.Parallel()
	d := newDistrict(t, 5)
	exec := func(statement string) {
		t.Helper()
		if _, err := d.pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	const number = sms.Number("+25779123456")
	exec(`INSERT INTO retired_carriers VALUES ('leo', NULL)`)
	one := d.process(t)
	if err := one.ReadRetired(t.Context()); err != nil {
		t.Fatal(err)
	}
	if carrier, ok := one.Route(number); ok {
		t.Errorf("after a restart the number goes to %s", carrier)
	}
	if _, err := one.Send(t.Context(), d.principal, d.request("x", nil)); !errors.Is(err, RefuseNoCarrier) {
		t.Errorf("a send: %v", err)
	}
	listener := notices.New(d.pool, notices.Options{})
	listener.On(notices.Carrier, one.CarrierRetired)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = listener.Run(ctx) })
	running.Go(func() { _ = one.FollowRetired(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	routes, err := sms.NewRoutes([]sms.Route{{Carrier: "leo", Default: true}, {Carrier: "lumitel"}})
	if err != nil {
		t.Fatal(err)
	}
	one.SetRoutes(routes)
	for _, step := range []struct{ statement, want string }{
		{`SELECT`, ""},
		{`DELETE FROM retired_carriers`, "leo"},
		{`INSERT INTO retired_carriers VALUES ('leo', 'lumitel')`, "lumitel"},
		{`UPDATE retired_carriers SET to_carrier = NULL`, ""},
	} {
		exec(step.statement)
		from, got := time.Now(), "?"
		for got != step.want && time.Since(from) < 4*time.Second { // less than readRetiredEvery
			got, _ = one.Route(number)
			time.Sleep(time.Millisecond)
		}
		if got != step.want {
			t.Errorf("%s: the number goes to %q, want %q", step.statement, got, step.want)
		}
		t.Logf("%s: known after %v", step.statement, time.Since(from).Round(time.Millisecond))
	}
}
