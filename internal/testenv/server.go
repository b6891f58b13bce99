package testenv

import (
	"syscall"
	"testing"

	"intumwa/internal/postgres"
)

// Server is a private server of one test that may be taken away from under the
// product and brought back. Its methods are for one goroutine at a time and
// fail the test when they cannot do their work.
type Server struct {
	t       testing.TB
	process *process
	url     string
}

// NewPostgresServer starts a PostgreSQL server for this test alone. Its URL
// leads to a migrated database named intumwa.
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

// NewRedisServer starts a Redis server for this test alone, which may flush it,
// with further settings as on redis-server's command line.
func NewRedisServer(t testing.TB, settings ...string) *Server {
	t.Helper()
	return newServer(t, func() (*process, error) { return startRedisNode(redisNode{settings: settings}) })
}

// NewRedisSentinel starts a Sentinel for this test alone, which watches no master
// yet.
func NewRedisSentinel(t testing.TB) *Server {
	t.Helper()
	return newServer(t, func() (*process, error) { return startRedisNode(redisNode{sentinel: "# it watches nobody yet\n"}) })
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

// URL is where the server is, and stays the same when it comes back.
func (s *Server) URL() string { return s.url }

// Stop ends the server in good order: sessions are closed, everything is
// written.
func (s *Server) Stop() {
	s.t.Helper()
	s.process.end(s.process.stop)
}

// Kill ends the server as a crash would: Redis by kill -9, PostgreSQL by an
// immediate shutdown, which leaves its recovery to the next Start.
func (s *Server) Kill() {
	s.t.Helper()
	s.process.end(s.process.kill)
}

// Freeze stops the server without ending it: its connections stay, and nothing is
// answered, as by a machine that hangs or a network that drops.
func (s *Server) Freeze() {
	s.t.Helper()
	s.signal(syscall.SIGSTOP)
}

// Thaw lets a frozen server go on where it was.
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

// Start brings a stopped or killed server back with its data, and returns when
// it answers.
func (s *Server) Start() {
	s.t.Helper()
	if err := s.process.start(); err != nil {
		s.t.Fatalf("starting the server again: %v", err)
	}
}
