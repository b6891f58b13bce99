package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/oklog/ulid/v2"

	"intumwa/inbound/handsets"
	"intumwa/intake"
	"intumwa/internal/postgres"
	"intumwa/sms"
)

const (
	draftLife    = 12 * time.Hour // of an unsent campaign
	campaignLife = 24 * time.Hour // of a paused one: numbers are kept no longer
	draftsKept   = 10             // drafts of a company
)

// draft is a checked campaign until all of it is sent. The database stores it, not the page, so exactly the checked
// campaign is sent.
type draft struct {
	ID        ulid.ULID // also its batch's
	Company   int64
	Name      string
	Sender    string
	Template  string
	Reading   reading
	CreatedAt time.Time
	Paused    string // why its next part was refused; "": not paused
}

func (c *draft) path() string { return "/campaigns/drafts/" + c.ID.String() }

func (c *draft) key() pgtype.UUID { return uuid(c.ID) }

func uuid(id ulid.ULID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: true} }

// draftRow is a line of a campaign's file.
type draftRow struct {
	N         int // in the order of the file, from 1
	Line      int // as in an editor
	Number    sms.Number
	Variables map[string]*string
	Segments  int
	UCS2      bool
	Fault     string // the line's error; empty: none
	OptedOut  bool   // the recipient has opted out of the sender ID
	Repeated  bool   // an earlier line has the same number
}

// The rows of a campaign that will be sent.
const sendable = `fault is null and not opted_out`

