package operations

import (
	"errors"
	"testing"
	"time"

	"intumwa/contacts"
	"intumwa/internal/testenv"
)

// TestDeleteLargeGroup: the members of a group that a route names from now on stay, but for those of one step.
func TestDeleteLargeGroup(t *testing.T) {
	t.Parallel()
	pool := testenv.Pool(t)
	group, err := contacts.New(pool).CreateGroup(t.Context(), 1, "Parents")
	if err != nil {
		t.Fatal(err)
	}
	testenv.Exec(t, pool, `INSERT INTO contact_members SELECT $1, n FROM generate_series(1, $2::bigint) n`, group.ID,
		largeGroup+10)
	testenv.Exec(t, pool, `UPDATE contact_groups SET members = $1`, largeGroup+10)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), `SELECT FROM contact_groups FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	deleted := make(chan error, 1)
	go func() {
		_, err := By("test", nil, Deps{Pool: pool}).DeleteGroup(t.Context(), 1, group.ID)
		deleted <- err
	}()
	for end := time.Now().Add(time.Minute); !testenv.Blocked(t, pool); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the first step does not wait")
		}
	}
	if _, err := tx.Exec(t.Context(), `INSERT INTO inbound_routes (address, keyword, company_id, join_group)
		VALUES ('8080', 'JOIN', 1, $1)`, group.ID); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	err = <-deleted
	if used, is := errors.AsType[*contacts.GroupUsed](err); !is || used.Keyword != "JOIN" {
		t.Error(err)
	}
	if is, err := contacts.New(pool).Group(t.Context(), 1, group.ID); err != nil || is.Members != 10 {
		t.Errorf("%d members, %v", is.Members, err)
	}
}
