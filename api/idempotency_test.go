package api

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"
)

const keyHeader = "Idempotency-Key"

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	body := single("79123456", "ACME", "once")
	first := w.do("live", "POST", "/v1/sms", body, keyHeader, "k1")
	if first.status != 200 || first.header.Get("Idempotent-Replayed") != "" {
		t.Fatalf("first: %d %v", first.status, first.header)
	}
	for range 2 {
		again := w.do("live", "POST", "/v1/sms", body, keyHeader, "k1")
		if again.status != 200 || again.body != first.body || again.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("again: %d %s %v", again.status, again.body, again.header)
		}
		if again.header.Get("X-RateLimit-Limit") == "" {
			t.Error("a repetition has no rate headers")
		}
	}
	reused := messageJSON("The idempotency key was already used with a different request.")
	for name, other := range map[string]string{"another text": single("79123456", "ACME", "twice"), "other bytes": body +
		" "} {
		got := w.do("live", "POST", "/v1/sms", other, keyHeader, "k1")
		if got.status != 422 {
			t.Errorf("%s: %d", name, got.status)
		}
		sameJSON(t, got.body, reused)
	}
	// The same body sent to another endpoint is another request.
	both :=
		`{"phone_number":"79123456","sender":"ACME","message":"x","messages":[{"phone_number":"79123456","message":"x"}]}`
	if got := w.do("live", "POST", "/v1/sms", both, keyHeader, "k2"); got.status != 200 {
		t.Errorf("k2: %d %s", got.status, got.body)
	}
	if got := w.do("live", "POST", "/v1/sms/bulk", both, keyHeader, "k2"); got.status != 422 {
		t.Errorf("k2 at bulk: %d %s", got.status, got.body)
	}
	// Each user has keys of their own.
	if got := w.do("other", "POST", "/v1/sms", body, keyHeader, "k1"); got.status != 200 || got.body == first.body {
		t.Errorf("another user: %d %s", got.status, got.body)
	}
	if n := w.count(`SELECT count(*) FROM messages WHERE company_id = $1`, w.company["live"]); n != 2 {
		t.Errorf("%d messages, not 2", n)
	}
	if n := w.count(`SELECT credits FROM balances WHERE company_id = $1`, w.company["live"]); n != 998 {
		t.Errorf("%d credits, not 998", n)
	}
}

func TestIdempotencyKeyForms(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	body := single("79123456", "ACME", "x")
	for _, key := range []string{"", "a b", "é", strings.Repeat("k", 256), "a\tb"} {
		got := w.do("live", "POST", "/v1/sms", body, keyHeader, key)
		if got.status != 400 {
			t.Errorf("%q: %d", key, got.status)
		}
		sameJSON(t, got.body, messageJSON("The Idempotency-Key header is not valid."))
	}
	for _, key := range []string{"!", `"quoted"`, strings.Repeat("~", 255)} {
		if got := w.do("live", "POST", "/v1/sms", body, keyHeader, key); got.status != 200 {
			t.Errorf("%q: %d", key, got.status)
		}
	}
}

// A refusal leaves the key free.
func TestIdempotencyForgetsRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	w.credits("live", 0)
	for _, c := range []struct{ path, body string }{
		{"/v1/sms", single("79123456", "ACME", "x")}, {"/v1/sms/bulk", bulk("ACME", item("79123456", "x"))},
		{"/v1/sms/template", templated("ACME", "x", to("79123456", vars{}))},
	} {
		if got := w.do("live", "POST", c.path, "{", keyHeader, c.path); got.status != 400 {
			t.Errorf("malformed: %d", got.status)
		}
		if got := w.do("live", "POST", c.path, "{}", keyHeader, c.path); got.status != 422 {
			t.Errorf("invalid: %d", got.status)
		}
		if got := w.do("live", "POST", c.path, c.body, keyHeader, c.path); got.status != 400 {
			t.Errorf("unpaid: %d", got.status)
		}
	}
	w.credits("live", 3)
	for _, c := range []struct{ path, body string }{
		{"/v1/sms", single("79123456", "ACME", "another")}, {"/v1/sms/bulk", bulk("ACME", item("79123456", "another"))},
		{"/v1/sms/template", templated("ACME", "another", to("79123456", vars{}))},
	} {
		for _, replayed := range []string{"", "true"} {
			got := w.do("live", "POST", c.path, c.body, keyHeader, c.path)
			if got.status != 200 || got.header.Get("Idempotent-Replayed") != replayed {
				t.Errorf("paid: %d %s %v", got.status, got.body, got.header)
			}
		}
	}
}

