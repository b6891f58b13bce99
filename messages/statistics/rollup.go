package statistics

import (
	"fmt"
	"strings"
	"time"

	"intumwa/messages/receipts"
)

// The SQL of the rollups (rule choices 14): tallies (messages) and carried (segments at carriers). A range of ids that
// is counted, messages that a purge takes, and the newest messages of a query are counted by the same statements.

// timeBounds are the upper bounds, exclusive, of the buckets of times; the last bucket has none. An array of them has
// the counts of the buckets, in this order.
var timeBounds = []time.Duration{
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second,
	10 * time.Second,
	30 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour,
}

const (
	finalChunk  = "-1" // the chunk of the rows that are kept
	namesMost   = 200  // cost centres of a company in one count and day, none included
	reasonsMost = 50   // and reasons
	reasonMost  = 100  // characters of a reason

	// Others is the cost centre of messages beyond a company's 200 largest ones of a count and day, and the reason of
	// those beyond its 50 most frequent ones. A count has 10,000 messages at most.
	Others = "(others)"
)

// tallyKey are the columns that name a row of tallies within its chunk, in the order of locking.
const tallyKey = `company_id, day, carrier, sender, kind, channel, cost_center, status, reason`

// tallyColumns are the columns of tallies besides chunk, as rollup returns them.
const tallyColumns = tallyKey + `, messages, segments, to_carrier, to_receipt`

// rollup is an SQL query that counts messages: from is the table of messages m, times the receipts.Times of the same
// messages. It returns tallyColumns and the greatest id.
func rollup(from, times string) string {
	return `SELECT company_id, day, carrier, sender, kind, channel,
			CASE WHEN centre > ` + fmt.Sprint(namesMost) + ` AND cost_center <> '' THEN '` + Others +
		`' ELSE cost_center END AS cost_center, status,
			CASE WHEN cause > ` + fmt.Sprint(reasonsMost) + ` AND reason <> '' THEN '` + Others + `' ELSE reason END AS reason,
			sum(n)::bigint AS messages, sum(segments)::bigint AS segments, ` + histogram("b1") + ` AS to_carrier, ` +
		histogram("b2") + ` AS to_receipt, max(last) AS last
		FROM (
			SELECT *, dense_rank() OVER (PARTITION BY company_id, day ORDER BY of_centre DESC, cost_center) AS centre,
				dense_rank() OVER (PARTITION BY company_id, day ORDER BY of_reason DESC, reason) AS cause
			FROM (
				SELECT m.company_id, ` + burundiDay("m.created_at") +
		` AS day, m.carrier COLLATE "C" AS carrier, m.sender COLLATE "C" AS sender,
					CASE WHEN m.test THEN 2 WHEN m.batch_id IS NULL THEN 0 ELSE 1 END::smallint AS kind,
					coalesce(m.channel, 0::smallint) AS channel,
					coalesce(m.cost_center COLLATE "C", '') AS cost_center,
					CASE WHEN m.status = 0 AND t.may_have THEN 3::smallint ELSE m.status END AS status,
					` + shortReason + ` AS reason,
					width_bucket(t.first_at - greatest(m.created_at, m.send_at), ` + sqlBounds + `) AS b1,
					CASE WHEN coalesce(m.sent_at, m.failed_at) BETWEEN t.reported AND t.reported_last
						THEN width_bucket(coalesce(m.sent_at, m.failed_at) - t.at, ` + sqlBounds + `) END AS b2,
					count(*) AS n, sum(m.segments) AS segments, max(m.id) AS last,
					sum(count(*)) OVER (PARTITION BY m.company_id, ` + burundiDay("m.created_at") +
		`, coalesce(m.cost_center COLLATE "C", '')) AS of_centre,
					sum(count(*)) OVER (PARTITION BY m.company_id, ` + burundiDay("m.created_at") + `, ` + shortReason +
		`) AS of_reason
				FROM ` + from + ` LEFT JOIN ` + times + ` t ON t.message_id = m.id GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
			) g
		) g GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9`
}

