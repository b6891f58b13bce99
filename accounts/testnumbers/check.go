package testnumbers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/internal/otp"
	"intumwa/sms"
)

// The test number's one-time code. rule api 4.4; rule choices 6.4
const (
	// CodeLife is how long a code can be confirmed.
	CodeLife = 10 * time.Minute

	codeTries    = 5
	codeGap      = time.Minute // between two codes of one account, and of one number
	codesPerHour = 5           // to one account, and to one number
)

// Reasons of a failed check, for the user.
var (
	ErrVerifiedAlready = accounts.Errorf(nil, "this number is verified already")
	ErrReplacements    = accounts.Errorf(nil, "the test number cannot be replaced any more")
	ErrNoCode          = accounts.Errorf(nil, "there is no code to confirm; ask for a new one")
	ErrCodeExpired     = accounts.Errorf(nil, "the code has expired; ask for a new one")
	ErrCodeTries       = accounts.Errorf(nil, "the code was mistyped too often; ask for a new one")
)

// TooSoonError means that the next code cannot be sent yet.
type TooSoonError struct{ After time.Duration } // whole seconds, at least 1

// Error returns the text for the user.
func (e *TooSoonError) Error() string {
	return fmt.Sprintf("wait %d seconds before asking for another code", int(e.After.Seconds()))
}

// ForUser marks the text.
func (e *TooSoonError) ForUser() {}

// WrongCodeError means that the code is wrong; Left is how many tries remain.
type WrongCodeError struct{ Left int }

// Error returns the text for the user.
func (e *WrongCodeError) Error() string { return "the code is not right" }

// ForUser marks the text.
func (e *WrongCodeError) ForUser() {}

// StartCheck makes a number the user's unverified test number and returns a new code of six digits, for the
// caller to send. An earlier code becomes invalid. Call Started after the transaction, which the caller commits with
// the message.
//
// Replacing a verified number counts as a replacement and ends its check at once. The errors are [TooSoonError],
// [CodeLimitError], [ErrVerifiedAlready], [ErrReplacements] (see [accounts.ForUser]), or those of Postgres.
func (a *Store) StartCheck(ctx context.Context, tx pgx.Tx, r CodeRequest) (code otp.Secret, err error) {
	err = lockCheck(ctx, tx, r.User, r.Number)
	if err == nil {
		err = mayReceiveCode(ctx, tx, r.User, r.Number)
	}
	if err == nil {
		err = a.storeUnverified(ctx, tx, r.User, r.Number)
	}
	if err == nil {
		err = a.mayCostCode(ctx, tx, r)
	}
	if err == nil {
		code, err = a.storeCode(ctx, tx, r)
	}
	if err != nil {
		return nil, accounts.Wrap("starting the check of a test number", err)
	}
	return code, nil
}

// Started ends StartCheck after its commit, or after a COMMIT without an answer.
func (a *Store) Started(r CodeRequest) {
	if !r.Own {
		a.codes.free.Inc()
	}
	a.opts.Forget()
}

// ConfirmCheck verifies the user's test number with the code that was sent to it. The errors are [ErrNoCode],
// [ErrCodeExpired], [ErrCodeTries], [WrongCodeError], or those of Postgres.
func (a *Store) ConfirmCheck(ctx context.Context, userID int64, code string) (TestNumber, error) {
	var (
		n       TestNumber
		verdict error // kept out of the transaction's error: a wrong try must be committed
	)
	err := pgx.BeginFunc(ctx, a.pool, func(tx pgx.Tx) error {
		if err := lockUser(ctx, tx, userID); err != nil {
			return err
		}
		if verdict = a.tryCode(ctx, tx, userID, code); verdict != nil {
			var wrong *WrongCodeError
			if errors.As(verdict, &wrong) {
				return nil
			}
			return verdict
		}
		n = TestNumber{UserID: userID, Verified: true}
		return tx.QueryRow(ctx, `update users set test_verified_at = now() where id = $1
			returning test_number, test_replacements`, userID).
			Scan(&n.PhoneNumber, &n.Replacements)
	})
	if err == nil {
		err = verdict
	}
	if err != nil {
		return TestNumber{}, accounts.Wrap("confirming a test number", err)
	}
	a.opts.Forget()
	return n, nil
}

func lockUser(ctx context.Context, tx pgx.Tx, userID int64) error {
	_, err := tx.Exec(ctx, `select from users where id = $1 for no key update`, userID)
	return err
}

