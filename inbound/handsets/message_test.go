package handsets_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"intumwa/inbound/handsets"
)

// TestMessages: a company reads its own messages, the latest first, page by page, whatever their age.
func TestMessages(t *testing.T) {
	d := newTestStore(t)
	start := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	var ids []int64
	for i := range 10 {
		text := "m"
		from := "+25761000001"
		if i%5 == 0 {
			from = "+25761000002"
		}
		id, err := d.Insert(t.Context(), handsets.Message{CompanyID: int64(1 + i%2),
			At: start.Add(time.Duration(i/2) * time.Hour), Carrier: "lumitel", From: from, To: "8080",
			Body: &text, Parts: 1})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	list := func(f handsets.Filter, limit int) (seen []int64) {
		t.Helper()
		for before := int64(0); ; {
			page, next, err := d.List(t.Context(), 1, f, before, limit)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range page {
				seen = append(seen, m.ID)
			}
			if before = next; next == 0 {
				return seen
			}
		}
	}
	same := func(name string, got []int64, want ...int) {
		t.Helper()
		ok := len(got) == len(want)
		for i := range min(len(got), len(want)) {
			ok = ok && got[i] == ids[want[i]]
		}
		if !ok {
			t.Errorf("%s: %v, want %v of %v", name, got, want, ids)
		}
	}
	for limit := 1; limit < 7; limit++ {
		same("all", list(handsets.Filter{}, limit), 8, 6, 4, 2, 0)
		same("a number", list(handsets.Filter{Senders: []string{"+25761000002"}}, limit), 0)
		same("a time", list(handsets.Filter{From: start.Add(time.Hour), To: start.Add(3 * time.Hour)}, limit), 4, 2)
		same("both", list(handsets.Filter{Senders: []string{"+25761000001"}, From: start.Add(time.Hour),
			To: start.Add(3 * time.Hour)}, limit), 4, 2)
	}
	if m, err := d.Message(t.Context(), 1, ids[2]); err != nil || m.ID != ids[2] || m.From != "+25761000001" ||
		*m.Body != "m" || !m.At.Equal(start.Add(time.Hour)) {
		t.Errorf("%+v, %v", m, err)
	}
	for _, id := range []int64{ids[1], 1 << 60} {
		if _, err := d.Message(t.Context(), 1, id); !errors.Is(err, handsets.ErrNotFound) {
			t.Errorf("another's, or an unknown one's: %v", err)
		}
		if page, next, err := d.List(t.Context(), 1, handsets.Filter{}, id, 10); !errors.Is(err, handsets.ErrNotFound) {
			t.Errorf("behind another's, or an unknown one's: %v, %d, %v", page, next, err)
		}
	}
	text := "x"
	foreign, err := d.Insert(t.Context(), handsets.Message{CompanyID: 3, At: start, Carrier: "lumitel",
		From: "0032479000001", To: "8080", Body: &text, Parts: 1})
	if err != nil {
		t.Fatal(err)
	}
	if page, _, err := d.List(t.Context(), 3, handsets.Filter{Senders: handsets.Foreign("+32 479 00 00 01")}, 0,
		10); err != nil || len(page) != 1 || page[0].ID != foreign {
		t.Errorf("a number of another country: %v, %v", page, err)
	}
	if forms := handsets.Foreign("12"); forms != nil {
		t.Errorf("12 is the number %v", forms)
	}
	if page, _, err := d.List(t.Context(), 0, handsets.Filter{}, 0, 10); err != nil || len(page) != 0 {
		t.Errorf("an unknown one's: %v, %v", page, err)
	}
}

// TestIndexes: with many rows a look-up uses an index that begins with the company, or with the handset, and reads one
// page.
func TestIndexes(t *testing.T) {
	d := newTestStore(t)
	d.exec(`INSERT INTO inbound_messages (id, company_id, received_at, carrier, source, destination, body, parts)
		SELECT n, n % 50, now() - make_interval(secs => 100000 - n), 'l', '+25761' || n, '8080', 'x', 1
			FROM generate_series(1, 100000) n`)
	d.exec(`INSERT INTO inbound (received_at, carrier, link, source, destination, data_coding, esm_class, octets, outcome)
		SELECT now() - make_interval(secs => 100000 - n), 'l', 'l1', '25761' || n % 5000, '8080', 0, 0, 'x', CASE
			WHEN n < 99000 THEN 'routed' END FROM generate_series(1, 100000) n`)
	d.exec(`INSERT INTO opt_outs (company_id, phone_number, sender, source) SELECT n % 50, '+25761' || n, 'ACME', 'api'
		FROM generate_series(1, 100000) n`)
	d.exec(`VACUUM (ANALYZE) inbound_messages, inbound, opt_outs`)
	for _, c := range []struct{ index, statement string }{
		{"inbound_messages_company", `SELECT id FROM inbound_messages WHERE company_id = 7 ORDER BY received_at DESC, id DESC
			LIMIT 26`},
		{"inbound_messages_company", `SELECT id FROM inbound_messages WHERE company_id = 7
			AND received_at >= now() - interval '1 day' AND received_at < now() ORDER BY received_at DESC, id DESC LIMIT 26`},
		{"inbound_messages_source", `SELECT id FROM inbound_messages WHERE company_id = 7
			AND (received_at, id) < (now(), 9000) AND source = '+257617007' ORDER BY received_at DESC, id DESC LIMIT 26`},
		{"inbound_messages_pkey", `SELECT id FROM inbound_messages WHERE id = 7 AND company_id = 7`},
		{"inbound_new", `SELECT id FROM inbound WHERE outcome IS NULL ORDER BY id LIMIT 100`},
		{"inbound_source", `SELECT FROM inbound WHERE source = '257614000'
			AND received_at BETWEEN now() - interval '2 minutes' AND now()`},
		{"opt_outs_company_id_phone_number_sender_key", `SELECT FROM opt_outs WHERE company_id = 7
			AND phone_number = '+2576177' AND sender IN ('', 'ACME') LIMIT 1`},
		{"opt_outs_pkey",
			`SELECT id FROM opt_outs WHERE company_id = 7 AND id < 90000 AND id >= 0 ORDER BY id DESC LIMIT 26`},
	} {
		if plan := d.plan(c.statement); !strings.Contains(plan, c.index) || strings.Contains(plan, "Sort") ||
			strings.Contains(plan, "Seq Scan") {
			t.Errorf("not by %s:\n%s\n%s", c.index, c.statement, plan)
		}
	}
	_, forms := handsets.Named("+25761000007")
	for _, table := range []string{"inbound", "inbound_messages"} {
		if plan := d.plan(`SELECT id FROM `+table+` WHERE `+handsets.OfNumber+` ORDER BY id`, forms); strings.Contains(
			plan, "Seq Scan") {
			t.Errorf("a look-up by number reads the whole table %s:\n%s", table, plan)
		}
	}
	if plan := d.plan(handsets.OptOutsOfNumber, "+25761000007"); strings.Contains(plan, "Seq Scan") {
		t.Errorf("a number's opt-outs read the whole table:\n%s", plan)
	}
}
