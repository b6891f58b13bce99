package postgres_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
)

// TestNow: the process's time is the database's, however wrong the machine's clock is. A clock that may be right is not
// corrected.
func TestNow(t *testing.T) {
	here := testenv.Pool(t)
	read := func(pool *pgxpool.Pool) {
		t.Helper()
		if err := postgres.ReadClock(t.Context(), pool); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = postgres.ReadClock(t.Context(), here) })
	read(here)
	if ahead := postgres.Ahead(); ahead.Abs() > time.Millisecond {
		t.Errorf("on one machine one clock is %v ahead of the other", ahead)
	}
	for behind, wrong := range map[string]time.Duration{"1 hour": time.Hour, "-3 minutes": -3 * time.Minute} {
		elsewhere := withClock(t, here, behind)
		read(elsewhere)
		const slack = 5 * time.Second // for a loaded machine
		if ahead := postgres.Ahead(); (ahead - wrong).Abs() > slack {
			t.Errorf("this clock is %v ahead, not %v", wrong, ahead)
		}
		var theirs time.Time
		if err := elsewhere.QueryRow(t.Context(), `SELECT clock_timestamp()`).Scan(&theirs); err != nil {
			t.Fatal(err)
		}
		if d := postgres.Now().Sub(theirs).Abs(); d > slack {
			t.Errorf("the two differ by %v", d)
		}
		moment := time.Now()
		if before := postgres.Moment(moment.Add(-time.Minute)); postgres.Moment(moment).Sub(before) != time.Minute {
			t.Errorf("a minute before %v was %v", postgres.Moment(moment), before)
		}
	}
	if !postgres.Moment(time.Time{}).IsZero() {
		t.Error("no time became one")
	}
	read(here)
	if postgres.Ahead().Abs() > time.Millisecond {
		t.Error("a clock that was set right stays wrong")
	}
}

// withClock returns a pool on the same database with a clock behind by this interval.
func withClock(t *testing.T, pool *pgxpool.Pool, behind string) *pgxpool.Pool {
	t.Helper()
	schema := "clock_" + strings.NewReplacer(" ", "_", "-", "ahead_").Replace(behind)
	if _, err := pool.Exec(t.Context(), `CREATE SCHEMA `+schema+`;
		CREATE FUNCTION `+schema+
		`.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$SELECT pg_catalog.clock_timestamp() - interval '`+behind+
		`'$$`); err != nil {
		t.Fatal(err)
	}
	config := pool.Config()
	config.ConnConfig.RuntimeParams["search_path"] = schema + ",pg_catalog"
	other, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Close)
	return other
}
