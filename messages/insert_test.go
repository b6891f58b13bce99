package messages_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"intumwa/messages"
	"intumwa/messages/lookup"
	"intumwa/sms"
)

// TestInsert: every field is stored, ids grow in the given order, and each message waits in the outbox of its carrier
// and lane.
func TestInsert(t *testing.T) {
	d := newHotStore(t)
	bulk := &messages.Batch{ULID: ulid.Make(), CompanyID: 2, UserID: 3, Kind: "bulk", Sender: "SHOP", Recipients: 2,
		Segments: 3}
	template := &messages.Batch{ULID: ulid.Make(), CompanyID: 4, UserID: 5, Kind: "template", Sender: "BANK",
		Recipients: 1, Segments: 1}
	inBatch := func(b *messages.Batch) func(*messages.Message) {
		return func(m *messages.Message) {
			m.Batch, m.CompanyID, m.UserID, m.Sender = b, b.CompanyID, b.UserID, b.Sender
		}
	}
	list := []*messages.Message{
		d.compose(),
		d.compose(inBatch(bulk), segments(2)),
		d.compose(inBatch(bulk)),
		d.compose(inBatch(template), func(m *messages.Message) {
			m.Carrier, m.Encoding, m.Body = "onatel", sms.UCS2,
				"Muraho 🌍"
		}),
		d.compose(func(m *messages.Message) { m.Test = true }),
	}
	ids := d.insert(list...)
	if len(ids) != len(list) || !slices.IsSorted(ids) {
		t.Fatalf("ids %v", ids)
	}
	for i, m := range list {
		r, err := d.ByULID(t.Context(), sms.CompanyID(m.CompanyID), m.ULID)
		if err != nil {
			t.Fatal(err)
		}
		want := lookup.Record{ID: ids[i], ULID: m.ULID, CompanyID: m.CompanyID, Number: m.Number, Sender: m.Sender,
			Body:     m.Body,
			Encoding: m.Encoding, Segments: m.Segments, Test: m.Test, Carrier: m.Carrier, CreatedAt: r.CreatedAt}
		if m.Batch != nil {
			want.BatchULID = &m.Batch.ULID
			if r.BatchULID == nil || *r.BatchULID != m.Batch.ULID {
				t.Errorf("message %d: batch %v", i, r.BatchULID)
			}
			want.BatchULID = r.BatchULID
		}
		if r != want {
			t.Errorf("message %d:\n%+v, want\n%+v", i, r, want)
		}
		lane := 0
		if m.Batch != nil {
			lane = 1
		}
		if n := d.count(`SELECT count(*) FROM outbox WHERE message_id = $1 AND company_id = $2 AND carrier = $3 AND lane = $4
			AND attempts = 0
			AND claimed_by IS NULL AND due_at <= now() AND pushed_at IS NOT NULL AND expires_at - due_at = interval '1 hour'`,
			ids[i], m.CompanyID, m.Carrier, lane); n != 1 {
			t.Errorf("message %d is not in the outbox as it should be", i)
		}
	}
	for _, b := range []*messages.Batch{bulk, template} {
		r, err := d.BatchByULID(t.Context(), sms.CompanyID(b.CompanyID), b.ULID)
		if err != nil || r.Kind != b.Kind || r.Sender != b.Sender || r.UserID != b.UserID || r.Recipients != b.Recipients ||
			r.Segments != b.Segments ||
			r.Counts[sms.Pending] != b.Recipients {
			t.Errorf("batch %s: %+v, %v", b.Kind, r, err)
		}
	}
	if ids := d.insert(); len(ids) != 0 {
		t.Errorf("ids of nothing: %v", ids)
	}
}

// TestInsertKeepsOrder: also with more rows than a page has.
func TestInsertKeepsOrder(t *testing.T) {
	d := newHotStore(t)
	list := make([]*messages.Message, 3000)
	for i := range list {
		list[i] = d.compose()
	}
	rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] }) // ULIDs in random order
	ids := d.insert(list...)
	if !slices.IsSorted(ids) {
		t.Error("the ids do not grow")
	}
	for _, i := range []int{0, 1, 1499, 2999} {
		if r, err := d.OperatorsByULID(t.Context(), list[i].ULID); err != nil || r.ID != ids[i] {
			t.Errorf("message %d has id %d, %v; want %d", i, r.ID, err, ids[i])
		}
	}
}

