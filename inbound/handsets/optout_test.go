package handsets_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/inbound/handsets"
	"intumwa/sms"
)

// TestOptOuts: an entry applies to its number, sender and company, one without a sender to all of the company's. Two
// requests for the same entry make one.
func TestOptOuts(t *testing.T) {
	d := newTestStore(t)
	d.exec(`INSERT INTO users (email, name, password_hash) VALUES ('a@example.com', 'a', '')`)
	d.exec(`INSERT INTO companies (owner_id, name) VALUES (1, 'a')`)
	const one, two = sms.Number("+25761000001"), sms.Number("+25761000002")
	entries := []handsets.OptOut{{Number: one, Sender: "ACME", Source: handsets.ByHandset},
		{Number: two, Source: handsets.ByAPI}, {Number: one, Sender: "ACME", Source: handsets.ByAPI}}
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
	barred := func(pairs ...handsets.Pair) (got map[int]bool) {
		t.Helper()
		d.tx(func(ctx context.Context, tx pgx.Tx) (err error) {
			got, err = handsets.Barred(ctx, tx, pairs)
			return err
		})
		return got
	}
	got := barred(handsets.Pair{1, one, "ACME"}, handsets.Pair{1, one, "Acme"}, handsets.Pair{2, one, "ACME"},
		handsets.Pair{1, two, "ACME"}, handsets.Pair{1, two, "Other"},
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
	small := "acme" // names are case-insensitive
	for _, f := range []handsets.OptOutFilter{{Sender: &sender}, {Number: one}, {Number: one, Sender: &sender},
		{Sender: &small}, {Number: one, Sender: &small}} {
		if page, _, err := d.OptOuts(t.Context(), 1, f, 0, 10); err != nil || len(page) != 1 || page[0].Number != one ||
			page[0].Sender != "ACME" {
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

// TestOptOutsAreCounted: a company's list has a limit for all requests together, with room again after removals. A list
// with room is not counted at each request, and handsets' own entries are not limited.
func TestOptOutsAreCounted(t *testing.T) {
	d := newTestStore(t)
	d.exec(`INSERT INTO users (email, name, password_hash) VALUES ('a@example.com', 'a', '')`)
	d.exec(`INSERT INTO companies (owner_id, name) VALUES (1, 'a')`)
	const most = 30
	entries := func(from, n int) (list []handsets.OptOut) {
		for i := range n {
			list = append(list, handsets.OptOut{Number: sms.Number(fmt.Sprintf("+257610%05d", from+i)), Source: handsets.ByAPI})
		}
		return list
	}
	one, two := d.Store, handsets.New(d.pool)
	one.SetMaxOptOuts(most)
	two.SetMaxOptOuts(most)
	enter := func(store *handsets.Store, from, n int, want error) {
		t.Helper()
		added, err := store.OptOutWithin(t.Context(), 1, entries(from, n))
		if !errors.Is(err, want) || want == nil && added != int64(n) {
			t.Errorf("%d from %d: %d, %v", n, from, added, err)
		}
	}
	for from := 0; from < most; from += 10 {
		enter(one, from, 10, nil)
	}
	enter(one, most, 1, handsets.ErrListFull)
	enter(two, most, 1, handsets.ErrListFull)
	if _, err := one.OptOut(t.Context(), 1, entries(most, 1)); err != nil {
		t.Error(err)
	}
	d.exec(`DELETE FROM opt_outs WHERE phone_number > '+25761000020'`)
	enter(two, 21, 1, nil)
	d.tx(func(ctx context.Context, tx pgx.Tx) error {
		_, err := two.In(tx).OptOutWithin(ctx, 1, entries(22, 1))
		return err
	})
	reads := func() (n int64) {
		t.Helper()
		tracer := &counts{}
		config := d.pool.Config()
		config.ConnConfig.Tracer = tracer
		pool, err := pgxpool.NewWithConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		store := handsets.New(pool)
		for i := range 5 {
			enter(store, 100+i, 1, nil)
		}
		return tracer.n.Load()
	}
	if n := reads(); n != 1 {
		t.Errorf("the list is counted %d times for five requests", n)
	}
}

// counts counts the statements that count a list.
type counts struct{ n atomic.Int64 }

func (c *counts) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if strings.HasPrefix(data.SQL, "SELECT count(*)") {
		c.n.Add(1)
	}
	return ctx
}

func (c *counts) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
