package verifications

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// blockDigits is the length of a block's name: the E.164 form of 10,000 neighbouring numbers without the last four
// digits.
const blockDigits = len("+2577912")

// Conversion is how many people answered messages of a carrier to a block of numbers.
type Conversion struct {
	Carrier   string
	Block     string        // "": all blocks
	Company   sms.CompanyID // 0: all companies
	Asked     int64
	Converted int64
}

// answer is whether the person who got a message answered.
type answer struct {
	company          sms.CompanyID
	carrier          string
	number           sms.Number
	at               time.Time
	asked, converted int64
}

// Answers adds verifications that ended to the conversions of their carriers: whether their people answered. A
// cancelled one tells nothing of that, and the sandbox has no carrier.
func Answers(ctx context.Context, tx pgx.Tx, ended []Verification) error {
	var all []answer
	for i := range ended {
		a := answer{company: ended[i].Company, carrier: ended[i].Carrier, number: ended[i].Number, at: *ended[i].FinishedAt,
			asked: 1}
		switch ended[i].State {
		case Cancelled:
			continue
		case Approved:
			a.converted = 1
		}
		all = append(all, a)
	}
	return count(ctx, tx, all)
}

// count adds answers to the conversions of their days in Burundi. It locks the rows in the order of their keys.
func count(ctx context.Context, tx pgx.Tx, all []answer) error {
	all = slices.DeleteFunc(all, func(a answer) bool { return a.carrier == sms.SandboxCarrier })
	if len(all) == 0 {
		return nil
	}
	var companies, asked, converted []int64
	var carriers, blocks []string
	var at []time.Time
	for _, a := range all {
		companies, carriers, blocks = append(companies, int64(a.company)), append(carriers, a.carrier),
			append(blocks, blockOf(a.number))
		at, asked, converted = append(at, a.at), append(asked, a.asked), append(converted, a.converted)
	}
	if _, err := tx.Exec(ctx, `INSERT INTO conversions AS c (day, carrier, block, company_id, asked, converted)
		SELECT `+dayOf(`at`)+` AS day, carrier, block, company, sum(asked), sum(converted)
		FROM (SELECT unnest($1::timestamptz[]) AS at, unnest($2::text[]) AS carrier, unnest($3::text[]) AS block,
			unnest($4::bigint[]) AS company,
			unnest($5::bigint[]) AS asked, unnest($6::bigint[]) AS converted) n
		GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
		ON CONFLICT (day, carrier, block, company_id) DO UPDATE SET asked = c.asked + excluded.asked,
			converted = c.converted + excluded.converted`,
		at, carriers, blocks, companies, asked, converted); err != nil {
		return fmt.Errorf("counting conversions: %w", err)
	}
	return nil
}

// Feedback is a customer's report on a message.
type Feedback struct {
	Company   sms.CompanyID
	MessageID int64
	Message   ulid.ULID
	CreatedAt time.Time // of the message
	Carrier   string
	Number    sms.Number
	Converted bool // the person did what the message was for
}

// Report records a report on a message, or replaces the one before, where that one was counted: the message may have
// another carrier by now. A report on a message of a verification changes nothing: its end counts for the person.
func (s *Store) Report(ctx context.Context, tx pgx.Tx, f Feedback) error {
	var first bool
	var day time.Time
	// xmax is 0 in a row that was inserted, not updated.
	err := tx.QueryRow(ctx, `INSERT INTO feedback AS f (message_id, company_id, day, carrier, block, converted)
		SELECT $1, $2, `+dayOf(`$3::timestamptz`)+`, $4, $5, $6 WHERE NOT EXISTS (SELECT FROM verifications v
			WHERE v.phone_number = $7 AND v.company_id = $2 AND (v.message = $8 OR $8 = ANY(v.earlier)))
		ON CONFLICT (message_id) DO UPDATE SET converted = excluded.converted, at = now()
		WHERE f.converted <> excluded.converted
		RETURNING xmax = 0, day, carrier, block`, f.MessageID, int64(f.Company), f.CreatedAt, f.Carrier, blockOf(f.Number),
		f.Converted, string(f.Number), [16]byte(f.Message)).
		Scan(&first, &day, &f.Carrier, &f.Number)
	switch {
	case errors.Is(err, pgx.ErrNoRows): // a repetition, perhaps after a COMMIT without an answer
		return postgres.ConfirmWith(ctx, tx)
	case err != nil:
		return fmt.Errorf("recording feedback: %w", err)
	}
	a := answer{company: f.Company, carrier: f.Carrier, number: f.Number, at: day}
	if first {
		a.asked = 1
	}
	switch {
	case f.Converted:
		a.converted = 1
	case !first: // the report before said the opposite
		a.converted = -1
	}
	return count(ctx, tx, []answer{a})
}

