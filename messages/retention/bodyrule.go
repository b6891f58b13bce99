package retention

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/sms"
)

// A company's texts may have a retention of their own (BodyRule). With BodiesUntilFinal the transaction that makes a
// message final removes its text (messages.Store.Finish). The rest is removed by walks, one over each such company's
// messages, which go on after [Store.PurgeRuled]'s last step. They skip messages that are not final, which later steps
// check again. The general purge leaves these companies out.
const (
	ruledAt = "purge company bodies again" // in sweeps: how far the skipped messages were checked
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
	keep, _, err = bodyRule(ctx, s.pool, company, ``)
	return keep, err
}

// bodyRule returns a company's rule, and whether it has a row of body_rules, locked if lock says so.
func bodyRule(ctx context.Context, db postgres.DB, company sms.CompanyID, lock string) (keep *time.Duration, known bool,
	err error) {
	err = db.QueryRow(ctx, `SELECT make_interval(secs => keep_seconds) FROM body_rules WHERE company_id = $1 `+lock,
		int64(company)).Scan(&keep)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("reading how long texts of company %d are kept: %w", company, err)
	}
	return keep, true, nil
}

// SetBodyRule sets how long a company's texts, old and new, are kept: whole seconds, BodiesUntilFinal, or nil for the
// configured time. It returns the earlier rule.
func SetBodyRule(ctx context.Context, tx pgx.Tx, company sms.CompanyID, keep *time.Duration) (before *time.Duration,
	err error) {
	before, known, err := bodyRule(ctx, tx, company, `FOR UPDATE`)
	if err != nil || keep == nil && !known {
		return nil, err
	}
	if _, err := tx.Exec(ctx, `INSERT INTO body_rules (company_id, keep_seconds) VALUES ($1, extract(epoch
		FROM $2::interval))
		ON CONFLICT (company_id) DO UPDATE SET keep_seconds = excluded.keep_seconds, changed_at = now(), up_to = 0`,
		int64(company), keep); err != nil {
		return nil, fmt.Errorf("setting how long texts of company %d are kept: %w", company, err)
	}
	return before, nil
}

// In the statements below, $1 is the configured time, 0: forever; r is a row of body_rules and m a message.
const (
	// ruleLife is how long texts are kept under r; NULL: forever.
	ruleLife = `CASE WHEN r.keep_seconds = 0 THEN interval '1 minute'
		ELSE coalesce(make_interval(secs => r.keep_seconds), nullif($1::interval, '0')) END`

	// ruledOldest is the oldest message that the walk of r has not reached.
	ruledOldest = `SELECT m.created_at FROM messages m WHERE m.company_id = r.company_id AND m.id > greatest(r.up_to, ` +
		messages.PurgedFloor + `) ORDER BY m.id LIMIT 1`

	// ruledSkipped are the skipped messages that the next step checks; ruledOver those of them whose text must go.
	ruledSkipped = `(SELECT message_id FROM unpurged WHERE kind = '` + messages.RuledBodies + `'
		AND message_id > coalesce((SELECT up_to FROM sweeps WHERE name = '` + ruledAt +
		`'), 0) ORDER BY message_id LIMIT 20000) u`
	ruledOver = ruledSkipped + ` JOIN messages m ON m.id = u.message_id JOIN body_rules r ON r.company_id = m.company_id
		WHERE ` + finished + ` AND (r.keep_seconds = 0 OR m.created_at < now() - ` + ruleLife + `)`
)

// RuledBehind returns by how long the oldest text under a company's rule has exceeded it; 0: none has. life is the
// configured time, 0: forever.
func (s *Store) RuledBehind(ctx context.Context, life time.Duration) (behind time.Duration, err error) {
	if err := s.pool.QueryRow(ctx, `SELECT greatest(interval '0',
		(SELECT max(now() - oldest.created_at - `+ruleLife+`) FROM body_rules r CROSS JOIN LATERAL (`+ruledOldest+`) oldest),
		(SELECT max(now() - greatest(m.created_at + `+ruleLife+`, coalesce(m.sent_at, m.failed_at))) FROM `+ruledOver+`))`,
		life).Scan(&behind); err != nil {
		return 0, fmt.Errorf("looking for texts that companies' rules remove: %w", err)
	}
	return behind, nil
}

