package statistics

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/messages/receipts"
)

// ErrTooManyRows means that a report has more rows than a page or a file should have: fewer days or properties give
// fewer.
var ErrTooManyRows = errors.New("the report has too many rows")

// QualityMost is how many rows Quality returns at most, if its filter does not say.
const QualityMost = 10_000

// Quality counts messages by properties, in their order. It is the only source of such numbers: pages, charts, the API
// and commands share it, and nothing but purges and audits proves it against messages.
//
// The newest 3,000 messages of the company (or of all) are counted now, with their states. Older ones are as last
// counted by Tally: their states are up to half a minute old, or a twentieth of their age for messages older than ten
// minutes. Messages among them that are not counted yet, of a company that sends more than 3,000 within half a minute,
// are missing until then.
func (s *Store) Quality(ctx context.Context, f QualityFilter, by ...Dimension) ([]Quality, error) {
	if !f.Company.Valid() && !f.AllCompanies {
		return nil, nil
	}
	statement, args := qualityStatement(f, by)
	var list []Quality
	q := Quality{}
	var status int16
	var reason string
	var n, segments, credits int64
	var toCarrier, toReceipt []int64
	var kind, channel string
	targets := make([]any, 0, len(by)+7)
	for _, d := range by {
		targets = append(targets, map[Dimension]any{ByDay: &q.Day, ByMonth: &q.Day, ByCompany: &q.Company,
			ByCarrier: &q.Carrier, BySender: &q.Sender,
			ByKind: &kind, ByChannel: &channel, ByCostCenter: &q.CostCenter}[d])
	}
	targets = append(targets, &status, &reason, &n, &segments, &credits, &toCarrier, &toReceipt)
	err := postgres.Each(ctx, s.pool, "counting messages", targets, func() error {
		q.Kind, q.Channel = kind, channel
		last := len(list) - 1
		if last < 0 || !list[last].same(&q) {
			if len(list) == cmp.Or(f.Most, QualityMost) {
				return ErrTooManyRows
			}
			list, last = append(list, q), last+1
		}
		list[last].take(status, reason, n)
		list[last].Segments += segments
		list[last].Credits += credits
		list[last].ToCarrier.add(toCarrier)
		list[last].ToReceipt.add(toReceipt)
		return nil
	}, statement, args...)
	if err != nil {
		return nil, err
	}
	for i := range list {
		slices.SortStableFunc(list[i].Reasons, func(a, b Reason) int { return int(min(max(b.Messages-a.Messages, -1), 1)) })
	}
	return list, nil
}

// same reports whether two rows have the same properties.
func (q *Quality) same(other *Quality) bool {
	return q.Day.Equal(other.Day) && q.Company == other.Company && q.Carrier == other.Carrier &&
		q.Sender == other.Sender &&
		q.Kind == other.Kind && q.Channel == other.Channel && q.CostCenter == other.CostCenter
}

// take adds messages of a status and reason of tallies.
func (q *Quality) take(status int16, reason string, n int64) {
	switch status {
	case 0:
		q.Waiting += n
	case 1:
		q.Sent += n
	case 2:
		q.Failed += n
		q.Reasons = append(q.Reasons, Reason{reason, n})
	case 3:
		q.AtCarrier += n
	}
}

// dimensionColumns are the expressions of dimensions over tallies.
var dimensionColumns = map[Dimension]string{
	ByDay: "day", ByMonth: "date_trunc('month', day)::date", ByCompany: "company_id", ByCarrier: "carrier",
	BySender: "sender",
	ByKind:   `(ARRAY['` + strings.Join(Kinds, `','`) + `'])[kind + 1]`, ByChannel: `(ARRAY['` +
		strings.Join(messages.Channels, `','`) + `'])[channel + 1]`,
	ByCostCenter: "cost_center",
}

