package webhooks

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// store writes a batch in one transaction. To write it again changes nothing, so a lost reply does no harm.
func (c *core) store(ctx context.Context, batch []outcome) error {
	var claimed, first columns
	for i := range batch {
		r, to := &batch[i], &claimed
		if r.calls != nil {
			to = &first
		}
		if to.ids == nil {
			to.growDeliveries(len(batch) - i)
			to.growResults(len(batch) - i)
		}
		if r.calls != nil {
			to.calls = append(to.calls, r.calls.id)
		}
		to.addDelivery(&r.storedEvent)
		to.addResult(r)
	}
	b := &pgx.Batch{}
	if first.ids != nil {
		b.Queue(storeFirst, first.companies, first.ids, first.claims, first.due, first.tries, first.attempts, first.calls,
			first.at, first.numbers, first.labels, first.data)
	}
	if claimed.ids != nil {
		b.Queue(storeClaimed, claimed.companies, claimed.ids, claimed.claims, claimed.due, claimed.tries, claimed.attempts)
	}
	if err := c.pool.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("storing %d webhook results: %w", len(batch), err)
	}
	return nil
}

// columns are deliveries and their results as arrays for a statement.
type columns struct {
	companies, ids []int64
	at             []time.Time
	numbers        []string
	labels, data   []*string

	calls    []callsID
	claims   []*time.Time
	due      []pgtype.Timestamptz
	tries    []int16
	attempts []*string
}

func (c *columns) growDeliveries(n int) {
	c.companies, c.ids, c.at = make([]int64, 0, n), make([]int64, 0, n), make([]time.Time, 0, n)
	c.numbers, c.labels, c.data = make([]string, 0, n), make([]*string, 0, n), make([]*string, 0, n)
}

func (c *columns) growResults(n int) {
	c.calls, c.claims, c.due = make([]callsID, 0, n), make([]*time.Time, 0, n), make([]pgtype.Timestamptz, 0, n)
	c.tries, c.attempts = make([]int16, 0, n), make([]*string, 0, n)
}

func (c *columns) addDelivery(e *storedEvent) {
	c.companies, c.ids, c.at, c.numbers = append(c.companies, e.company), append(c.ids, e.id), append(c.at, e.at),
		append(c.numbers, e.number)
	c.labels, c.data = append(c.labels, orNull(e.labels)), append(c.data, orNull(e.data))
}

func (c *columns) addResult(r *outcome) {
	tries, attempt := r.tries, ""
	if r.called() {
		tries, attempt = tries+1, string(jsonOf([]Attempt{r.attempt}))
	}
	c.claims, c.due, c.tries, c.attempts = append(c.claims, r.claimedUntil()), append(c.due, r.due()),
		append(c.tries, int16(tries)), append(c.attempts, orNull(attempt))
}

func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// storeFirst ends first calls: each delivery gets its own row with its result. Calls whose row is gone change nothing:
// another process ended them, or they were stored before.
const storeFirst = `
	WITH ended AS (
		DELETE FROM webhook_first_calls WHERE id = ANY($7::uuid[]) RETURNING id
	), r AS (
		SELECT unnest($1::bigint[]) AS company_id, unnest($2::bigint[]) AS id, unnest($3::timestamptz[]) AS claim,
			unnest($4::timestamptz[]) AS due, unnest($5::smallint[]) AS tries, unnest($6::text[]) AS attempt,
			unnest($7::uuid[]) AS calls, unnest($8::timestamptz[]) AS at, unnest($9::text[]) AS phone_number,
			unnest($10::text[]) AS labels, unnest($11::text[]) AS data
	)
	INSERT INTO webhook_deliveries (company_id, id, delivered, due, claimed_until, given_up_at, tries, at, phone_number,
		labels, data, attempts)
	SELECT company_id, id, due IS NULL, due, claim, CASE WHEN due = 'infinity' THEN now() END, tries, at, phone_number,
		labels, data, attempt::json
	FROM r WHERE calls = ANY(ARRAY(SELECT id FROM ended))`

// storeClaimed stores the results of claimed rows. The row of a success moves to webhook_delivered. A result whose
// claim no longer holds changes nothing: another process has the delivery, or the result was stored before.
const storeClaimed = `
	WITH r AS (
		SELECT unnest($1::bigint[]) AS company_id, unnest($2::bigint[]) AS id, unnest($3::timestamptz[]) AS claim,
			unnest($4::timestamptz[]) AS due, unnest($5::smallint[]) AS tries, unnest($6::text[]) AS attempt
	), kept AS (
		UPDATE webhook_undelivered u SET claimed_until = NULL, due = r.due, tries = r.tries,
			given_up_at = CASE WHEN r.due = 'infinity' THEN now() END, attempts = ` + withAttempt + `
		FROM r WHERE r.due IS NOT NULL AND u.company_id = r.company_id AND u.id = r.id AND u.claimed_until = r.claim
	), gone AS (
		DELETE FROM webhook_undelivered u USING r
		WHERE r.due IS NULL AND u.company_id = r.company_id AND u.id = r.id AND u.claimed_until = r.claim
		RETURNING u.company_id, u.id, u.at, u.phone_number, u.labels, u.data, u.callback, ` + withAttempt + `
	)
	INSERT INTO webhook_delivered (company_id, id, at, phone_number, labels, data, callback, attempts) SELECT * FROM gone`

// withAttempt appends r's attempt, if any, to those of u.
const withAttempt = `coalesce((u.attempts::jsonb || r.attempt::jsonb)::json, r.attempt::json, u.attempts)`
