// Package testenv gives tests real PostgreSQL and Redis servers.
//
// Every test gets its own empty database or key prefix, so tests and test binaries
// run in parallel. INTUMWA_TEST_DATABASE_URL and INTUMWA_TEST_REDIS_URL name the
// servers (make test starts one private pair for the whole run); without them the
// first test that needs a server starts a private one in a temporary directory. A
// guard process ends it with the test binary, even after a crash.
//
// PostgreSQL runs with fsync off. A killed server loses nothing, because the kernel
// keeps its writes; only a crash of the machine would.
// No product code imports this package.
package testenv

import (
	"flag"
	"os"
	"runtime"
	"strconv"
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

// Main runs the tests of a package and stops their servers. Every package that uses a
// server has
//
//	func TestMain(m *testing.M) { testenv.Main(m) }
func Main(m *testing.M) {
	os.Exit(Run(m))
}

// Parallel runs n tests at once for two processors, unless -parallel is given, for a package whose tests often wait.
// With too many at once, their waits end too late and all of them take longer. It comes before Run.
func Parallel(n int) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", strconv.Itoa(max(n, n*runtime.GOMAXPROCS(0)/2)))
	}
}

// Run is Main without the exit, for a package with its own clean-up.
func Run(m *testing.M) int {
	defer shared.postgres.stop()
	defer shared.redis.stop()
	defer dropSpares()
	// Programs built with the race detector otherwise sleep for a second at exit.
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0")
	return m.Run()
}

// sharedServer is a server for the tests of one binary, started by the first that needs
// it.
type sharedServer struct {
	variable string // the environment variable that replaces it
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
	s.once.Do(func() {}) // no test starts it from now on
	if s.process != nil {
		s.process.remove()
	}
}
