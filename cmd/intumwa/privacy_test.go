package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/testenv"
)

// TestPrivacyPage: docs/privacy.md names every column of every table that can hold a number or a text, and no others.
func TestPrivacyPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/privacy.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, column := range regexp.MustCompile("`([a-z_]+\\.[a-z_]+)`").FindAllStringSubmatch(string(text), -1) {
		if named[column[1]] = true; column[1] == "" {
			t.Error("nothing is named")
		}
	}
	rows, err := testenv.Pool(t).Query(t.Context(), `SELECT table_name || '.' || column_name FROM information_schema.columns
		JOIN information_schema.tables USING (table_schema, table_name)
		WHERE table_schema = 'public' AND table_type = 'BASE TABLE' AND NOT EXISTS (SELECT FROM pg_inherits WHERE inhrelid = table_name::regclass)
			AND (data_type IN ('text', 'character varying', 'character', 'bytea', 'json', 'jsonb', 'ARRAY', 'inet', 'cidr', 'USER-DEFINED', 'xml', 'tsvector')
				OR column_name ~ '(^|_)(handset|number|msisdn)$')
		ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	columns, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(columns) < 50 {
		t.Fatalf("%d columns, %v", len(columns), err)
	}
	known := map[string]bool{}
	for _, column := range columns {
		if known[column] = true; !named[column] {
			t.Errorf("docs/privacy.md does not name %s", column)
		}
	}
	tables := map[string]bool{}
	for column := range known {
		tables[regexp.MustCompile(`^[a-z_]+`).FindString(column)] = true
	}
	keys, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	for column := range named {
		if strings.Contains(string(keys), "| `"+column+"` |") {
			continue
		}
		if table := regexp.MustCompile(`^[a-z_]+`).FindString(column); tables[table] && !known[column] {
			t.Errorf("docs/privacy.md names %s, which holds no text", column)
		}
	}
}
