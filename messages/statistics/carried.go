package statistics

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/messages/receipts"
	"intumwa/sms"
)

// Carried is the segments that one link of a carrier got on one day. A submit record counts at the carrier
// that got it: what a second carrier got, and what was sent again, is counted at each.
type Carried struct {
	Day        time.Time // in Burundi, of submission: midnight UTC of its date
	Carrier    string
	Link       string // "": not known
	Unpaid     bool   // of messages that no company pays for: tests, and the gateway's own (one-time codes)
	Accepted   int64  // the carrier answered, or a receipt proved that it has the segment
	Unanswered int64  // the carrier may have it
}

// Carried returns the segments that carriers got from the first day to the last, both included, by day, carrier and
// link. An empty carrier means all, and an invalid company means all and the gateway's own. They are as new as
// those of Quality. A receipt that comes when all messages of its range of ids are final no longer moves an unanswered
// segment to the accepted ones.
func (s *Store) Carried(ctx context.Context, first, last time.Time, carrier string, company sms.CompanyID) (
	[]Carried, error) {
	rows, one := `true`, ``
	args := []any{first.Format(time.DateOnly), last.Format(time.DateOnly), carrier}
	if company.Valid() {
		rows, one, args = `company_id = $4`, `$4`, append(args, int64(company))
	}
	// OFFSET 0 keeps the planner from joining all segments with the newest messages. The stored rows are added up first:
	// of the union it knows no statistics, and would sort all of them.
	const group = `day, carrier, link, test OR company_id = 0`
	return postgres.All(ctx, s.pool, "reading what carriers got", pgx.RowToStructByPos[Carried], `WITH `+Newest(one, rows)+
		`
		SELECT day, carrier, link, unpaid, sum(accepted)::bigint, sum(unanswered)::bigint FROM (
			SELECT `+group+` AS unpaid, sum(accepted) AS accepted, sum(unanswered) AS unanswered FROM carrier_segments
			WHERE `+rows+stored+` AND day >= $1 AND day <= $2 AND ($3 = '' OR carrier = $3) GROUP BY `+group+`
			UNION ALL
			SELECT `+group+`, accepted, unanswered FROM (`+
		carriedIn(`live m CROSS JOIN LATERAL `+receipts.Carried(`s.message_id = m.id OFFSET 0`)+` c`)+`) n
		) t WHERE day >= $1 AND day <= $2 AND ($3 = '' OR carrier = $3) GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4`, args...)
}
