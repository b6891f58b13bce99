package stories

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"intumwa/internal/testenv"
	"intumwa/tools/carriersim"
)

// kinds are the messages of a mixed load: fate and final status.
var kinds = []struct {
	fate int
	ends string
}{
	{0, "sent"}, {0, "sent"}, {0, "sent"}, {0, "sent"}, {0, "sent"}, {0, "sent"},
	{1, "failed"}, {2, "failed"}, {8, "sent"}, {11, "sent"}, {12, "sent"}, {13, "sent"}, {14, "failed"},
	{18, "sent"}, {20, "sent"}, {26, "failed"}, {32, "failed"}, {35, "sent"}, {61, "sent"}, {66, "sent"},
}

// everyday is a realistic load: most messages are delivered, some fail, some are long,
// some not GSM-7.
func everyday() *mixture {
	return &mixture{
		fate: func(i int) int { return kinds[i%len(kinds)].fate },
		ends: func(i int) string { return kinds[i%len(kinds)].ends },
		tail: func(i int) string {
			switch {
			case i%17 == 0:
				return strings.Repeat(" Amahoro {mwese}", 1+i%29)
			case i%19 == 0:
				return strings.Repeat(" 😀 Murakoze", 1+i%7)
			}
			return ""
		},
	}
}

// A gateway works for a long time under everyday traffic. Every message ends as expected,
// and the process does not grow.
func TestSoak(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	busy(t)
	const length, senders, pause = 10 * time.Minute, 20, 100 * time.Millisecond
	const messages = int(length/pause) * senders
	w := play(t, scene{dark: true, carriers: []carrier{{
		sim: carriersim.Options{RespDelay: 5 * time.Millisecond, ReceiptDelay: 50 * time.Millisecond,
			ReceiptLead: 20 * time.Millisecond, MaxLog: 20*messages + 1000},
	}}})
	w.gateway.build = release.get(t)
	w.gateway.start()
	w.bound()
	shop := w.company("Isoko", 100_000_000)
	l := shop.sendsMany(&load{messages: messages, senders: senders, pause: pause, mixed: everyday()})
	l.reachesIn(messages/5, length+time.Minute)
	size := func() (memory, goroutines float64) {
		return w.gateway.metric("process_resident_memory_bytes"), w.gateway.metric("go_goroutines")
	}
	memory, goroutines := size()
	l.adds(0)
	w.comesTrue(2*time.Minute, func() bool {
		nowMemory, nowGoroutines := size()
		return nowGoroutines <= goroutines*1.1 && nowMemory <= memory*1.1
	})
	nowMemory, nowGoroutines := size()
	figures := fmt.Sprintf("after a fifth %.0f MB and %.0f goroutines, at the end %.0f MB and %.0f", memory/1e6,
		goroutines, nowMemory/1e6, nowGoroutines)
	t.Log(figures)
	if nowGoroutines > goroutines*1.1 || nowMemory > memory*1.1 {
		t.Errorf("the process grew by more than a tenth: %s", figures)
	}
}

// All faults in one run, in random order.
func TestEverythingBreaks(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	busy(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	w := play(t, scene{carriers: []carrier{steady()}, gateways: []tree{{}, {}}, ownPostgres: true, ownRedis: true})
	shop := w.company("Isoko", 1_000_000)
	client := w.redisClient()
	troubles := []struct {
		name    string
		unknown int // windows that it leaves unanswered
		happens func()
	}{
		{"a gateway is killed", 1, func() {
			g := w.gateways[random.IntN(2)]
			g.kill()
			g.start()
		}},
		{"a gateway is ended", 0, func() {
			g := w.gateways[random.IntN(2)]
			g.terminate()
			g.start()
		}},
		{"Redis forgets", 0, func() { w.flushes(client) }},
		{"Redis dies", 0, func() { w.redisServer.Kill(); w.redisServer.Start() }},
		{"PostgreSQL dies", 1, func() { w.postgresServer.Kill(); w.postgresServer.Start() }},
		{"the carrier breaks the connection", 1, func() { w.lumitel.ResetAll() }},
		{"the carrier is away for a while", 1, func() { w.lumitel.close(); w.lumitel.open() }},
	}
	const rounds = 10
	messages := 300 * len(troubles) * rounds
	l := shop.sendsMany(&load{messages: messages, keyed: true, at: func(n int) *gateway { return w.gateways[n%2] }})
	windows := 0
	for range rounds {
		for _, i := range random.Perm(len(troubles)) {
			before := int(l.accepted.Load())
			troubles[i].happens()
			windows += troubles[i].unknown
			l.reaches(min(before+150+random.IntN(150), messages))
			t.Logf("%s; %d of %d accepted", troubles[i].name, l.accepted.Load(), messages)
		}
	}
	l.adds(window * windows)
}
