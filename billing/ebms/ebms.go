// Package ebms reports invoices to the eBMS of the tax office of Burundi (OBR), and asks it whether it knows a
// taxpayer.
//
//	[Queue], in the transaction that issues an invoice → [Reporter] → received; or refused, until [Again]
//
// The oldest invoice goes first, and one at a time over all processes: while the first is claimed, or waits for its
// next attempt, nothing else is claimed. What the OBR refuses waits for a person and lets the others pass, except the
// credit notes of a refused invoice. An invoice that fails after the login for [PassAfter] times lets them pass too,
// and is still tried.
//
// If a process or connection dies after the eBMS stored an invoice, the next attempt is a duplicate, and getInvoice
// proves that it is this invoice: by its identifier, which has the time of issue.
package ebms

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/internal/postgres"
)

// PassAfter is how many faults in a row let the next invoices pass.
const PassAfter = 10

// Queued is an invoice to be reported.
type Queued struct {
	Name       string
	RefersTo   string // name of a credit note's invoice
	Identifier string
	Issued     time.Time
}

// Queue stores that an invoice must be reported, in the transaction that issues it.
func Queue(ctx context.Context, db postgres.DB, q Queued) error {
	_, err := db.Exec(ctx, `INSERT INTO ebms_reports (name, refers_to, identifier, issued_at)
		VALUES ($1, nullif($2, ''), $3, $4)`, q.Name, q.RefersTo, q.Identifier, q.Issued)
	if err != nil {
		return fmt.Errorf("queueing %s for the eBMS: %w", q.Name, err)
	}
	return nil
}

// State of a report.
type State string

// The states.
const (
	Waiting  State = "waiting"  // for its turn, or its next attempt
	Refusal  State = "refused"  // it waits for a person
	Received State = "received" // the OBR has it
	Settled  State = "settled"  // by hand
)

// Report is what became of an invoice at the eBMS.
type Report struct {
	Name       string
	Identifier string
	Issued     time.Time
	Due        time.Time // the next attempt
	Tries      int
	Words      string // why the last attempt failed
	WithoutNIF bool
	Refused    *time.Time
	Finished   *time.Time
	Note       string // how a person settled it
	Signature  string
	Registered string
}

// State returns the report's state.
func (r *Report) State() State {
	switch {
	case r.Finished != nil && r.Note != "":
		return Settled
	case r.Finished != nil:
		return Received
	case r.Refused != nil:
		return Refusal
	}
	return Waiting
}

const columns = `name, identifier, issued_at, due_at, tries, words, without_nif, refused_at, finished_at, settled,
	signature, registered`

// Reports returns the reports with these names. Invoices that were issued while ebms was not configured have none.
func Reports(ctx context.Context, db postgres.Querier, names ...string) (map[string]Report, error) {
	all, err := postgres.All(ctx, db, "reading reports to the eBMS", pgx.RowToStructByPos[Report],
		`SELECT `+columns+` FROM ebms_reports WHERE name = ANY($1)`, names)
	of := make(map[string]Report, len(all))
	for _, r := range all {
		of[r.Name] = r
	}
	return of, err
}

// Pending returns up to limit invoices that the OBR does not have, the oldest first.
func Pending(ctx context.Context, db postgres.Querier, limit int) ([]Report, error) {
	return postgres.All(ctx, db, "reading what the eBMS does not have", pgx.RowToStructByPos[Report],
		`SELECT `+columns+` FROM ebms_reports WHERE finished_at IS NULL ORDER BY id LIMIT $1`, limit)
}

// Counts are how much the OBR does not have.
type Counts struct {
	Waiting, Refused int64
	Oldest           time.Time // zero: none
}

// Count counts what the OBR does not have.
func Count(ctx context.Context, db postgres.DB) (c Counts, err error) {
	var oldest *time.Time
	err = db.QueryRow(ctx, `SELECT count(*) FILTER (WHERE refused_at IS NULL), count(refused_at), min(issued_at)
		FROM ebms_reports WHERE finished_at IS NULL`).Scan(&c.Waiting, &c.Refused, &oldest)
	if err != nil {
		return c, fmt.Errorf("counting what the eBMS does not have: %w", err)
	}
	if oldest != nil {
		c.Oldest = *oldest
	}
	return c, nil
}

// Retry is what a person decides about an invoice that the OBR does not have.
type Retry struct {
	WithoutNIF bool   // report it without the customer's NIF
	Settled    string // how the person settled it with the OBR; empty: it is reported
}

// MaxNote bounds Retry.Settled, in characters.
const MaxNote = 500

// Errors of [Again]. Their texts are for the user.
const (
	ErrClaimed  refusal = "the invoice is being reported: try again in a minute"
	ErrNoReport refusal = "the invoice is not reported to the eBMS: it was issued while ebms was not configured, or is " +
		"a receipt; an invoice that you report by hand is recorded with --settled"
	ErrFinished refusal = "the OBR has the invoice already, or it was settled by hand"
	ErrNote     refusal = "a note on how it was settled has at most 500 characters, on one line"
)

// refusal is an error with a text for the user.
type refusal string

func (r refusal) Error() string { return string(r) }

// ForUser marks the text.
func (refusal) ForUser() {}

