package postgres_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
)

func files(texts ...string) fstest.MapFS {
	names := []string{"00001_first.sql", "00002_second.sql", "00003_third.sql"}
	fsys := fstest.MapFS{}
	for i, text := range texts {
		fsys[names[i]] = &fstest.MapFile{Data: []byte(text + ";\n")}
	}
	return fsys
}

// emptyDatabase returns a database without migrations.
func emptyDatabase(t *testing.T) string {
	t.Helper()
	url := testenv.Database(t)
	pool := open(t, url, postgres.Options{})
	if _, err := pool.Exec(t.Context(), "DROP SCHEMA public CASCADE; CREATE SCHEMA public"); err != nil {
		t.Fatal(err)
	}
	return url
}

func TestMigrateAndCurrent(t *testing.T) {
	ctx := t.Context()
	url := emptyDatabase(t)
	pool := open(t, url, postgres.Options{})
	if err := postgres.Current(ctx, pool); !errors.Is(err, postgres.ErrSchemaOlder) {
		t.Errorf("Current before = %v, want ErrSchemaOlder", err)
	}
	for range 2 { // the second finds nothing to do
		if _, err := postgres.Migrate(ctx, url); err != nil {
			t.Fatal(err)
		}
	}
	if err := postgres.Current(ctx, pool); err != nil {
		t.Errorf("Current after = %v", err)
	}
}

// TestIndexesOfTexts: no index follows the cluster's collation, which an upgrade of the operating system may change: it
// then misses rows, and a unique one takes a row twice.
func TestIndexesOfTexts(t *testing.T) {
	rows, _ := testenv.Pool(t).Query(t.Context(), `SELECT DISTINCT i.indexrelid::regclass || ' (' || a.attname || ')'
		FROM pg_index i
		JOIN pg_class c ON c.oid = i.indrelid AND c.relnamespace = 'public'::regnamespace
		JOIN pg_attribute a ON a.attrelid = i.indexrelid AND a.attcollation NOT IN (0, '"C"'::regcollation) ORDER BY 1`)
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(found) > 0 {
		t.Errorf("give these columns COLLATE \"C\": %s, %v", strings.Join(found, ", "), err)
	}
}

func TestNewerSchemaIsRefused(t *testing.T) {
	ctx := t.Context()
	url := emptyDatabase(t)
	pool := open(t, url, postgres.Options{})
	older := files("CREATE TABLE first (id int)")
	newer := files("CREATE TABLE first (id int)", "CREATE TABLE second (id int)")
	if err := postgres.MigrateFiles(ctx, url, newer); err != nil {
		t.Fatal(err)
	}
	if err := postgres.MigrateFiles(ctx, url, older); !errors.Is(err, postgres.ErrSchemaNewer) {
		t.Errorf("Migrate by the older binary = %v, want ErrSchemaNewer", err)
	}
	if err := postgres.CurrentFiles(ctx, pool, older); !errors.Is(err, postgres.ErrSchemaNewer) {
		t.Errorf("Current of the older binary = %v, want ErrSchemaNewer", err)
	}
	if err := postgres.CurrentFiles(ctx, pool, newer); err != nil {
		t.Errorf("Current of the newer binary = %v", err)
	}
}

// TestOlderSchemaIsRefused: no migration is applied to a schema from before the baseline. A database where a first
// migrate ended after the first file of the baseline is migrated.
func TestOlderSchemaIsRefused(t *testing.T) {
	ctx := t.Context()
	for _, version := range []int64{1, postgres.OldestSchema - 1} {
		url := emptyDatabase(t)
		pool := open(t, url, postgres.Options{})
		older := fstest.MapFS{fmt.Sprintf("%05d_older.sql", version): {
			Data: []byte("CREATE TABLE messages (id bigint, of_the_older_build text);\n")}}
		if err := postgres.MigrateFiles(ctx, url, older); err != nil {
			t.Fatal(err)
		}
		before := catalog(t, pool)
		for range 2 {
			_, err := postgres.Migrate(ctx, url)
			for _, want := range []string{fmt.Sprintf("schema is version %d,", version),
				fmt.Sprintf("from version %d ", postgres.OldestSchema), "Nothing was changed", "docs/upgrade.md"} {
				if !errors.Is(err, postgres.ErrSchemaTooOld) || !strings.Contains(err.Error(), want) {
					t.Errorf("Migrate at version %d = %v, want ErrSchemaTooOld with %q", version, err, want)
				}
			}
		}
		if after := catalog(t, pool); after != before {
			t.Errorf("the refusal changed the database at version %d:\n%s\nbefore:\n%s", version, after, before)
		}
		if err := postgres.Current(ctx, pool); !errors.Is(err, postgres.ErrSchemaTooOld) {
			t.Errorf("Current at version %d = %v, want ErrSchemaTooOld", version, err)
		}
	}
	url := emptyDatabase(t)
	if err := postgres.MigrateToOldest(ctx, url); err != nil {
		t.Fatal(err)
	}
	if _, err := postgres.Migrate(ctx, url); err != nil {
		t.Errorf("Migrate at the oldest version = %v", err)
	}
	if err := postgres.Current(ctx, open(t, url, postgres.Options{})); err != nil {
		t.Errorf("Current after Migrate from the oldest version = %v", err)
	}
}

