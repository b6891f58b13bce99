package handsets_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/inbound/handsets"
	"intumwa/sms"
)

// aMillion is the length of a full list.
const aMillion = handsets.MaxOptOuts

func newListed(b *testing.B, entries int) *testStore {
	b.Helper()
	d := newTestStore(b)
	d.exec(`INSERT INTO users (email, name, password_hash) VALUES ('a@example.com', 'a', '')`)
	d.exec(`INSERT INTO companies (owner_id, name) VALUES (1, 'a')`)
	d.exec(`INSERT INTO opt_outs (company_id, phone_number, sender, source)
		SELECT 1, '+2576' || lpad((n * 7 % 10000000)::text, 7, '0'), '', 'api' FROM generate_series(1, $1::int) n`, entries)
	d.exec(`VACUUM ANALYZE opt_outs`)
	return d
}

// BenchmarkBarred is the one statement more that a bulk of 500 recipients costs a company with a full list; none of
// them is listed, or every tenth.
func BenchmarkBarred(b *testing.B) {
	for _, listed := range []int{0, 50} {
		b.Run(fmt.Sprintf("%d of 500", listed), func(b *testing.B) {
			d := newListed(b, aMillion)
			for b.Loop() {
				var pairs []handsets.Pair
				for i := range 500 {
					n := sms.Number(fmt.Sprintf("+2577%07d", i*7919))
					if i < listed {
						n = sms.Number(fmt.Sprintf("+2576%07d", (i+1)*7000))
					}
					pairs = append(pairs, handsets.Pair{CompanyID: 1, Number: n, Sender: "ACME"})
				}
				d.tx(func(ctx context.Context, tx pgx.Tx) error {
					barred, err := handsets.Barred(ctx, tx, pairs)
					if err == nil && len(barred) != listed {
						err = fmt.Errorf("%d are barred, not %d", len(barred), listed)
					}
					return err
				})
			}
		})
	}
}

// BenchmarkOptOut adds numbers in pages of 500, as POST /v1/opt-outs does; -benchtime 2000x adds a million to an empty
// list. It reports the time of a page in the last tenth.
func BenchmarkOptOut(b *testing.B) {
	d := newListed(b, 0)
	var took []time.Duration
	for b.Loop() {
		entries := make([]handsets.OptOut, 500)
		for i := range entries {
			entries[i] = handsets.OptOut{Number: sms.Number(fmt.Sprintf("+2577%07d", (len(took)*500+i)*7919%10_000_000)),
				Source: handsets.ByAPI}
		}
		began := time.Now()
		if _, err := d.OptOutWithin(b.Context(), 1, entries); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	b.ReportMetric(float64(len(took)*500)/b.Elapsed().Seconds(), "entries/s")
	var late time.Duration
	tenth := took[len(took)*9/10:]
	for _, t := range tenth {
		late += t
	}
	b.ReportMetric(float64(late.Microseconds())/1000/float64(len(tenth)), "ms/late-page")
}
