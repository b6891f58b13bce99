package testenv

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Standby simulates the synchronous standby of a PostgreSQL server as the server sees it:
// present or away. It runs no second server.
type Standby struct {
	t      testing.TB
	server *Server
	admin  *pgx.Conn
}

// NewStandby returns the standby of a private server of the test. It is present.
func NewStandby(t testing.TB, server *Server) *Standby {
	t.Helper()
	admin, err := pgx.Connect(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Close(context.Background()) })
	return &Standby{t: t, server: server, admin: admin}
}

func (s *Standby) named(name string) {
	s.t.Helper()
	for _, statement := range []string{"ALTER SYSTEM SET synchronous_standby_names = '" + name + "'",
		"SELECT pg_reload_conf()"} {
		if _, err := s.admin.Exec(s.t.Context(), statement); err != nil {
			s.t.Fatal(err)
		}
	}
}

// Back ends the wait of every commit.
func (s *Standby) Back() { s.t.Helper(); s.named("") }

// Away returns when every commit of the server waits. The test must have no commit in
// progress.
func (s *Standby) Away() {
	s.t.Helper()
	s.named("absent")
	// Commits wait once the checkpointer has read the setting: try until one waits.
	tried := make(chan struct{}, 1)
	for end := time.Now().Add(30 * time.Second); s.Waiting() == 0; {
		conn, err := pgx.Connect(s.t.Context(), s.server.URL())
		if err != nil {
			s.t.Fatal(err)
		}
		go func() {
			_, _ = conn.Exec(context.Background(), `SELECT pg_logical_emit_message(true, 'a commit', '')`) // only its end counts
			_ = conn.Close(context.Background())
			tried <- struct{}{}
		}()
		for answered := false; !answered && s.Waiting() == 0; {
			select {
			case <-tried:
				answered = true
			case <-time.After(10 * time.Millisecond):
			}
		}
		if time.Now().After(end) {
			s.t.Fatal("no commit waits for the standby")
		}
	}
	s.GiveUp()
	<-tried
	if n := s.Waiting(); n != 0 {
		s.t.Fatalf("%d commits wait before the test's first", n)
	}
}

// waiting are the sessions whose COMMIT waits for the standby.
func (s *Standby) waiting() []int32 {
	s.t.Helper()
	rows, err := s.admin.Query(s.t.Context(), `SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'
		ORDER BY backend_start`)
	if err != nil {
		s.t.Fatal(err)
	}
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int32])
	if err != nil {
		s.t.Fatal(err)
	}
	return pids
}

// Waiting is the number of waiting commits.
func (s *Standby) Waiting() int { s.t.Helper(); return len(s.waiting()) }

// GiveUp ends the sessions with a waiting COMMIT. Their writes become visible without a
// standby, and their clients get no response.
func (s *Standby) GiveUp() {
	s.t.Helper()
	for _, pid := range s.waiting() {
		if _, err := s.admin.Exec(s.t.Context(), `SELECT pg_terminate_backend($1)`, pid); err != nil {
			s.t.Fatal(err)
		}
	}
}

// Cancel ends the waits of all COMMITs as an operator's pg_cancel_backend does: their clients get a response.
func (s *Standby) Cancel() {
	s.t.Helper()
	for _, pid := range s.waiting() {
		if _, err := s.admin.Exec(s.t.Context(), `SELECT pg_cancel_backend($1)`, pid); err != nil {
			s.t.Fatal(err)
		}
	}
}

// Until waits until a condition holds, and fails the test if a response comes first.
func (s *Standby) Until(what string, holds func() bool, answer <-chan error) {
	s.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); {
		select {
		case err := <-answer:
			s.t.Fatalf("not until %s, and it was answered already: %v", what, err)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			s.t.Fatal("not in time: " + what)
		}
	}
}
