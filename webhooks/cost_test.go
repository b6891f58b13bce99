package webhooks

import (
	"testing"

	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
)

// TestWALOfADelivery bounds the WAL of one delivery, from its row to its result. A busy machine makes
// smaller batches of results, so the best of several rounds counts.
func TestWALOfADelivery(t *testing.T) {
	const n, batch, rounds = 1000, 20, 8
	pool, err := postgres.Open(t.Context(), testenv.NewPostgresServer(t).URL(),
		postgres.Options{MaxConns: 8, BatchUpdates: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s := newSink(t, nil)
	w := New(pool, Options{AllowPrivate: true})
	setEndpoint(t, w, 1, s.URL)
	run(t, w)
	wal := func() (records, octets float64) {
		t.Helper()
		pool.Reset() // a server process reports when it exits
		if err := pool.QueryRow(t.Context(), `SELECT wal_records, wal_bytes FROM pg_stat_wal`).Scan(
			&records, &octets); err != nil {
			t.Fatal(err)
		}
		return records, octets
	}
	round := func(number int) (records, octets float64) {
		before, octetsBefore := wal()
		for from := number*n + 1; from <= (number+1)*n; from += batch {
			enqueue(t, w, 1, int64(from), batch)
			eventually(t, "a batch called", func() bool { return s.count() >= from+batch-1 })
		}
		eventually(t, "all delivered", func() bool { return countState(t, w, delivered) == (number+1)*n })
		eventually(t, "the figures", func() bool { records, octets = wal(); return records > before+2*n })
		return (records - before) / n, (octets - octetsBefore) / n
	}
	round(0)
	for number := 1; ; number++ {
		records, octets := round(number)
		t.Logf("%.2f records, %.0f octets a delivery", records, octets)
		if records <= 2.6 && octets <= 370 {
			return
		}
		if number == rounds {
			t.Fatal("want 2.6 and 370 at most")
		}
	}
}
