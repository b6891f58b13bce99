package testenv

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/internal/postgres"
)

// spare are emptied databases of finished tests. To copy the template and drop the copy takes a hundred times as long
// as to delete a few rows.
var spare struct {
	sync.Mutex
	list     []*database
	pristine string // the shape of a copy of the template
}

// database is a test's database. Its pools stay open for the next test: a new session costs PostgreSQL more than the
// statements of most tests, because it is a new process with empty caches.
type database struct {
	name, url string
	pools     map[postgres.Options]*pgxpool.Pool
	uses      int64 // of the pools, when the database was given back
}

// takeDatabase returns an empty database with these pools for one test.
func takeDatabase(server, test string, pools []postgres.Options) (d *database, err error) {
	spare.Lock()
	defer spare.Unlock()
	fits := func(d *database) bool {
		missing := func(o postgres.Options) bool { return d.pools[o] == nil }
		return len(d.pools) == len(pools) && !slices.ContainsFunc(pools, missing)
	}
	i := slices.IndexFunc(spare.list, fits)
	if i < 0 {
		i = len(spare.list) - 1
	}
	if i >= 0 {
		d = spare.list[i]
		spare.list = slices.Delete(spare.list, i, i+1)
	} else if d, err = newDatabase(server, test); err != nil {
		return nil, err
	}
	if !fits(d) || d.used() != d.uses { // something uses the pools after its test
		d.closePools()
	}
	ctx, cancel := within()
	defer cancel()
	for _, options := range pools {
		if d.pools[options] != nil {
			continue
		}
		if d.pools[options], err = postgres.Open(ctx, Patient(d.url), options); err != nil {
			return nil, fmt.Errorf("opening a pool: %w", err)
		}
	}
	return d, nil
}

// used counts how often the pools were used.
func (d *database) used() (n int64) {
	for _, pool := range d.pools {
		n += pool.Stat().AcquireCount()
	}
	return n
}

func (d *database) closePools() {
	for _, pool := range d.pools {
		pool.Close()
	}
	clear(d.pools)
}

// newDatabase copies the template.
func newDatabase(server, test string) (*database, error) {
	name := databaseName(test)
	if err := createDatabase(server, name); err != nil {
		return nil, fmt.Errorf("making a database: %w", err)
	}
	d := &database{name: name, url: inDatabase(server, name), pools: map[postgres.Options]*pgxpool.Pool{}}
	if spare.pristine != "" {
		return d, nil
	}
	return d, connected(d.url, func(ctx context.Context, conn *pgx.Conn) error {
		if err := endOthers(ctx, conn, nil); err != nil {
			return err
		}
		return conn.QueryRow(ctx, shape).Scan(&spare.pristine)
	})
}

// giveBack keeps a finished test's database for the next one. It drops it if the test has changed the schema, made it
// large, or caused planner statistics.
func (d *database) giveBack(server string) error {
	kept, err := d.emptiedByPools()
	if !kept {
		d.closePools()
		err = connected(d.url, func(ctx context.Context, conn *pgx.Conn) (err error) {
			kept, err = emptied(ctx, conn, nil)
			return err
		})
	}
	if kept {
		spare.Lock()
		defer spare.Unlock()
		spare.list = append(spare.list, d)
		return nil
	}
	if dropped := execute(server, "DROP DATABASE "+quote(d.name)+" WITH (FORCE)"); dropped != nil {
		return fmt.Errorf("dropping the database (%w)", dropped)
	}
	return err
}

// emptiedByPools empties the database and resets the sessions of its pools. It does not if the test has closed one or
// still uses it.
func (d *database) emptiedByPools() (done bool, err error) {
	ctx, cancel := within()
	defer cancel()
	var sessions []*pgxpool.Conn
	defer func() {
		for _, session := range sessions {
			session.Release()
		}
		d.uses = d.used()
	}()
	for _, pool := range d.pools {
		idle := pool.AcquireAllIdle(ctx)
		sessions = append(sessions, idle...)
		if len(idle) == 0 || int(pool.Stat().TotalConns()) != len(idle) {
			return false, nil
		}
	}
	if len(sessions) == 0 {
		return false, nil
	}
	own := make([]int32, len(sessions))
	for i, session := range sessions {
		conn := session.Conn().PgConn()
		own[i] = int32(conn.PID())
		if _, err := conn.Exec(ctx, fresh).ReadAll(); err != nil {
			return false, fmt.Errorf("resetting a session: %w", err)
		}
	}
	return emptied(ctx, sessions[0].Conn(), own)
}

