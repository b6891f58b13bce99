package testenv

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Redis returns a client of the shared server and a key prefix that no other
// test has. What stands under the prefix is deleted after the test. A test that
// needs FLUSHALL, or Redis to go away, takes NewRedisServer.
func Redis(t testing.TB) (client *redis.Client, prefix string) {
	t.Helper()
	client = dialRedis(t, shared.redis.get(t))
	prefix = "test-" + strconv.FormatUint(rand.Uint64(), 36)
	t.Cleanup(func() {
		if err := deletePrefix(client, prefix); err != nil {
			t.Logf("deleting the keys of this test: %v", err)
		}
	})
	return client, prefix
}

func dialRedis(t testing.TB, url string) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL(url)
	if err != nil {
		t.Fatalf("reading the address of Redis: %v", err)
	}
	options.Protocol = 2 // as the gateway does
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func deletePrefix(client *redis.Client, prefix string) error {
	ctx, cancel := within()
	defer cancel()
	keys := client.Scan(ctx, 0, "*"+prefix+"*", 1000).Iterator()
	for keys.Next(ctx) {
		if err := client.Unlink(ctx, keys.Val()).Err(); err != nil {
			return fmt.Errorf("deleting a key: %w", err)
		}
	}
	return keys.Err()
}

// startRedis makes and starts a private Redis server that keeps an append-only
// file, as production does.
func startRedis() (*process, error) { return startRedisWith(nil) }

func startRedisWith(settings []string) (*process, error) {
	const attempts = 5 // another process may take the port between the look and the start
	var failures error
	for range attempts {
		p, err := startRedisOn(freePort(), settings)
		if err == nil {
			return p, nil
		}
		failures = err
	}
	return nil, failures
}

// sentinel makes redis-server one that watches others.
var sentinel = []string{"--sentinel"}

func startRedisOn(port int, settings []string) (*process, error) {
	server, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("redis-server not found: run scripts/deps.sh: %w", err)
	}
	dir, err := serverDir("intumwa-redis-", nil)
	if err != nil {
		return nil, err
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	args := append([]string{"--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", dir,
		"--save", "", "--appendonly", "yes", "--maxclients", "4000"}, settings...)
	if slices.Equal(settings, sentinel) {
		file := filepath.Join(dir, "sentinel.conf") // it writes there what it learns
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
		args = append([]string{file, "--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", dir}, sentinel...)
	}
	p := &process{
		name: "Redis",
		dir:  dir,
		url:  "redis://" + address + "/0",
		command: func() *exec.Cmd {
			cmd := exec.Command(server, args...)
			cmd.Dir = dir
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			return cmd
		},
		stop: syscall.SIGTERM,
		kill: syscall.SIGKILL,
	}
	p.ready = func(ctx context.Context) error {
		client := redis.NewClient(&redis.Options{Addr: address, MaxRetries: -1})
		defer client.Close()
		return client.Ping(ctx).Err()
	}
	if err := p.start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return p, nil
}

// freePort is a loopback port that nobody listens on, below the range from
// which systems choose the ports of outgoing connections: so it is still free
// when a stopped server comes back to it.
func freePort() int {
	const first, last = 15000, 32000
	for {
		port := first + rand.IntN(last-first)
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			_ = listener.Close()
			return port
		}
	}
}
