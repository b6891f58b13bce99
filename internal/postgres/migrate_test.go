package postgres_test

import (
	"errors"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
)

func files(texts ...string) fstest.MapFS {
	names := []string{"00001_first.sql", "00002_second.sql", "00003_third.sql"}
	fsys := fstest.MapFS{}
	for i, text := range texts {
		fsys[names[i]] = &fstest.MapFile{Data: []byte("-- +goose Up\n" + text + ";\n")}
	}
	return fsys
}

// emptyDatabase is a database in which nothing was migrated.
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
		if err := postgres.Migrate(ctx, url); err != nil {
			t.Fatal(err)
		}
	}
	if err := postgres.Current(ctx, pool); err != nil {
		t.Errorf("Current after = %v", err)
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

func TestFailedMigrationLeavesNothingBehind(t *testing.T) {
	ctx := t.Context()
	url := emptyDatabase(t)
	pool := open(t, url, postgres.Options{})
	broken := files("CREATE TABLE first (id int)", "CREATE TABLE second (id int);\nSELECT 1/0")
	if err := postgres.MigrateFiles(ctx, url, broken); err == nil {
		t.Fatal("a broken migration succeeded")
	}
	var first, second bool
	if err := pool.QueryRow(ctx, "SELECT to_regclass('first') IS NOT NULL, to_regclass('second') IS NOT NULL").Scan(&first, &second); err != nil {
		t.Fatal(err)
	}
	if !first || second {
		t.Errorf("first exists = %v, second exists = %v; want the good one whole and nothing of the broken one", first, second)
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

func TestEmbeddedMigrationsGoForwardOnly(t *testing.T) {
	names, err := fs.Glob(postgres.Embedded(), "*.sql")
	if err != nil || len(names) == 0 {
		t.Fatalf("embedded migrations: %v, %v", names, err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(postgres.Embedded(), name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(strings.ToLower(string(text)), "+goose down") {
			t.Errorf("%s has a way back; migrations go forward only", name)
		}
	}
}

func TestChecksumIsStable(t *testing.T) {
	first, second := postgres.Checksum(), postgres.Checksum()
	if first != second || len(first) != 12 {
		t.Errorf("Checksum() = %q, then %q; want the same 12 digits", first, second)
	}
}
