package companies

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/accounts/letter"
	"intumwa/internal/postgres"
	"intumwa/sms"
)

// NewCompany is the input of [Store.CreateCompany].
type NewCompany struct {
	OwnerEmail         string
	Name               string
	Approved, Verified bool
}

// CompanyChange is the input of [Store.SetCompany]; a nil field stays as it is.
type CompanyChange struct {
	Approved, Verified, SmartEncoding *bool
	Limits                            LimitsChange

	QuietHours *string // "21:00-06:00", "none", or "" for those of the installation
}

const companyColumns = `id, owner_id, name, approved, verified, smart_encoding, coalesce(quiet_hours, ''), ` +
	accounts.LimitColumns

// CreateCompany stores a company in the caller's transaction, which must also open its balance. [accounts.ErrExists]
// for a user who belongs to a company.
func (a *Store) CreateCompany(ctx context.Context, tx pgx.Tx, n NewCompany) (accounts.Company, error) {
	name, err := accounts.CleanName("company name", n.Name)
	if err != nil {
		return accounts.Company{}, err
	}
	email := accounts.FoldEmail(n.OwnerEmail)
	owner, err := accounts.One(ctx, tx, "locking a user", accounts.NoUser(email), pgx.RowTo[int64],
		`select id from users where email = $1 for no key update`, email)
	if err != nil {
		return accounts.Company{}, err
	}
	c := accounts.Company{OwnerID: owner, Name: name, Approved: n.Approved, Verified: n.Verified}
	err = tx.QueryRow(ctx,
		`insert into companies (owner_id, name, approved, verified) values ($1, $2, $3, $4) returning id`,
		owner, name, n.Approved, n.Verified).Scan(&c.ID)
	if accounts.IsUnique(err, "companies_owner_id_key") {
		return accounts.Company{}, accounts.Errorf(accounts.ErrExists, "the user %s owns a company already", email)
	}
	var joined int64
	if err == nil {
		joined, err = accounts.Exec(ctx, tx, "storing its owner",
			`update users set company_id = $2, role = $3 where id = $1 and company_id is null`, owner, c.ID, accounts.RoleOwner)
	}
	if err != nil {
		return accounts.Company{}, fmt.Errorf("storing a company: %w", err)
	}
	if joined == 0 {
		return accounts.Company{}, accounts.Errorf(accounts.ErrExists, "the user %s belongs to a company already", email)
	}
	return c, nil
}

// SetCompany changes a company and returns its new state. Its owner gets a mail about a decision on its approval or
// review.
func (a *Store) SetCompany(ctx context.Context, id int64, change CompanyChange) (accounts.Company, error) {
	if change.QuietHours != nil {
		if _, err := sms.ParseQuietHours(*change.QuietHours); err != nil {
			return accounts.Company{}, err
		}
	}
	c, err := accounts.One(ctx, a.pool, fmt.Sprintf("changing company %d", id), accounts.NoCompany(id).Error(),
		scanCompany, `
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
			returning c.*, c.approved <> was.approved as approval, c.verified <> was.verified as review),
		mails as (`+letter.Insert+`
			select '`+letter.Approval+`', id, 0, null::jsonb from changed where approval union all
			select '`+letter.Review+`', id, 0, null from changed where review `+letter.Replace+`)
		select `+companyColumns+` from changed`,
		slices.Concat([]any{id, change.Approved, change.Verified, change.SmartEncoding}, change.Limits.args(),
			[]any{change.QuietHours})...)
	if err == nil {
		a.forget()
	}
	return c, err
}

// NoteOptOuts marks a company whose opt-out list may have entries: call it before the first one is added. The mark is
// permanent. Sends of other companies need no look-up of opt-outs.
func (a *Store) NoteOptOuts(ctx context.Context, id int64) error {
	_, err := accounts.Exec(ctx, a.pool, fmt.Sprintf("noting that company %d has opt-outs", id),
		`update companies set opt_outs = true where id = $1 and not opt_outs`, id)
	return err
}

// CompanyByID returns a company without its senders.
func (a *Store) CompanyByID(ctx context.Context, id int64) (accounts.Company, error) {
	return accounts.One(ctx, a.pool, "reading a company", accounts.NoCompany(id).Error(), scanCompany,
		`select `+companyColumns+` from companies where id = $1`, id)
}

// CompanyOf returns the company of a user, without its senders; [accounts.ErrNotFound] when there is none.
func (a *Store) CompanyOf(ctx context.Context, userID int64) (accounts.Company, error) {
	return accounts.One(ctx, a.pool, "reading a company", fmt.Sprintf("user %d has no company", userID), scanCompany,
		`select `+companyColumns+` from companies where id = (select company_id from users where id = $1)`, userID)
}

// QuietHours returns the quiet hours of each company with its own setting, "none" included. An unreadable setting
// counts as none, as in intake, so that it does not stop other companies' messages.
func (a *Store) QuietHours(ctx context.Context) (map[int64]sms.QuietHours, error) {
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

func scanCompany(row pgx.CollectableRow) (accounts.Company, error) {
	var c accounts.Company
	err := row.Scan(append([]any{&c.ID, &c.OwnerID, &c.Name, &c.Approved, &c.Verified, &c.SmartEncoding, &c.QuietHours},
		c.Limits.Columns()...)...)
	return c, err
}