// PurgeRuled does a step of the walks of companies with a rule: some 2,000 messages each, of at most 100 companies.
// life is the configured time, 0: forever. It returns how many texts it removed, and whether there is more to do.
func (s *Store) PurgeRuled(ctx context.Context, life time.Duration) (purged int64, more bool, err error) {
	companies, err := postgres.All(ctx, s.pool, "listing companies with a rule for texts", pgx.RowTo[int64],
		`SELECT r.company_id FROM body_rules r CROSS JOIN LATERAL (`+ruledOldest+`) oldest
		WHERE oldest.created_at < now() - `+ruleLife+` AND (r.keep_seconds IS DISTINCT FROM 0
			OR r.changed_at < now() - $2::interval)
		ORDER BY oldest.created_at LIMIT $3`, life, ruleSettled, ruledMost)
	if err != nil {
		return 0, false, err
	}
	steps := []func(tx pgx.Tx) (int64, bool, error){
		func(tx pgx.Tx) (int64, bool, error) { return ruledAgain(ctx, tx, life) }}
	for _, company := range companies {
		steps = append(steps, func(tx pgx.Tx) (int64, bool, error) { return ruledStep(ctx, tx, company, life) })
	}
	more = len(companies) == ruledMost
	for _, step := range steps {
		var n int64
		var full bool
		if err := postgres.InTx(ctx, s.pool, func(tx pgx.Tx) (err error) {
			n, full, err = step(tx)
			return err
		}); err != nil {
			return purged, false, fmt.Errorf("removing texts by companies' rules: %w", err)
		}
		purged, more = purged+n, more || full
	}
	return purged, more, nil
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
	step := &purging{kind: messages.RuledBodies}
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
	}, `SELECT m.id, m.created_at < now() - $2::interval, m.status <> 0, `+finished+` FROM messages m
		WHERE m.company_id <= $1 AND (m.company_id, m.id) > ($1, greatest($3, `+messages.PurgedFloor+
		`)) ORDER BY m.company_id, m.id LIMIT $4`, company, *keep, upTo, purgeStep); err != nil {
		return 0, false, err
	}
	if purged, err = step.blank(ctx, tx); err != nil {
		return 0, false, err
	}
	_, err = tx.Exec(ctx, `UPDATE body_rules SET up_to = $2 WHERE company_id = $1`, company, upTo)
	return purged, seen == purgeStep, err
}

// ruledAgain checks messages that the walks skipped, some at each call.
func ruledAgain(ctx context.Context, tx pgx.Tx, life time.Duration) (purged int64, full bool, err error) {
	step := &purging{kind: messages.RuledBodies}
	var at, next int64
	if err := tx.QueryRow(ctx, `SELECT coalesce((SELECT up_to FROM sweeps WHERE name = $2), 0),
		(SELECT CASE WHEN count(*) = 20000 THEN max(message_id) ELSE 0 END FROM `+ruledSkipped+`),
		ARRAY(SELECT m.id FROM `+ruledOver+` ORDER BY m.id LIMIT $3)`, life, ruledAt, purgeStep).Scan(
		&at, &next, &step.leaving); err != nil {
		return 0, false, err
	}
	if full = len(step.leaving) == purgeStep; full {
		next = step.leaving[purgeStep-1]
	}
	if len(step.leaving) == 0 && next == at { // the usual case
		return 0, false, nil
	}
	if _, err = tx.Exec(ctx, `INSERT INTO sweeps (name, up_to) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE
		SET up_to = excluded.up_to`, ruledAt, next); err != nil {
		return 0, false, err
	}
	purged, err = step.blank(ctx, tx)
	return purged, full, err
}
