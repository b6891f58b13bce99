package stories

import (
	"net/http"
	"testing"
	"time"

	"intumwa/internal/testenv"
	"intumwa/tools/carriersim"
)

// takenOverWithin bounds a failover of Redis: the servers detect a silence of one or two
// seconds, then vote. A Sentinel whose timer was late on a busy machine does nothing for half a minute.
const takenOverWithin = 2 * time.Minute

// The Redis master dies with changes that its replica lacks: pushed messages, and
// completed ones. Sentinel promotes the replica. No message is lost or arrives twice, and
// customers notice nothing.
func TestRedisFailsOver(t *testing.T) {
	t.Parallel()
	busy(t)
	deaths := chaos(5)
	w := play(t, scene{carriers: []carrier{steady()}, redisSet: testenv.NewRedisSentinels})
	w.redisMastersDie(deaths)
}

// The same in a Cluster that loses the third with the carrier's queue. Before each death
// its slot migrates to another master.
func TestRedisClusterFailsOver(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	busy(t)
	const deaths = 3 // each takes a minute, until the queue is trusted again
	w := play(t, scene{carriers: []carrier{steady()}, redisSet: func(t testing.TB) *testenv.RedisSet {
		return testenv.NewRedisCluster(t, 1)
	}})
	w.redisMastersDie(deaths)
}

// redisMastersDie kills the master with the carrier's queue this many times under load.
func (w *world) redisMastersDie(deaths int) {
	t, set := w.t, w.redisSet
	shop := w.company("Isoko", 1_000_000)
	usable := func() bool { return w.gateway.metric("intumwa_queue_usable", `carrier="lumitel"`) == 2 }
	w.eventually(onTheWayWithin, "the queue is relied upon", usable)
	messages, senders, pause := 4000, 16, 80*time.Millisecond
	if deaths > 1 { // a failed queue is not trusted for a minute
		messages, senders, pause = 90_000, 32, 200*time.Millisecond
	}
	l := shop.sendsMany(&load{messages: messages, senders: senders, pause: pause})
	key := w.prefix + ":queue:{" + w.lumitel.Name() + "}"
	for range deaths {
		more := func(n int) { l.reaches(min(int(l.accepted.Load())+n, messages)) }
		more(100)
		if set.MasterName == "" {
			set.Move(t.Context(), key, func() { more(30) })
			w.eventually(2*time.Minute, "the queue is relied upon after the slot has moved", usable)
		}
		master := -1
		w.eventually(time.Minute, "one server is the master", func() bool {
			master = set.Master(t.Context(), key)
			return master >= 0
		})
		// From here on the replicas get no changes: neither completed messages ...
		for i, server := range set.Servers {
			if set.Role(t.Context(), i) == "slave" {
				server.Freeze()
			}
		}
		more(100)
		// ... nor new ones.
		w.lumitel.Faults(func(f *carriersim.Faults) { f.RespDelay = 2 * time.Second })
		more(100)
		set.Servers[master].Kill()
		for i, server := range set.Servers {
			if i != master {
				server.Thaw()
			}
		}
		more(100)
		w.lumitel.Faults(func(f *carriersim.Faults) { f.RespDelay = 0 })
		before := w.lumitel.Stats().Accepted
		w.eventually(onTheWayWithin, "messages are carried", func() bool { return w.lumitel.Stats().Accepted > before })
		w.eventually(takenOverWithin, "a replica has taken over", func() bool { return set.Master(t.Context(), key) >= 0 })
		if deaths > 1 || set.MasterName != "" { // after a moved slot and a dead master it takes up to a minute
			w.eventually(2*time.Minute, "the queue is relied upon again", usable)
		}
		// It returns as a master and is demoted.
		set.Servers[master].Start()
		w.eventually(takenOverWithin, "the old master follows the new one",
			func() bool { return set.Role(t.Context(), master) == "slave" })
	}
	l.ends()
	l.onlyAnswers(http.StatusOK)
	l.adds(0)
}
