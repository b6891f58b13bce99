package api

import (
	"encoding/json"
	"fmt"
	"testing"

	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
)

// TestToldIsOnTheStandby: what a client repeats or looks up after an unknown outcome is told only when the standby has
// it, although the request finds nothing to write.
func TestToldIsOnTheStandby(t *testing.T) {
	t.Parallel()
	server := testenv.NewPostgresServer(t)
	pool, err := postgres.Open(t.Context(), server.URL(), postgres.Options{BatchUpdates: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	w := newWorld(t, worldOptions{Pool: pool}).settle()
	var sent struct {
		ID string `json:"id"`
	}
	var batch struct {
		ID string `json:"batch_id"`
	}
	const one = `{"phone_number":"79123456","sender":"ACME","message":"Amahoro"}`
	keyed := []string{"Idempotency-Key", "one"}
	for _, c := range []struct {
		body string
		into any
	}{
		{w.do("live", "POST", "/v1/sms", one, keyed...).body, &sent},
		{w.do("live", "POST", "/v1/sms/bulk",
			`{"sender":"ACME","messages":[{"phone_number":"79123457","message":"Amahoro"}]}`).body, &batch},
	} {
		if err := json.Unmarshal([]byte(c.body), c.into); err != nil {
			t.Fatalf("%s: %v", c.body, err)
		}
	}
	requests := []struct{ method, path, body string }{
		{"POST", "/v1/sms", one},
		{"POST", "/v1/opt-outs", `{"phone_number":"79123458"}`},
		{"POST", "/v1/sms/" + sent.ID + "/feedback", `{"converted":true}`},
		{"DELETE", "/v1/batches/" + batch.ID, ""},
		{"GET", "/v1/sms?phone_number=79123456", ""},
	}
	ask := func(n int) reply {
		if n == 0 {
			return w.do("live", requests[n].method, requests[n].path, requests[n].body, keyed...)
		}
		return w.do("live", requests[n].method, requests[n].path, requests[n].body)
	}
	for n := range requests { // the first time
		if got := ask(n); got.status >= 300 {
			t.Fatalf("%v: %d %s", requests[n], got.status, got.body)
		}
	}
	standby := testenv.NewStandby(t, server)
	for n, r := range requests {
		standby.Away()
		answer := make(chan error, 1)
		go func() {
			if got := ask(n); got.status >= 300 {
				answer <- fmt.Errorf("%d %s", got.status, got.body)
				return
			}
			answer <- nil
		}()
		standby.Until(r.method+" "+r.path+" waits for the standby", func() bool { return standby.Waiting() == 1 }, answer)
		standby.Back()
		if err := <-answer; err != nil {
			t.Errorf("%s %s, when it is safe: %v", r.method, r.path, err)
		}
	}
}
