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

// A company's texts may have a retention of their own (BodyRule). With BodiesUntilFinal the transaction that makes a
// message final removes its text (Finish); a walk over the company's messages does the rest. The general purge leaves
// them out.
const (
	ruledBodies = "company bodies"             // in unpurged
	ruledAt     = "purge company bodies again" // in sweeps: how far those in unpurged were checked
	// ruleSettled is when all transactions that did not see a rule have ended, and the age at which the walk reads a
	// message under BodiesUntilFinal.
	ruleSettled = time.Minute
	// ruledMost is how many companies' walks one step continues.
	ruledMost = 100
)

// BodiesUntilFinal removes a company's texts when their messages are final.
const BodiesUntilFinal = time.Duration(0)

// BodyRule returns how long a company's texts are kept; nil: as configured.
func (s *Store) BodyRule(ctx context.Context, company sms.CompanyID) (keep *time.Duration, err error) {
	err = s.pool.QueryRow(ctx, `SELECT make_interval(secs => keep_seconds) FROM body_rules WHERE company_id = $1`, int64(company)).Scan(&keep)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("reading how long texts of company %d are kept: %w", company, err)
	}
	return keep, nil
}

// SetBodyRule sets how long a company's texts, old and new, are kept: whole seconds, BodiesUntilFinal, or nil for the
// configured time. It returns the earlier rule.
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
	if keep == nil && err != nil { // it had no rule
		return nil, nil
	}
	if _, err := tx.Exec(ctx, `INSERT INTO body_rules (company_id, keep_seconds) VALUES ($1, $2)
		ON CONFLICT (company_id) DO UPDATE SET keep_seconds = excluded.keep_seconds, changed_at = now(), up_to = 0`, int64(company), seconds); err != nil {
		return nil, fmt.Errorf("setting how long texts of company %d are kept: %w", company, err)
	}
	return before, nil
}

// untilFinal is a condition on messages m: the text is removed with the verdict. bodyThen is the text that the verdict
// leaves: all of it while the message has a row in the outbox.
const (
	untilFinal = `m.company_id IN (SELECT r.company_id FROM body_rules r WHERE r.keep_seconds = 0)`
	bodyThen   = `CASE WHEN ` + untilFinal + ` AND NOT EXISTS (SELECT FROM outbox o WHERE o.message_id = m.id) THEN '' ELSE m.body END`
)

// blankFinal removes the texts of messages that this transaction has made final and that had a row in the outbox. One
// that still has it (its receipt came before the answer) may be sent again; the walk removes its text later.
func blankFinal(ctx context.Context, tx pgx.Tx, ids []int64) error {
	slices.Sort(ids)
	b := &pgx.Batch{}
	b.Queue(`UPDATE messages m SET body = '' WHERE m.id = ANY($1) AND m.body <> '' AND NOT EXISTS (SELECT FROM outbox o WHERE o.message_id = m.id)`, ids)
	b.Queue(`INSERT INTO unpurged (kind, message_id) SELECT $2, id FROM unnest($1::bigint[]) id
		WHERE EXISTS (SELECT FROM outbox o WHERE o.message_id = id) ORDER BY id ON CONFLICT DO NOTHING`, ids, ruledBodies)
	return postgres.Later(ctx, tx, fmt.Sprintf("removing the texts of %d messages", len(ids)), b)
}

// ruleLife is how long texts are kept under a rule r; $1 is the configured time, 0: forever. NULL: forever.
const ruleLife = `CASE WHEN r.keep_seconds = 0 THEN interval '1 minute' ELSE coalesce(make_interval(secs => r.keep_seconds), nullif($1::interval, '0')) END`

// ruledOldest is the oldest message that the walk of r has not reached; ruledSkipped is the oldest final one that it
// has skipped, of the next ruledLook skipped ones after the last step's.
const (
	ruledOldest = `SELECT m.created_at FROM messages m WHERE m.company_id = r.company_id AND m.id > greatest(r.up_to, ` + purgedFloor + `) ORDER BY m.id LIMIT 1`
	ruledLook   = `SELECT message_id FROM unpurged WHERE kind = '` + ruledBodies + `'
		AND message_id > coalesce((SELECT up_to FROM sweeps WHERE name = '` + ruledAt + `'), 0) ORDER BY message_id LIMIT 20000`
	ruledSkipped = `(` + ruledLook + `) u
		JOIN messages m ON m.id = u.message_id JOIN body_rules r ON r.company_id = m.company_id
		WHERE ` + decided + ` AND (r.keep_seconds = 0 OR m.created_at < now() - ` + ruleLife + `)`
)

// RuledBehind returns by how long the oldest text under a company's rule has exceeded it; 0: none has. life is the
// configured time, 0: forever.
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

// PurgeRuled does a step of the walks of companies with a rule: some 2,000 messages each, of at most 100 companies.
// life is the configured time, 0: forever. It returns how many texts it removed, and whether there is more to do.
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

// ruledStep continues a company's walk.
func ruledStep(ctx context.Context, tx pgx.Tx, company int64, life time.Duration) (purged int64, full bool, err error) {
	var upTo int64
	var untilFinal bool
	var keep *time.Duration
	err = tx.QueryRow(ctx, `SELECT r.up_to, r.keep_seconds IS NOT DISTINCT FROM 0, `+ruleLife+` FROM body_rules r
		WHERE r.company_id = $2 FOR UPDATE SKIP LOCKED`, life, company).Scan(&upTo, &untilFinal, &keep)
	if errors.Is(err, pgx.ErrNoRows) || (err == nil && keep == nil) { // another process does it, or the rule has changed
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
		case final || !untilFinal: // pending messages under BodiesUntilFinal are Finish's
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

// ruledAgain checks messages that the walks skipped, some at each call.
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
	if len(step.leaving) == 0 && next == at { // the usual case
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

// blanking returns the statement that removes the texts of messages ($1).
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
