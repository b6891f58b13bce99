package accounts

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
)

// The lists below are for operators: rows of all companies and users, with ids above after, in the order of the ids, at
// most limit.

// Users lists users.
func (a *Accounts) Users(ctx context.Context, after int64, limit int) ([]User, error) {
	return postgres.All(ctx, a.pool, "listing users", pgx.RowToStructByPos[User],
		`select `+userColumns+` from users where id > $1 order by id limit $2`, after, limit)
}

// FindUsers lists users whose e-mail contains text, ignoring case.
func (a *Accounts) FindUsers(ctx context.Context, text string, limit int) ([]User, error) {
	return postgres.All(ctx, a.pool, "looking for users", pgx.RowToStructByPos[User],
		`select `+userColumns+` from users where position($1 in email) > 0 order by id limit $2`, foldEmail(text), limit)
}

// Tokens lists tokens, including revoked ones.
func (a *Accounts) Tokens(ctx context.Context, after int64, limit int) ([]Token, error) {
	return postgres.All(ctx, a.pool, "listing tokens", pgx.RowToStructByPos[Token],
		`select `+tokenColumns+` from api_tokens where id > $1 order by id limit $2`, after, limit)
}

// Senders lists senders.
func (a *Accounts) Senders(ctx context.Context, after int64, limit int) ([]SenderRequest, error) {
	return a.senders(ctx, `where id > $1 order by id limit $2`, after, limit)
}

// WaitingSenders lists senders that are neither approved nor refused.
func (a *Accounts) WaitingSenders(ctx context.Context, after int64, limit int) ([]SenderRequest, error) {
	return a.senders(ctx, `where id > $1 and not approved and refused_at is null order by id limit $2`, after, limit)
}

// FindSenders lists the senders of exactly that name.
func (a *Accounts) FindSenders(ctx context.Context, name string, limit int) ([]SenderRequest, error) {
	return a.senders(ctx, `where name = $1 order by id limit $2`, name, limit)
}

// Companies lists companies.
func (a *Accounts) Companies(ctx context.Context, after int64, limit int) ([]Company, error) {
	return postgres.All(ctx, a.pool, "listing companies", scanCompany,
		`select `+companyColumns+` from companies where id > $1 order by id limit $2`, after, limit)
}

// Applicant is a company with the details that administrators see.
type Applicant struct {
	Company    Company
	OwnerEmail string
	OwnerName  string
	CreatedAt  time.Time
	Facts      Facts
}

const applicantColumns = `c.id, c.owner_id, c.name, c.approved, c.verified, c.smart_encoding, coalesce(c.quiet_hours, ''), u.email, u.name, c.created_at, ` + factColumns + `
	from companies c join users u on u.id = c.owner_id left join company_facts f on f.company_id = c.id`

func scanApplicant(row pgx.CollectableRow) (p Applicant, err error) {
	c := &p.Company
	err = row.Scan(append([]any{&c.ID, &c.OwnerID, &c.Name, &c.Approved, &c.Verified, &c.SmartEncoding, &c.QuietHours, &p.OwnerEmail, &p.OwnerName, &p.CreatedAt}, p.Facts.columns()...)...)
	return p, err
}

// Awaiting lists companies that are not approved or not verified.
func (a *Accounts) Awaiting(ctx context.Context, after int64, limit int) ([]Applicant, error) {
	return postgres.All(ctx, a.pool, "listing the companies that wait", scanApplicant, `select `+applicantColumns+`
		where c.id > $1 and not (c.approved and c.verified) order by c.id limit $2`, after, limit)
}

// FindCompanies lists companies whose name or owner's e-mail contains text, ignoring case, or whose id is text. An
// empty text matches all.
func (a *Accounts) FindCompanies(ctx context.Context, text string, after int64, limit int) ([]Applicant, error) {
	text = strings.ToLower(strings.TrimSpace(text))
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		id = 0
	}
	return postgres.All(ctx, a.pool, "looking for companies", scanApplicant, `select `+applicantColumns+`
		where c.id > $1 and ($2 = '' or c.id = $3 or position($2 in lower(c.name)) > 0 or position($2 in u.email) > 0)
		order by c.id limit $4`, after, text, id, limit)
}

// ApplicantByID returns the company with that id, and its owner.
func (a *Accounts) ApplicantByID(ctx context.Context, id int64) (Applicant, error) {
	return readOne(ctx, a.pool, "reading a company", noCompany(id).Error(), scanApplicant, `select `+applicantColumns+` where c.id = $1`, id)
}
