package testenv

import (
	"context"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
)

// spare are emptied databases of finished tests. To copy the template and drop the copy takes a hundred times as long
// as to delete a few rows.
var spare struct {
	sync.Mutex
	names    []string
	pristine string // the shape of a copy of the template
}

// takeDatabase returns the name of an empty database for one test.
func takeDatabase(server, test string) (name string, err error) {
	spare.Lock()
	defer spare.Unlock()
	if n := len(spare.names); n > 0 {
		name, spare.names = spare.names[n-1], spare.names[:n-1]
		return name, nil
	}
	name = databaseName(test)
	if err := createDatabase(server, name); err != nil {
		return "", fmt.Errorf("making a database: %w", err)
	}
	if spare.pristine != "" {
		return name, nil
	}
	return name, inTurn(inDatabase(server, name), func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, shape).Scan(&spare.pristine)
	})
}

// returnDatabase keeps a finished test's database for the next one. It drops it if the test has changed the schema,
// made it large, or caused planner statistics.
func returnDatabase(server, name string) error {
	kept := false
	err := inTurn(inDatabase(server, name), func(ctx context.Context, conn *pgx.Conn) error {
		var now string
		var small bool
		err := conn.QueryRow(ctx, `SELECT (`+shape+`),
			(SELECT sum(size) < 4000000 FROM `+files+`)
			AND NOT EXISTS (SELECT FROM pg_statistic WHERE starelid >= 16384) -- of no system catalog`).Scan(&now, &small)
		if err != nil || now != spare.pristine || !small {
			return err
		}
		_, err = conn.Exec(ctx, empty)
		kept = err == nil
		return err
	})
	if kept {
		spare.Lock()
		defer spare.Unlock()
		spare.names = append(spare.names, name)
		return nil
	}
	if dropped := execute(server, "DROP DATABASE "+quote(name)+" WITH (FORCE)"); dropped != nil {
		return fmt.Errorf("dropping the database (%w)", dropped)
	}
	return err
}

// dropSpares drops this binary's spare databases from a shared server.
func dropSpares() {
	for _, name := range spare.names {
		_ = execute(shared.postgres.url, "DROP DATABASE "+quote(name)+" WITH (FORCE)")
	}
}

// inTurn runs do on a connection to a database, once no other session uses it.
func inTurn(url string, do func(context.Context, *pgx.Conn) error) error {
	return connected(url, func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, `SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'`); err != nil {
			return fmt.Errorf("ending the sessions of a test: %w", err)
		}
		return do(ctx, conn)
	})
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
