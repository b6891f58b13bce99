package testnumbers

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/internal/postgres"
	"intumwa/sms"
)

// TestNumber is the one number that may receive an account's test messages. rule api 4.4
type TestNumber struct {
	UserID       int64      `json:"user_id"`
	PhoneNumber  sms.Number `json:"phone_number"`
	Verified     bool       `json:"verified"`
	Replacements int        `json:"-"` // how often the owner has replaced a verified number
}

// MaxReplacements is how often an owner may replace a verified number: enough for a lost phone or two, too few to use
// the free pool for other people's numbers.
const MaxReplacements = 3

// Left is how often the owner may still replace a verified number.
func (n TestNumber) Left() int { return max(0, MaxReplacements-n.Replacements) }

const testNumberColumns = `id, test_number, test_verified_at is not null, test_replacements`

// TestNumberOf returns a user's test number; [accounts.ErrNotFound] when there is none.
func (a *Store) TestNumberOf(ctx context.Context, userID int64) (TestNumber, error) {
	return accounts.One(ctx, a.pool, "reading a test number", fmt.Sprintf("user %d has no test number", userID),
		pgx.RowToStructByPos[TestNumber],
		`select `+testNumberColumns+` from users where id = $1 and test_number is not null`, userID)
}

// SetTestNumber sets a user's test number for an operator: it sends no code and counts no replacement.
func (a *Store) SetTestNumber(ctx context.Context, email string, number sms.Number, verified bool) (TestNumber, error) {
	email = accounts.FoldEmail(email)
	n, err := accounts.One(ctx, a.pool, "storing a test number", accounts.NoUser(email), pgx.RowToStructByPos[TestNumber],
		`
		update users set test_number = $2, test_verified_at = case when $3::boolean then now() end where email = $1
		returning `+testNumberColumns, email, string(number), verified)
	if err == nil {
		a.opts.Forget()
	}
	return n, err
}

// TestNumbers returns the accounts' test numbers that equal this number, for operators.
func (a *Store) TestNumbers(ctx context.Context, number sms.Number) ([]TestNumber, error) {
	return postgres.All(ctx, a.pool, "looking for accounts by their test number", pgx.RowToStructByPos[TestNumber],
		`select `+testNumberColumns+` from users where test_number = $1 order by id`, string(number))
}

// ForgetCodes deletes the one-time codes sent to a number more than a day ago, and returns how many.
func (a *Store) ForgetCodes(ctx context.Context, number sms.Number) (int64, error) {
	return accounts.Exec(ctx, a.pool, "deleting the codes that were sent to a number",
		`delete from test_number_codes where phone_number = $1 and created_at < now() - interval '1 day'`, string(number))
}
