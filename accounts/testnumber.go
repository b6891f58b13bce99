package accounts

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"intumwa/sms"
)

// TestNumber is the one number that may receive an account's test messages. rule api 4.4
type TestNumber struct {
	UserID       int64
	PhoneNumber  sms.Number
	Verified     bool
	Replacements int // how often the owner has replaced a verified number
}

// TestNumberOf returns a user's test number; [ErrNotFound] when there is none.
func (a *Accounts) TestNumberOf(ctx context.Context, userID int64) (TestNumber, error) {
	n := TestNumber{UserID: userID}
	err := a.pool.QueryRow(ctx,
		`select phone_number, verified_at is not null, replacements from test_numbers where user_id = $1`, userID).
		Scan(&n.PhoneNumber, &n.Verified, &n.Replacements)
	if errors.Is(err, pgx.ErrNoRows) {
		return TestNumber{}, &callerError{ErrNotFound, fmt.Sprintf("user %d has no test number", userID)}
	}
	if err != nil {
		return TestNumber{}, fmt.Errorf("reading the test number of user %d: %w", userID, err)
	}
	return n, nil
}

// SetTestNumber sets a user's test number by order of an operator: no code is sent and no replacement is counted.
func (a *Accounts) SetTestNumber(ctx context.Context, email string, number sms.Number, verified bool) (TestNumber, error) {
	user, err := a.UserByEmail(ctx, email)
	if err != nil {
		return TestNumber{}, err
	}
	n := TestNumber{UserID: user.ID, PhoneNumber: number, Verified: verified}
	err = a.pool.QueryRow(ctx, `
		insert into test_numbers (user_id, phone_number, verified_at)
		values ($1, $2, case when $3::boolean then now() end)
		on conflict (user_id) do update set phone_number = excluded.phone_number, verified_at = excluded.verified_at
		returning replacements`, user.ID, string(number), verified).Scan(&n.Replacements)
	if err != nil {
		return TestNumber{}, fmt.Errorf("storing the test number of user %d: %w", user.ID, err)
	}
	a.cache.forgetAll()
	return n, nil
}

// TestNumbers returns the test numbers of all accounts that are this number: for operators.
func (a *Accounts) TestNumbers(ctx context.Context, number sms.Number) ([]TestNumber, error) {
	rows, err := a.pool.Query(ctx, `select user_id, phone_number, verified_at is not null, replacements from test_numbers
		where phone_number = $1 order by user_id`, string(number))
	if err != nil {
		return nil, fmt.Errorf("looking for accounts by their test number: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[TestNumber])
	if err != nil {
		return nil, fmt.Errorf("looking for accounts by their test number: %w", err)
	}
	return list, nil
}

// ForgetCodes deletes what is kept of one-time codes that were sent to a number more than a day ago, the last of an
// account too. It returns how many.
func (a *Accounts) ForgetCodes(ctx context.Context, number sms.Number) (int64, error) {
	tag, err := a.pool.Exec(ctx, `delete from test_number_codes where phone_number = $1 and created_at < now() - interval '1 day'`, string(number))
	if err != nil {
		return 0, fmt.Errorf("deleting the codes that were sent to a number: %w", err)
	}
	return tag.RowsAffected(), nil
}