// qualityStatement adds the rows of tallies to the messages counted now.
func qualityStatement(f QualityFilter, by []Dimension) (statement string, args []any) {
	args = []any{f.First.Format(time.DateOnly), f.Last.Format(time.DateOnly)}
	arg := func(value any) string {
		args = append(args, value)
		return fmt.Sprintf("$%d", len(args))
	}
	where, company, rows := `day >= $1 AND day <= $2`, ``, `company_id <> 0`
	switch {
	case !f.AllCompanies || f.Company.Valid():
		company = arg(int64(f.Company))
		rows = `company_id = ` + company
	case f.Sender == "" && f.CostCenter == "" &&
		!slices.ContainsFunc(by, func(d Dimension) bool { return d == ByCompany || d == BySender || d == ByCostCenter }):
		rows = `company_id = 0` // the totals
	}
	for _, one := range []struct{ column, value string }{{"carrier", f.Carrier}, {"sender", f.Sender},
		{"cost_center", f.CostCenter}} {
		if one.value != "" {
			where += ` AND ` + one.column + ` = ` + arg(one.value)
		}
	}
	if f.Kind != "" {
		where += ` AND kind = ` + arg(int16(slices.Index(Kinds, f.Kind)))
	}
	if f.Channel != "" {
		where += ` AND channel = ` + arg(int16(slices.Index(messages.Channels, f.Channel)))
	}
	if f.Paid {
		where += ` AND kind <> 2`
	}
	columns, group := "", "1, 2"
	reason, toCarrier, toReceipt := `reason`, sumOf("to_carrier"), sumOf("to_receipt")
	if f.Sums {
		reason, toCarrier, toReceipt = `''`, `NULL::bigint[]`, `NULL::bigint[]`
	}
	for i, d := range by {
		columns += dimensionColumns[d] + ", "
		group += fmt.Sprintf(", %d", i+3)
	}
	return `WITH ` + Newest(company, `company_id <> 0`) + `
		SELECT ` + columns + `status, ` + reason + `, sum(messages)::bigint, sum(segments)::bigint,
			coalesce(sum(segments) FILTER (WHERE kind <> 2), 0)::bigint,
			` + toCarrier + `, ` + toReceipt + `
		FROM (
			SELECT ` + tallyColumns + ` FROM tallies WHERE ` + rows + stored + `
			UNION ALL
			SELECT ` + tallyColumns + ` FROM (` + rollup(`live m`, `LATERAL `+receipts.Times(`s.message_id = m.id`)) + `) n
		) t WHERE ` + where + ` GROUP BY ` + group + ` ORDER BY ` + group, args
}

// liveMost is how many of the newest messages a query counts itself.
const liveMost = 3_000

// Newest are the tables of a query over the rollups: open, the chunks that are not closed, and live, the newest
// messages of a company (an SQL value; see OfCompany) or, if that is empty, those that meet a condition, at most 3,000.
// A message is live, or its chunk's rows count (stored), or neither: it came after their last count, and more than
// 3,000 came after it. A query sees one snapshot: no message counts twice. The LIMIT of a range drops nothing, because
// no range begins before edge; without it the planner reads the whole table messages.
func Newest(company, of string) string {
	before, between, order := of, of+` AND id >= open.first AND id < open.past`, `id`
	if company != "" {
		before, order = `company_id >= `+company+` AND company_id <= `+company, `company_id DESC, id`
		between = fmt.Sprintf(`(company_id, id) >= (%[1]s, open.first) AND (company_id, id) < (%[1]s, open.past)`, company)
	}
	return fmt.Sprintf(`edge AS MATERIALIZED (
			SELECT coalesce((SELECT id FROM messages WHERE %[1]s ORDER BY %[5]s DESC OFFSET %[2]d LIMIT 1), -1) AS id
		), open AS MATERIALIZED (
			SELECT c.chunk, c.chunk * %[3]d <= edge.id AS stored, (c.chunk + 1) * %[3]d AS past,
				CASE WHEN c.chunk * %[3]d <= edge.id THEN greatest(c.up_to, edge.id) + 1 ELSE c.chunk * %[3]d END AS first
			FROM tally_chunks c, edge WHERE NOT c.closed
			UNION ALL SELECT NULL, false, %[4]d, greatest(edge.id + 1, 
				coalesce((SELECT max(chunk) + 1 FROM tally_chunks), 0) * %[3]d) FROM edge
		), live AS MATERIALIZED (
			SELECT m.* FROM open CROSS JOIN LATERAL (SELECT * FROM messages WHERE %[6]s ORDER BY %[7]s LIMIT %[2]d) m
		)`, before, liveMost, tallyChunk, int64(math.MaxInt64), order, between, strings.Replace(order, " DESC", "", 1))
}

// stored is a condition on a row of a rollup: it counts beside the live messages.
const stored = ` AND (chunk = ` + finalChunk + ` OR chunk IN (SELECT chunk FROM open WHERE stored))`
