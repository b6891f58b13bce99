package testenv

import (
	"syscall"
	"testing"

	"intumwa/internal/postgres"
)

// Server is a private server of one test, which may stop and restart it. Its methods are
// for one goroutine at a time and fail the test if they fail.
type Server struct {
	t       testing.TB
	process *process
	url     string
}

// NewPostgresServer starts a PostgreSQL server for this test alone. Its URL names a
// migrated database, intumwa.
func NewPostgresServer(t testing.TB) *Server {
	t.Helper()
	return migrated(t, newServer(t, startPostgres))
}

// bare makes the database.
func bare(t testing.TB, s *Server) *Server {
	t.Helper()
	if err := execute(s.url, "CREATE DATABASE intumwa"); err != nil {
		t.Fatalf("making the database: %v", err)
	}
	s.url = inDatabase(s.url, "intumwa")
	return s
}

// migrated makes the database with its tables.
func migrated(t testing.TB, s *Server) *Server {
	t.Helper()
	bare(t, s)
	ctx, cancel := within()
	defer cancel()
	if _, err := postgres.Migrate(ctx, s.url); err != nil {
		t.Fatalf("migrating the database: %v", err)
	}
	return s
}

// NewRedisServer starts a Redis server for this test alone, with further settings as on
// redis-server's command line.
func NewRedisServer(t testing.TB, settings ...string) *Server {
	t.Helper()
	return newServer(t, func() (*process, error) { return startRedisNode(redisNode{settings: settings}) })
}

// NewRedisSentinel starts a Sentinel for this test alone, which watches no master yet.
func NewRedisSentinel(t testing.TB) *Server {
	t.Helper()
	return newServer(t, func() (*process, error) { return startRedisNode(redisNode{sentinel: "# no master yet\n"}) })
}

func newServer(t testing.TB, start func() (*process, error)) *Server {
	t.Helper()
	p, err := start()
	if err != nil {
		t.Fatalf("starting a private server: %v", err)
	}
	t.Cleanup(p.remove)
	return &Server{t: t, process: p, url: p.url}
}

// URL is the server's address. It does not change with a restart.
func (s *Server) URL() string { return s.url }

// Stop ends the server cleanly: sessions are closed, everything is written.
func (s *Server) Stop() {
	s.t.Helper()
	s.process.end(s.process.stop)
}

// Kill ends the server as a crash would: Redis by SIGKILL, PostgreSQL by an immediate
// shutdown with recovery at the next Start.
func (s *Server) Kill() {
	s.t.Helper()
	s.process.end(s.process.kill)
}

// Freeze suspends the server: its connections stay open without answers, as with a hung
// machine or a lossy network.
func (s *Server) Freeze() {
	s.t.Helper()
	s.signal(syscall.SIGSTOP)
}

// Thaw resumes a frozen server.
func (s *Server) Thaw() {
	s.t.Helper()
	s.signal(syscall.SIGCONT)
}

func (s *Server) signal(signal syscall.Signal) {
	s.t.Helper()
	if err := s.process.signal(signal); err != nil {
		s.t.Fatalf("sending %v to the server: %v", signal, err)
	}
}

// Start restarts a stopped or killed server with its data, and returns when it answers.
func (s *Server) Start() {
	s.t.Helper()
	if err := s.process.start(); err != nil {
		s.t.Fatalf("starting the server again: %v", err)
	}
}
