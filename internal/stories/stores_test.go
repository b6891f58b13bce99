package stories

import (
	"net/http"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// redisClient connects to the story's own Redis.
func (w *world) redisClient() *redis.Client {
	w.t.Helper()
	options, err := redis.ParseURL(w.redis)
	if err != nil {
		w.t.Fatal(err)
	}
	client := redis.NewClient(options)
	w.t.Cleanup(func() { _ = client.Close() })
	return client
}

// flushes empties the story's own Redis.
func (w *world) flushes(client *redis.Client) {
	w.t.Helper()
	if err := client.FlushAll(w.t.Context()).Err(); err != nil {
		w.t.Fatal(err)
	}
}

// Redis loses everything while messages are in flight, then dies and returns later. Messages are accepted throughout
// and dispatched from PostgreSQL; none is lost or arrives twice.
func TestRedisGoneMidLoad(t *testing.T) {
	t.Parallel()
	busy(t)
	kills := chaos(10)
	w := play(t, scene{carriers: []carrier{steady()}, ownRedis: true})
	shop, client := w.company("Isoko", 1_000_000), w.redisClient()
	l := shop.sendsMany(&load{messages: 2000 * kills})
	for kill := range kills {
		from := kill * 2000
		for flush := range 3 {
			l.reaches(from + (flush+1)*200)
			w.flushes(client)
		}
		l.reaches(from + 800)
		w.redisServer.Kill()
		accepted, carried := int(l.accepted.Load()), w.lumitel.Stats().Accepted
		l.reaches(accepted + 300)
		w.eventually(onTheWayWithin, "messages are carried without Redis",
			func() bool { return w.lumitel.Stats().Accepted > carried+200 })
		w.redisServer.Start()
	}
	l.onlyAnswers(http.StatusOK)
	l.adds(0)
}

// PostgreSQL dies while messages are in flight, and returns. Customers get only 200 or
// 503; every 200 arrives, no 503 is charged, and the carrier repeats undelivered
// receipts.
func TestPostgresKilledMidLoad(t *testing.T) {
	t.Parallel()
	busy(t)
	kills := chaos(5)
	w := play(t, scene{carriers: []carrier{steady()}, ownPostgres: true})
	shop := w.company("Isoko", 1_000_000)
	// Refused messages are given up, so there are more than the outages can use up.
	l := shop.sendsMany(&load{messages: 40_000 * kills, senders: 16, pause: 50 * time.Millisecond})
	for kill := range kills {
		l.reaches(int(l.accepted.Load()) + 300)
		l.isRefused(func() { w.postgresServer.Kill() }, 15*time.Second)
		if kill%2 == 1 { // and once for longer than a dispatcher's lease
			<-time.After(8 * time.Second)
		}
		w.postgresServer.Start()
		accepted := int(l.accepted.Load())
		l.reaches(accepted + 100)
	}
	l.ends()
	l.onlyAnswers(http.StatusOK, http.StatusServiceUnavailable)
	l.adds(window * kills)
	w.eventually(finalWithin, "every receipt was taken", func() bool {
		stats := w.lumitel.Stats()
		return stats.ReceiptsWaiting == 0 && stats.Confirmed >= stats.Accepted
	})
}

// isRefused causes a fault and waits until customers get 503.
func (l *load) isRefused(fault func(), within time.Duration) {
	l.from.w.t.Helper()
	before := l.answered()[http.StatusServiceUnavailable]
	fault()
	l.from.w.eventually(within, "customers get 503", func() bool {
		return l.answered()[http.StatusServiceUnavailable] > before
	})
}

// onlyAnswers checks the statuses of a finished load.
func (l *load) onlyAnswers(statuses ...int) {
	l.from.w.t.Helper()
	l.finishes()
	got := l.answered()
	for _, status := range statuses {
		delete(got, status)
	}
	if len(got) > 0 {
		l.from.w.t.Errorf("besides %v there were answers %v (0: none)", statuses, got)
	}
}
