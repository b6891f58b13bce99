package messages

import (
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"intumwa/internal/testenv"
	"intumwa/sms"
)

// What operators look for without an index is found page by page, and each page
// looks through so much and no more.
func TestAnybodys(t *testing.T) {
	pool := testenv.Pool(t)
	store := New(pool)
	ctx := t.Context()
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := pool.Exec(ctx, sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	const insert = `INSERT INTO messages (id, ulid, company_id, user_id, phone_number, sender, body, encoding, segments, test, carrier, status)
		OVERRIDING SYSTEM VALUE VALUES ($1, $2, $3, 1, $4, 'ISOKO', 'x', 0, 1, false, 'lumitel', $5)`
	for i, m := range []struct {
		id, company int64
		number      string
		status      int
	}{{1, 7, "+25761000001", 1}, {ByNumberScanned, 7, "+25761000001", 1}, {ByNumberScanned + 1, 8, "+25761000001", 2}, {ByNumberScanned + 2, 7, "+25761000002", 0}, {ByNumberScanned + 3, 7, "+25761000001", 2}} {
		exec(insert, m.id, uuid(ulid.ULID{byte(i + 1)}), m.company, m.number, m.status)
	}
	var found []int64
	pages := 0
	for before := int64(0); ; pages++ {
		page, back, next, err := store.AnybodysByNumber(ctx, "+25761000001", before, 2)
		if err != nil || len(page) > 2 || time.Since(back) > time.Hour {
			t.Fatalf("%d messages back to %v, %v", len(page), back, err)
		}
		for _, m := range page {
			found = append(found, m.ID)
		}
		if before = next; next == 0 {
			break
		}
	}
	if len(found) != 4 || found[0] != ByNumberScanned+3 || found[3] != 1 || pages < 1 {
		t.Errorf("found %v after %d pages", found, pages)
	}
	if page, _, next, err := store.AnybodysByNumber(ctx, "+25761000001", 1, 2); err != nil || len(page) != 0 || next != 0 {
		t.Errorf("below the first: %v, %d, %v", page, next, err)
	}
	if m, err := store.AnybodysByID(ctx, ByNumberScanned+1); err != nil || m.CompanyID != 8 {
		t.Errorf("%+v, %v", m, err)
	}
	if _, err := store.AnybodysByID(ctx, 5); err != ErrNotFound { //nolint:errorlint // exactly this one is promised
		t.Error(err)
	}
	if c, err := store.Count(ctx, 7, time.Now().Add(-time.Hour)); err != nil || c != (Counts{Pending: 1, Sent: 2, Failed: 1}) {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := store.Count(ctx, sms.CompanyID(0), time.Time{}); err != nil || c != (Counts{}) {
		t.Errorf("nobody's: %+v, %v", c, err)
	}
}