// lockCheck serializes the checks of this user and of this number, so their codes are counted correctly.
func lockCheck(ctx context.Context, tx pgx.Tx, userID int64, number sms.Number) error {
	if err := lockUser(ctx, tx, userID); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('test_number_codes ' || $1, 0))`, string(number))
	return err
}

// mayReceiveCode limits codes per account, against guessing, and per number, so that several accounts cannot flood a
// phone. Postgres is the clock.
func mayReceiveCode(ctx context.Context, tx pgx.Tx, userID int64, number sms.Number) error {
	for _, condition := range []string{"user_id = $1", "phone_number = $1"} {
		argument := any(userID)
		if condition != "user_id = $1" {
			argument = string(number)
		}
		var (
			count          int
			sinceLast      *float64 // seconds
			untilNextPlace *float64 // seconds until the oldest of the last codesPerHour is an hour old
		)
		err := tx.QueryRow(ctx, `
			select count(*), extract(epoch from now() - max(created_at))::float8,
			       extract(epoch from min(created_at) + interval '1 hour' - now())::float8
			from (select created_at from test_number_codes
			      where `+condition+` and created_at > now() - interval '1 hour'
			      order by created_at desc limit $2) as recent`, argument, codesPerHour).
			Scan(&count, &sinceLast, &untilNextPlace)
		if err != nil {
			return err
		}
		if count >= codesPerHour {
			return tooSoon(*untilNextPlace)
		}
		if count > 0 && *sinceLast < codeGap.Seconds() {
			return tooSoon(codeGap.Seconds() - *sinceLast)
		}
	}
	return nil
}

func tooSoon(seconds float64) error {
	return &TooSoonError{max(time.Second, time.Duration(seconds+1)*time.Second)}
}

func (a *Store) storeUnverified(ctx context.Context, tx pgx.Tx, userID int64, number sms.Number) error {
	current, err := a.In(tx).TestNumberOf(ctx, userID)
	switch {
	case errors.Is(err, accounts.ErrNotFound):
	case err != nil:
		return err
	case current.Verified && current.PhoneNumber == number:
		return ErrVerifiedAlready
	case current.Verified && current.Left() == 0:
		return ErrReplacements
	case current.Verified:
		current.Replacements++
	}
	_, err = tx.Exec(ctx, `update users set test_number = $2, test_verified_at = null, test_replacements = $3
		where id = $1`,
		userID, string(number), current.Replacements)
	return err
}

func (a *Store) storeCode(ctx context.Context, tx pgx.Tx, r CodeRequest) (otp.Secret, error) {
	// Delete codes that no check needs any more: they name numbers.
	if _, err := tx.Exec(ctx, `delete from test_number_codes where id in (select id from test_number_codes
		where created_at < now() - interval '1 day' order by id limit 100 for update skip locked)`); err != nil {
		return nil, err
	}
	code := otp.New(otp.Default)
	_, err := tx.Exec(ctx, `insert into test_number_codes (user_id, phone_number, secret, free, network)
		values ($1, $2, $3, $4, $5)`,
		r.User, string(r.Number), []byte(code), !r.Own, a.networkHash(r.Network))
	return code, err
}

// tryCode compares a code with the user's last one, and counts a wrong try. A code for another number than the
// unverified one does not count.
func (a *Store) tryCode(ctx context.Context, tx pgx.Tx, userID int64, code string) error {
	var (
		id      int64
		secret  otp.Secret
		tries   int
		expired bool
	)
	err := tx.QueryRow(ctx, `
		select c.id, c.secret, c.tries, c.created_at < now() - $2::interval
		from test_number_codes c join users u on u.id = c.user_id and u.test_number = c.phone_number
		and u.test_verified_at is null
		where c.user_id = $1 order by c.id desc limit 1`, userID, CodeLife).
		Scan(&id, &secret, &tries, &expired)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return ErrNoCode
	case err != nil:
		return err
	case expired:
		return ErrCodeExpired
	case tries >= codeTries:
		return ErrCodeTries
	}
	if secret.Is(a.opts.Key, code) {
		return nil
	}
	if _, err := tx.Exec(ctx, `update test_number_codes set tries = tries + 1 where id = $1`, id); err != nil {
		return err
	}
	return &WrongCodeError{Left: codeTries - tries - 1}
}
