package postgres_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
)

// TestCommitWaitsForStandby: the wait of a commit for a synchronous standby is found and ended, and its change is
// committed. Other waits are not affected.
func TestCommitWaitsForStandby(t *testing.T) {
	ctx := t.Context()
	server := testenv.NewPostgresServer(t)
	const patience = 500 * time.Millisecond
	named := open(t, server.URL(), postgres.Options{Name: "watched", MaxConns: 3})
	if err := postgres.TryCommit(ctx, named, patience); err != nil {
		t.Errorf("a commit without a standby: %v", err)
	}
	if _, err := named.Exec(ctx, `CREATE TABLE changed (id int)`); err != nil {
		t.Fatal(err)
	}
	standby := testenv.NewStandby(t, server)
	standby.Away()
	if err := postgres.TryCommit(ctx, named, patience); !errors.Is(err, postgres.ErrStandbyAway) ||
		!strings.Contains(err.Error(), "a commit waits for a standby: absent (synchronous_standby_names)") {
		t.Errorf("a commit that waits: %v", err)
	}
	// A long statement's wait counts from its commit.
	start := time.Now()
	sleeps := postgres.Attend(ctx, named, 2*time.Second)
	if _, err := named.Exec(ctx, `INSERT INTO changed SELECT 0 FROM pg_sleep(3)`); err != nil ||
		time.Since(start) < 5*time.Second {
		t.Errorf("a statement of three seconds, whose commit may wait for two: %v after %v", err, time.Since(start))
	}
	if err := sleeps.End(); !errors.Is(err, postgres.ErrStandbyAway) {
		t.Errorf("its wait was ended: %v", err)
	}
	attendance := postgres.Attend(ctx, named, patience)
	if _, err := named.Exec(ctx, `INSERT INTO changed VALUES (1)`); err != nil {
		t.Errorf("a change while the standby is away: %v", err)
	}
	if err := attendance.End(); !errors.Is(err, postgres.ErrStandbyAway) {
		t.Errorf("the wait that was ended: %v", err)
	}
	var changed int
	if err := named.QueryRow(ctx, `SELECT count(*) FROM changed`).Scan(&changed); err != nil || changed != 2 {
		t.Errorf("%d changes are made, %v", changed, err)
	}
	serving := open(t, server.URL(), postgres.Options{MaxConns: 1})
	answer := make(chan error, 1)
	go func() {
		answer <- postgres.InTx(ctx, serving, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `INSERT INTO changed VALUES (3)`)
			return err
		})
	}()
	standby.Until("a transaction waits", func() bool { return standby.Waiting() == 1 }, answer)
	standby.Cancel()
	if err := <-answer; !errors.Is(err, postgres.ErrStandbyAway) || postgres.RolledBack(err) {
		t.Errorf("a transaction whose wait was cancelled: %v", err)
	}
	if err := postgres.InTx(ctx, serving, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT 1`).Scan(new(int))
	}); err != nil {
		t.Errorf("the next transaction of its session: %v", err)
	}
	reader := open(t, server.URL(), postgres.Options{ReadOnly: true, MaxConns: 1})
	if _, err := reader.Exec(ctx, `INSERT INTO changed VALUES (2)`); postgres.SQLState(err) != "25006" {
		t.Errorf("a change by a pool that only reads: %v", err)
	}
}
