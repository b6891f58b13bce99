package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Health is what stops PostgreSQL one day, unless somebody acts in time.
type Health struct {
	XIDAge     int64         // age of the oldest transaction or multixact id that is not frozen, of all databases
	Oldest     time.Duration // of the oldest transaction, also a prepared one
	OldestName string        // whose it is
	Slots      []string      // replication slots that nobody uses, with the WAL that they keep
	Unvacuumed []string      // autovacuum, track_counts, or tables without it
	Collations []string      // whose version is not the one that indexes were built with
}

const (
	// XIDAgeMost is a quarter of what PostgreSQL can have. Autovacuum freezes at 200 million.
	XIDAgeMost = 500_000_000
	// OldestMost is the age of a transaction that keeps vacuum from removing rows.
	OldestMost = time.Hour
)

// healthQuery works for every role and on every supported version. A role without pg_read_all_stats does not see when
// other roles' transactions began.
const healthQuery = `
	SELECT (SELECT max(greatest(age(datfrozenxid), mxid_age(datminmxid))) FROM pg_database)::bigint,
		coalesce(extract(epoch FROM clock_timestamp() - o.since), 0)::float8, coalesce(o.name, ''),
		ARRAY(SELECT slot_name || coalesce(', ' || pg_size_pretty(pg_wal_lsn_diff(pg_current_wal_lsn(),
		restart_lsn)) || ' of WAL', '')
			FROM pg_replication_slots WHERE NOT active AND NOT temporary ORDER BY 1),
		ARRAY(SELECT name FROM pg_settings WHERE name IN ('autovacuum', 'track_counts') AND setting = 'off'
			UNION ALL SELECT oid::regclass::text FROM pg_class
			WHERE relkind IN ('r', 't') AND array_to_string(reloptions, ' ') ~* 'autovacuum_enabled=(off|false|no|0|n|f)\M')
	FROM (SELECT) one LEFT JOIN LATERAL (
		SELECT since, name FROM (
			SELECT xact_start AS since, 'pid ' || pid || coalesce(', ' || nullif(application_name, ''),
				'') || coalesce(', ' || state, '') AS name
			FROM pg_stat_activity WHERE backend_type NOT IN ('walsender', 'autovacuum worker')
			UNION ALL SELECT prepared, 'prepared transaction ' || gid FROM pg_prepared_xacts
		) t WHERE since IS NOT NULL ORDER BY since LIMIT 1
	) o ON true`

// collations lists the collations of indexes with another version than the operating system's now. Before PostgreSQL 15
// a database does not record the version of its own: pg_collation has it, if it knows the name.
const (
	collations = `SELECT DISTINCT format('%s: built with %s, now %s', collname, collversion,
		coalesce(pg_collation_actual_version(c.oid), 'unknown'))
		FROM pg_collation c WHERE collversion IS DISTINCT FROM pg_collation_actual_version(c.oid) AND collversion IS NOT NULL
		AND (EXISTS (SELECT FROM pg_index i WHERE c.oid = ANY(i.indcollation)) OR `
	collationsOf15 = collations + `false) UNION
		SELECT format('%s: built with %s, now %s', datcollate, datcollversion,
			coalesce(pg_database_collation_actual_version(oid), 'unknown'))
		FROM pg_database WHERE datname = current_database() AND datcollversion IS NOT NULL
		AND datcollversion IS DISTINCT FROM pg_database_collation_actual_version(oid) ORDER BY 1`
	collationsBefore = collations +
		`(c.collprovider = 'c' AND c.collcollate = (SELECT datcollate FROM pg_database WHERE datname = current_database())
		AND c.collencoding IN (-1, (SELECT encoding FROM pg_database WHERE datname = current_database())))) ORDER BY 1`
	versionOfDatabases = 15
)

// ReadHealth reads the primary's health. It costs a few milliseconds.
func ReadHealth(ctx context.Context, pool *pgxpool.Pool) (h Health, err error) {
	var seconds float64
	if err := pool.QueryRow(ctx, healthQuery).Scan(&h.XIDAge, &seconds, &h.OldestName, &h.Slots,
		&h.Unvacuumed); err != nil {
		return h, fmt.Errorf("reading the server's health: %w", err)
	}
	h.Oldest = time.Duration(seconds * float64(time.Second))
	h.Collations, err = Collations(ctx, pool)
	return h, err
}

// Collations lists the collations of indexes whose version has changed since: what such an index finds is not certain.
func Collations(ctx context.Context, pool *pgxpool.Pool) ([]string, error) {
	var version string
	if err := pool.QueryRow(ctx, `SELECT current_setting('server_version')`).Scan(&version); err != nil {
		return nil, fmt.Errorf("reading the server's version: %w", err)
	}
	query := collationsOf15
	if majorVersion(version) < versionOfDatabases {
		query = collationsBefore
	}
	return All(ctx, pool, "comparing the versions of collations", pgx.RowTo[string], query)
}

// Problem is one of [Health.Checks].
type Problem struct {
	Check string
	Found string // in words for an operator
	Bad   bool
}

// Checks returns each aspect of the health.
func (h *Health) Checks() []Problem {
	list := func(check string, all []string, none string) Problem {
		if len(all) == 0 {
			return Problem{check, none, false}
		}
		return Problem{check, strings.Join(all, "; "), true}
	}
	oldest := Problem{"oldest transaction", "none", h.Oldest > OldestMost}
	if h.OldestName != "" {
		oldest.Found = fmt.Sprintf("%v: %s", h.Oldest.Round(time.Second), h.OldestName)
	}
	return []Problem{
		{"xid age", strconv.FormatInt(h.XIDAge, 10) + " transactions", h.XIDAge > XIDAgeMost},
		oldest,
		list("inactive replication slots", h.Slots, "none"),
		list("autovacuum off", h.Unvacuumed, "nowhere"),
		list("collation mismatches", h.Collations, "none"),
	}
}
