package handsets_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"intumwa/handsets"
	"intumwa/sms"
)

// TestOptOuts: an entry holds for its number, sender and company, one without a sender
// for all of the company's; each is there once, whoever enters it at the same time.
func TestOptOuts(t *testing.T) {
	d := newTestStore(t)
	d.exec(`INSERT INTO users (email, name, password_hash) VALUES ('a@example.com', 'a', '')`)
	d.exec(`INSERT INTO companies (owner_id, name) VALUES (1, 'a')`)
	const one, two = sms.Number("+25761000001"), sms.Number("+25761000002")
	entries := []handsets.OptOut{{Number: one, Sender: "ACME", Source: handsets.ByHandset}, {Number: two, Source: handsets.ByAPI}, {Number: one, Sender: "ACME", Source: handsets.ByAPI}}
	var all sync.WaitGroup
	added := make(chan int64, 8)
	for range 8 {
		all.Go(func() {
			n, err := d.OptOutWithin(t.Context(), 1, entries)
			if err != nil {
				t.Error(err)
			}
			added <- n
		})
	}
	all.Wait()
	close(added)
	var sum int64
	for n := range added {
		sum += n
	}
	if sum != 2 {
		t.Errorf("%d entries were added, want 2", sum)
	}
	var flag bool
	if err := d.pool.QueryRow(t.Context(), `SELECT opt_outs FROM companies WHERE id = 1`).Scan(&flag); err != nil || !flag {
		t.Errorf("the company has a list: %v, %v", flag, err)
	}
	barred := func(pairs ...handsets.Pair) (got map[int]bool) {
		t.Helper()
		d.tx(func(ctx context.Context, tx pgx.Tx) (err error) {
			got, err = handsets.Barred(ctx, tx, pairs)
			return err
		})
		return got
	}
	got := barred(handsets.Pair{1, one, "ACME"}, handsets.Pair{1, one, "Acme"}, handsets.Pair{2, one, "ACME"}, handsets.Pair{1, two, "ACME"}, handsets.Pair{1, two, "Other"},
		handsets.Pair{1, "+25761000003", "ACME"}, handsets.Pair{1, one, "ACME"})
	if fmt.Sprint(got) != "map[0:true 1:true 3:true 4:true 6:true]" {
		t.Errorf("barred: %v", got)
	}
	sender := "ACME"
	page, next, err := d.OptOuts(t.Context(), 1, handsets.OptOutFilter{}, 0, 1)
	if err != nil || len(page) != 1 || next != page[0].ID {
		t.Fatalf("%+v, %d, %v", page, next, err)
	}
	rest, next, err := d.OptOuts(t.Context(), 1, handsets.OptOutFilter{}, next, 1)
	if err != nil || len(rest) != 1 || next != 0 || rest[0].ID >= page[0].ID || rest[0].CreatedAt.IsZero() {
		t.Errorf("%+v, %d, %v", rest, next, err)
	}
	small := "acme" // a name is the same in small letters
	for _, f := range []handsets.OptOutFilter{{Sender: &sender}, {Number: one}, {Number: one, Sender: &sender}, {Sender: &small}, {Number: one, Sender: &small}} {
		if page, _, err := d.OptOuts(t.Context(), 1, f, 0, 10); err != nil || len(page) != 1 || page[0].Number != one || page[0].Sender != "ACME" {
			t.Errorf("%+v: %+v, %v", f, page, err)
		}
	}
	if page, _, err := d.OptOuts(t.Context(), 2, handsets.OptOutFilter{}, 0, 10); err != nil || len(page) != 0 {
		t.Errorf("another company's: %+v, %v", page, err)
	}
	other := "Other"
	for _, c := range []struct {
		number sms.Number
		sender *string
		want   int64
	}{{one, &other, 0}, {one, &sender, 1}, {one, &sender, 0}, {two, nil, 1}} {
		if n, err := d.OptIn(t.Context(), 1, c.number, c.sender); err != nil || n != c.want {
			t.Errorf("%+v: %d, %v", c, n, err)
		}
	}
	if got := barred(handsets.Pair{1, one, "ACME"}, handsets.Pair{1, two, "ACME"}); len(got) != 0 {
		t.Errorf("barred after all: %v", got)
	}
}
