package contacts

import (
	"context"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
)

// AddMembers makes contacts of a company members of one of its groups, and returns how many were none. The error is
// [ErrNoGroup].
func (s *Store) AddMembers(ctx context.Context, company, group int64, contacts []int64) (added int, err error) {
	return s.change(ctx, company, group, contacts, 1, `INSERT INTO contact_members (group_id, contact_id)
		SELECT $1, unnest($2::bigint[]) ON CONFLICT DO NOTHING`)
}

// RemoveMembers ends memberships of a company's group, and returns how many there were. The error is [ErrNoGroup].
func (s *Store) RemoveMembers(ctx context.Context, company, group int64, contacts []int64) (removed int, err error) {
	return s.change(ctx, company, group, contacts, -1, `DELETE FROM contact_members WHERE group_id = $1
		AND contact_id = ANY($2)`)
}

func (s *Store) change(ctx context.Context, company, group int64, contacts []int64, by int, statement string) (n int,
	err error) {
	err = s.tx(ctx, func(tx pgx.Tx) error {
		ids, err := lock(ctx, tx, company, `id = ANY($2)`, contacts)
		if err == nil {
			err = lockGroups(ctx, tx, company, []int64{group}, nil)
		}
		if err == nil {
			_, err = s.in(tx).Group(ctx, company, group)
		}
		c := counts{company: company}
		n = 0
		if err == nil {
			err = c.eachMember(ctx, tx, by, func(int64) { n++ }, statement, group, append([]int64{}, ids...))
		}
		switch {
		case err != nil:
			return err
		case n == 0:
			return postgres.ConfirmWith(ctx, tx)
		}
		return c.write(ctx, tx)
	})
	return n, err
}