// catalog lists the tables, columns, indexes and functions of a database, and its applied migrations.
func catalog(t *testing.T, pool *pgxpool.Pool) (all string) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), `SELECT string_agg(line, E'\n' ORDER BY line) FROM (
			SELECT format('%s.%s %s', table_name, column_name, data_type) FROM information_schema.columns
				WHERE table_schema = 'public'
			UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'
			UNION ALL SELECT proname || md5(prosrc) FROM pg_proc WHERE pronamespace = 'public'::regnamespace
			UNION ALL SELECT format('version %s', version_id) FROM intumwa_schema) l(line)`).Scan(&all); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestForeignTablesAreRefused: a database with foreign tables of our names is not changed.
func TestForeignTablesAreRefused(t *testing.T) {
	ctx := t.Context()
	url := emptyDatabase(t)
	pool := open(t, url, postgres.Options{})
	if _, err := pool.Exec(ctx, `CREATE TABLE messages (text text)`); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err := postgres.Migrate(ctx, url)
		if !errors.Is(err, postgres.ErrSchemaForeign) || !strings.Contains(err.Error(), "messages") {
			t.Errorf("Migrate = %v, want ErrSchemaForeign and which", err)
		}
	}
	var made int
	if err := pool.QueryRow(
		ctx, `SELECT count(*) FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'messages'`).Scan(
		&made); err != nil || made != 0 {
		t.Errorf("%d tables were made, %v", made, err)
	}
}

// TestMissingTable: the version alone does not make a schema current.
func TestMissingTable(t *testing.T) {
	ctx := t.Context()
	pool := testenv.Pool(t)
	if err := postgres.Current(ctx, pool); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(ctx, `ALTER TABLE outbox RENAME TO elsewhere`); err != nil {
		t.Fatal(err)
	}
	if err := postgres.Current(ctx, pool); !errors.Is(err, postgres.ErrSchemaIncomplete) ||
		!strings.Contains(err.Error(), "outbox") {
		t.Errorf("Current = %v, want ErrSchemaIncomplete and which", err)
	}
}

// TestTablesEqualTheMigratedOnes: the list equals a migrated database's tables.
func TestTablesEqualTheMigratedOnes(t *testing.T) {
	var there []string
	if err := testenv.Pool(t).QueryRow(t.Context(), `SELECT array_agg(tablename::text ORDER BY tablename) FROM pg_tables
		WHERE schemaname = 'public' AND tablename <> 'intumwa_schema'`).Scan(&there); err != nil {
		t.Fatal(err)
	}
	if found := postgres.Tables(); !slices.Equal(found, there) {
		t.Errorf("found %v, want %v", found, there)
	}
}

func TestFailedMigrationLeavesNothingBehind(t *testing.T) {
	ctx := t.Context()
	url := emptyDatabase(t)
	pool := open(t, url, postgres.Options{})
	broken := files("CREATE TABLE first (id int)", "CREATE TABLE second (id int);\nSELECT 1/0")
	if err := postgres.MigrateFiles(ctx, url, broken); err == nil {
		t.Fatal("a broken migration succeeded")
	}
	var first, second bool
	if err := pool.QueryRow(ctx, "SELECT to_regclass('first') IS NOT NULL, to_regclass('second') IS NOT NULL").Scan(
		&first, &second); err != nil {
		t.Fatal(err)
	}
	if !first || second {
		t.Errorf("first exists = %v, second exists = %v; want the good one whole and nothing of the broken one", first,
			second)
	}
	mended := files("CREATE TABLE first (id int)", "CREATE TABLE second (id int)")
	if err := postgres.MigrateFiles(ctx, url, mended); err != nil {
		t.Errorf("after mending: %v", err)
	}
}

func TestInstancesMigrateInTurn(t *testing.T) {
	ctx := t.Context()
	url := emptyDatabase(t)
	slow := files("CREATE TABLE first (id int);\nSELECT pg_sleep(0.1)", "CREATE TABLE second (id int)")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if err := postgres.MigrateFiles(ctx, url, slow); err != nil {
				t.Errorf("one of several instances: %v", err)
			}
		})
	}
	all.Wait()
}

// TestVersionsOnlyGrow: a migration below the baseline would never be applied to databases that have it.
func TestVersionsOnlyGrow(t *testing.T) {
	all := postgres.Versions()
	if all[0] != postgres.OldestSchema || !slices.IsSorted(all) || len(slices.Compact(all)) != len(all) {
		t.Errorf("versions %v, want %d first and each once", all, postgres.OldestSchema)
	}
}
