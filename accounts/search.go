package accounts

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// What administrators look at is anybody's.

const applicantColumns = `c.id, c.owner_id, c.name, c.approved, c.verified, c.smart_encoding, u.email, u.name, c.created_at
	from companies c join users u on u.id = c.owner_id`

func scanApplicant(row pgx.CollectableRow) (p Applicant, err error) {
	c := &p.Company
	err = row.Scan(&c.ID, &c.OwnerID, &c.Name, &c.Approved, &c.Verified, &c.SmartEncoding, &p.OwnerEmail, &p.OwnerName, &p.CreatedAt)
	return p, err
}

// FindCompanies lists companies whose name or owner's e-mail has text in it, whatever the case, or whose id it is; all
// with an empty text. They are in the order of their ids, at most limit of them, from the first after that id.
func (a *Accounts) FindCompanies(ctx context.Context, text string, after int64, limit int) ([]Applicant, error) {
	text = strings.ToLower(strings.TrimSpace(text))
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		id = 0
	}
	rows, err := a.pool.Query(ctx, `select `+applicantColumns+`
		where c.id > $1 and ($2 = '' or c.id = $3 or position($2 in lower(c.name)) > 0 or position($2 in u.email) > 0)
		order by c.id limit $4`, after, text, id, limit)
	if err != nil {
		return nil, fmt.Errorf("looking for companies: %w", err)
	}
	list, err := pgx.CollectRows(rows, scanApplicant)
	if err != nil {
		return nil, fmt.Errorf("looking for companies: %w", err)
	}
	return list, nil
}

// ApplicantByID is the company with that id, and who owns it.
func (a *Accounts) ApplicantByID(ctx context.Context, id int64) (Applicant, error) {
	rows, err := a.pool.Query(ctx, `select `+applicantColumns+` where c.id = $1`, id)
	if err != nil {
		return Applicant{}, fmt.Errorf("reading company %d: %w", id, err)
	}
	p, err := pgx.CollectExactlyOneRow(rows, scanApplicant)
	if errors.Is(err, pgx.ErrNoRows) {
		return Applicant{}, noCompany(id)
	}
	if err != nil {
		return Applicant{}, fmt.Errorf("reading company %d: %w", id, err)
	}
	return p, nil
}

// FindSenders lists the companies' senders of exactly that name, at most limit of them.
func (a *Accounts) FindSenders(ctx context.Context, name string, limit int) ([]OwnedSender, error) {
	rows, err := a.pool.Query(ctx, `select `+ownedSenderColumns+` from senders where name = $1 order by id limit $2`, name, limit)
	if err != nil {
		return nil, fmt.Errorf("looking for senders: %w", err)
	}
	list, err := pgx.CollectRows(rows, scanOwnedSender)
	if err != nil {
		return nil, fmt.Errorf("looking for senders: %w", err)
	}
	return list, nil
}

// FindUsers lists users whose e-mail has text in it, whatever the case, in the order of their ids, at most limit.
func (a *Accounts) FindUsers(ctx context.Context, text string, limit int) ([]User, error) {
	rows, err := a.pool.Query(ctx, `select `+userColumns+` from users where position($1 in email) > 0 order by id limit $2`, foldEmail(text), limit)
	if err != nil {
		return nil, fmt.Errorf("looking for users: %w", err)
	}
	users, err := pgx.CollectRows(rows, pgx.RowToStructByPos[User])
	if err != nil {
		return nil, fmt.Errorf("looking for users: %w", err)
	}
	return users, nil
}
