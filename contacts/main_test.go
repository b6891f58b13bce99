package contacts_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/contacts"
	"intumwa/internal/testenv"
	"intumwa/sms"
)

// testStore is a store on its own database.
type testStore struct {
	testing.TB
	pool *pgxpool.Pool
	*contacts.Store
}

func newTestStore(t testing.TB) *testStore {
	pool := testenv.Pool(t)
	return &testStore{TB: t, pool: pool, Store: contacts.New(pool)}
}

func (d *testStore) must(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

func (d *testStore) tx(do func(ctx context.Context, tx pgx.Tx) error) {
	d.Helper()
	ctx := d.Context()
	d.must(pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error { return do(ctx, tx) }))
}

func (d *testStore) group(company int64, name string) int64 {
	d.Helper()
	g, err := d.CreateGroup(d.Context(), company, name)
	d.must(err)
	return g.ID
}

// put writes checked entries.
func (d *testStore) put(company int64, entries ...contacts.Entry) contacts.Written {
	d.Helper()
	for i := range entries {
		if wrong := entries[i].Check(); len(wrong) > 0 {
			d.Fatal(wrong[0], wrong[0].Args)
		}
	}
	done, err := d.Put(d.Context(), company, entries)
	d.must(err)
	return done
}

func (d *testStore) byNumber(company int64, number sms.Number) contacts.Contact {
	d.Helper()
	c, err := d.ByNumber(d.Context(), company, number)
	d.must(err)
	return c
}

// behind runs do after first in an open transaction, and commits that one as soon as do waits for it.
func (d *testStore) behind(first func(ctx context.Context, tx pgx.Tx) error, do func() error) {
	d.Helper()
	done := make(chan error, 1)
	d.tx(func(ctx context.Context, tx pgx.Tx) error {
		if err := first(ctx, tx); err != nil {
			return err
		}
		go func() { done <- do() }()
		for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			if testenv.Blocked(d, d.pool) {
				return nil
			}
			if time.Now().After(end) {
				return errors.New("nobody waits")
			}
		}
	})
	d.must(<-done)
}

// exact fails unless all counts are those of the rows.
func (d *testStore) exact() {
	d.Helper()
	var wrong int
	d.must(d.pool.QueryRow(d.Context(), `SELECT
		(SELECT count(*) FROM contact_groups g WHERE members <> (SELECT count(*) FROM contact_members WHERE group_id = g.id))
		+ (SELECT count(*) FROM contact_books b WHERE contacts <> (SELECT count(*) FROM contacts c
			WHERE c.company_id = b.company_id))
		+ (SELECT count(*) FROM contacts c WHERE NOT EXISTS (SELECT FROM contact_books b WHERE b.company_id = c.company_id))
		+ (SELECT count(*) FROM contact_members WHERE contact_id NOT IN (SELECT id FROM contacts)
			OR group_id NOT IN (SELECT id FROM contact_groups))`).Scan(&wrong))
	if wrong > 0 {
		d.Errorf("%d counts or memberships are wrong", wrong)
	}
}
