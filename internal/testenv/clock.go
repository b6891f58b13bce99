package testenv

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Clock sets the clock of one test's database, as an NTP step or the promotion of a standby
// would: now() and clock_timestamp() in all statements and column defaults. PostgreSQL's
// own timeouts do not follow it.
type Clock struct {
	t    testing.TB
	pool *pgxpool.Pool
}

// NewClock gives the database of the first pool such a clock. It applies to new
// connections; the pools are reset.
func NewClock(t testing.TB, pools ...*pgxpool.Pool) *Clock {
	t.Helper()
	if _, err := pools[0].Exec(t.Context(), `
		CREATE SCHEMA clock;
		CREATE TABLE clock.step (ahead interval NOT NULL);
		INSERT INTO clock.step VALUES ('0');
		CREATE FUNCTION clock.now() RETURNS timestamptz LANGUAGE sql STABLE AS
			'SELECT pg_catalog.now() + ahead FROM clock.step';
		CREATE FUNCTION clock.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
			'SELECT pg_catalog.clock_timestamp() + ahead FROM clock.step';
		DO $$
		DECLARE change text;
		BEGIN
			FOR change IN SELECT format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT clock.now()', d.adrelid::regclass, a.attname)
				FROM pg_attrdef d JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
				WHERE pg_get_expr(d.adbin, d.adrelid) = 'now()' LOOP
				EXECUTE change;
			END LOOP;
			EXECUTE format('ALTER DATABASE %I SET search_path = clock, pg_catalog, public', current_database());
		END $$`); err != nil {
		t.Fatalf("giving the database of this test a clock: %v", err)
	}
	for _, pool := range pools {
		pool.Reset()
	}
	return &Clock{t, pools[0]}
}

// Set sets the clock this far ahead of the machine's.
func (c *Clock) Set(ahead time.Duration) {
	c.t.Helper()
	if _, err := c.pool.Exec(context.Background(), `UPDATE clock.step SET ahead = make_interval(secs => $1)`,
		ahead.Seconds()); err != nil {
		c.t.Fatalf("setting the clock of this test's database: %v", err)
	}
}
