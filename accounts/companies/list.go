package companies

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/internal/postgres"
)

// The lists below are for operators: rows of all companies, with ids above after, in the order of the ids, at most
// limit.

// Companies lists companies.
func (a *Store) Companies(ctx context.Context, after int64, limit int) ([]accounts.Company, error) {
	return postgres.All(ctx, a.pool, "listing companies", scanCompany,
		`select `+companyColumns+` from companies where id > $1 order by id limit $2`, after, limit)
}

// Applicant is a company with the details that administrators see.
type Applicant struct {
	Company    accounts.Company
	OwnerEmail string
	OwnerName  string
	CreatedAt  time.Time
	Facts      Facts
}

const applicantColumns = `c.id, c.owner_id, c.name, c.approved, c.verified, c.smart_encoding,
	coalesce(c.quiet_hours, ''), u.email, u.name, c.created_at, ` + factColumns + `
	from companies c join users u on u.id = c.owner_id left join company_facts f on f.company_id = c.id`

func scanApplicant(row pgx.CollectableRow) (p Applicant, err error) {
	c := &p.Company
	err = row.Scan(append([]any{&c.ID, &c.OwnerID, &c.Name, &c.Approved, &c.Verified, &c.SmartEncoding, &c.QuietHours,
		&p.OwnerEmail, &p.OwnerName, &p.CreatedAt}, p.Facts.columns()...)...)
	return p, err
}

// Awaiting lists companies that are not approved or not verified.
func (a *Store) Awaiting(ctx context.Context, after int64, limit int) ([]Applicant, error) {
	return postgres.All(ctx, a.pool, "listing the companies that wait", scanApplicant, `select `+applicantColumns+`
		where c.id > $1 and not (c.approved and c.verified) order by c.id limit $2`, after, limit)
}

// FindCompanies lists companies whose name or owner's e-mail contains text, ignoring case, or whose id is text. An
// empty text matches all.
func (a *Store) FindCompanies(ctx context.Context, text string, after int64, limit int) ([]Applicant, error) {
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
func (a *Store) ApplicantByID(ctx context.Context, id int64) (Applicant, error) {
	return accounts.One(ctx, a.pool, "reading a company", accounts.NoCompany(id).Error(), scanApplicant,
		`select `+applicantColumns+` where c.id = $1`, id)
}
