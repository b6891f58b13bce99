package messages_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/messages"
)

// BenchmarkInsert is one group commit of so many messages.
func BenchmarkInsert(b *testing.B) {
	for _, n := range []int{1, 64, 500, 4000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			d := newHotDesk(b)
			list := make([]*messages.Message, n)
			for b.Loop() {
				for i := range list {
					list[i] = d.compose()
				}
				d.insert(list...)
			}
			b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "messages/s")
		})
	}
}

// BenchmarkSettle is the way of 100 messages from claim to sent: claim,
// responses and end of their journeys, receipts.
func BenchmarkSettle(b *testing.B) {
	const n = 100
	d := newHotDesk(b)
	ctx := context.WithoutCancel(b.Context())
	round := 0
	for b.Loop() {
		b.StopTimer()
		ids := d.pending(n)
		b.StartTimer()
		round++
		if got := len(d.claim(1, ids...)); got != n {
			b.Fatalf("%d claimed", got)
		}
		parts, receipts := make([]messages.Part, n), make([]messages.Receipt, n)
		for i, id := range ids {
			key := fmt.Sprintf("%d-%d", round, i)
			parts[i], receipts[i] = part(id, key, at(time.Now())), receipt(key, "DELIVRD")
			receipts[i].Number = fmt.Sprintf("25761%06d", d.numbered-n+i+1) // as desk.compose counts them
		}
		d.tx(func(_ context.Context, tx pgx.Tx) error {
			if _, err := d.Record(ctx, tx, carrier, parts, nil, 0); err != nil {
				return err
			}
			return d.end(ctx, tx, messages.Ends{Dispatcher: 1, Carried: ids})
		})
		if s := d.settle(nil, receipts...); len(s.settled) != n {
			b.Fatalf("%d settled", len(s.settled))
		}
	}
	b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "messages/s")
}
