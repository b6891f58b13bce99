package stories

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A customer repeats a request with the same key, many times at once: one
// message, one debit, and the first answer again.
func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	w := play(t, scene{})
	shop := w.company("Isoko", 10)
	number := w.number()
	var mu sync.Mutex
	var first string
	firsts := 0
	var repeats sync.WaitGroup
	for range 32 {
		repeats.Go(func() {
			a := shop.tries(number, "Amahoro mwese", "Idempotency-Key", "order-4711")
			mu.Lock()
			defer mu.Unlock()
			switch {
			case a.err == nil && a.status == http.StatusOK:
				if a.header.Get("Idempotent-Replayed") != "true" {
					firsts++
				}
				if first == "" {
					first = string(a.body)
				}
				if string(a.body) != first {
					t.Errorf("one repetition was answered %s, another %s", first, a.body)
				}
			case a.err == nil && a.status == http.StatusConflict && a.Message == "A request with this idempotency key is still being processed.":
			default:
				t.Errorf("a repetition was answered %d %s %v", a.status, a.body, a.err)
			}
		})
	}
	repeats.Wait()
	if firsts != 1 {
		t.Errorf("%d answers were no repetition, want 1", firsts)
	}
	// The key is kept with the charge, so it survives the process.
	w.gateway.kill()
	w.gateway.start()
	again := shop.tries(number, "Amahoro mwese", "Idempotency-Key", "order-4711")
	if again.status != http.StatusOK || string(again.body) != first || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("after a crash the repetition was answered %d %s, want %s", again.status, again.body, first)
	}
	other := shop.tries(number, "Amahoro twese", "Idempotency-Key", "order-4711")
	if other.status != http.StatusUnprocessableEntity || other.Message != "The idempotency key was already used with a different request." {
		t.Errorf("another request with the key was answered %d %s", other.status, other.body)
	}
	bad := shop.tries(number, "Amahoro mwese", "Idempotency-Key", strings.Repeat("k", 256))
	if bad.status != http.StatusBadRequest || bad.Message != "The Idempotency-Key header is not valid." {
		t.Errorf("a key of 256 characters was answered %d %s", bad.status, bad.body)
	}
	w.becomes(again.ID, "sent")
	if got := shop.credits(); got != 9 || len(shop.records()) != 1 {
		t.Errorf("%d credits are left and %d messages recorded, want 9 and 1", got, len(shop.records()))
	}
}

// A revoked token is refused within five seconds; so is one that never was.
func TestTokens(t *testing.T) {
	t.Parallel()
	w := play(t, scene{})
	shop := w.company("Isoko", 1000)
	shop.sends(w.number(), "Amahoro mwese")
	var revoked struct {
		Revoked bool `json:"revoked"`
	}
	w.orders(&revoked, "", "token", "revoke", "--id", strconv.FormatInt(shop.tokenID, 10))
	if !revoked.Revoked {
		t.Error("revoking a token did not revoke it")
	}
	number := w.number()
	w.eventually(5*time.Second, "a revoked token is refused", func() bool {
		return refusedToken(t, shop.tries(number, "Amahoro mwese"))
	})
	for _, token := range []string{"", "x", shop.token + "x", "1|" + strings.Repeat("A", 40)} {
		other := *shop
		other.token = token
		if a := other.tries(number, "Amahoro mwese"); !refusedToken(t, a) {
			t.Errorf("a token that never was is answered %d %s", a.status, a.body)
		}
	}
	w.settles(finalWithin)
}

// refusedToken says whether the answer is that of rule api 5, and nothing of
// the caller's rate with it.
func refusedToken(t *testing.T, a answer) bool {
	t.Helper()
	if a.status != http.StatusUnauthorized {
		return false
	}
	if string(a.body) != `{"message":"Unauthenticated."}` || a.header.Get("X-RateLimit-Limit") != "" {
		t.Errorf("a refused token is answered %s with X-RateLimit-Limit %q", a.body, a.header.Get("X-RateLimit-Limit"))
	}
	return true
}

// Two gateways count a user's requests together; whatever is refused past the
// token counts as well. A request that Redis does not answer for in time is counted
// by its gateway alone, and says nothing of that: another company tries again.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	const limit = 8
	w := play(t, scene{gateways: []tree{{}, {}}, config: tree{"api": tree{"rate_limit_per_minute": limit}}})
	alone := func() (n float64) {
		for _, g := range w.gateways {
			n += g.metric("intumwa_rate_limit_local_total")
		}
		return n
	}
	for try := 1; ; try++ {
		before := alone()
		wrong := w.company("Isoko"+strconv.Itoa(try), 1000).spendsItsRate(limit)
		if alone() == before {
			for _, line := range wrong {
				t.Error(line)
			}
			break
		}
		if try == 20 {
			t.Fatal("Redis never answers in time")
		}
	}
	if a := w.company("Inzu", 1000).triesAt(w.gateways[1], w.number(), "Amahoro mwese"); a.status != http.StatusOK {
		t.Errorf("another user is answered %d %s", a.status, a.body)
	}
	w.settles(finalWithin)
}

// spendsItsRate sends to all gateways in turn up to the limit and beyond it, and returns
// what was wrong with the answers.
func (c *company) spendsItsRate(limit int) (wrong []string) {
	says := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	begin := time.Now()
	for i := range limit {
		number, want := c.w.number(), http.StatusOK
		if i%4 == 3 {
			number, want = "12345", http.StatusUnprocessableEntity
		}
		a := c.triesAt(c.w.gateways[i%len(c.w.gateways)], number, "Amahoro mwese")
		if a.status != want || a.header.Get("X-RateLimit-Limit") != strconv.Itoa(limit) || a.header.Get("X-RateLimit-Remaining") != strconv.Itoa(limit-1-i) {
			says("request %d was answered %d with %s of %s left, want %d with %d of %d", i+1, a.status,
				a.header.Get("X-RateLimit-Remaining"), a.header.Get("X-RateLimit-Limit"), want, limit-1-i, limit)
		}
	}
	for _, g := range c.w.gateways {
		a := c.triesAt(g, c.w.number(), "Amahoro mwese")
		wait, _ := strconv.Atoi(a.header.Get("Retry-After"))
		reset, _ := strconv.ParseInt(a.header.Get("X-RateLimit-Reset"), 10, 64)
		end := begin.Add(time.Minute)
		if a.status != http.StatusTooManyRequests || string(a.body) != `{"message":"Too Many Attempts."}` || a.header.Get("X-RateLimit-Remaining") != "0" {
			says("past the limit %s answers %d %s", g.name, a.status, a.body)
		}
		if wait < 1 || wait > 61 || time.Unix(reset, 0).Sub(end).Abs() > 5*time.Second {
			says("past the limit %s says Retry-After %d and X-RateLimit-Reset %d; the window ends at %d", g.name, wait, reset, end.Unix())
		}
	}
	return wrong
}
