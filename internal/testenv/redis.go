package testenv

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"intumwa/tools/rig"
)

// Redis returns a client of the shared server and a unique key prefix, whose keys are
// deleted after the test. A test that needs FLUSHALL or an outage takes NewRedisServer.
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

// redisNode describes one Redis process.
type redisNode struct {
	settings []string    // further settings, as on redis-server's command line
	sentinel string      // the configuration of a Sentinel
	cluster  bool        // it also listens on its port + 10000
	password string      // of the user default; "" none
	secure   *tls.Config // for its clients; nil: plain TCP
}

// startRedis starts a private Redis server with an append-only file, as in production.
func startRedis() (*process, error) { return startRedisNode(redisNode{}) }

func startRedisNode(node redisNode) (*process, error) {
	const attempts = 5 // another process may take the port in between
	var failures error
	for range attempts {
		p, err := node.start(node.freePort())
		if err == nil {
			return p, nil
		}
		failures = err
	}
	return nil, failures
}

// busOffset is the distance from a cluster node's port to its bus port.
const busOffset = 10_000

func (n redisNode) freePort() int {
	for {
		if port := rig.FreePort(); !n.cluster || rig.IsFree(port+busOffset) {
			return port
		}
	}
}

func (n redisNode) start(port int) (*process, error) {
	server, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("redis-server not found: run scripts/deps.sh: %w", err)
	}
	dir, err := serverDir("intumwa-redis-", nil)
	if err != nil {
		return nil, err
	}
	plain, encrypted := strconv.Itoa(port), "0"
	if n.secure != nil {
		plain, encrypted = encrypted, plain
	}
	args := []string{"--bind", "127.0.0.1", "--protected-mode", "no", "--port", plain, "--dir", dir}
	if n.secure != nil {
		args = append(args, "--tls-port", encrypted)
	}
	if n.password != "" {
		args = append(args, "--requirepass", n.password)
	}
	if n.sentinel == "" {
		args = append(args, "--save", "", "--appendonly", "yes", "--maxclients", "4000")
	} else {
		file := filepath.Join(dir, "sentinel.conf") // Sentinel rewrites it
		if err := os.WriteFile(file, []byte(n.sentinel), 0o600); err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
		args = append(append([]string{file}, args...), "--sentinel")
	}
	args = append(args, n.settings...)
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	whole := url.URL{Scheme: "redis", Host: address, Path: "/0"}
	if n.password != "" {
		whole.User = url.UserPassword("", n.password)
	}
	if n.secure != nil {
		whole.Scheme = "rediss"
	}
	p := &process{
		name: "Redis",
		dir:  dir,
		url:  whole.String(),
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
		client := redis.NewClient(&redis.Options{Addr: address, Password: n.password, TLSConfig: n.secure, Protocol: 2,
			MaxRetries: -1})
		defer client.Close()
		return client.Ping(ctx).Err()
	}
	if err := p.start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return p, nil
}
