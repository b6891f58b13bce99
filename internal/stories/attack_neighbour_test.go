package stories

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"intumwa/internal/testenv"
)

// A neighbour fills Redis, overwrites every key of ours, and stops a customer's
// counter for a year. Messages arrive all the same, a metric says so, and nobody
// waits longer than a window.
func TestAttackNeighbourInRedis(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	busy(t)
	const limit = 1000
	w := play(t, scene{ownRedis: true, config: tree{"api": tree{"rate_limit_per_minute": limit}}})
	shop, other := w.company("Isoko", 1000), w.silentCompany("Inzu", 1000)
	client := w.redisClient()
	arrive := func(when string) {
		t.Helper()
		var ids []string
		for range 10 {
			ids = append(ids, shop.sends(w.number(), "Amahoro mwese").ID)
		}
		for _, id := range ids {
			w.becomes(id, "sent")
		}
		t.Logf("%s: %d arrived", when, len(ids))
	}
	const all = 2 // lanes of the carrier
	usable := func() float64 { return w.gateway.metric("intumwa_queue_usable") }
	w.eventually(onTheWayWithin, "the queue is relied upon", func() bool { return usable() == all })

	if err := client.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	arrive("Redis is full")
	w.eventually(finalWithin, "the metric says that the queue is not usable", func() bool { return usable() < all })
	if err := client.ConfigSet(t.Context(), "maxmemory", "0").Err(); err != nil {
		t.Fatal(err)
	}
	w.eventually(90*time.Second, "the queue is relied upon again", func() bool { return usable() == all })
	arrive("Redis has room again")

	isCounter := func(key string) bool { return strings.Contains(key, ":throttle:") }
	var keys []string
	w.eventually(finalWithin, "requests are counted in Redis again", func() bool {
		shop.sends(w.number(), "Amahoro mwese")
		var err error
		if keys, err = client.Keys(t.Context(), w.prefix+":*").Result(); err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(keys, isCounter)
	})
	for _, key := range keys {
		err := error(nil)
		if isCounter(key) {
			err = client.Set(t.Context(), key, limit, 365*24*time.Hour).Err()
		} else {
			err = client.Set(t.Context(), key, "mine", 0).Err()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var a answer
	w.eventually(finalWithin, "the neighbour's counter refuses", func() bool { // but not what Redis does not answer for in time
		a = shop.tries(w.number(), "Amahoro mwese")
		return a.status == http.StatusTooManyRequests
	})
	if wait, _ := strconv.Atoi(a.header.Get("Retry-After")); wait < 1 || wait > 61 {
		t.Errorf("past the neighbour's counter: %d, Retry-After %d", a.status, wait)
	}
	for range 10 {
		w.becomes(other.sends(w.number(), "Amahoro twese").ID, "sent")
	}
	w.drains()
}

// Somebody holds one company's balance at the database: that company waits, and
// is refused with 503 in time; others are not held up on any process.
func TestAttackHeldBalance(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	busy(t)
	w := play(t, scene{gateways: []tree{{}, {}}})
	held, shop := w.silentCompany("Isoko", 1000), w.silentCompany("Inzu", 1000)
	tx, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), `SELECT FROM balances WHERE company_id = $1 FOR UPDATE`, held.id); err != nil {
		t.Fatal(err)
	}
	waiting := make(chan answer, 20)
	for i := range cap(waiting) {
		number := w.number()
		go func() { waiting <- held.triesAt(w.gateways[i%2], number, "Amahoro mwese") }()
	}
	for i := range 40 {
		begin := time.Now()
		a := shop.triesAt(w.gateways[i%2], w.number(), "Amahoro twese")
		if took := time.Since(begin); a.status != http.StatusOK || took > 4*time.Second {
			t.Errorf("somebody else's send was answered %d after %v", a.status, took)
		}
	}
	for range cap(waiting) {
		if a := <-waiting; a.status != http.StatusServiceUnavailable {
			t.Errorf("the company whose balance is held was answered %d %s %v", a.status, a.body, a.err)
		}
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.eventually(promptly, "the company sends again", func() bool {
		return held.tries(w.number(), "Amahoro mwese").status == http.StatusOK
	})
}
