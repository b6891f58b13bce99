package postgres_test

import (
	"strings"
	"testing"
	"time"

	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
)

// TestProbe: a database that can commit passes; one that responds and cannot write fails. (The drill fills a real
// disk.)
func TestProbe(t *testing.T) {
	database := testenv.Database(t)
	well := open(t, database, postgres.Options{MaxConns: 1})
	if err := postgres.Probe(t.Context(), well); err != nil {
		t.Fatal(err)
	}
	if got := setting(t, well, "work_mem"); got != "4MB" {
		t.Errorf("the probe's settings stay: work_mem = %s", got)
	}
	for _, parameter := range []string{
		"temp_file_limit=64", // in kB: the call that a full disk fails
		"default_transaction_read_only=on",
	} {
		join := "?"
		if strings.Contains(database, "?") {
			join = "&"
		}
		ill := open(t, database+join+parameter, postgres.Options{MaxConns: 1})
		if err := ill.Ping(t.Context()); err != nil {
			t.Fatalf("%s: it does not answer: %v", parameter, err)
		}
		if err := postgres.Probe(t.Context(), ill); err == nil {
			t.Errorf("%s: it can commit", parameter)
		}
	}
	// Measures WAL, which every replica and archive gets. Other tests write to the same server.
	least := int64(1 << 62)
	start := time.Now()
	probes := 0
	for end := time.Now().Add(time.Minute); probes < 20 || least > 1000 && time.Now().Before(end); probes++ {
		var from string
		if err := well.QueryRow(t.Context(), "SELECT pg_current_wal_insert_lsn()::text").Scan(&from); err != nil {
			t.Fatal(err)
		}
		if err := postgres.Probe(t.Context(), well); err != nil {
			t.Fatal(err)
		}
		var written int64
		if err := well.QueryRow(t.Context(), "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), $1::text::pg_lsn)::bigint",
			from).Scan(&written); err != nil {
			t.Fatal(err)
		}
		least = min(least, written)
	}
	t.Logf("%d bytes of WAL and %v a probe", least, time.Since(start)/time.Duration(probes))
	if least > 1000 {
		t.Errorf("a probe writes %d bytes of WAL", least)
	}
}
