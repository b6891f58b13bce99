package messages_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/messages"
	"intumwa/messages/receipts"
	"intumwa/sms"
)

// BenchmarkInsert is one group commit of so many messages.
func BenchmarkInsert(b *testing.B) {
	for _, n := range []int{1, 64, 500, 4000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			d := newHotStore(b)
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
// responses and end of their attempts, receipts.
func BenchmarkSettle(b *testing.B) {
	const n = 100
	d := newHotStore(b)
	ctx := context.WithoutCancel(b.Context())
	round := 0
	for b.Loop() {
		b.StopTimer()
		ids := d.pending(n)
		b.StartTimer()
		round++
		claimed := d.claim(1, ids...)
		if len(claimed) != n {
			b.Fatalf("%d claimed", len(claimed))
		}
		segments, reports := make([]receipts.Segment, n), make([]receipts.Receipt, n)
		for i, id := range ids {
			key := fmt.Sprintf("%d-%d", round, i)
			number := fmt.Sprintf("25761%06d", d.numbered-n+i+1) // as testStore.compose counts them
			segments[i], reports[i] = accepted(id, key, at(time.Now())), receipt(key, "DELIVRD")
			segments[i].Number, reports[i].Number = sms.Number("+"+number), number
		}
		d.tx(func(_ context.Context, tx pgx.Tx) error {
			if _, err := d.record(ctx, tx, segments); err != nil {
				return err
			}
			return d.end(ctx, tx, messages.Ends{Dispatcher: 1, Carried: claimsOf(claimed)})
		})
		if s := d.settle(nil, reports...); len(s.settled) != n {
			b.Fatalf("%d settled", len(s.settled))
		}
	}
	b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "messages/s")
}

// BenchmarkWAL is how many octets of the write-ahead log a message takes from its request to its receipt, beside a million
// that are there, with indexes that would find messages by number: once right after a checkpoint, when each page that is
// touched is written whole, and once more.
func BenchmarkWAL(b *testing.B) {
	const before, rounds, group = 1_000_000, 1000, 20
	number := func() sms.Number { return sms.Number(fmt.Sprintf("+257%08d", 61_000_000+rand.IntN(18_000_000))) }
	for name, index := range map[string]string{
		"none":  `SELECT`,
		"tree":  `CREATE INDEX ON messages (company_id, phone_number, id)`,
		"short": `CREATE INDEX ON messages (company_id, hashtext(phone_number))`,
		"hash":  `CREATE INDEX ON messages USING hash (phone_number)`,
	} {
		b.Run(name, func(b *testing.B) {
			d := newHotStore(b)
			ctx := context.WithoutCancel(b.Context())
			for _, table := range []string{"messages", "segments", "outbox"} { // a vacuum in between would be counted too
				d.exec(`ALTER TABLE ` + table + ` SET (autovacuum_enabled = off)`)
			}
			const patiently = `SET LOCAL statement_timeout = 0; `
			d.exec(patiently + `INSERT INTO messages (ulid, company_id, user_id, phone_number, sender, body, encoding, segments, test, carrier, status, sent_at)
				SELECT gen_random_uuid(), 1, 1, '+257' || 61000000 + floor(random() * 18000000)::int, 'ISOKO', repeat('Ibicuruzwa vyawe birageze. ', 4), 0, 1,
					false, 'lumitel', 1, now() FROM generate_series(1, ` + fmt.Sprint(before) + `)`)
			d.exec(patiently + index)
			d.exec(patiently + `CHECKPOINT`)
			for b.Loop() {
				for _, state := range []string{"cold", "warm"} {
					begin := d.count(`SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint`)
					for range rounds {
						var numbers []sms.Number
						ids := d.pending(group, func(m *messages.Message) {
							m.Number, m.Body = number(), strings.Repeat("Ibicuruzwa vyawe birageze. ", 4)
							numbers = append(numbers, m.Number)
						})
						claimed := d.claim(1, ids...)
						segments, reports := make([]receipts.Segment, group), make([]receipts.Receipt, group)
						for i, id := range ids {
							key := fmt.Sprint(id)
							segments[i], reports[i] = accepted(id, key), receipt(key, "DELIVRD")
							segments[i].Number, reports[i].Number = numbers[i], ""
						}
						d.tx(func(_ context.Context, tx pgx.Tx) error {
							if _, err := d.record(ctx, tx, segments); err != nil {
								return err
							}
							return d.end(ctx, tx, messages.Ends{Dispatcher: 1, Carried: claimsOf(claimed)})
						})
						if s := d.settle(nil, reports...); len(s.settled) != group {
							b.Fatalf("%d settled", len(s.settled))
						}
					}
					end := d.count(`SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint`)
					b.ReportMetric(float64(end-begin)/rounds/group, state+"-octets/message")
				}
			}
		})
	}
}
