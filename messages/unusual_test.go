package messages_test

import (
	"slices"
	"testing"

	"intumwa/messages/statistics"
)

// TestUnusual: an hour above the busiest day of five weeks, or half of it to one block, is unusual; a small one is not.
func TestUnusual(t *testing.T) {
	d := newHotStore(t)
	send := func(company, n int, number string) {
		d.exec(`INSERT INTO messages (ulid, company_id, user_id, phone_number, sender, body, encoding, segments, test,
			carrier)
			SELECT gen_random_uuid(), $1, 1, `+number+`, 'DEMO', 'x', 0, 1, false, 'lumitel' FROM generate_series(1, $2) n`,
			company, n)
	}
	day := func(company, ago, n int) {
		d.exec(`INSERT INTO tallies (company_id, day, chunk, carrier, sender, kind, channel, cost_center, status, reason,
			messages, segments)
			SELECT $1, ((now() AT TIME ZONE 'UTC') + interval '2 hours')::date - $2::int, -1, 'lumitel', 'DEMO', 0, 0, '',
				status, '', n, n
			FROM (VALUES (1, $3::int - 10), (2, 10)) v(status, n)`, company, ago, n)
	}
	const spread, block = `'+25761' || lpad((n * 7919 % 1000000)::text, 6, '0')`,
		`CASE WHEN n % 2 = 0 THEN '+2577912' || lpad(n::text, 4, '0')
			ELSE '+25761' || lpad((n * 7919 % 1000000)::text, 6, '0') END`
	send(9, 400, spread)
	d.exec(`UPDATE messages SET created_at = now() - interval '3 hours'`)
	send(0, 900, spread) // the gateway's own
	send(1, 500, spread) // as much as its busiest day
	day(1, 5, 500)
	day(1, 40, 9000) // too long ago
	send(2, 501, spread)
	day(2, 5, 500)
	day(2, 0, 9000) // today's are its own
	send(3, 300, block)
	day(3, 35, 1000)
	send(4, 99, block)  // too few
	send(5, 100, block) // a new company

	list, err := d.Unusual(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	want := []statistics.Unusual{
		{Company: 2, Messages: 501, Busiest: 500, Volume: true},
		{Company: 3, Messages: 300, Busiest: 1000, Block: "+2577912", Share: .5, OneBlock: true},
		{Company: 5, Messages: 100, Volume: true, Block: "+2577912", Share: .5, OneBlock: true},
	}
	for i := range list {
		if !list[i].OneBlock { // either block
			list[i].Block, list[i].Share = "", 0
		}
	}
	if !slices.Equal(list, want) {
		t.Errorf("unusual\n%+v, want\n%+v", list, want)
	}
	if list, err := newTestStore(t).Unusual(t.Context(), 1); err != nil || len(list) != 0 {
		t.Errorf("of no company: %v, %v", list, err)
	}
}
