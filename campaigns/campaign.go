package campaigns

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/oklog/ulid/v2"

	"intumwa/campaigns/sheets"
	"intumwa/contacts"
	"intumwa/internal/postgres"
	"intumwa/sms"
)

const (
	draftLife  = 12 * time.Hour // of an unsent campaign
	draftsKept = 10             // unsent campaigns of a company
)

// Life is how long a campaign may take from its upload to its last part, with its pauses: numbers are kept no longer.
const Life = 24 * time.Hour

// ErrNotFound means that the company has no such campaign, or none any more.
var ErrNotFound = errors.New("there is no such campaign")

// Campaign is a checked campaign until all of it is sent. The database stores it, not the page, so exactly the checked
// campaign is sent.
type Campaign struct {
	ID         ulid.ULID // also its batch's
	Company    int64
	Name       string
	Sender     string
	Template   string
	CostCenter string // of all its messages; "": none
	Reading    sheets.Reading
	Audience   *contacts.Audience // whom it goes to; nil: to those of a file
	CreatedAt  time.Time

	paused      string // why intake refused its next part; "": it did not
	continuedBy int64  // the user who sends its further parts; 0: its batch's
}

func (made *Campaign) key() pgtype.UUID { return uuid(made.ID) }

func uuid(id ulid.ULID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: true} }

const campaignColumns = `ulid, company_id, name, sender, template, coalesce(cost_center, ''), reading, audience,
	created_at, paused, coalesce(continued_by, 0)`

const selectCampaign = `select ` + campaignColumns + ` from campaigns`

func scanCampaign(row pgx.CollectableRow) (made Campaign, err error) {
	var id pgtype.UUID
	err = row.Scan(&id, &made.Company, &made.Name, &made.Sender, &made.Template, &made.CostCenter, &made.Reading,
		&made.Audience, &made.CreatedAt, &made.paused, &made.continuedBy)
	made.ID = id.Bytes
	return made, err
}

// Keep stores a campaign with the rows of its file, and deletes the company's oldest unsent ones. next returns the
// rows, then [io.EOF]; after any other error nothing is stored.
func (c *Campaigns) Keep(ctx context.Context, made *Campaign, next func() (Row, error)) error {
	return c.keep(ctx, made, func(pgx.Tx) (func() (Row, error), error) { return next, nil })
}

func (c *Campaigns) keep(ctx context.Context, made *Campaign, open func(tx pgx.Tx) (func() (Row, error), error)) error {
	return pgx.BeginFunc(ctx, c.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `insert into campaigns
			(ulid, company_id, name, sender, template, cost_center, reading, audience)
			values ($1, $2, $3, $4, $5, nullif($6, ''), $7, $8)`,
			made.key(), made.Company, made.Name, made.Sender, made.Template, made.CostCenter, made.Reading,
			made.Audience); err != nil {
			return fmt.Errorf("keeping a campaign: %w", err)
		}
		next, err := open(tx)
		if err != nil {
			return err
		}
		seen, n := map[sms.Number]bool{}, 0
		for more := true; more; {
			var rows []Row
			for len(rows) < rowsAtOnce {
				row, err := next()
				if errors.Is(err, io.EOF) {
					more = false
					break
				}
				if err != nil {
					return err
				}
				n++
				row.N = n
				if row.Fault == "" {
					row.Repeated, seen[row.Number] = seen[row.Number], true
				}
				rows = append(rows, row)
			}
			if err := made.keepRows(ctx, tx, rows); err != nil {
				return fmt.Errorf("keeping the rows of a campaign: %w", err)
			}
		}
		if _, err := tx.Exec(ctx, `delete from campaigns where company_id = $1 and taken_until is null and ulid in (
			select ulid from campaigns where company_id = $1 and taken_until is null order by created_at desc offset $2)`,
			made.Company, draftsKept); err != nil {
			return fmt.Errorf("deleting old campaigns: %w", err)
		}
		return nil
	})
}

// Get returns a company's campaign; [ErrNotFound] if it is another company's, expired, or sent completely.
func (c *Campaigns) Get(ctx context.Context, company sms.CompanyID, id ulid.ULID) (Campaign, error) {
	found, err := postgres.All(ctx, c.Pool, "reading a campaign", scanCampaign,
		selectCampaign+` where ulid = $1 and company_id = $2 and created_at > now() - case when taken_until is null then $3
			else $4 end::interval`,
		uuid(id), int64(company), draftLife, Life)
	if err == nil && len(found) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Campaign{}, err
	}
	return found[0], nil
}

// Drop deletes a campaign that has not begun, and reports whether it did.
func (c *Campaigns) Drop(ctx context.Context, made *Campaign) (bool, error) {
	tag, err := c.Pool.Exec(ctx, `delete from campaigns where ulid = $1 and taken_until is null`, made.key())
	if err != nil {
		return false, fmt.Errorf("dropping a campaign: %w", err)
	}
	return tag.RowsAffected() > 0, nil
}

// Delete deletes a campaign with its rows. Its batch stays.
func (c *Campaigns) Delete(ctx context.Context, id ulid.ULID) error {
	if _, err := c.Pool.Exec(ctx, `delete from campaigns where ulid = $1`, uuid(id)); err != nil {
		return fmt.Errorf("deleting a campaign: %w", err)
	}
	return nil
}

// Erase deletes a number from campaigns that have not begun, and from those that have ended. pending is how many rows
// of others have it: they are deleted within the campaign's [Life]. It locks those campaigns first: one that is begun
// meanwhile keeps its rows.
func Erase(ctx context.Context, db postgres.DB, number sms.Number) (pending int64, err error) {
	err = db.QueryRow(ctx, `with free as (
			select ulid from campaigns c where (taken_until is null or taken_until = 'infinity')
			and exists (select from campaign_rows r where r.campaign = c.ulid and r.number = $1) order by ulid for update
		), gone as (
			delete from campaign_rows r using free where r.campaign = free.ulid and r.number = $1 returning 1
		)
		select (select count(*) from campaign_rows where number = $1) - (select count(*) from gone)`, string(number)).Scan(
		&pending)
	if err != nil {
		return 0, fmt.Errorf("erasing a number in campaigns: %w", err)
	}
	return pending, nil
}
