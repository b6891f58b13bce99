package accounts

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Users lists users with ids above after, in the order of their ids, at most limit of them.
func (a *Accounts) Users(ctx context.Context, after int64, limit int) ([]User, error) {
	rows, err := a.pool.Query(ctx, `select `+userColumns+` from users where id > $1 order by id limit $2`, after, limit)
	if err != nil {
		return nil, fmt.Errorf("listing users: %w", err)
	}
	users, err := pgx.CollectRows(rows, pgx.RowToStructByPos[User])
	if err != nil {
		return nil, fmt.Errorf("listing users: %w", err)
	}
	return users, nil
}

// Tokens lists the tokens of all users, including revoked ones, with ids above after, in the order of their ids, at most
// limit of them.
func (a *Accounts) Tokens(ctx context.Context, after int64, limit int) ([]Token, error) {
	rows, err := a.pool.Query(ctx,
		`select id, user_id, name, created_at, last_used_at, revoked_at from api_tokens where id > $1 order by id limit $2`, after, limit)
	if err != nil {
		return nil, fmt.Errorf("listing tokens: %w", err)
	}
	tokens, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Token])
	if err != nil {
		return nil, fmt.Errorf("listing tokens: %w", err)
	}
	return tokens, nil
}

// OwnedSender is a sender and the company that it belongs to.
type OwnedSender struct {
	Sender

	CompanyID int64
}

const ownedSenderColumns = `id, name, country, approved, company_id`

func scanOwnedSender(row pgx.CollectableRow) (s OwnedSender, err error) {
	err = row.Scan(&s.ID, &s.Name, &s.Country, &s.Approved, &s.CompanyID)
	return s, err
}

// Senders lists the senders of all companies with ids above after, in the order of their ids, at most limit of them.
func (a *Accounts) Senders(ctx context.Context, after int64, limit int) ([]SenderRequest, error) {
	return a.senderRequests(ctx, `select `+senderRequestColumns+` from senders where id > $1 order by id limit $2`, after, limit)
}

// SenderByID returns a sender with its company, for example before it is approved.
func (a *Accounts) SenderByID(ctx context.Context, id int64) (OwnedSender, error) {
	rows, err := a.pool.Query(ctx, `select `+ownedSenderColumns+` from senders where id = $1`, id)
	if err != nil {
		return OwnedSender{}, fmt.Errorf("reading sender %d: %w", id, err)
	}
	s, err := pgx.CollectExactlyOneRow(rows, scanOwnedSender)
	if errors.Is(err, pgx.ErrNoRows) {
		return OwnedSender{}, &callerError{ErrNotFound, fmt.Sprintf("there is no sender with id %d", id)}
	}
	if err != nil {
		return OwnedSender{}, fmt.Errorf("reading sender %d: %w", id, err)
	}
	return s, nil
}

// The queries below are for administrators: they find the rows of all companies.

const applicantColumns = `c.id, c.owner_id, c.name, c.approved, c.verified, c.smart_encoding, coalesce(c.quiet_hours, ''), u.email, u.name, c.created_at
	from companies c join users u on u.id = c.owner_id`

func scanApplicant(row pgx.CollectableRow) (p Applicant, err error) {
	c := &p.Company
	err = row.Scan(&c.ID, &c.OwnerID, &c.Name, &c.Approved, &c.Verified, &c.SmartEncoding, &c.QuietHours, &p.OwnerEmail, &p.OwnerName, &p.CreatedAt)
	return p, err
}

// FindCompanies lists companies whose name or owner's e-mail contains text, ignoring case, or whose id is text; all with
// an empty text. Their ids are above after and ascending, at most limit of them.
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

// ApplicantByID returns the company with that id, and its owner.
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

// FindUsers lists users whose e-mail contains text, ignoring case, in the order of their ids, at most limit of them.
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