// keepDraft stores a campaign with the rows of its file, and deletes the company's oldest beyond draftsKept. next
// returns the rows, then io.EOF; any other error stores nothing.
func (d *Dashboard) keepDraft(ctx context.Context, made *draft, next func() (draftRow, error)) error {
	return pgx.BeginFunc(ctx, d.rooms.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `insert into campaigns (ulid, company_id, name, sender, template, reading) values ($1, $2, $3, $4, $5, $6)`,
			made.key(), made.Company, made.Name, made.Sender, made.Template, made.Reading); err != nil {
			return fmt.Errorf("keeping a campaign: %w", err)
		}
		seen, n := map[sms.Number]bool{}, 0
		for more := true; more; {
			var rows []draftRow
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
			select ulid from campaigns where company_id = $1 and taken_until is null order by created_at desc offset $2)`, made.Company, draftsKept); err != nil {
			return fmt.Errorf("deleting old campaigns: %w", err)
		}
		return nil
	})
}

func (c *draft) keepRows(ctx context.Context, tx pgx.Tx, rows []draftRow) error {
	barred, err := c.barred(ctx, tx, rows)
	if err != nil {
		return err
	}
	columns := []string{"campaign", "n", "line", "number", "variables", "segments", "ucs2", "fault", "opted_out", "repeated"}
	_, err = tx.CopyFrom(ctx, pgx.Identifier{"campaign_rows"}, columns, pgx.CopyFromSlice(len(rows), func(i int) ([]any, error) {
		r := &rows[i]
		if r.Fault != "" {
			return []any{c.key(), r.N, r.Line, "", nil, 0, false, r.Fault, false, false}, nil
		}
		variables, err := json.Marshal(r.Variables)
		return []any{c.key(), r.N, r.Line, string(r.Number), variables, r.Segments, r.UCS2, nil, barred[i], r.Repeated}, err
	}))
	return err
}

// barred returns the rows whose recipients have opted out of the sender ID, by position.
func (c *draft) barred(ctx context.Context, db postgres.Querier, rows []draftRow) (map[int]bool, error) {
	pairs := make([]handsets.Pair, len(rows))
	for i, r := range rows {
		pairs[i] = handsets.Pair{CompanyID: c.Company, Number: r.Number, Sender: c.Sender}
	}
	return handsets.Barred(ctx, db, pairs)
}

// markOptedOut marks recipients who have opted out since the check, and reports whether there are any.
func (d *Dashboard) markOptedOut(ctx context.Context, c *draft) (marked bool, err error) {
	err = d.unbegun(ctx, c, func(tx pgx.Tx) error {
		for after, more := 0, true; more; {
			rows, err := rowsOf(ctx, tx, c, sendable, after, rowsAtOnce)
			if err != nil {
				return err
			}
			barred, err := c.barred(ctx, tx, rows)
			if err != nil {
				return err
			}
			var out []int
			for i := range barred {
				out = append(out, rows[i].N)
			}
			if len(out) > 0 {
				marked = true
				if _, err := tx.Exec(ctx, `update campaign_rows set opted_out = true where campaign = $1 and n = any($2)`, c.key(), out); err != nil {
					return err
				}
			}
			if more = len(rows) == rowsAtOnce; more {
				after = rows[len(rows)-1].N
			}
		}
		return nil
	})
	return marked, err
}

// leaveOutRows deletes the rows of a problem from a campaign, unless that would leave no recipient.
func (d *Dashboard) leaveOutRows(ctx context.Context, c *draft, which string) (left bool, err error) {
	err = d.unbegun(ctx, c, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `delete from campaign_rows where campaign = $1 and `+which+`
			and exists (select from campaign_rows where campaign = $1 and `+sendable+`)`, c.key())
		left = tag.RowsAffected() > 0
		return err
	})
	return left, err
}

// unbegun changes the rows of a campaign, but only before it has begun.
func (d *Dashboard) unbegun(ctx context.Context, c *draft, change func(tx pgx.Tx) error) error {
	err := pgx.BeginFunc(ctx, d.rooms.Pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `select from campaigns where ulid = $1 and taken_until is null for update`, c.key())
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		return change(tx)
	})
	if err != nil {
		return fmt.Errorf("changing the rows of a campaign: %w", err)
	}
	return nil
}

// rowsOf returns up to limit rows of a campaign that meet a condition, with N above after.
func rowsOf(ctx context.Context, db postgres.Querier, c *draft, condition string, after, limit int) ([]draftRow, error) {
	return postgres.All(ctx, db, "reading the rows of a campaign", scanRow,
		selectRow+` where campaign = $1 and n > $2 and `+condition+` order by n limit $3`, c.key(), after, limit)
}

const selectRow = `select n, line, number, variables, segments, ucs2, coalesce(fault, ''), opted_out, repeated from campaign_rows`

func scanRow(row pgx.CollectableRow) (r draftRow, err error) {
	err = row.Scan(&r.N, &r.Line, &r.Number, &r.Variables, &r.Segments, &r.UCS2, &r.Fault, &r.OptedOut, &r.Repeated)
	return r, err
}

// recipients returns at most limit recipients of a campaign, from the offset after.
func (d *Dashboard) recipients(ctx context.Context, c *draft, after, limit int) ([]intake.Recipient, error) {
	return postgres.All(ctx, d.rooms.Pool, "reading the recipients of a campaign", func(row pgx.CollectableRow) (r intake.Recipient, err error) {
		err = row.Scan(&r.Number, &r.Variables)
		return r, err
	}, `select number, variables from campaign_rows where campaign = $1 and `+sendable+` order by n offset $2 limit $3`, c.key(), after, limit)
}

// draftSums counts the rows of a campaign.
type draftSums struct {
	Recipients int // messages to send
	Segments   int // of all messages
	Longest    int // of the longest message
	Unicode    int // messages in UCS-2
	Faults     int // invalid lines
	OptedOut   int // recipients who have opted out of the sender ID
	Repeated   int // repeated numbers
}

func (d *Dashboard) sumsOf(ctx context.Context, c *draft) (s draftSums, err error) {
	err = d.rooms.Pool.QueryRow(ctx, `select count(*) filter (where `+sendable+`), coalesce(sum(segments) filter (where `+sendable+`), 0),
			coalesce(max(segments) filter (where `+sendable+`), 0), count(*) filter (where ucs2 and `+sendable+`),
			count(fault), count(*) filter (where opted_out), count(*) filter (where repeated and `+sendable+`)
		from campaign_rows where campaign = $1`, c.key()).Scan(&s.Recipients, &s.Segments, &s.Longest, &s.Unicode, &s.Faults, &s.OptedOut, &s.Repeated)
	if err != nil {
		return s, fmt.Errorf("counting the rows of a campaign: %w", err)
	}
	return s, nil
}

const selectDraft = `select ulid, company_id, name, sender, template, reading, created_at, paused from campaigns`

func scanDraft(row pgx.CollectableRow) (c draft, err error) {
	var id pgtype.UUID
	err = row.Scan(&id, &c.Company, &c.Name, &c.Sender, &c.Template, &c.Reading, &c.CreatedAt, &c.Paused)
	c.ID = id.Bytes
	return c, err
}

// draftOf returns a company's campaign; errNotFound if it is another company's, expired or sent.
func (d *Dashboard) draftOf(ctx context.Context, company sms.CompanyID, id ulid.ULID) (draft, error) {
	found, err := postgres.All(ctx, d.rooms.Pool, "reading a campaign", scanDraft,
		selectDraft+` where ulid = $1 and company_id = $2 and created_at > now() - case when taken_until is null then $3 else $4 end::interval`,
		uuid(id), int64(company), draftLife, campaignLife)
	if err == nil && len(found) == 0 {
		err = errNotFound
	}
	if err != nil {
		return draft{}, err
	}
	return found[0], nil
}

// The problems of a campaign, by their name in the form, and the condition for their rows.
var hindrances = map[string]string{"faults": `fault is not null`, "optedout": `opted_out`, "repeated": `repeated and ` + sendable}

// dropUnbegun deletes a campaign that has not begun, and reports whether it did.
func (d *Dashboard) dropUnbegun(ctx context.Context, c *draft) (bool, error) {
	tag, err := d.rooms.Pool.Exec(ctx, `delete from campaigns where ulid = $1 and taken_until is null`, c.key())
	if err != nil {
		return false, fmt.Errorf("dropping a campaign: %w", err)
	}
	return tag.RowsAffected() > 0, nil
}

// dropDraft deletes a campaign with its rows.
func (d *Dashboard) dropDraft(ctx context.Context, id ulid.ULID) error {
	if _, err := d.rooms.Pool.Exec(ctx, `delete from campaigns where ulid = $1`, uuid(id)); err != nil {
		return fmt.Errorf("deleting a campaign: %w", err)
	}
	return nil
}

// unsent is the handler of a page for an unsent campaign. A campaign that has begun redirects to its batch.
func (d *Dashboard) unsent(page func(*visit, tenant, *draft) error) func(*visit, tenant) error {
	return func(v *visit, t tenant) error {
		id := v.ulid("draft")
		made, missing := d.draftOf(v.ctx(), t.company(), id)
		if missing != nil && !errors.Is(missing, errNotFound) {
			return missing
		}
		sent, err := d.sentOf(v.ctx(), t.company(), id)
		switch {
		case err != nil:
			return err
		case sent != nil:
			return v.redirect("/batches/"+id.String(), "")
		case missing != nil:
			return missing
		}
		return page(v, t, &made)
	}
}

// take reserves a campaign for this process, so that no other sends its next part. It returns false if another process
// holds it or it is paused. first is set for its first part.
func (d *Dashboard) take(ctx context.Context, c *draft, first bool) (bool, error) {
	tag, err := d.rooms.Pool.Exec(ctx, `update campaigns set taken_until = now() + $2::interval
		where ulid = $1 and paused = '' and (taken_until <= now() or $3 and taken_until is null)`, c.key(), takenFor, first)
	if err != nil {
		return false, fmt.Errorf("taking a campaign: %w", err)
	}
	return tag.RowsAffected() > 0, nil
}

// giveBack ends a take: of an unsent campaign, or of one that may be taken again after a while, unless it is paused
// with a reason.
func (d *Dashboard) giveBack(ctx context.Context, c *draft, begun bool, after time.Duration, paused string) error {
	if _, err := d.rooms.Pool.Exec(ctx, `update campaigns set taken_until = case when $2 then now() + $3::interval end, paused = $4 where ulid = $1`,
		c.key(), begun, after, paused); err != nil {
		return fmt.Errorf("giving a campaign back: %w", err)
	}
	return nil
}
