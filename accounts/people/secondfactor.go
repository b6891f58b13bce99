package people

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // every authenticator speaks it; HMAC does not rest on collisions
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/accounts/letter"
	"intumwa/internal/otp"
	"intumwa/internal/postgres"
)

const recoveryCodeCount = 10

var base32raw = base32.StdEncoding.WithPadding(base32.NoPadding)

// ErrWrongCode means that a second factor's code is wrong or was used before.
var ErrWrongCode = errors.New("wrong code")

// SecondFactor is the state of a user's second factor.
type SecondFactor struct {
	On    bool
	Codes int64 // recovery codes left
}

// SecondFactorOf returns the state of a user's second factor.
func (a *SignIn) SecondFactorOf(ctx context.Context, userID int64) (f SecondFactor, err error) {
	err = a.pool.QueryRow(ctx, `
		select factor_confirmed_at is not null, cardinality(recovery_hashes) from users where id = $1`, userID).Scan(
		&f.On, &f.Codes)
	if err != nil {
		return f, fmt.Errorf("reading the second factor of user %d: %w", userID, err)
	}
	return f, nil
}

// BeginSecondFactor returns the secret (base32) for the user's authenticator, the same until a code confirms it.
// [accounts.ErrExists] when a second factor is on.
func (a *SignIn) BeginSecondFactor(ctx context.Context, userID int64) (secret string, err error) {
	var random [20]byte // RFC 4226, 4: 160 bits
	_, _ = rand.Read(random[:])
	fresh := a.vault.Seal(userID, base32raw.EncodeToString(random[:]))
	var (
		stored    string
		confirmed *time.Time
	)
	err = a.pool.QueryRow(ctx, `
		update users set factor_secret = coalesce(factor_secret, $2) where id = $1
		returning factor_secret, factor_confirmed_at`, userID, fresh).Scan(&stored, &confirmed)
	if err != nil {
		return "", fmt.Errorf("beginning the second factor of user %d: %w", userID, err)
	}
	if confirmed != nil {
		return "", accounts.Errorf(accounts.ErrExists, "the second factor is on already")
	}
	if secret, err = a.vault.Open(userID, stored); err != nil {
		return "", fmt.Errorf("opening the second factor of user %d: %w", userID, err)
	}
	return secret, nil
}

// ConfirmSecondFactor turns the second factor of the session's user on, given a code of the authenticator
// ([ErrWrongCode] for a wrong one), and ends all their other sessions. It returns the recovery codes, which cannot be
// read again.
func (a *SignIn) ConfirmSecondFactor(ctx context.Context, s Session, code string) (codes []string, err error) {
	userID := s.User.ID
	err = pgx.BeginFunc(ctx, a.pool, func(tx pgx.Tx) error {
		if err := a.useTOTPStep(ctx, tx, userID, code, false); err != nil {
			return err
		}
		if err := (&Sessions{tx}).EndSessions(ctx, userID, s.ID); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `update users set factor_confirmed_at = now() where id = $1`, userID); err != nil {
			return fmt.Errorf("turning the second factor of user %d on: %w", userID, err)
		}
		codes, err = (&SignIn{tx, a.vault}).NewRecoveryCodes(ctx, userID)
		return err
	})
	return codes, err
}

const voidSecondFactor = `update users set factor_secret = null, factor_confirmed_at = null, factor_step = 0,
	recovery_hashes = '{}' where id = $1`

// DropSecondFactor turns the second factor off, and writes a letter to the user.
func (a *SignIn) DropSecondFactor(ctx context.Context, userID int64) error {
	return pgx.BeginFunc(ctx, a.pool, func(tx pgx.Tx) error {
		if _, err := accounts.Exec(ctx, tx, fmt.Sprintf("turning the second factor of user %d off", userID), voidSecondFactor,
			userID); err != nil {
			return err
		}
		return letter.WriteUser(ctx, tx, letter.TwoStep, userID, nil)
	})
}

