package main

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"intumwa/configs"
	"intumwa/internal/testenv"
)

// masters are two servers, each a master, and two Sentinels that name the first.
type masters struct {
	servers   [2]*redis.Client
	sentinels [2]*testenv.Server
	asked     [2]*redis.Client
	config    *configs.Redis
}

func newMasters(t *testing.T) *masters {
	t.Helper()
	m := &masters{config: &configs.Redis{MasterName: "two"}}
	for i := range m.servers {
		m.servers[i] = clientOf(t, optionsOf(t, testenv.NewRedisServer(t)))
		m.sentinels[i] = testenv.NewRedisSentinel(t)
		options := optionsOf(t, m.sentinels[i])
		m.asked[i] = clientOf(t, options)
		m.config.Addresses = append(m.config.Addresses, configs.Address(options.Addr))
	}
	m.names(t, 0)
	return m
}

// names has both Sentinels name the server. The other one goes on as it was.
func (m *masters) names(t *testing.T, server int) {
	t.Helper()
	host, port, _ := net.SplitHostPort(m.servers[server].Options().Addr)
	for _, sentinel := range m.asked {
		_ = sentinel.Do(t.Context(), "SENTINEL", "REMOVE", m.config.MasterName).Err() // none at the beginning
		if err := sentinel.Do(t.Context(), "SENTINEL", "MONITOR", m.config.MasterName, host, port, 1).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

func (m *masters) client(t *testing.T) redis.UniversalClient {
	t.Helper()
	short, waiting, err := openRedis(m.config, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = short.Close(), waiting.Close() })
	return short
}

func runID(t *testing.T, client redis.Cmdable) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	info, err := client.InfoMap(ctx, "server").Result()
	if err != nil {
		t.Fatal(err)
	}
	return info["Server"]["run_id"]
}

// TestDeposedMaster: when the Sentinels name another master, the one before is left
// although it answers as before: idle connections and one that waits for a message.
func TestDeposedMaster(t *testing.T) {
	t.Parallel()
	m := newMasters(t)
	client := m.client(t)
	first, second := runID(t, m.servers[0]), runID(t, m.servers[1])
	if got := runID(t, client); got != first {
		t.Fatalf("connected to %s, want %s", got, first)
	}
	waited := make(chan error, 1)
	go func() { waited <- client.BLPop(t.Context(), time.Hour, "nothing").Err() }()
	for end := time.Now().Add(30 * time.Second); ; <-time.After(20 * time.Millisecond) {
		clients, err := m.servers[0].ClientList(t.Context()).Result()
		if err != nil || time.Now().After(end) {
			t.Fatalf("nobody waits (%v): %s", err, clients)
		}
		if strings.Contains(clients, "cmd=blpop") {
			break
		}
	}
	m.names(t, 1)
	for end := time.Now().Add(30 * time.Second); runID(t, client) != second; <-time.After(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it stays with the master before")
		}
	}
	// What waited was cut off, asked again, and waits at the new master now.
	if err := m.servers[1].RPush(t.Context(), "nothing", "something").Err(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-waited:
		if err != nil {
			t.Log("what waited ended with", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it waits at the master before")
	}
}

// TestSilentSentinel: a Sentinel that takes connections and says nothing is passed by,
// at the first connection and at every later one.
func TestSilentSentinel(t *testing.T) {
	t.Parallel()
	m := newMasters(t)
	client := m.client(t)
	want := runID(t, m.servers[0])
	for round, silent := range []int{0, 1} {
		m.sentinels[silent].Freeze()
		if err := m.servers[0].ClientKillByFilter(t.Context(), "TYPE", "normal", "SKIPME", "yes").Err(); err != nil {
			t.Fatal(err)
		}
		if got := runID(t, client); got != want {
			t.Errorf("round %d: connected to %s, want %s", round, got, want)
		}
		m.sentinels[silent].Thaw()
	}
}

// TestUnknownMaster: the error names the key.
func TestUnknownMaster(t *testing.T) {
	t.Parallel()
	m := newMasters(t)
	m.config.MasterName = "three"
	if err := m.client(t).Ping(t.Context()).Err(); err == nil || !strings.Contains(err.Error(), "redis.master_name") {
		t.Errorf("%v", err)
	}
}

// TestSentinelsAreClosed: nothing is asked any more, and nothing dialled.
func TestSentinelsAreClosed(t *testing.T) {
	t.Parallel()
	m := newMasters(t)
	client := m.client(t)
	_ = runID(t, client)
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	if err := client.Ping(t.Context()).Err(); err == nil {
		t.Error("it answers")
	}
	c := client.(*masterClient) //nolint:forcetypeassert // what is opened with a master's name
	if _, err := c.sentinels.dial(t.Context(), "", ""); err == nil {
		t.Error("it dials")
	}
	if n := len(c.sentinels.open); n != 0 {
		t.Errorf("%d connections are open", n)
	}
}

// TestOvertakenAnswer: an answer that was overtaken by a later question's changes nothing.
func TestOvertakenAnswer(t *testing.T) {
	s := &sentinels{name: "two", open: map[*masterConn]bool{}}
	if got := s.follow("new:1", 2); got != "new:1" {
		t.Errorf("followed %s", got)
	}
	if got := s.follow("old:1", 1); got != "new:1" || s.master != "new:1" {
		t.Errorf("an older answer is %s, and the master %s", got, s.master)
	}
	if got := s.follow("old:1", 3); got != "old:1" || s.master != "old:1" {
		t.Errorf("a younger answer is %s, and the master %s", got, s.master)
	}
}
