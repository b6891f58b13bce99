package senders

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"intumwa/accounts"
	"intumwa/internal/postgres"
	"intumwa/sms"
)

const defaultCountry = "BI"

// CreateSender registers a sender name for a company: 1 to 11 ASCII letters and digits, case-sensitive, and not the
// test sender's name. The default country is BI.
func (a *Store) CreateSender(ctx context.Context, companyID int64, name, country string, approved bool) (
	accounts.Sender, error) {
	if country == "" {
		country = defaultCountry
	}
	country = strings.ToUpper(country)
	if err := a.checkSender(name, country); err != nil {
		return accounts.Sender{}, err
	}
	s := accounts.Sender{Name: name, Country: country, Approved: approved}
	err := a.pool.QueryRow(ctx,
		`insert into senders (company_id, name, country, approved) values ($1, $2, $3, $4) returning id`,
		companyID, name, country, approved).Scan(&s.ID)
	var pg *pgconn.PgError
	switch {
	case accounts.IsUnique(err, "senders_company_id_name_key"):
		return accounts.Sender{}, accounts.Errorf(accounts.ErrExists, "company %d has a sender %s already", companyID, name)
	case errors.As(err, &pg) && pg.ConstraintName == "senders_company_id_fkey":
		return accounts.Sender{}, accounts.NoCompany(companyID)
	case err != nil:
		return accounts.Sender{}, fmt.Errorf("storing a sender of company %d: %w", companyID, err)
	}
	a.forget()
	return s, nil
}

func (a *Store) checkSender(name, country string) error {
	switch {
	case !sms.ValidSender(name):
		return accounts.Errorf(accounts.ErrInvalid, "the sender name %q is not 1-11 alphanumeric characters", name)
	case name == a.test:
		return accounts.Errorf(accounts.ErrInvalid, "%s is the test sender's name, which no company may register", name)
	case len(country) != 2 || strings.Trim(country, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "":
		return accounts.Errorf(accounts.ErrInvalid, "%q is not a country code of two letters", country)
	}
	return nil
}

// SendersOf lists a company's senders by name.
func (a *Store) SendersOf(ctx context.Context, companyID int64) ([]accounts.Sender, error) {
	return postgres.All(ctx, a.pool, "listing senders", func(row pgx.CollectableRow) (s accounts.Sender, err error) {
		return s, row.Scan(&s.ID, &s.Name, &s.Country, &s.Approved)
	},
		`select id, name, country, approved from senders where company_id = $1 order by name`, companyID)
}

// IsTestSender reports whether a name is the test sender's, which no company may register.
func (a *Store) IsTestSender(name string) bool {
	return a.test != "" && name == a.test
}

// Namesakes returns the approved senders of other companies with the same name, ignoring case, at most a hundred:
// recipients cannot tell them apart.
func (a *Store) Namesakes(ctx context.Context, name string, company int64) ([]SenderRequest, error) {
	return a.senders(ctx, `where lower(name) = lower($1) and approved and company_id <> $2 order by id limit 100`, name,
		company)
}

// Holders returns, by sender id, the other companies with an approved sender of the same name, as [Store.Namesakes].
func (a *Store) Holders(ctx context.Context, ids []int64) (map[int64][]string, error) {
	type holder struct {
		ID      int64
		Company string
	}
	found, err := postgres.All(ctx, a.pool, "reading the holders of sender names", pgx.RowToStructByPos[holder], `
		select s.id, c.name from senders s join senders o on lower(o.name) = lower(s.name) and o.approved
			and o.company_id <> s.company_id
		join companies c on c.id = o.company_id where s.id = any($1) order by s.id, c.id limit 1000`, ids)
	holders := map[int64][]string{}
	for _, h := range found {
		holders[h.ID] = append(holders[h.ID], h.Company)
	}
	return holders, err
}
