package verifications

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// Entry is what a person entered.
type Entry struct {
	Code   string
	Amount string // of the payment that the person saw; "": none
	Payee  string

	Arrived time.Time
}

// ByULID returns a company's verification.
func (s *Store) ByULID(ctx context.Context, company sms.CompanyID, id ulid.ULID) (Verification, error) {
	return one(ctx, s.db, company, id, ``)
}

func one(ctx context.Context, db postgres.DB, company sms.CompanyID, id ulid.ULID, lock string) (v Verification,
	err error) {
	places, read := v.fields()
	err = db.QueryRow(ctx, `SELECT `+columns+` FROM verifications v WHERE v.ulid = $1 AND v.company_id = $2 `+lock,
		[16]byte(id), int64(company)).Scan(places...)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return v, ErrNotFound
	case err != nil:
		return v, fmt.Errorf("reading verification %s: %w", id, err)
	}
	read()
	return v, nil
}

// open returns an error for a verification that no code can approve.
func (v *Verification) open() error {
	switch v.State {
	case Pending:
		return nil
	case MaxAttempts:
		return ErrChecks
	case Expired, Failed:
		return ErrExpired
	}
	return ErrFinished
}

// Check compares an entry with a verification. It returns the verification as it is afterwards, with a verdict: nil, if
// this call approved it or repeats the one that did (v.Repeated), ErrWrong, ErrChecks, ErrExpired, ErrFinished,
// ErrPayment, or a [LimitError] of "checks". The transaction must be committed with any verdict: a wrong entry is
// counted. A payment that differs is a wrong entry. ended reports whether this call ended it.
func (s *Store) Check(ctx context.Context, tx pgx.Tx, company sms.CompanyID, id ulid.ULID, e Entry) (v Verification,
	ended bool, verdict, err error) {
	// The number's lock comes before the row, as in Start. It lets one guess at a time count, over all verifications.
	if v, err = one(ctx, tx, company, id, ``); err != nil {
		return v, false, nil, err
	}
	if err = lockNumber(ctx, tx, v.Number); err != nil {
		return v, false, nil, err
	}
	if v, err = one(ctx, tx, company, id, `FOR UPDATE`); err != nil {
		return v, false, nil, err
	}
	v.Repeated = v.State == Approved && e.Arrived.Sub(*v.FinishedAt) < doubleClick
	if verdict = v.open(); verdict != nil && (!v.Repeated || v.Wrong >= MostChecks) {
		v.Repeated = false
		return v, false, verdict, nil
	}
	limit, err := wrongLimit(ctx, tx, v.Number, v.Company, v.Test)
	if err != nil || limit != nil {
		v.Repeated = false
		return v, false, limit, err
	}
	if v.Amount != "" && (e.Amount == "" || e.Payee == "") {
		return v, false, ErrPayment, nil
	}
	if v.Secret.Is(s.key, e.Code) && e.Amount == v.Amount && e.Payee == v.Payee {
		if v.Repeated {
			return v, false, nil, nil
		}
		return v, true, nil, finish(ctx, tx, &v, Approved)
	}
	v.Wrong++
	if _, err := tx.Exec(ctx, `UPDATE verifications SET wrong = $2, wrong_at = now() WHERE id = $1`, v.ID,
		v.Wrong); err != nil {
		return v, false, nil, fmt.Errorf("counting a wrong code: %w", err)
	}
	switch {
	case v.Repeated: // else a guess costs nothing while somebody else enters the code
		v.Repeated = false
		return v, false, verdict, nil
	case v.Wrong < MostChecks:
		return v, false, ErrWrong, nil
	}
	return v, true, ErrWrong, finish(ctx, tx, &v, MaxAttempts)
}

// wrongLimit returns a [LimitError] if a number has had too many wrong codes of a company within an hour. Those of
// cancelled and expired verifications, and of other payments, count too: each has a code of its own.
func wrongLimit(ctx context.Context, tx pgx.Tx, number sms.Number, company sms.CompanyID, test bool) (
	verdict, err error) {
	var wrong int
	var left time.Duration
	if err := tx.QueryRow(ctx, `SELECT coalesce(sum(wrong), 0)::int, coalesce(min(wrong_at) + interval '1 hour' - now(),
		interval '0') FROM verifications
		WHERE phone_number = $1 AND company_id = $2 AND test = $3 AND state <> 1 AND created_at > now() - interval '2 hours'
		AND wrong_at > now() - interval '1 hour'`,
		string(number), int64(company), test).Scan(&wrong, &left); err != nil {
		return nil, fmt.Errorf("counting wrong codes: %w", err)
	}
	if wrong >= wrongCodes {
		return &LimitError{"checks", after(left)}, nil
	}
	return nil, nil
}

// Cancel ends a pending verification. The verdicts are those of Check.
func (s *Store) Cancel(ctx context.Context, tx pgx.Tx, company sms.CompanyID, id ulid.ULID) (v Verification, verdict,
	err error) {
	if v, err = one(ctx, tx, company, id, `FOR UPDATE`); err != nil {
		return v, nil, err
	}
	if verdict = v.open(); verdict != nil {
		return v, verdict, nil
	}
	return v, nil, finish(ctx, tx, &v, Cancelled)
}

// Due locks up to limit pending verifications whose time is over, for End.
func (s *Store) Due(ctx context.Context, tx pgx.Tx, limit int) (due []Verification, err error) {
	return postgres.All(ctx, tx, "looking for verifications whose time is over", scan,
		`SELECT `+columns+` FROM verifications v WHERE v.state = 0 AND v.expires_at <= now() ORDER BY v.expires_at LIMIT $1
			FOR UPDATE SKIP LOCKED`, limit)
}

func scan(row pgx.CollectableRow) (v Verification, err error) {
	places, read := v.fields()
	err = row.Scan(places...)
	read()
	return v, err
}

// End ends verifications of Due: as Failed, if its last message was not delivered.
func (s *Store) End(ctx context.Context, tx pgx.Tx, due []Verification, undelivered []bool) error {
	for i := range due {
		to := Expired
		if undelivered[i] {
			to = Failed
		}
		if err := finish(ctx, tx, &due[i], to); err != nil {
			return err
		}
	}
	return nil
}

// finish records a verification's end.
func finish(ctx context.Context, tx pgx.Tx, v *Verification, to State) error {
	v.State = to
	var at time.Time
	if err := tx.QueryRow(ctx, `UPDATE verifications SET state = $2, finished_at = now() WHERE id = $1
		RETURNING finished_at, nextval('messages_id_seq')`, v.ID, int16(to)).Scan(&at, &v.Event); err != nil {
		return fmt.Errorf("ending a verification: %w", err)
	}
	v.FinishedAt = &at
	return nil
}
