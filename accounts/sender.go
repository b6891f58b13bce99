package accounts

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

const defaultCountry = "BI"

// CreateSender registers a sender name for a company: 1 to 11 ASCII letters and digits, case-sensitive, and not the
// test sender's name. The default country is BI.
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
	case !sms.ValidSender(name):
		return &callerError{ErrInvalid, fmt.Sprintf("the sender name %q is not 1-11 alphanumeric characters", name)}
	case name == a.opts.TestSender:
		return &callerError{ErrInvalid, fmt.Sprintf("%s is the test sender's name, which no company may register", name)}
	case len(country) != 2 || strings.Trim(country, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "":
		return &callerError{ErrInvalid, fmt.Sprintf("%q is not a country code of two letters", country)}
	}
	return nil
}

// SendersOf lists a company's senders by name.
func (a *Accounts) SendersOf(ctx context.Context, companyID int64) ([]Sender, error) {
	return postgres.All(ctx, a.pool, "listing senders", func(row pgx.CollectableRow) (s Sender, err error) {
		return s, row.Scan(&s.ID, &s.Name, &s.Country, &s.Approved)
	},
		`select id, name, country, approved from senders where company_id = $1 order by name`, companyID)
}

// IsTestSender reports whether a name is the test sender's, which no company may register.
func (a *Accounts) IsTestSender(name string) bool {
	return a.opts.TestSender != "" && name == a.opts.TestSender
}

// Namesakes returns the approved senders of other companies with the same name, ignoring case, at most a hundred:
// recipients cannot tell them apart.
func (a *Accounts) Namesakes(ctx context.Context, name string, company int64) ([]SenderRequest, error) {
	return a.senders(ctx, `where lower(name) = lower($1) and approved and company_id <> $2 order by id limit 100`, name, company)
}

// Holders returns, by sender id, the other companies with an approved sender of the same name, as [Accounts.Namesakes].
func (a *Accounts) Holders(ctx context.Context, ids []int64) (map[int64][]string, error) {
	type holder struct {
		ID      int64
		Company string
	}
	found, err := postgres.All(ctx, a.pool, "reading the holders of sender names", pgx.RowToStructByPos[holder], `
		select s.id, c.name from senders s join senders o on lower(o.name) = lower(s.name) and o.approved and o.company_id <> s.company_id
		join companies c on c.id = o.company_id where s.id = any($1) order by s.id, c.id limit 1000`, ids)
	holders := map[int64][]string{}
	for _, h := range found {
		holders[h.ID] = append(holders[h.ID], h.Company)
	}
	return holders, err
}
