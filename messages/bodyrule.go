package messages

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// A company may have its texts kept shorter or longer than the others' (BodyRule).
// Those of a rule BodiesUntilFinal are removed by the transaction that makes a
// message final (Finish); the rest is done by a walk over the company's messages
// apart from the purge of all others, which leaves them alone.
const (
	ruledBodies = "company bodies"             // in unpurged
	ruledAt     = "purge company bodies again" // in sweeps: up to where those in unpurged were looked at
	// ruleSettled is when no transaction runs any more that did not see a rule, and how
	// old a message is that the walk looks at under BodiesUntilFinal.
	ruleSettled = time.Minute
	// ruledMost is how many companies' walks one step moves on.
	ruledMost = 100
)

// BodiesUntilFinal is the rule of a company whose texts go when their messages are final.
const BodiesUntilFinal = time.Duration(0)

// BodyRule returns how long a company's texts are kept; nil: as the configuration says.
func (s *Store) BodyRule(ctx context.Context, company sms.CompanyID) (keep *time.Duration, err error) {
	err = s.pool.QueryRow(ctx, `SELECT make_interval(secs => keep_seconds) FROM body_rules WHERE company_id = $1`, int64(company)).Scan(&keep)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("reading how long texts of company %d are kept: %w", company, err)
	}
	return keep, nil
}

// SetBodyRule sets how long a company's texts are kept from now on, those that are
// there already too: whole seconds, BodiesUntilFinal, or nil: as the configuration
// says. It returns what held before.
func SetBodyRule(ctx context.Context, tx pgx.Tx, company sms.CompanyID, keep *time.Duration) (before *time.Duration, err error) {
	var seconds *int64
	if keep != nil {
		n := int64(*keep / time.Second)
		seconds = &n
	}
	err = tx.QueryRow(ctx, `SELECT make_interval(secs => keep_seconds) FROM body_rules WHERE company_id = $1 FOR UPDATE`, int64(company)).Scan(&before)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("reading how long texts of company %d are kept: %w", company, err)
	}
	if keep == nil && err != nil { // it never had a rule
		return nil, nil
	}
	if _, err := tx.Exec(ctx, `INSERT INTO body_rules (company_id, keep_seconds) VALUES ($1, $2)
		ON CONFLICT (company_id) DO UPDATE SET keep_seconds = excluded.keep_seconds, changed_at = now(), up_to = 0`, int64(company), seconds); err != nil {
		return nil, fmt.Errorf("setting how long texts of company %d are kept: %w", company, err)
	}
	return before, nil
}

// untilFinal tells in a statement over messages m that the text goes with the verdict,
// and bodyThen is what is left of it when the verdict is written: all as long as a row
// of the outbox is there.
const (
	untilFinal = `m.company_id IN (SELECT r.company_id FROM body_rules r WHERE r.keep_seconds = 0)`
	bodyThen   = `CASE WHEN ` + untilFinal + ` AND NOT EXISTS (SELECT FROM outbox o WHERE o.message_id = m.id) THEN '' ELSE m.body END`
)

// blankFinal removes the texts of messages that this transaction has made final and that
// had a row in the outbox. One that still has it (its receipt was ahead of the answer)
// is left to the walk, as it may be sent again.
func blankFinal(ctx context.Context, tx pgx.Tx, ids []int64) error {
	slices.Sort(ids)
	b := &pgx.Batch{}
	b.Queue(`UPDATE messages m SET body = '' WHERE m.id = ANY($1) AND m.body <> '' AND NOT EXISTS (SELECT FROM outbox o WHERE o.message_id = m.id)`, ids)
	b.Queue(`INSERT INTO unpurged (kind, message_id) SELECT $2, id FROM unnest($1::bigint[]) id
		WHERE EXISTS (SELECT FROM outbox o WHERE o.message_id = id) ORDER BY id ON CONFLICT DO NOTHING`, ids, ruledBodies)
	return postgres.Later(ctx, tx, fmt.Sprintf("removing the texts of %d messages", len(ids)), b)
}

// ruleLife is how long texts are kept under a rule r; $1 is what the configuration
// says, 0: for ever. NULL: for ever.
const ruleLife = `CASE WHEN r.keep_seconds = 0 THEN interval '1 minute' ELSE coalesce(make_interval(secs => r.keep_seconds), nullif($1::interval, '0')) END`

// ruledOldest is the oldest message that the walk of r has not come to, and that of
// ruledSkipped those that are final and that it has passed by: of the next
// ruledLook that were passed by, from where the last step stopped.
const (
	ruledOldest = `SELECT m.created_at FROM messages m WHERE m.company_id = r.company_id AND m.id > greatest(r.up_to, ` + purgedFloor + `) ORDER BY m.id LIMIT 1`
	ruledLook   = `SELECT message_id FROM unpurged WHERE kind = '` + ruledBodies + `'
		AND message_id > coalesce((SELECT up_to FROM sweeps WHERE name = '` + ruledAt + `'), 0) ORDER BY message_id LIMIT 20000`
	ruledSkipped = `(` + ruledLook + `) u
		JOIN messages m ON m.id = u.message_id JOIN body_rules r ON r.company_id = m.company_id
		WHERE ` + decided + ` AND (r.keep_seconds = 0 OR m.created_at < now() - ` + ruleLife + `)`
)

