package billing

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// ErrGranted says that the grant with that key was done before.
var ErrGranted = errors.New("granted already")

// GrantOnce is Grant for a request that may come twice, such as a form that was
// sent by two clicks: with one key it is done once, and answered ErrGranted from
// then on. Two at the same time wait for each other.
func GrantOnce(ctx context.Context, tx pgx.Tx, key [16]byte, companyID, amount int64, note string) (credits int64, err error) {
	tag, err := tx.Exec(ctx, `INSERT INTO grants (key, company_id) VALUES ($1, $2) ON CONFLICT DO NOTHING`, key, companyID)
	if err != nil {
		return 0, fmt.Errorf("noting a grant to company %d: %w", companyID, err)
	}
	if tag.RowsAffected() == 0 {
		return 0, ErrGranted
	}
	return adjust(ctx, tx, companyID, amount, note)
}