// withTotals adds rows to the result of a rollup, a CTE: those of all companies together (company 0), without sender
// and cost centre. Their number does not grow with that of companies. The gateway's own messages are left out.
func withTotals(cte string) string {
	return `SELECT ` + tallyColumns + ` FROM ` + cte + ` WHERE company_id <> 0
		UNION ALL SELECT 0, day, carrier, '', kind, channel, '', status, reason, sum(messages)::bigint, sum(segments)::bigint,
		` + sumOf("to_carrier") + `, ` + sumOf("to_receipt") + `
		FROM ` + cte + ` WHERE company_id <> 0 GROUP BY day, carrier, kind, channel, status, reason`
}

// shortReason is the reason of a message m.
var shortReason = `coalesce(left(m.failure_reason COLLATE "C", ` + fmt.Sprint(reasonMost) + `), '')`

// burundiDay is the day in Burundi (UTC+2) of a column.
func burundiDay(column string) string {
	return `((` + column + ` AT TIME ZONE 'UTC') + interval '2 hours')::date`
}

// burundiNow is today in Burundi.
var burundiNow = burundiDay("now()")

// sqlBounds is timeBounds as an SQL array.
var sqlBounds = func() string {
	list := make([]string, len(timeBounds))
	for i, bound := range timeBounds {
		list[i] = fmt.Sprintf("%d milliseconds", bound.Milliseconds())
	}
	return `'{` + strings.Join(list, ",") + `}'::interval[]`
}()

// eachBucket joins an SQL expression for each bucket (from 1) to an array.
func eachBucket(of func(bucket int) string) string {
	list := make([]string, len(timeBounds)+1)
	for i := range list {
		list[i] = of(i + 1)
	}
	return `ARRAY[` + strings.Join(list, ", ") + `]::bigint[]`
}

// histogram sums n by the bucket in a column.
func histogram(column string) string {
	return `CASE WHEN count(` + column + `) > 0 THEN ` + eachBucket(func(bucket int) string {
		return fmt.Sprintf("coalesce(sum(n) FILTER (WHERE %s = %d), 0)", column, bucket-1)
	}) + ` END`
}

// sumOf sums a column of histograms; NULL when all are.
func sumOf(column string) string {
	return `CASE WHEN count(` + column + `) > 0 THEN ` +
		eachBucket(func(bucket int) string { return fmt.Sprintf("sum(%s[%d])", column, bucket) }) + ` END`
}

// tallyAdd adds the rows of an INSERT INTO tallies AS t to those that are there.
var tallyAdd = ` ON CONFLICT (company_id, day, chunk, carrier, sender, kind, channel, cost_center, status, reason)
	DO UPDATE SET messages = t.messages + excluded.messages, segments = t.segments + excluded.segments,
		to_carrier = ` + plus("to_carrier") + `, to_receipt = ` + plus("to_receipt")

func plus(column string) string {
	return `CASE WHEN t.` + column + ` IS NULL THEN excluded.` + column + ` WHEN excluded.` + column + ` IS NULL THEN t.` +
		column + ` ELSE ` +
		eachBucket(func(bucket int) string { return fmt.Sprintf("t.%[1]s[%[2]d] + excluded.%[1]s[%[2]d]", column, bucket) }) +
		` END`
}

// carriedKey are the columns that name a row of carried within its chunk, in the order of locking.
const carriedKey = `day, carrier, link, company_id, test`

// carriedOf is an SQL query that counts the submit records of messages whose id, in a column, meets a condition.
func carriedOf(condition func(column string) string) string {
	return carriedIn(receipts.Carried(condition(`s.message_id`)) + ` c JOIN messages m ON m.id = c.message_id AND ` +
		condition(`m.id`))
}

// carriedIn is the same of submit records c joined with their messages m.
func carriedIn(from string) string {
	return `SELECT ` + burundiDay("c.submitted_at") +
		` AS day, c.carrier COLLATE "C" AS carrier, c.link COLLATE "C" AS link, m.company_id, m.test,
			count(*) FILTER (WHERE c.accepted) AS accepted, count(*) FILTER (WHERE NOT c.accepted) AS unanswered
		FROM ` + from + ` GROUP BY 1, 2, 3, 4, 5`
}

// carriedAdd is tallyAdd for carried.
const carriedAdd = ` ON CONFLICT (day, carrier, link, company_id, test, chunk)
	DO UPDATE SET accepted = t.accepted + excluded.accepted, unanswered = t.unanswered + excluded.unanswered`