// A key is free again after 24 hours.
func TestIdempotencyKeyExpires(t *testing.T) {
	t.Parallel()
	const life = 24 * time.Hour
	w := newWorld(t, worldOptions{}).settle()
	body := single("79123456", "ACME", "x")
	first := w.do("live", "POST", "/v1/sms", body, keyHeader, "k")
	aged := func(age time.Duration) { w.exec(`UPDATE idempotency_keys SET created_at = now() - $1::interval`, age) }
	aged(life - time.Minute)
	if got := w.do("live", "POST", "/v1/sms", body, keyHeader, "k"); got.body != first.body {
		t.Errorf("a minute before its end: %s", got.body)
	}
	if n, err := w.deps.Intake.ForgetKeys(t.Context()); n != 0 || err != nil {
		t.Errorf("%d keys forgotten, %v", n, err)
	}
	aged(life)
	other := single("79123456", "ACME", "y")
	second := w.do("live", "POST", "/v1/sms", other, keyHeader, "k")
	if second.status != 200 || second.body == first.body {
		t.Errorf("at its end: %d %s", second.status, second.body)
	}
	aged(life + time.Hour)
	young := w.do("live", "POST", "/v1/sms", body, keyHeader, "young")
	if n, err := w.deps.Intake.ForgetKeys(t.Context()); n != 1 || err != nil {
		t.Errorf("%d keys forgotten, %v", n, err)
	}
	if got := w.do("live", "POST", "/v1/sms", body, keyHeader, "young"); got.body != young.body {
		t.Errorf("the other key of the same user was forgotten: %s", got.body)
	}
}

// Of many identical requests at once one is charged; the others get 409 or its response.
func TestIdempotencyUnderConcurrency(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	body := bulk("ACME", repeat(20, item("79123456", "x"))...)
	for _, key := range []string{"a", "b", "c"} {
		var wg sync.WaitGroup
		answers := make(chan reply, 16)
		for range cap(answers) {
			wg.Go(func() { answers <- w.do("live", "POST", "/v1/sms/bulk", body, keyHeader, key) })
		}
		wg.Wait()
		close(answers)
		bodies := map[string]bool{}
		fresh := 0
		for got := range answers {
			switch got.status {
			case 200:
				bodies[got.body] = true
				if got.header.Get("Idempotent-Replayed") == "" {
					fresh++
				}
			case 409:
				sameJSON(t, got.body, messageJSON("A request with this idempotency key is still being processed."))
			default:
				t.Errorf("%d %s", got.status, got.body)
			}
		}
		if fresh != 1 || len(bodies) != 1 {
			t.Errorf("key %s: %d first answers, %d different", key, fresh, len(bodies))
		}
	}
	if got, want := w.recorded(), [4]int64{60, 3, 3, 60}; got != want {
		t.Errorf("recorded %v, not %v", got, want)
	}
}

// A request whose key another process has reserved and not yet committed gets 409, and 200 when that process gave up.
func TestIdempotencyKeyInUse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	first, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Rollback(context.Background()) }()
	if _,
		err := first.Exec(t.Context(), `INSERT INTO idempotency_keys (user_id, key, request) VALUES ($1, 'held', '\x01')`,
		w.users["live"]); err != nil {
		t.Fatal(err)
	}
	body := single("79123456", "ACME", "x")
	got := w.do("live", "POST", "/v1/sms", body, keyHeader, "held")
	if got.status != 409 || got.header.Get("X-Error-Code") != "idempotency_key_in_use" {
		t.Errorf("while the first is in progress: %d %v", got.status, got.header)
	}
	sameJSON(t, got.body, messageJSON("A request with this idempotency key is still being processed."))
	if err := first.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.do("live", "POST", "/v1/sms", body, keyHeader, "held"); got.status != 200 ||
		got.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("afterwards: %d %s", got.status, got.body)
	}
	if got, want := w.recorded(), [4]int64{1, 0, 1, 1}; got != want {
		t.Errorf("recorded %v, not %v", got, want)
	}
}
