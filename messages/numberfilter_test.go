package messages_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"intumwa/messages/lookup"
	"intumwa/sms"
)

// filter makes all possible filters, by several processes at once, and returns how many there are.
func (d *testStore) filter() int {
	d.Helper()
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for {
				made, err := d.FilterNumbers(d.Context())
				if err != nil {
					d.Error(err)
				}
				if !made {
					return
				}
			}
		})
	}
	wait.Wait()
	return d.count(`SELECT count(*) FROM number_filters`)
}

// find returns the ids of a company's messages to a number, and how many pages it read.
func (d *testStore) find(company sms.CompanyID, number string) (ids []int64, pages int) {
	d.Helper()
	for before := int64(0); ; {
		page, next, err := d.List(d.Context(), company, lookup.Filter{Number: sms.Number(number)}, before, 3)
		if err != nil {
			d.Fatal(err)
		}
		for i := range page {
			ids = append(ids, page[i].ID)
		}
		if pages++; next == 0 {
			return ids, pages
		}
		if before != 0 && next >= before {
			d.Fatalf("after %d it goes on from %d", before, next)
		}
		before = next
	}
}

// TestNumberFilters: a search by number finds all messages, with filters and without; with them few pages are read for
// old or absent ones. Companies' keys do not mix.
func TestNumberFilters(t *testing.T) {
	d := newTestStore(t)
	const all = 95_000 // chunks 0 to 8 in full, and part of the tenth
	d.exec(`INSERT INTO messages (ulid, company_id, user_id, phone_number, sender, body, encoding, segments, test, carrier,
		status, created_at)
		SELECT gen_random_uuid(), CASE WHEN i % 10 = 0 THEN 2 ELSE 1 END, 1, '+257' || 61000000 + i % 40000, 'D', 'x', 0, 1,
			false, 'leo', 1, now() - interval '2 hours'
		FROM generate_series(1, $1::int) i`, all)
	d.exec(`UPDATE messages SET phone_number = '+25779000001' WHERE id IN (3, 12345, 94001)`)
	d.exec(`UPDATE messages SET phone_number = '+25779000002' WHERE id = 20010`) // of company 2
	d.exec(`ANALYZE messages`)
	type finding struct {
		company sms.CompanyID
		number  string
		ids     string
		pages   int // with filters
	}
	tries := []finding{
		{1, "+25779000001", "[94001 12345 3]", 6}, {2, "+25779000001", "[]", 3}, {2, "+25779000002", "[20010]", 4},
		{1, "+25779000002", "[]", 5},
		{1, "+25779000003", "[]", 5}, {1, "+25761000011", "[80011 40011 11]", 8}, {2, "+25761000010", "[80010 40010 10]", 6},
		{3, "+25761000010", "[]", 2},
	}
	check := func(filtered bool) {
		t.Helper()
		for _, try := range tries {
			ids, pages := d.find(try.company, try.number)
			if ids == nil {
				ids = []int64{}
			}
			if fmt.Sprint(ids) != try.ids || filtered && pages > try.pages {
				t.Errorf("company %d, %s: %v in %d pages", try.company, try.number, ids, pages)
			}
		}
	}
	check(false)
	if n := d.filter(); n != 9 {
		t.Errorf("%d filters", n)
	}
	check(true)
	for number, want := range map[sms.Number]string{"+25779000001": "[94001 12345 3]", "+25779000002": "[20010]",
		"+25779000009": "[]"} {
		found, pages := []int64{}, 0
		for before := int64(0); ; pages++ {
			page, _, next, err := d.OperatorsByNumber(t.Context(), number, before, 3)
			if err != nil {
				t.Fatal(err)
			}
			for i := range page {
				found = append(found, page[i].ID)
			}
			if before = next; next == 0 {
				break
			}
		}
		if fmt.Sprint(found) != want || pages > 2 {
			t.Errorf("allCompanies's to %s: %v after %d pages", number, found, pages)
		}
	}
	d.exec(`DELETE FROM number_filters WHERE chunk IN (0, 1)`) // as in a database with messages from before the filters
	check(false)
}

// TestNumberFilterWaits: a chunk gets no filter while a message of it may still be recorded.
func TestNumberFilterWaits(t *testing.T) {
	d := newTestStore(t)
	const insert = `INSERT INTO messages (id, ulid, company_id, user_id, phone_number, sender, body, encoding, segments,
		test, carrier, created_at)
		OVERRIDING SYSTEM VALUE VALUES ($1, gen_random_uuid(), 1, 1, $2, 'D', 'x', 0, 1, false, 'leo', $3)`
	d.exec(insert, 1, "+25761000001", time.Now().Add(-time.Hour))
	if n := d.filter(); n != 0 {
		t.Fatal("a filter of a chunk that is not passed")
	}
	late, err := d.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = late.Rollback(t.Context()) }()
	if _, err := late.Exec(t.Context(), insert, 2, "+25761000002", time.Now()); err != nil {
		t.Fatal(err)
	}
	d.exec(insert, 10_000, "+25761000003", time.Now())
	if n := d.filter(); n != 0 {
		t.Fatal("a filter of a chunk that was passed just now")
	}
	d.exec(`UPDATE messages SET created_at = now() - interval '1 minute' WHERE id = 10000`) // the transaction above hangs
	if n := d.filter(); n != 0 {
		t.Fatal("a filter of a chunk into which a transaction still writes")
	}
	if err := late.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := d.filter(); n != 1 {
		t.Fatalf("%d filters", n)
	}
	if ids, _ := d.find(1, "+25761000002"); len(ids) != 1 {
		t.Errorf("found %v", ids)
	}
}
