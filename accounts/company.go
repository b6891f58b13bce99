package accounts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

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

// CreateCompany stores a company in the caller's transaction, which must also open its balance. A user owns at most
// one company: [ErrExists] otherwise.
func (a *Accounts) CreateCompany(ctx context.Context, tx pgx.Tx, n NewCompany) (Company, error) {
	name, err := cleanName("company name", n.Name)
	if err != nil {
		return Company{}, err
	}
	owner, err := a.UserByEmail(ctx, n.OwnerEmail)
	if err != nil {
		return Company{}, err
	}
	c := Company{OwnerID: owner.ID, Name: name, Approved: n.Approved, Verified: n.Verified}
	err = tx.QueryRow(ctx,
		`insert into companies (owner_id, name, approved, verified) values ($1, $2, $3, $4) returning id`,
		owner.ID, name, n.Approved, n.Verified).Scan(&c.ID)
	if isUnique(err, "companies_owner_id_key") {
		return Company{}, &callerError{ErrExists, fmt.Sprintf("the user %s owns a company already", owner.Email)}
	}
	if err != nil {
		return Company{}, fmt.Errorf("storing a company: %w", err)
	}
	return c, nil
}

// SetCompany changes a company's flags and returns its new state.
func (a *Accounts) SetCompany(ctx context.Context, id int64, change CompanyChange) (Company, error) {
	if change.QuietHours != nil {
		if _, err := sms.ParseQuietHours(*change.QuietHours); err != nil {
			return Company{}, err
		}
	}
	rows, err := a.pool.Query(ctx, `
		update companies set
			approved       = coalesce($2, approved),
			verified       = coalesce($3, verified),
			smart_encoding = coalesce($4, smart_encoding),
			credits_a_day  = case when $5 then $6 else credits_a_day end,
			repeat_seconds = case when $7 then $8 else repeat_seconds end,
			repeats_a_day  = case when $9 then $10 else repeats_a_day end,
			number_a_day   = case when $11 then $12 else number_a_day end,
			quiet_hours    = case when $13::text is null then quiet_hours else nullif($13, '') end
		where id = $1
		returning `+companyColumns, slices.Concat([]any{id, change.Approved, change.Verified, change.SmartEncoding}, change.Limits.args(), []any{change.QuietHours})...)
	if err != nil {
		return Company{}, fmt.Errorf("changing company %d: %w", id, err)
	}
	c, err := collectCompany(rows)
	if errors.Is(err, pgx.ErrNoRows) {
		return Company{}, noCompany(id)
	}
	if err != nil {
		return Company{}, fmt.Errorf("changing company %d: %w", id, err)
	}
	a.cache.forgetAll()
	return c, nil
}

// CompanyByID returns the company with that id, without its senders.
func (a *Accounts) CompanyByID(ctx context.Context, id int64) (Company, error) {
	rows, err := a.pool.Query(ctx, `select `+companyColumns+` from companies where id = $1`, id)
	if err != nil {
		return Company{}, fmt.Errorf("reading company %d: %w", id, err)
	}
	c, err := collectCompany(rows)
	if errors.Is(err, pgx.ErrNoRows) {
		return Company{}, noCompany(id)
	}
	if err != nil {
		return Company{}, fmt.Errorf("reading company %d: %w", id, err)
	}
	return c, nil
}

// CompanyOf returns the company that a user owns, without its senders; [ErrNotFound] when there is none.
func (a *Accounts) CompanyOf(ctx context.Context, userID int64) (Company, error) {
	rows, err := a.pool.Query(ctx, `select `+companyColumns+` from companies where owner_id = $1`, userID)
	if err != nil {
		return Company{}, fmt.Errorf("reading the company of user %d: %w", userID, err)
	}
	c, err := collectCompany(rows)
	if errors.Is(err, pgx.ErrNoRows) {
		return Company{}, &callerError{ErrNotFound, fmt.Sprintf("user %d owns no company", userID)}
	}
	if err != nil {
		return Company{}, fmt.Errorf("reading the company of user %d: %w", userID, err)
	}
	return c, nil
}

// Companies lists companies with ids above after, in the order of their ids, at most limit of them.
func (a *Accounts) Companies(ctx context.Context, after int64, limit int) ([]Company, error) {
	rows, err := a.pool.Query(ctx,
		`select `+companyColumns+` from companies where id > $1 order by id limit $2`, after, limit)
	if err != nil {
		return nil, fmt.Errorf("listing companies: %w", err)
	}
	companies, err := pgx.CollectRows(rows, scanCompany)
	if err != nil {
		return nil, fmt.Errorf("listing companies: %w", err)
	}
	return companies, nil
}

// Applicant is a company with the details that administrators see.
type Applicant struct {
	Company    Company
	OwnerEmail string
	OwnerName  string
	CreatedAt  time.Time
}

// Awaiting lists companies that are not approved or not verified, with ids above after, in the order of their ids, at
// most limit of them.
func (a *Accounts) Awaiting(ctx context.Context, after int64, limit int) ([]Applicant, error) {
	rows, err := a.pool.Query(ctx, `select `+applicantColumns+`
		where c.id > $1 and not (c.approved and c.verified) order by c.id limit $2`, after, limit)
	if err != nil {
		return nil, fmt.Errorf("listing the companies that wait: %w", err)
	}
	list, err := pgx.CollectRows(rows, scanApplicant)
	if err != nil {
		return nil, fmt.Errorf("listing the companies that wait: %w", err)
	}
	return list, nil
}

// QuietHours returns the quiet hours of the companies that have their own, also those that have none. What cannot be read
// counts as none, as it does where batches come in: one company's row keeps nobody else's messages.
func (a *Accounts) QuietHours(ctx context.Context) (map[int64]sms.QuietHours, error) {
	rows, err := a.pool.Query(ctx, `select id, quiet_hours from companies where quiet_hours is not null`)
	if err != nil {
		return nil, fmt.Errorf("reading companies' quiet hours: %w", err)
	}
	own := make(map[int64]sms.QuietHours)
	var id int64
	var text string
	if _, err := pgx.ForEachRow(rows, []any{&id, &text}, func() error {
		own[id], _ = sms.ParseQuietHours(text)
		return nil
	}); err != nil {
		return nil, fmt.Errorf("reading companies' quiet hours: %w", err)
	}
	return own, nil
}

func noCompany(id int64) error {
	return &callerError{ErrNotFound, fmt.Sprintf("there is no company with id %d", id)}
}

func collectCompany(rows pgx.Rows) (Company, error) {
	return pgx.CollectExactlyOneRow(rows, scanCompany)
}

func scanCompany(row pgx.CollectableRow) (Company, error) {
	var c Company
	err := row.Scan(append([]any{&c.ID, &c.OwnerID, &c.Name, &c.Approved, &c.Verified, &c.SmartEncoding, &c.QuietHours}, c.Limits.columns()...)...)
	return c, err
}
