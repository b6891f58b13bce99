package stories

import (
	"net/http"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// redisClient is a client of the story's own Redis.
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

// flushes has the story's own Redis forget everything.
func (w *world) flushes(client *redis.Client) {
	w.t.Helper()
	if err := client.FlushAll(w.t.Context()).Err(); err != nil {
		w.t.Fatal(err)
	}
}

// Redis forgets everything while messages are under way, then dies and comes back later. Messages are accepted all the time, and
// carried straight from PostgreSQL; nothing is lost and nothing arrives twice.
func TestRedisGoneMidLoad(t *testing.T) {
	t.Parallel()
	busy(t)
	kills := chaos(10)
	w := play(t, scene{carriers: []carrier{steady()}, ownRedis: true})
	shop, client := w.company("Isoko", 1_000_000), w.redisClient()
	l := shop.sendsMany(&load{messages: 3500 * kills})
	for kill := range kills {
		from := kill * 3500
		for flush := range 3 {
			l.reaches(from + (flush+1)*400)
			w.flushes(client)
		}
		l.reaches(from + 1600)
		w.redisServer.Kill()
		accepted, carried := int(l.accepted.Load()), w.lumitel.Stats().Accepted
		l.reaches(accepted + 500)
		w.eventually(15*time.Second, "messages are carried without Redis", func() bool { return w.lumitel.Stats().Accepted > carried+300 })
		w.redisServer.Start()
	}
	l.onlyAnswers(http.StatusOK)
	l.adds(0)
}

// PostgreSQL dies while messages are under way and comes back. Customers get
// 200 or 503 and nothing else; every 200 arrives, no 503 is charged, and the
// carrier tells again what it could not tell.
func TestPostgresKilledMidLoad(t *testing.T) {
	t.Parallel()
	busy(t)
	kills := chaos(5)
	w := play(t, scene{carriers: []carrier{steady()}, ownPostgres: true})
	shop := w.company("Isoko", 1_000_000)
	// What is refused is given up: many, and a pause between two of a sender, so
	// that the load outlasts the outages and does not end in refusals.
	messages, pause := 3000*kills, 20*time.Millisecond
	if kills > 1 {
		messages, pause = 8000*kills, 50*time.Millisecond
	}
	l := shop.sendsMany(&load{messages: messages, pause: pause})
	for kill := range kills {
		l.reaches(int(l.accepted.Load()) + 400)
		l.isRefused(func() { w.postgresServer.Kill() }, 15*time.Second)
		if kill%2 == 1 { // and once for longer than a dispatcher may be silent
			<-time.After(8 * time.Second)
		}
		w.postgresServer.Start()
		accepted := int(l.accepted.Load())
		l.reaches(accepted + 100)
	}
	l.onlyAnswers(http.StatusOK, http.StatusServiceUnavailable)
	l.adds(window * kills)
	w.eventually(finalWithin, "every receipt was taken", func() bool {
		stats := w.lumitel.Stats()
		return stats.ReceiptsWaiting == 0 && stats.Confirmed >= stats.Accepted
	})
}

// isRefused has a fault happen and waits until customers are told that the service is away.
func (l *load) isRefused(fault func(), within time.Duration) {
	l.from.w.t.Helper()
	before := l.answered()[http.StatusServiceUnavailable]
	fault()
	l.from.w.eventually(within, "customers are told that the service is away", func() bool {
		return l.answered()[http.StatusServiceUnavailable] > before
	})
}

// onlyAnswers checks which answers the customer got when the load is over.
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
