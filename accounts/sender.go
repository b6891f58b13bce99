package accounts

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	maxSender      = 11 // characters, rule api 2.4
	defaultCountry = "BI"
)

// CreateSender registers a sender name for a company: 1 to 11 ASCII letters and digits, case-sensitive, and not the test
// sender's name. An empty country is BI.
func (a *Accounts) CreateSender(ctx context.Context, companyID int64, name, country string, approved bool) (Sender, error) {
	if country == "" {
		country = defaultCountry
	}
	country = strings.ToUpper(country)
	if err := a.checkSender(name, country); err != nil {
		return Sender{}, err
	}
	s := Sender{Name: name, Country: country, Approved: approved}
	err := a.pool.QueryRow(ctx,
		`insert into senders (company_id, name, country, approved) values ($1, $2, $3, $4) returning id`,
		companyID, name, country, approved).Scan(&s.ID)
	var pg *pgconn.PgError
	switch {
	case isUnique(err, "senders_company_id_name_key"):
		return Sender{}, &callerError{ErrExists, fmt.Sprintf("company %d has a sender %s already", companyID, name)}
	case errors.As(err, &pg) && pg.ConstraintName == "senders_company_id_fkey":
		return Sender{}, noCompany(companyID)
	case err != nil:
		return Sender{}, fmt.Errorf("storing a sender of company %d: %w", companyID, err)
	}
	a.cache.forgetAll()
	return s, nil
}

func (a *Accounts) checkSender(name, country string) error {
	switch {
	case len(name) < 1 || len(name) > maxSender || strings.Trim(name, alphanumerics) != "":
		return &callerError{ErrInvalid, fmt.Sprintf("the sender name %q is not 1-11 alphanumeric characters", name)}
	case name == a.opts.TestSender:
		return &callerError{ErrInvalid, fmt.Sprintf("%s is the test sender's name, which no company may register", name)}
	case len(country) != 2 || strings.Trim(country, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "":
		return &callerError{ErrInvalid, fmt.Sprintf("%q is not a country code of two letters", country)}
	}
	return nil
}

// SetSender approves a sender, even a refused one, or withdraws its approval, and returns its new state.
func (a *Accounts) SetSender(ctx context.Context, id int64, approved bool) (Sender, error) {
	var s Sender
	err := a.pool.QueryRow(ctx,
		`update senders set approved = $2, refused_at = case when not $2 then refused_at end,
			refusal = case when $2 then '' else refusal end
		where id = $1 returning id, name, country, approved`, id, approved).
		Scan(&s.ID, &s.Name, &s.Country, &s.Approved)
	if errors.Is(err, pgx.ErrNoRows) {
		return Sender{}, &callerError{ErrNotFound, fmt.Sprintf("there is no sender with id %d", id)}
	}
	if err != nil {
		return Sender{}, fmt.Errorf("changing sender %d: %w", id, err)
	}
	a.cache.forgetAll()
	return s, nil
}

// SendersOf lists a company's senders by name.
func (a *Accounts) SendersOf(ctx context.Context, companyID int64) ([]Sender, error) {
	rows, err := a.pool.Query(ctx,
		`select id, name, country, approved from senders where company_id = $1 order by name`, companyID)
	if err != nil {
		return nil, fmt.Errorf("listing the senders of company %d: %w", companyID, err)
	}
	senders, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Sender])
	if err != nil {
		return nil, fmt.Errorf("listing the senders of company %d: %w", companyID, err)
	}
	return senders, nil
}

// IsTestSender reports whether a name is the test sender's, which no company may register.
func (a *Accounts) IsTestSender(name string) bool {
	return a.opts.TestSender != "" && name == a.opts.TestSender
}

// Namesakes returns the approved senders of other companies with the same name, ignoring case, at most a hundred: a
// recipient cannot tell them apart.
func (a *Accounts) Namesakes(ctx context.Context, name string, company int64) ([]OwnedSender, error) {
	rows, err := a.pool.Query(ctx, `select `+ownedSenderColumns+` from senders
		where lower(name) = lower($1) and approved and company_id <> $2 order by id limit 100`, name, company)
	if err != nil {
		return nil, fmt.Errorf("looking for senders of the same name: %w", err)
	}
	list, err := pgx.CollectRows(rows, scanOwnedSender)
	if err != nil {
		return nil, fmt.Errorf("looking for senders of the same name: %w", err)
	}
	return list, nil
}
