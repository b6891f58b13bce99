package exports

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/sms"
	"intumwa/texts"
)

// Request is what a file is to have.
type Request struct {
	Company   sms.CompanyID
	Month     time.Time // any time of it, in Burundi
	Language  string    // a tag of words
	Operators bool
	Bodies    bool
}

// Span returns the first and the end of a month in Burundi.
func Span(month time.Time) (from, to time.Time) {
	from = time.Date(month.Year(), month.Month(), 1, 0, 0, 0, 0, texts.Bujumbura)
	return from, from.AddDate(0, 1, 0)
}

// ParseMonth returns the first moment of a month as YYYY-MM; an error for one that has not begun.
func ParseMonth(text string) (time.Time, error) {
	month, err := time.ParseInLocation("2006-01", text, texts.Bujumbura)
	if err != nil || month.Year() < 2000 || month.After(postgres.Now()) {
		return time.Time{}, errors.New("the month must be YYYY-MM, and have begun")
	}
	return month, nil
}

// Ask asks for a file. The oldest of the company's files end, if it has too many or too much. The errors are
// [ErrRunning] and [ErrFull].
func Ask(ctx context.Context, tx pgx.Tx, r Request) error {
	var total int64
	if err := tx.QueryRow(ctx, `SELECT coalesce(sum(size), 0)::bigint FROM exports WHERE expires_at > now()`).Scan(
		&total); err != nil {
		return fmt.Errorf("reading the space that exports take: %w", err)
	}
	if total >= sizeOfAll {
		return ErrFull
	}
	month, _ := Span(r.Month)
	tag, err := tx.Exec(ctx, `INSERT INTO exports (company_id, month, language, operators, bodies, expires_at)
		VALUES ($1, $2, $3, $4, $5, now() + $6::interval) ON CONFLICT (company_id, operators)
		WHERE done_at IS NULL DO NOTHING`,
		int64(r.Company), month.Format(time.DateOnly), r.Language, r.Operators, r.Bodies, life)
	if err != nil {
		return fmt.Errorf("asking for an export: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return ErrRunning
	}
	if _, err := tx.Exec(ctx, `UPDATE exports SET expires_at = now() WHERE id IN (
			SELECT id FROM (
				SELECT id, row_number() OVER newer AS n, sum(size) OVER newer AS total FROM exports
				WHERE company_id = $1 AND operators = $2 AND expires_at > now() WINDOW newer AS (ORDER BY id DESC)
			) x WHERE n > $3 OR total > $4)`, int64(r.Company), r.Operators, kept, sizeOfOne); err != nil {
		return fmt.Errorf("ending old exports: %w", err)
	}
	return nil
}

// Withdraw deletes the content of a company's files with texts, also of those that are being written: its texts are
// kept for another time now.
func Withdraw(ctx context.Context, tx pgx.Tx, company sms.CompanyID) error {
	_, err := withdraw(ctx, tx, GoneTexts, `company_id = $2 AND bodies`, int64(company))
	return err
}

// Erase deletes the content of all files, also of those that are being written, and returns how many it were: each may
// have a number that was erased. Call it after the messages are erased.
func Erase(ctx context.Context, db postgres.DB) (files int64, err error) {
	return withdraw(ctx, db, GoneErased, `true`)
}

func withdraw(ctx context.Context, db postgres.DB, why, which string, args ...any) (files int64, err error) {
	err = db.QueryRow(ctx, `WITH ended AS (
			UPDATE exports SET gone = $1, done_at = coalesce(done_at, now()), size = 0 WHERE gone = '' AND `+which+` RETURNING id
		), deleted AS (
			DELETE FROM export_pieces WHERE export_id IN (SELECT id FROM ended)
		)
		SELECT count(*) FROM ended`, append([]any{why}, args...)...).Scan(&files)
	if err != nil {
		return 0, fmt.Errorf("deleting exports: %w", err)
	}
	return files, nil
}
