package accounts

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// NewCompany is the input of [Accounts.CreateCompany].
type NewCompany struct {
	OwnerEmail         string
	Name               string
	Approved, Verified bool
}

// CompanyChange is the input of [Accounts.SetCompany]; a nil field stays as it is.
type CompanyChange struct {
	Approved, Verified, SmartEncoding *bool
	Limits                            LimitsChange

	QuietHours *string // "21:00-06:00", "none", or "" for those of the installation
}

const companyColumns = `id, owner_id, name, approved, verified, smart_encoding, coalesce(quiet_hours, ''), ` + limitColumns

// CreateCompany stores a company in the caller's transaction, which must also open its balance. [ErrExists] for a user
// who belongs to a company.
func (a *Accounts) CreateCompany(ctx context.Context, tx pgx.Tx, n NewCompany) (Company, error) {
	name, err := cleanName("company name", n.Name)
	if err != nil {
		return Company{}, err
	}
	owner, err := a.UserByEmail(ctx, n.OwnerEmail)
	if err != nil {
		return Company{}, err
	}
	if err := lockUser(ctx, tx, owner.ID); err != nil {
		return Company{}, fmt.Errorf("locking user %d: %w", owner.ID, err)
	}
	c := Company{OwnerID: owner.ID, Name: name, Approved: n.Approved, Verified: n.Verified}
	err = tx.QueryRow(ctx,
		`insert into companies (owner_id, name, approved, verified) values ($1, $2, $3, $4) returning id`,
		owner.ID, name, n.Approved, n.Verified).Scan(&c.ID)
	if isUnique(err, "companies_owner_id_key") {
		return Company{}, &callerError{ErrExists, fmt.Sprintf("the user %s owns a company already", owner.Email)}
	}
	var joined int64
	if err == nil {
		joined, err = exec(ctx, tx, "storing its owner", `update users set company_id = $2, role = $3 where id = $1 and company_id is null`, owner.ID, c.ID, RoleOwner)
	}
	if err != nil {
		return Company{}, fmt.Errorf("storing a company: %w", err)
	}
	if joined == 0 {
		return Company{}, &callerError{ErrExists, fmt.Sprintf("the user %s belongs to a company already", owner.Email)}
	}
	return c, nil
}

// SetCompany changes a company and returns its new state. Its owner gets a mail about a decision on its approval or
// verification.
func (a *Accounts) SetCompany(ctx context.Context, id int64, change CompanyChange) (Company, error) {
	if change.QuietHours != nil {
		if _, err := sms.ParseQuietHours(*change.QuietHours); err != nil {
			return Company{}, err
		}
	}
	c, err := readOne(ctx, a.pool, fmt.Sprintf("changing company %d", id), noCompany(id).Error(), scanCompany, `
		with was as (select id, approved, verified from companies where id = $1 for update),
		changed as (update companies c set
			approved       = coalesce($2, c.approved),
			verified       = coalesce($3, c.verified),
			smart_encoding = coalesce($4, c.smart_encoding),
			credits_a_day  = case when $5 then $6 else c.credits_a_day end,
			repeat_seconds = case when $7 then $8 else c.repeat_seconds end,
			repeats_a_day  = case when $9 then $10 else c.repeats_a_day end,
			number_a_day   = case when $11 then $12 else c.number_a_day end,
			quiet_hours    = case when $13::text is null then c.quiet_hours else nullif($13, '') end
			from was where c.id = was.id
			returning c.*, c.approved <> was.approved as approval, c.verified <> was.verified as verification),
		mails as (`+insertLetters+`
			select '`+LetterApproval+`', id, 0, null::jsonb from changed where approval union all
			select '`+LetterVerification+`', id, 0, null from changed where verification `+replaceLetters+`)
		select `+companyColumns+` from changed`,
		slices.Concat([]any{id, change.Approved, change.Verified, change.SmartEncoding}, change.Limits.args(), []any{change.QuietHours})...)
	if err == nil {
		a.cache.forgetAll()
	}
	return c, err
}

// NoteOptOuts marks a company whose opt-out list may have entries: call it before the first one is added. The mark is
// permanent. Sends of other companies need no look-up of opt-outs.
func (a *Accounts) NoteOptOuts(ctx context.Context, id int64) error {
	_, err := exec(ctx, a.pool, fmt.Sprintf("noting that company %d has opt-outs", id), `update companies set opt_outs = true where id = $1 and not opt_outs`, id)
	return err
}

// CompanyByID returns a company without its senders.
func (a *Accounts) CompanyByID(ctx context.Context, id int64) (Company, error) {
	return readOne(ctx, a.pool, "reading a company", noCompany(id).Error(), scanCompany, `select `+companyColumns+` from companies where id = $1`, id)
}

// CompanyOf returns the company of a user, without its senders; [ErrNotFound] when there is none.
func (a *Accounts) CompanyOf(ctx context.Context, userID int64) (Company, error) {
	return readOne(ctx, a.pool, "reading a company", fmt.Sprintf("user %d has no company", userID), scanCompany,
		`select `+companyColumns+` from companies where id = (select company_id from users where id = $1)`, userID)
}

// QuietHours returns the quiet hours of each company with its own setting, "none" included. An unreadable setting
// counts as none, as in intake, so that it does not stop other companies' messages.
func (a *Accounts) QuietHours(ctx context.Context) (map[int64]sms.QuietHours, error) {
	own := make(map[int64]sms.QuietHours)
	var id int64
	var text string
	if err := postgres.Each(ctx, a.pool, "reading companies' quiet hours", []any{&id, &text}, func() error {
		own[id], _ = sms.ParseQuietHours(text)
		return nil
	}, `select id, quiet_hours from companies where quiet_hours is not null`); err != nil {
		return nil, err
	}
	return own, nil
}

func noCompany(id int64) error {
	return &callerError{ErrNotFound, fmt.Sprintf("there is no company with id %d", id)}
}

func scanCompany(row pgx.CollectableRow) (Company, error) {
	var c Company
	err := row.Scan(append([]any{&c.ID, &c.OwnerID, &c.Name, &c.Approved, &c.Verified, &c.SmartEncoding, &c.QuietHours}, c.Limits.columns()...)...)
	return c, err
}