// TestInsertTwice: a ULID is recorded once, and a refused transaction leaves nothing.
func TestInsertTwice(t *testing.T) {
	d := newTestStore(t)
	m := d.compose()
	d.insert(m)
	err := pgx.BeginFunc(t.Context(), d.pool, func(tx pgx.Tx) error {
		_, err := d.Insert(t.Context(), tx, []*messages.Message{d.compose(), m})
		return err
	})
	if err == nil {
		t.Error("the same ULID was recorded twice")
	}
	if n := d.count(`SELECT count(*) FROM messages`) + d.count(`SELECT count(*) FROM outbox`); n != 2 {
		t.Errorf("%d rows, want the first message's", n)
	}
}

func TestKnown(t *testing.T) {
	d := newTestStore(t)
	b := &messages.Batch{ULID: ulid.Make(), CompanyID: 1, UserID: 1, Kind: "bulk", Sender: "SHOP", Recipients: 1,
		Segments: 1}
	single, batched := d.compose(), d.compose(func(m *messages.Message) { m.Batch = b })
	ids := d.insert(single, batched)
	stranger := ulid.Make()
	known, err := d.Known(t.Context(), []ulid.ULID{single.ULID, b.ULID, batched.ULID, stranger})
	if want := map[ulid.ULID]int64{single.ULID: ids[0], batched.ULID: ids[1], b.ULID: 0}; err != nil ||
		!maps.Equal(known, want) {
		t.Errorf("%v, not %v; %v", known, want, err)
	}
}

// references returns the concatenation references of a pair, in the order of the messages.
func (d *testStore) references(sender string, number sms.Number) []int {
	d.Helper()
	return column[int](d, `SELECT coalesce(concat_ref, -1) FROM messages WHERE sender = $1 AND phone_number = $2
		AND segments > 1 ORDER BY id`, sender, string(number))
}

// distinct fails the test if a reference is repeated within 256.
func distinct(t *testing.T, refs []int) {
	t.Helper()
	last := map[int]int{}
	for i, ref := range refs {
		if ref < 0 || ref > 255 {
			t.Fatalf("message %d has reference %d", i, ref)
		}
		if before, seen := last[ref]; seen && i-before < 256 {
			t.Fatalf("messages %d and %d share reference %d", before, i, ref)
		}
		last[ref] = i
	}
}

// TestConcatReferences: two long messages of one sender to one handset share a reference only after 255 others, also
// within one transaction.
func TestConcatReferences(t *testing.T) {
	d := newHotStore(t)
	const number = "+25779000001"
	total := 0
	for _, n := range []int{1, 3, 255, 1, 256, 2, 300} {
		list := make([]*messages.Message, 0, 2*n)
		for range n {
			list = append(list, d.compose(to(number), segments(2)), d.compose(to(number))) // a short one has none
		}
		d.insert(list...)
		total += n
	}
	refs := d.references("DEMO", number)
	if len(refs) != total {
		t.Fatalf("%d references, want %d", len(refs), total)
	}
	distinct(t, refs)
	if n := d.count(`SELECT count(*) FROM messages WHERE segments = 1 AND concat_ref IS NOT NULL`); n != 0 {
		t.Errorf("%d short messages have a reference", n)
	}
	// Each pair has its own count.
	d.insert(d.compose(to("+25779000002"), segments(2)),
		d.compose(to(number), segments(2), func(m *messages.Message) { m.Sender = "SHOP" }))
	if n := d.count(`SELECT count(*) FROM concat_refs WHERE last = 1`); n != 2 {
		t.Errorf("%d pairs at their first reference, want 2", n)
	}
}

// TestConcatReferencesConcurrently: transactions with the same pairs in different orders neither deadlock nor share
// references.
func TestConcatReferencesConcurrently(t *testing.T) {
	d := newHotStore(t)
	const writers, rounds, pairs = 8, 6, 5
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for range rounds {
				var list []*messages.Message
				for i := range 2 * pairs {
					list = append(list, &messages.Message{ULID: ulid.Make(), CompanyID: 1, UserID: 1, Sender: "DEMO", Body: "long",
						Segments: 2,
						Number:   sms.Number(fmt.Sprintf("+2577900000%d", (i*(1+w%2)+w)%pairs)), Carrier: carrier})
				}
				if err := pgx.BeginFunc(t.Context(), d.pool, func(tx pgx.Tx) error {
					_, err := d.Insert(context.WithoutCancel(t.Context()), tx, list)
					return err
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for i := range pairs {
		refs := d.references("DEMO", sms.Number(fmt.Sprintf("+2577900000%d", i)))
		slices.Sort(refs)
		if n := len(refs); n != writers*rounds*2 || len(slices.Compact(refs)) != n {
			t.Errorf("pair %d: %d references, not all different", i, n)
		}
	}
}