// blockOf names the block of a number.
func blockOf(n sms.Number) string { return string(n[:min(len(n), blockDigits)]) }

// dayOf is the date in Burundi of an SQL time.
func dayOf(at string) string { return `((` + at + ` AT TIME ZONE 'UTC') + interval '2 hours')::date` }

// ConversionFilter selects conversions. A zero field means all.
type ConversionFilter struct {
	Company     sms.CompanyID
	Carrier     string
	First, Last time.Time // dates
	Least       int64     // people asked in a block
	ByCompany   bool      // blocks of each company
}

// Unanswered is a block of numbers to which a company sends codes that almost nobody enters.
type Unanswered struct {
	Company sms.CompanyID
	Block   string
	Codes   int64 // sent to it
	Entered int64
}

// Limits of Unanswered. A person has five minutes to enter the code.
const (
	leastCodes   = 50
	enteredShare = 0.2 // of the verifications, at least
	mostBlocks   = 100
)

// Unanswered returns the blocks to which a company started verifications within an hour, with at least 50 codes, of
// which fewer than a fifth were entered; those with the most codes first, at most 100. Tests and cancelled ones do not
// count.
func (s *Store) Unanswered(ctx context.Context) ([]Unanswered, error) {
	return postgres.All(ctx, s.db, "looking for codes that nobody enters", pgx.RowToStructByPos[Unanswered], `
		SELECT company_id, left(phone_number, $1), sum(sends), count(*) FILTER (WHERE state = 1) FROM verifications
		WHERE created_at > now() - interval '65 minutes' AND created_at <= now() - interval '5 minutes' AND NOT test
		AND state <> 2
		GROUP BY 1, 2 HAVING sum(sends) >= $2 AND count(*) FILTER (WHERE state = 1) < $3::float8 * count(*)
		ORDER BY 3 DESC, 1, 2 LIMIT $4`,
		blockDigits, leastCodes, enteredShare, mostBlocks)
}

// MostConversions is how many rows Conversions returns at most.
const MostConversions = 10_000

// Conversions returns the conversions of each carrier in all, then those of its blocks with the most people asked, at
// most limit rows of blocks. more reports whether there are others.
func (s *Store) Conversions(ctx context.Context, f ConversionFilter, limit int) (list []Conversion, more bool,
	err error) {
	blocks := `carrier, block, 0::bigint`
	if f.ByCompany {
		blocks = `carrier, block, company_id`
	}
	for _, by := range []struct {
		columns, order string
		least          int64
		limit          int
	}{{`carrier, '', 0::bigint`, `carrier`, 0, MostConversions},
		{blocks, `sum(asked) DESC, carrier, block, 3`, f.Least, limit + 1}} {
		some, err := postgres.All(ctx, s.db, "reading conversions", pgx.RowToStructByPos[Conversion], `SELECT `+by.columns+
			`, sum(asked)::bigint, sum(converted)::bigint
			FROM conversions WHERE day >= $1 AND day <= $2 AND ($3 = '' OR carrier = $3) AND ($4::bigint = 0 OR company_id = $4)
			GROUP BY 1, 2, 3 HAVING sum(asked) >= $6 ORDER BY `+by.order+` LIMIT $5`,
			f.First.Format(time.DateOnly), f.Last.Format(time.DateOnly), f.Carrier, int64(f.Company), by.limit, by.least)
		if err != nil {
			return nil, false, err
		}
		if more = len(some) > limit; more {
			some = some[:limit]
		}
		list = append(list, some...)
	}
	return list, more, nil
}
