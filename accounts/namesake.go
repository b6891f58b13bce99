package accounts

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Namesakes are the approved senders of companies other than this one that read the same, whatever the case, at most a
// hundred: a handset's owner cannot tell them apart.
func (a *Accounts) Namesakes(ctx context.Context, name string, company int64) ([]OwnedSender, error) {
	rows, err := a.pool.Query(ctx, `select `+ownedSenderColumns+` from senders
		where lower(name) = lower($1) and approved and company_id <> $2 order by id limit 100`, name, company)
	if err != nil {
		return nil, fmt.Errorf("looking for senders of the same name: %w", err)
	}
	list, err := pgx.CollectRows(rows, scanOwnedSender)
	if err != nil {
		return nil, fmt.Errorf("looking for senders of the same name: %w", err)
	}
	return list, nil
}