// Again carries out a person's decision in the caller's transaction. Reports are as they were and are. The errors are
// [ErrNoReport], [ErrFinished], [ErrClaimed] and [ErrNote].
func Again(ctx context.Context, tx pgx.Tx, name string, to Retry) (was, is Report, err error) {
	note := strings.TrimSpace(to.Settled)
	if utf8.RuneCountInString(note) > MaxNote || strings.ContainsFunc(note, func(r rune) bool { return r < ' ' }) ||
		!utf8.ValidString(note) {
		return was, is, ErrNote
	}
	read := func(query string, args ...any) (Report, error) {
		rows, err := tx.Query(ctx, query, args...)
		if err != nil {
			return Report{}, err
		}
		return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Report])
	}
	var claimed bool
	was, err = read(`SELECT `+columns+` FROM ebms_reports WHERE name = $1 FOR UPDATE`, name)
	if err == nil {
		err = tx.QueryRow(ctx, `SELECT coalesce(claimed_until > now(), false) FROM ebms_reports WHERE name = $1`, name).Scan(
			&claimed)
	}
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return was, is, ErrNoReport
	case err == nil && was.Finished != nil:
		return was, is, ErrFinished
	case claimed: // the OBR may get it just now
		return was, is, ErrClaimed
	case err == nil:
		is, err = read(`UPDATE ebms_reports SET refused_at = NULL, due_at = now(), tries = 0, faults = 0,
			without_nif = without_nif OR $2, settled = $3, finished_at = CASE WHEN $3 = '' THEN NULL ELSE now() END
			WHERE name = $1 RETURNING `+columns, name, to.WithoutNIF, note)
	}
	if err != nil {
		err = fmt.Errorf("changing the report of %s: %w", name, err)
	}
	return was, is, err
}

// claim is the right to report one invoice until its lease ends.
type claim struct {
	Name       string
	Identifier string
	Tries      int
	WithoutNIF bool
}

// take claims the next invoice; nil if there is none, or if another process or an attempt to come is before it. Claims
// are made one after another: only then does each see what the others have claimed.
func take(ctx context.Context, pool *pgxpool.Pool, lease time.Duration) (c *claim, err error) {
	var pending bool
	if err := pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM ebms_reports WHERE finished_at IS NULL
		AND refused_at IS NULL AND due_at <= now())`).Scan(&pending); err != nil || !pending {
		if err != nil {
			err = fmt.Errorf("looking for invoices to report: %w", err)
		}
		return nil, err
	}
	err = postgres.InTx(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('ebms', 0))`); err != nil {
			return err
		}
		c = nil
		found, err := postgres.All(ctx, tx, "updating it", pgx.RowToAddrOfStructByPos[claim], `
			UPDATE ebms_reports SET claimed_until = now() + $1::interval, tries = tries + 1
			WHERE id = (SELECT id FROM ebms_reports r WHERE finished_at IS NULL AND refused_at IS NULL
				AND (due_at <= now() OR claimed_until > now() OR faults < $2)
				AND NOT EXISTS (SELECT FROM ebms_reports i WHERE i.name = r.refers_to AND i.finished_at IS NULL)
				ORDER BY id LIMIT 1)
			AND due_at <= now() AND (claimed_until IS NULL OR claimed_until <= now()) AND finished_at IS NULL
			AND refused_at IS NULL
			RETURNING name, identifier, tries, without_nif`, lease, PassAfter)
		if err == nil && len(found) > 0 {
			c = found[0]
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("claiming an invoice for the eBMS: %w", err)
	}
	return c, nil
}

// received stores the proof. It holds even if the claim is over, or a person has settled it meanwhile.
func received(ctx context.Context, db postgres.DB, c *claim, r Receipt) error {
	return store(ctx, db, c, `UPDATE ebms_reports SET finished_at = coalesce(finished_at, now()), refused_at = NULL,
		claimed_until = NULL, words = '', reply = $2, signature = $3, registered = $4 WHERE name = $1`, c.Name, r.Raw,
		bounded(r.Signature), bounded(r.Registered))
}

// refused makes an invoice wait for a person.
func refused(ctx context.Context, db postgres.DB, c *claim, words string) error {
	return store(ctx, db, c, `UPDATE ebms_reports SET refused_at = now(), claimed_until = NULL, words = $3
		WHERE name = $1 AND tries = $2 AND finished_at IS NULL`, c.Name, c.Tries, words)
}

// putOff ends a claim: the next attempt is after rest.
func putOff(ctx context.Context, db postgres.DB, c *claim, rest time.Duration, words string, fault bool) error {
	return store(ctx, db, c, `UPDATE ebms_reports SET due_at = now() + $3::interval, claimed_until = NULL, words = $4,
		faults = CASE WHEN $5 THEN faults + 1 ELSE faults END
		WHERE name = $1 AND tries = $2 AND finished_at IS NULL`, c.Name, c.Tries, rest, words,
		fault)
}

// giveBack ends a claim as if it had not been: this process shuts down.
func giveBack(ctx context.Context, db postgres.DB, c *claim) error {
	return store(ctx, db, c, `UPDATE ebms_reports SET claimed_until = NULL, tries = tries - 1
		WHERE name = $1 AND tries = $2 AND finished_at IS NULL`, c.Name, c.Tries)
}

func store(ctx context.Context, db postgres.DB, c *claim, query string, args ...any) error {
	if _, err := db.Exec(ctx, query, args...); err != nil {
		return fmt.Errorf("storing what became of %s at the eBMS: %w", c.Name, err)
	}
	return nil
}
