// Package testenv gives tests real PostgreSQL and Redis servers.
//
// Every test gets an empty database or a key prefix of its own, so that tests and
// test binaries may run side by side. When INTUMWA_TEST_DATABASE_URL or
// INTUMWA_TEST_REDIS_URL is set (make test starts one private pair for the whole
// run) that server is used; otherwise the first test that needs it starts a private
// one in a temporary directory. A private server never outlives the test binary,
// however that ends: a small process waits for it to go.
//
// PostgreSQL runs with fsync off. A server that is killed loses nothing by it, because
// the kernel keeps what was written; only a crash of the machine would.
// It is plumbing for tests only: no product code imports it.
package testenv

import (
	"os"
	"sync"
	"testing"
)

const (
	databaseVariable = "INTUMWA_TEST_DATABASE_URL"
	redisVariable    = "INTUMWA_TEST_REDIS_URL"
)

// shared are the servers of this test binary.
var shared = struct{ postgres, redis sharedServer }{
	postgres: sharedServer{variable: databaseVariable, start: startPostgres},
	redis:    sharedServer{variable: redisVariable, start: startRedis},
}

// Main runs the tests of a package and stops the servers they used. Every
// package that asks for a server says
//
//	func TestMain(m *testing.M) { testenv.Main(m) }
func Main(m *testing.M) {
	os.Exit(Run(m))
}

// Run is Main for a package that has something of its own to do before it
// exits with the code that Run returns.
func Run(m *testing.M) int {
	defer shared.postgres.stop()
	defer shared.redis.stop()
	defer dropSpares()
	// Programs that tests start are often built with the race detector, which sleeps for a
	// second at every exit.
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0")
	return m.Run()
}

// sharedServer is a server that the tests of one binary share, started when
// the first of them needs it.
type sharedServer struct {
	variable string // names the environment variable that replaces it
	start    func() (*process, error)

	once    sync.Once
	process *process
	url     string
	err     error
}

func (s *sharedServer) get(t testing.TB) string {
	t.Helper()
	s.once.Do(func() {
		if s.url = os.Getenv(s.variable); s.url == "" {
			if s.process, s.err = s.start(); s.err != nil {
				return
			}
			s.url = s.process.url
		}
	})
	if s.err != nil {
		t.Fatalf("starting a private server (set %s to use a running one): %v", s.variable, s.err)
	}
	return s.url
}

func (s *sharedServer) stop() {
	s.once.Do(func() {}) // from now on no test starts it
	if s.process != nil {
		s.process.remove()
	}
}
