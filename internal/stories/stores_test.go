package stories

import (
	"net/http"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Redis forgets everything while messages are under way. Nothing is lost and
// nothing arrives twice: PostgreSQL has it all.
func TestRedisFlushedMidLoad(t *testing.T) {
	t.Parallel()
	busy(t)
	flushes := chaos(20)
	w := play(t, scene{carriers: []carrier{steady()}, ownRedis: true})
	shop := w.company("Isoko", 1_000_000)
	options, err := redis.ParseURL(w.redis)
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	defer client.Close()
	messages := 2000 * flushes
	l := shop.sendsMany(&load{messages: messages})
	for flush := range 3 * flushes {
		l.reaches((flush + 1) * messages / (3*flushes + 1))
		if err := client.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	l.finishes()
	w.drains()
	l.onlyAnswers(http.StatusOK)
	l.adds(0)
}

// Redis dies while messages are under way and comes back later. Meanwhile
// messages are accepted, and carried straight from PostgreSQL.
func TestRedisKilledMidLoad(t *testing.T) {
	t.Parallel()
	busy(t)
	kills := chaos(5)
	w := play(t, scene{carriers: []carrier{steady()}, ownRedis: true})
	shop := w.company("Isoko", 1_000_000)
	messages := 2500 * kills
	l := shop.sendsMany(&load{messages: messages})
	for kill := range kills {
		from := kill * messages / kills
		l.reaches(from + 400)
		w.redisServer.Kill()
		accepted, carried := int(l.accepted.Load()), w.lumitel.Stats().Accepted
		l.reaches(accepted + 500)
		w.eventually(15*time.Second, "messages are carried without Redis", func() bool { return w.lumitel.Stats().Accepted > carried+300 })
		w.redisServer.Start()
	}
	l.finishes()
	w.drains()
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
		before := l.answered()[http.StatusServiceUnavailable]
		w.postgresServer.Kill()
		w.eventually(15*time.Second, "customers are told that the service is away", func() bool {
			return l.answered()[http.StatusServiceUnavailable] > before
		})
		if kill%2 == 1 { // and once for longer
			time.Sleep(8 * time.Second) // than a dispatcher may be silent
		}
		w.postgresServer.Start()
		accepted := int(l.accepted.Load())
		back := time.Now()
		l.reaches(accepted + 100)
		t.Logf("outage %d: accepting again %v after PostgreSQL was back", kill+1, time.Since(back).Round(time.Millisecond))
	}
	l.finishes()
	w.drains()
	l.onlyAnswers(http.StatusOK, http.StatusServiceUnavailable)
	l.adds(window * kills)
	w.eventually(finalWithin, "every receipt was taken", func() bool {
		stats := w.lumitel.Stats()
		return stats.ReceiptsWaiting == 0 && stats.Confirmed >= stats.Accepted
	})
}

// onlyAnswers checks which answers the customer got.
func (l *load) onlyAnswers(statuses ...int) {
	l.from.w.t.Helper()
	got := l.answered()
	for _, status := range statuses {
		delete(got, status)
	}
	if len(got) > 0 {
		l.from.w.t.Errorf("besides %v there were answers %v (0: none)", statuses, got)
	}
}
