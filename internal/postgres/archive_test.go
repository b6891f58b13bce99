package postgres_test

import (
	"strings"
	"testing"
	"time"

	"intumwa/internal/postgres"
)

// TestArchiveProblem: what a restore would lack is found, also where archive_command succeeds and keeps nothing.
func TestArchiveProblem(t *testing.T) {
	t.Parallel()
	good := postgres.Archive{On: true, Command: "intumwa-backup archive %p %f", Last: "000000010000000000000007",
		Age: 30 * time.Second, Timeout: time.Minute}
	for _, c := range []struct {
		name   string
		change func(*postgres.Archive)
		want   string // "" no problem
	}{
		{"it works", func(*postgres.Archive) {}, ""},
		{"off", func(a *postgres.Archive) { *a = postgres.Archive{Command: "(disabled)"} }, "archive_mode is off"},
		{"no command", func(a *postgres.Archive) { a.Command = "" }, "archive_command is empty"},
		{"PostgreSQL 15 and newer: a library instead",
			func(a *postgres.Archive) { a.Command, a.Library = "", "basic_archive" }, ""},
		// Patroni's and Spilo's examples have such commands as long as no archive is set up.
		{"a command that keeps nothing", func(a *postgres.Archive) { a.Command = "/bin/true" }, "keeps nothing"},
		{"another one", func(a *postgres.Archive) { a.Command = ":" }, "keeps nothing"},
		{"it fails", func(a *postgres.Archive) { a.Failing, a.Failures = true, 3 },
			"archive_command fails: 3 failures; the last file"},
		{"it hangs", func(a *postgres.Archive) { a.Age = 6*time.Minute + time.Second }, "nothing is archived: the last file"},
		{"it is a little late", func(a *postgres.Archive) { a.Age = 6 * time.Minute }, ""},
		{"whole files only", func(a *postgres.Archive) { a.Age, a.Timeout = 10*time.Hour, 0 }, ""},
		{"just started", func(a *postgres.Archive) { a.Last = "" }, ""},
		{"nothing yet, for long", func(a *postgres.Archive) { a.Last, a.Age = "", time.Hour },
			"nothing is archived for 1h0m0s"},
	} {
		a := good
		c.change(&a)
		if got := a.Problem(); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
