package verifications

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// blockDigits is the length of a block's name: the E.164 form of 10,000 neighbouring numbers without the last four digits.
const blockDigits = len("+2577912")

// Conversion is how many people answered messages of a carrier to a block of numbers.
type Conversion struct {
	Carrier   string
	Block     string // "": all blocks
	Asked     int64
	Converted int64
}

// Percent is the share of those asked who answered.
func (c Conversion) Percent() float64 { return 100 * float64(c.Converted) / float64(max(1, c.Asked)) }

// answer is whether the person who got a message answered.
type answer struct {
	company          sms.CompanyID
	carrier          string
	number           sms.Number
	at               time.Time
	asked, converted int64
}

// Answers adds verifications that ended to the conversions of their carriers: whether their people answered. A cancelled one tells
// nothing of that, and the sandbox has no carrier.
func Answers(ctx context.Context, tx pgx.Tx, ended []Verification) error {
	var all []answer
	for i := range ended {
		a := answer{company: ended[i].Company, carrier: ended[i].Carrier, number: ended[i].Number, at: *ended[i].FinishedAt, asked: 1}
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
		block := string(a.number)
		companies, carriers, blocks = append(companies, int64(a.company)), append(carriers, a.carrier), append(blocks, block[:min(len(block), blockDigits)])
		at, asked, converted = append(at, a.at), append(asked, a.asked), append(converted, a.converted)
	}
	if _, err := tx.Exec(ctx, `INSERT INTO conversions AS c (day, carrier, block, company_id, asked, converted)
		SELECT ((at AT TIME ZONE 'UTC') + interval '2 hours')::date AS day, carrier, block, company, sum(asked), sum(converted)
		FROM (SELECT unnest($1::timestamptz[]) AS at, unnest($2::text[]) AS carrier, unnest($3::text[]) AS block, unnest($4::bigint[]) AS company,
			unnest($5::bigint[]) AS asked, unnest($6::bigint[]) AS converted) n
		GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
		ON CONFLICT (day, carrier, block, company_id) DO UPDATE SET asked = c.asked + excluded.asked, converted = c.converted + excluded.converted`,
		at, carriers, blocks, companies, asked, converted); err != nil {
		return fmt.Errorf("counting conversions: %w", err)
	}
	return nil
}

// Feedback is a customer's report on a message.
type Feedback struct {
	Company   sms.CompanyID
	MessageID int64
	CreatedAt time.Time // of the message
	Carrier   string
	Number    sms.Number
	Converted bool // the person did what the message was for
}

// Report records a report on a message, or replaces the one before. It returns whether this changed anything.
func (s *Store) Report(ctx context.Context, tx pgx.Tx, f Feedback) (changed bool, err error) {
	tag, err := tx.Exec(ctx, `INSERT INTO feedback (message_id, company_id, converted) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
		f.MessageID, int64(f.Company), f.Converted)
	asked := tag.RowsAffected()
	if err == nil && asked == 0 {
		tag, err = tx.Exec(ctx, `UPDATE feedback SET converted = $2, at = now() WHERE message_id = $1 AND converted <> $2`, f.MessageID, f.Converted)
	}
	if err != nil {
		return false, fmt.Errorf("recording feedback: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return false, nil
	}
	converted := int64(1)
	if !f.Converted {
		converted = asked - 1 // the report before, if there was one, said the opposite
	}
	return true, count(ctx, tx, []answer{{f.Company, f.Carrier, f.Number, f.CreatedAt, asked, converted}})
}

// ConversionFilter selects conversions. A zero field means all.
type ConversionFilter struct {
	Company     sms.CompanyID
	Carrier     string
	First, Last time.Time // dates
}

// MostConversions is how many rows Conversions returns at most.
const MostConversions = 10_000

// Conversions returns the conversions of each carrier in all, then those of its blocks with the most people asked, at most limit
// rows of blocks. more reports whether there are others.
func (s *Store) Conversions(ctx context.Context, f ConversionFilter, limit int) (list []Conversion, more bool, err error) {
	for _, by := range []struct {
		columns, order string
		limit          int
	}{{`carrier, ''`, `carrier`, MostConversions}, {`carrier, block`, `sum(asked) DESC, carrier, block`, limit + 1}} {
		some, err := postgres.All(ctx, s.db, "reading conversions", pgx.RowToStructByPos[Conversion], `SELECT `+by.columns+`, sum(asked)::bigint, sum(converted)::bigint
			FROM conversions WHERE day >= $1 AND day <= $2 AND ($3 = '' OR carrier = $3) AND ($4::bigint = 0 OR company_id = $4)
			GROUP BY 1, 2 ORDER BY `+by.order+` LIMIT $5`,
			f.First.Format(time.DateOnly), f.Last.Format(time.DateOnly), f.Carrier, int64(f.Company), by.limit)
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