// CheckSecondFactor uses up a code of the authenticator or a recovery code; [ErrWrongCode] when it is neither, or was
// used. The caller limits the number of tries.
func (a *SignIn) CheckSecondFactor(ctx context.Context, userID int64, code string) error {
	if normal := normalRecovery(code); len(normal) == recoveryLength {
		n, err := accounts.Exec(ctx, a.pool, fmt.Sprintf("checking a recovery code of user %d", userID), `
			update users set recovery_hashes = array_remove(recovery_hashes, $2)
			where id = $1 and factor_confirmed_at is not null and $2 = any(recovery_hashes)`, userID,
			hashRecovery(userID, normal))
		if err == nil && n == 0 {
			err = ErrWrongCode
		}
		return err
	}
	return pgx.BeginFunc(ctx, a.pool, func(tx pgx.Tx) error { return a.useTOTPStep(ctx, tx, userID, code, true) })
}

// useTOTPStep checks a code of the authenticator and marks its time step as used.
func (a *SignIn) useTOTPStep(ctx context.Context, tx pgx.Tx, userID int64, code string, confirmed bool) error {
	var (
		stored string
		last   int64
	)
	err := tx.QueryRow(ctx, `
		select factor_secret, factor_step from users
		where id = $1 and factor_secret is not null and (factor_confirmed_at is not null) = $2 for no key update`,
		userID, confirmed).Scan(&stored, &last)
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrWrongCode
	}
	if err != nil {
		return fmt.Errorf("reading the second factor of user %d: %w", userID, err)
	}
	secret, err := a.vault.Open(userID, stored)
	if err != nil {
		return fmt.Errorf("opening the second factor of user %d: %w", userID, err)
	}
	key, err := base32raw.DecodeString(secret)
	if err != nil {
		return fmt.Errorf("reading the second factor of user %d: %w", userID, err)
	}
	step, right := matchTOTP(key, code, postgres.Now())
	if !right || step <= last {
		return ErrWrongCode
	}
	if _, err := tx.Exec(ctx, `update users set factor_step = $2 where id = $1`, userID, step); err != nil {
		return fmt.Errorf("noting a used code of user %d: %w", userID, err)
	}
	return nil
}

// A recovery code is 16 letters and digits of base32, 80 random bits: its SHA-256 needs no slow hash.
const recoveryLength = 16

// NewRecoveryCodes replaces the user's recovery codes.
func (a *SignIn) NewRecoveryCodes(ctx context.Context, userID int64) ([]string, error) {
	codes := make([]string, recoveryCodeCount)
	hashes := make([][]byte, recoveryCodeCount)
	for i := range codes {
		text := strings.ToLower(rand.Text()[:recoveryLength])
		codes[i] = text[:4] + "-" + text[4:8] + "-" + text[8:12] + "-" + text[12:]
		hashes[i] = hashRecovery(userID, text)
	}
	if _, err := a.pool.Exec(ctx, `update users set recovery_hashes = $2 where id = $1`, userID, hashes); err != nil {
		return nil, fmt.Errorf("storing the recovery codes of user %d: %w", userID, err)
	}
	return codes, nil
}

func normalRecovery(code string) string {
	return strings.ToLower(otp.Typed(code))
}

func hashRecovery(userID int64, code string) []byte {
	sum := sha256.Sum256(append(binary.BigEndian.AppendUint64(nil, uint64(userID)), code...))
	return sum[:]
}

// The usual parameters of authenticators: https://www.rfc-editor.org/rfc/rfc6238, section 4.
const (
	totpStep   = 30 // seconds
	totpDrift  = 1  // steps that a clock may be wrong, either way
	totpModulo = 1_000_000
)

// totp returns the six digits of a step.
func totp(key []byte, step int64) string {
	mac := hmac.New(sha1.New, key)
	_ = binary.Write(mac, binary.BigEndian, step) // a hash never fails
	sum := mac.Sum(nil)
	offset := sum[len(sum)-1] & 0xF // RFC 4226, 5.3
	return fmt.Sprintf("%06d", (binary.BigEndian.Uint32(sum[offset:])&0x7FFF_FFFF)%totpModulo)
}

// matchTOTP returns a code's time step; right is false when the code is not valid now.
func matchTOTP(key []byte, code string, now time.Time) (step int64, right bool) {
	code = otp.Typed(code)
	current := now.Unix() / totpStep
	for at := current - totpDrift; at <= current+totpDrift; at++ {
		if subtle.ConstantTimeCompare([]byte(totp(key, at)), []byte(code)) == 1 {
			step, right = at, true
		}
	}
	return step, right
}
