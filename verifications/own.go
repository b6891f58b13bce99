package verifications

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// OwnText is a company's own text for a locale. It is used once it is approved, until another one is.
type OwnText struct {
	ID        int64
	Company   sms.CompanyID
	Locale    string
	Text      string // that was asked for last
	Used      string // "": ours is used
	Approved  bool
	RefusedAt *time.Time
	Refusal   string // the reason, for the company
	AskedAt   time.Time
}

// State is "approved", "refused" or "waiting".
func (t *OwnText) State() string {
	switch {
	case t.Approved:
		return "approved"
	case t.RefusedAt != nil:
		return "refused"
	}
	return "waiting"
}

// Version changes whenever the company asks for another text.
func (t *OwnText) Version() string { return strconv.FormatInt(t.AskedAt.UnixMicro(), 36) }

const ownColumns = `id, company_id, locale, text, coalesce(used, ''), approved, refused_at, refusal, asked_at`

// OwnTexts returns a company's texts, or with company 0 those of all that wait for a decision, the oldest first, at
// most
// 200.
func (s *Store) OwnTexts(ctx context.Context, company sms.CompanyID) ([]OwnText, error) {
	return postgres.All(ctx, s.db, "reading texts of verifications", pgx.RowToStructByPos[OwnText], `SELECT `+ownColumns+
		` FROM verification_texts
		WHERE CASE WHEN $1::bigint = 0 THEN NOT approved AND refused_at IS NULL ELSE company_id = $1 END ORDER BY asked_at, id
		LIMIT 200`, int64(company))
}

// own returns a company's approved text for a locale; nil: none.
func own(ctx context.Context, db postgres.DB, company sms.CompanyID, locale string) (*sms.Template, error) {
	var text string
	err := db.QueryRow(ctx, `SELECT used FROM verification_texts WHERE company_id = $1 AND locale = $2
		AND used IS NOT NULL`, int64(company), locale).Scan(&text)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading a text of verifications: %w", err)
	}
	return sms.ParseTemplate(text), nil
}

// OwnTextOf returns a company's text for a locale; ErrNotFound when there is none.
func OwnTextOf(ctx context.Context, db postgres.DB, company sms.CompanyID, locale string) (OwnText, error) {
	return ownText(ctx, db, "reading", `SELECT `+ownColumns+
		` FROM verification_texts WHERE company_id = $1 AND locale = $2`, int64(company), locale)
}

// OwnTextByID returns a company's text; ErrNotFound when there is none.
func OwnTextByID(ctx context.Context, db postgres.DB, id int64) (OwnText, error) {
	return ownText(ctx, db, "reading", `SELECT `+ownColumns+` FROM verification_texts WHERE id = $1`, id)
}

func ownText(ctx context.Context, db postgres.DB, doing, query string, args ...any) (OwnText, error) {
	list, err := postgres.All(ctx, db, doing+" a text of verifications", pgx.RowToStructByPos[OwnText], query, args...)
	if err == nil && len(list) == 0 {
		return OwnText{}, ErrNotFound
	}
	if err != nil {
		return OwnText{}, err
	}
	return list[0], nil
}

// AskForText stores a company's text for a locale. It waits for approval; meanwhile the one that is used stays in use.
// The errors are those of CheckText.
func AskForText(ctx context.Context, tx pgx.Tx, company sms.CompanyID, locale, text string) (OwnText, error) {
	if err := CheckText(text); err != nil {
		return OwnText{}, err
	}
	return ownText(ctx, tx, "storing", `INSERT INTO verification_texts (company_id, locale, text) VALUES ($1, $2, $3)
		ON CONFLICT (company_id, locale) DO UPDATE SET text = excluded.text, refused_at = NULL, refusal = '',
			asked_at = CASE WHEN verification_texts.text = excluded.text AND verification_texts.refused_at IS NULL
			THEN verification_texts.asked_at ELSE now() END,
			approved = excluded.text IS NOT DISTINCT FROM verification_texts.used
		RETURNING `+ownColumns, int64(company), locale, text)
}

// MostReason is the longest reason of a refusal, in characters.
const MostReason = 500

// DecideText approves a text, or refuses it with a reason for the company, of at most MostReason characters. Refusing
// one that does not wait ends the use of the company's text.
func DecideText(ctx context.Context, tx pgx.Tx, id int64, approved bool, reason string) (OwnText, error) {
	return ownText(ctx, tx, "deciding on", `UPDATE verification_texts SET approved = $2,
		used = CASE WHEN $2 THEN text WHEN NOT approved AND refused_at IS NULL THEN used END, refused_at = CASE WHEN NOT $2
		THEN now() END,
		refusal = CASE WHEN $2 THEN '' ELSE $3 END WHERE id = $1 RETURNING `+ownColumns, id, approved, reason)
}
