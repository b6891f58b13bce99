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