// RuledBehind returns how long the oldest text that a company's own rule should have
// removed has been kept beyond it; 0: there is none. life is what the configuration
// says, 0: for ever.
func (s *Store) RuledBehind(ctx context.Context, life time.Duration) (behind time.Duration, err error) {
	var over *time.Duration
	err = s.pool.QueryRow(ctx, `SELECT greatest(
		(SELECT max(now() - oldest.created_at - `+ruleLife+`) FROM body_rules r CROSS JOIN LATERAL (`+ruledOldest+`) oldest),
		(SELECT max(now() - greatest(m.created_at + `+ruleLife+`, coalesce(m.sent_at, m.failed_at))) FROM `+ruledSkipped+`))`, life).Scan(&over)
	if err != nil {
		return 0, fmt.Errorf("looking for texts that companies' rules remove: %w", err)
	}
	if over != nil {
		behind = max(*over, 0)
	}
	return behind, nil
}

// PurgeRuled does a step of the walks of companies that have a rule of their own: some
// 2,000 messages each, of 100 companies at most. life is what the configuration says,
// 0: for ever. It returns how many texts it removed, and whether there is more to do.
func (s *Store) PurgeRuled(ctx context.Context, life time.Duration) (purged int64, more bool, err error) {
	fail := func(err error) (int64, bool, error) {
		return purged, false, fmt.Errorf("removing texts by companies' rules: %w", err)
	}
	companies, err := postgres.All(ctx, s.pool, "listing companies", pgx.RowTo[int64],
		`SELECT r.company_id FROM body_rules r CROSS JOIN LATERAL (`+ruledOldest+`) oldest
		WHERE oldest.created_at < now() - `+ruleLife+` AND (r.keep_seconds IS DISTINCT FROM 0 OR r.changed_at < now() - $2::interval)
		ORDER BY oldest.created_at LIMIT $3`, life, ruleSettled, ruledMost)
	if err != nil {
		return fail(err)
	}
	for _, company := range companies {
		err := postgres.InTx(ctx, s.pool, func(tx pgx.Tx) error {
			n, full, err := ruledStep(ctx, tx, company, life)
			if err == nil {
				purged, more = purged+n, more || full
			}
			return err
		})
		if err != nil {
			return fail(err)
		}
	}
	n, full, err := s.ruledAgain(ctx, life)
	if err != nil {
		return fail(err)
	}
	return purged + n, more || full || len(companies) == ruledMost, nil
}

// ruledStep moves a company's walk on.
func ruledStep(ctx context.Context, tx pgx.Tx, company int64, life time.Duration) (purged int64, full bool, err error) {
	var upTo int64
	var untilFinal bool
	var keep *time.Duration
	err = tx.QueryRow(ctx, `SELECT r.up_to, r.keep_seconds IS NOT DISTINCT FROM 0, `+ruleLife+` FROM body_rules r
		WHERE r.company_id = $2 FOR UPDATE SKIP LOCKED`, life, company).Scan(&upTo, &untilFinal, &keep)
	if errors.Is(err, pgx.ErrNoRows) || (err == nil && keep == nil) { // another process does it, or it was changed meanwhile
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	step := &purging{kind: ruledBodies}
	var id int64
	var old, final, over, young bool
	seen := 0
	if err := postgres.Each(ctx, tx, "reading a company's messages", []any{&id, &old, &final, &over}, func() error {
		if young = young || !old; young {
			return nil
		}
		upTo, seen = id, seen+1
		switch {
		case over:
			step.leaving = append(step.leaving, id)
		case final || !untilFinal: // what is pending under BodiesUntilFinal is Finish's
			step.waiting = append(step.waiting, id)
		}
		return nil
	}, `SELECT m.id, m.created_at < now() - $2::interval, m.status <> 0, `+decided+` FROM messages m
		WHERE m.company_id = $1 AND m.id > greatest($3, `+purgedFloor+`) ORDER BY m.id LIMIT $4`, company, *keep, upTo, purgeStep); err != nil {
		return 0, false, err
	}
	if purged, err = step.blank(ctx, tx); err != nil {
		return 0, false, err
	}
	_, err = tx.Exec(ctx, `UPDATE body_rules SET up_to = $2 WHERE company_id = $1`, company, upTo)
	return purged, seen == purgeStep, err
}

// ruledAgain comes back to messages that the walks passed by, some each time.
func (s *Store) ruledAgain(ctx context.Context, life time.Duration) (purged int64, full bool, err error) {
	step := &purging{kind: ruledBodies}
	var at, next int64
	err = s.pool.QueryRow(ctx, `SELECT coalesce((SELECT up_to FROM sweeps WHERE name = $2), 0), 
		(SELECT CASE WHEN count(*) = 20000 THEN max(message_id) ELSE 0 END FROM (`+ruledLook+`) u),
		ARRAY(SELECT m.id FROM `+ruledSkipped+` ORDER BY m.id LIMIT $3)`, life, ruledAt, purgeStep).Scan(&at, &next, &step.leaving)
	if err != nil {
		return 0, false, err
	}
	if full = len(step.leaving) == purgeStep; full {
		next = step.leaving[purgeStep-1]
	}
	if len(step.leaving) == 0 && next == at { // mostly
		return 0, false, nil
	}
	err = postgres.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		if len(step.leaving) > 0 {
			if purged, err = step.blank(ctx, tx); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, `INSERT INTO sweeps (name, up_to) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET up_to = excluded.up_to`, ruledAt, next)
		return err
	})
	return purged, full, err
}

// blanking is the statement that removes the texts of messages ($1).
func (p *purging) blanking(blanked *int64) (statement string, count func(pgconn.CommandTag) error) {
	statement = `UPDATE messages m SET body = '' WHERE m.id = ANY($1) AND m.body <> ''`
	if p.kind == PurgeBodies {
		statement += ` AND m.company_id NOT IN (SELECT r.company_id FROM body_rules r)`
	}
	return statement, func(tag pgconn.CommandTag) error {
		*blanked = tag.RowsAffected()
		return nil
	}
}
