package messages_test

import (
	"testing"
	"time"

	"intumwa/messages"
	"intumwa/messages/lookup"
	"intumwa/sms"
)

// TestOperatorLookups: look-ups without an index return pages, and each page reads a bounded number of messages.
func TestOperatorLookups(t *testing.T) {
	d := newTestStore(t)
	for id, m := range map[int64]struct {
		company int64
		number  string
		status  int
	}{1: {7, "+25761000001", 1}, lookup.ByNumberScanned: {7, "+25761000001", 1}, lookup.ByNumberScanned +
		1: {8, "+25761000001", 2},
		lookup.ByNumberScanned + 2: {7, "+25761000002", 0}, lookup.ByNumberScanned + 3: {7, "+25761000001", 2}} {
		d.exec(`INSERT INTO messages (id, ulid, company_id, user_id, phone_number, sender, body, encoding, segments, test,
			carrier, status)
			OVERRIDING SYSTEM VALUE VALUES ($1, gen_random_uuid(), $2, 1, $3, 'ISOKO', 'x', 0, 1, false, 'lumitel', $4)`, id,
			m.company, m.number, m.status)
	}
	var found []int64
	pages := 0
	for before := int64(0); ; pages++ {
		page, back, next, err := d.OperatorsByNumber(t.Context(), "+25761000001", before, 2)
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
	if len(found) != 4 || found[0] != lookup.ByNumberScanned+3 || found[3] != 1 || pages < 1 {
		t.Errorf("found %v after %d pages", found, pages)
	}
	if page, _, next, err := d.OperatorsByNumber(t.Context(), "+25761000001", 1, 2); err != nil || len(page) != 0 ||
		next != 0 {
		t.Errorf("below the first: %v, %d, %v", page, next, err)
	}
	if m, err := d.OperatorsByID(t.Context(), lookup.ByNumberScanned+1); err != nil || m.CompanyID != 8 {
		t.Errorf("%+v, %v", m, err)
	}
	if _,
		err := d.OperatorsByID(
		t.Context(), 5); err != messages.ErrNotFound { //nolint:errorlint // exactly this one is promised
		t.Error(err)
	}
	if c, err := d.Count(t.Context(), 7, time.Now().Add(-time.Hour)); err != nil ||
		c != (lookup.Counts{Pending: 1, Sent: 2, Failed: 1}) {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := d.Count(t.Context(), sms.CompanyID(0), time.Time{}); err != nil || c != (lookup.Counts{}) {
		t.Errorf("an unknown company's: %+v, %v", c, err)
	}
}