// fresh resets a session as DISCARD ALL does, but keeps its prepared statements, which the pool knows.
const fresh = `CLOSE ALL; SET SESSION AUTHORIZATION DEFAULT; RESET ALL; UNLISTEN *; SELECT pg_advisory_unlock_all();
	DISCARD PLANS; DISCARD TEMP; DISCARD SEQUENCES`

// emptied empties the database of a connection, once all sessions but own have ended. It does not if the database is no
// longer as the template was.
func emptied(ctx context.Context, conn *pgx.Conn, own []int32) (done bool, err error) {
	if err := endOthers(ctx, conn, own); err != nil {
		return false, err
	}
	var now string
	var small bool
	if err := conn.QueryRow(ctx, `SELECT (`+shape+`),
		(SELECT sum(size) < 4000000 FROM `+files+`)
		AND NOT EXISTS (SELECT FROM pg_statistic WHERE starelid >= 16384) -- of no system catalog`).Scan(
		&now, &small); err != nil || now != spare.pristine || !small {
		return false, err
	}
	_, err = conn.Exec(ctx, empty)
	return err == nil, err
}

// endOthers ends the sessions in a connection's database but it and own.
func endOthers(ctx context.Context, conn *pgx.Conn, own []int32) error {
	if _, err := conn.Exec(ctx, `SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid() AND NOT coalesce(pid = ANY($1), false)
		AND backend_type = 'client backend'`, own); err != nil {
		return fmt.Errorf("ending the sessions of a test: %w", err)
	}
	return nil
}

// dropSpares drops this binary's spare databases from a shared server.
func dropSpares() {
	for _, d := range spare.list {
		d.closePools()
		_ = execute(shared.postgres.url, "DROP DATABASE "+quote(d.name)+" WITH (FORCE)")
	}
}

// shape is a query with the same result for databases with the same schema and settings. A copy of the template has the
// template's catalog rows, and whatever changes the schema writes other ones: it is enough to count them and to look at
// the last transaction that wrote one.
const shape = `SELECT string_agg(concat_ws(',', x.*), ' ') FROM (
		SELECT count(*), max(xmin::text::bigint) FROM pg_class WHERE relnamespace = 'public'::regnamespace
		UNION ALL SELECT count(*), max(xmin::text::bigint) FROM pg_attribute
		UNION ALL SELECT count(*), max(xmin::text::bigint) FROM pg_attrdef
		UNION ALL SELECT count(*), max(xmin::text::bigint) FROM pg_trigger
		UNION ALL SELECT count(*), max(xmin::text::bigint) FROM pg_constraint
		UNION ALL SELECT count(*), max(xmin::text::bigint) FROM pg_index
		UNION ALL SELECT count(*), max(xmin::text::bigint) FROM pg_rewrite
		UNION ALL SELECT count(*), max(xmin::text::bigint) FROM pg_proc
		UNION ALL SELECT count(*), max(xmin::text::bigint) FROM pg_namespace WHERE nspname NOT LIKE 'pg\_%'
		UNION ALL SELECT count(*), 0 FROM pg_db_role_setting WHERE setdatabase = (SELECT oid FROM pg_database
			WHERE datname = current_database())
		UNION ALL SELECT datconnlimit, (datallowconn AND datacl IS NULL)::int FROM pg_database
			WHERE datname = current_database()
		UNION ALL SELECT count(*), max(version_id) FROM intumwa_schema
	) x`

// files are the tables and indexes with the sizes of their files. pg_relation_size would open each of them.
const files = `(SELECT relname, relkind, size FROM pg_class, pg_database d,
		pg_stat_file('base/' || d.oid || '/' || relfilenode, true)
		WHERE datname = current_database() AND relnamespace = 'public'::regnamespace) files`

// empty deletes all rows, resets all sequences and clears statistics.
const empty = `DO $$ DECLARE t text; filled boolean; BEGIN
	SET LOCAL session_replication_role = replica; -- no triggers
	FOR t IN SELECT format('%I', relname) FROM ` + files + `
			WHERE relkind = 'r' AND relname <> 'intumwa_schema' AND size > 0 LOOP
		EXECUTE 'SELECT EXISTS (SELECT FROM ' || t || ')' INTO filled;
		IF filled THEN EXECUTE 'DELETE FROM ' || t; END IF;
	END LOOP;
	PERFORM setval(format('%I', sequencename)::regclass, start_value, false) FROM pg_sequences WHERE schemaname = 'public'
	AND sequencename NOT LIKE 'intumwa_schema%';
	PERFORM pg_stat_reset();
END $$`
