package campaigns

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/inbound/handsets"
	"intumwa/intake"
	"intumwa/internal/postgres"
	"intumwa/sms"
	"intumwa/texts"
)

const (
	rowsAtOnce = 1000 // rows per statement
	// messages of a preview: the first five, the first three with accents, the first three with an empty cell
	previewed = 11
)

// Row is a line of a campaign's file.
type Row struct {
	N         int // in the order of the file, from 1
	Line      int // as in an editor
	Number    sms.Number
	Variables map[string]*string
	Segments  int
	UCS2      bool
	Fault     string // the line's error, in the user's language; empty: none
	OptedOut  bool   // the recipient has opted out of the sender ID
	Repeated  bool   // an earlier line has the same number
}

// Blanks returns the names of the template whose cells are empty, sorted.
func (r *Row) Blanks() (names []string) {
	for name, value := range r.Variables {
		if value == nil || strings.TrimSpace(*value) == "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Problems of rows.
const (
	Faults   = "faults" // invalid lines
	OptedOut = "optedout"
	Repeated = "repeated" // repeated numbers
	Blank    = "blank"    // an empty cell, which leaves a gap in the text
	Any      = "any"
)

// The rows of a campaign that will be sent.
const sendable = `fault is null and not opted_out`

// White space as in [Row.Blanks].
const blank = `exists (select from jsonb_each_text(variables)
	where value ~ '^[\s\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*$')`

// conditions are those of the rows with each problem.
var conditions = map[string]string{Faults: `fault is not null`, OptedOut: `opted_out`, Repeated: `repeated and ` +
	sendable,
	Blank: blank + ` and ` + sendable, Any: `(fault is not null or opted_out or repeated or ` + blank + `)`}

// Rows returns up to limit rows of a campaign with a problem, with N above after.
func (c *Campaigns) Rows(ctx context.Context, made *Campaign, problem string, after, limit int) ([]Row, error) {
	return rowsOf(ctx, c.Pool, made, conditions[problem], after, limit)
}

func rowsOf(ctx context.Context, db postgres.Querier, made *Campaign, condition string, after, limit int) (
	[]Row, error) {
	return postgres.All(ctx, db, "reading the rows of a campaign", func(row pgx.CollectableRow) (r Row, err error) {
		err = row.Scan(&r.N, &r.Line, &r.Number, &r.Variables, &r.Segments, &r.UCS2, &r.Fault, &r.OptedOut, &r.Repeated)
		return r, err
	}, `select n, line, number, variables, segments, ucs2, coalesce(fault, ''), opted_out, repeated from campaign_rows
		where campaign = $1 and n > $2 and `+condition+` order by n limit $3`, made.key(), after, limit)
}

// Preview returns the rows of some messages: the first ones, some with accents, in which a wrong encoding shows, and
// some with an empty cell.
func (c *Campaigns) Preview(ctx context.Context, made *Campaign) ([]Row, error) {
	const of = `n in (select n from campaign_rows where campaign = $1 and ` + sendable
	return rowsOf(ctx, c.Pool, made, `(`+of+` order by n limit 5) or `+of+
		` and octet_length(variables::text) > length(variables::text) order by n limit 3)
		or `+of+` and `+blank+` order by n limit 3))`, 0, previewed)
}

func (made *Campaign) keepRows(ctx context.Context, tx pgx.Tx, rows []Row) error {
	barred, err := made.barred(ctx, tx, rows)
	if err != nil {
		return err
	}
	columns := []string{"campaign", "n", "line", "number", "variables", "segments", "ucs2", "fault", "opted_out",
		"repeated"}
	_, err = tx.CopyFrom(ctx, pgx.Identifier{"campaign_rows"}, columns,
		pgx.CopyFromSlice(len(rows), func(i int) ([]any, error) {
			r := &rows[i]
			if r.Fault != "" {
				return []any{made.key(), r.N, r.Line, "", nil, 0, false, r.Fault, false, false}, nil
			}
			variables, err := json.Marshal(r.Variables)
			return []any{made.key(), r.N, r.Line, string(r.Number), variables, r.Segments, r.UCS2, nil, barred[i], r.Repeated},
				err
		}))
	return err
}

// barred returns the rows whose recipients have opted out of the sender ID, by position.
func (made *Campaign) barred(ctx context.Context, db postgres.Querier, rows []Row) (map[int]bool, error) {
	pairs := make([]handsets.Pair, len(rows))
	for i, r := range rows {
		pairs[i] = handsets.Pair{CompanyID: made.Company, Number: r.Number, Sender: made.Sender}
	}
	return handsets.Barred(ctx, db, pairs)
}

// Recheck marks recipients of an unsent campaign who have opted out or left its groups since the check, and those to
// whom p can no longer send, and reports whether there are any. lang is the language of the faults.
func (c *Campaigns) Recheck(ctx context.Context, lang *texts.Language, p *accounts.Principal, made *Campaign) (
	marked bool, err error) {
	batch := intake.Batch{Sender: made.Sender, Template: sms.ParseColumns(made.Template), Part: &intake.Part{Of: made.ID}}
	err = c.unbegun(ctx, made, func(tx pgx.Tx) error {
		for after, more := 0, true; more; {
			rows, err := rowsOf(ctx, tx, made, sendable, after, rowsAtOnce)
			if err != nil {
				return err
			}
			barred, err := made.barred(ctx, tx, rows)
			if err != nil {
				return err
			}
			absent, err := made.absent(ctx, tx, rows)
			if err != nil {
				return err
			}
			batch.Recipients = batch.Recipients[:0]
			for _, r := range rows {
				batch.Recipients = append(batch.Recipients, intake.Recipient{Number: r.Number, Variables: r.Variables})
			}
			refused := c.Intake.Unsendable(p, &batch)
			var out []int
			var faults []*string
			for i, r := range rows {
				refusal, is := refused[i]
				switch {
				case absent[i]:
					out, faults = append(out, r.N), append(faults, new(lang.T("campaign.group.left")))
				case is:
					out, faults = append(out, r.N), append(faults, new(lang.Refusal(refusal)))
				case barred[i]:
					out, faults = append(out, r.N), append(faults, nil)
				}
			}
			if len(out) > 0 {
				marked = true
				if _, err := tx.Exec(ctx, `update campaign_rows r set fault = m.fault, opted_out = m.fault is null
					from unnest($2::int[], $3::text[]) m(n, fault) where r.campaign = $1 and r.n = m.n`, made.key(), out,
					faults); err != nil {
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

// LeaveOut deletes the rows with a problem from an unsent campaign, unless that would leave no recipient. The error is
// [ErrNotFound] if there is no such problem.
func (c *Campaigns) LeaveOut(ctx context.Context, made *Campaign, problem string) (left bool, err error) {
	condition, known := conditions[problem]
	if !known || problem == Any {
		return false, ErrNotFound
	}
	err = c.unbegun(ctx, made, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `delete from campaign_rows where campaign = $1 and `+condition+`
			and exists (select from campaign_rows where campaign = $1 and `+sendable+`)`, made.key())
		left = tag.RowsAffected() > 0
		return err
	})
	return left, err
}

// unbegun changes the rows of a campaign, but only before it has begun.
func (c *Campaigns) unbegun(ctx context.Context, made *Campaign, change func(tx pgx.Tx) error) error {
	err := pgx.BeginFunc(ctx, c.Pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `select from campaigns where ulid = $1 and taken_until is null for update`, made.key())
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

// recipients returns at most limit recipients of a campaign, from the offset after, and the N of their rows.
func (c *Campaigns) recipients(ctx context.Context, made *Campaign, after, limit int) (list []intake.Recipient,
	ns []int, err error) {
	list, err = postgres.All(ctx, c.Pool, "reading the recipients of a campaign",
		func(row pgx.CollectableRow) (r intake.Recipient, err error) {
			var n int
			err = row.Scan(&n, &r.Number, &r.Variables)
			ns = append(ns, n)
			return r, err
		}, `select n, number, variables from campaign_rows where campaign = $1 and `+sendable+
			` order by n offset $2 limit $3`,
		made.key(), after, limit)
	return list, ns, err
}

// Sums counts the rows of a campaign.
type Sums struct {
	Recipients int // messages to send
	Segments   int // of all messages
	Longest    int // of the longest message
	Unicode    int // messages in UCS-2
	Faults     int // invalid lines
	OptedOut   int // recipients who have opted out of the sender ID
	Repeated   int // repeated numbers
	Blank      int // messages with an empty cell
}

// Sums returns the counts of a campaign's rows.
func (c *Campaigns) Sums(ctx context.Context, made *Campaign) (s Sums, err error) {
	err = c.Pool.QueryRow(ctx, `select count(*) filter (where `+sendable+`), coalesce(sum(segments) filter (where `+
		sendable+`), 0),
			coalesce(max(segments) filter (where `+sendable+`), 0), count(*) filter (where ucs2 and `+sendable+`),
			count(fault), count(*) filter (where opted_out), count(*) filter (where repeated and `+sendable+
		`), count(*) filter (where `+conditions[Blank]+`)
		from campaign_rows where campaign = $1`, made.key()).Scan(&s.Recipients, &s.Segments, &s.Longest, &s.Unicode,
		&s.Faults, &s.OptedOut, &s.Repeated, &s.Blank)
	if err != nil {
		return s, fmt.Errorf("counting the rows of a campaign: %w", err)
	}
	return s, nil
}
