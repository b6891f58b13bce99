// Package billing has the credit ledger. No other package changes a balance.
//
// Credits change by ChargeAll and Locked.Charge (intake), Refund and RefundNow (dispatcher), PayOwed (housekeeping),
// and Adjust and Grant (operations).
//
// One credit pays for one segment (rule api 8). A company's balance is one row, and every change of it is one ledger
// row in the same transaction, so that always
//
//	balances.credits = sum(ledger.amount) >= 0
//
// and each ledger row's balance_after continues the one before it. Ledger rows are never changed or deleted; a
// correction is a new row.
//
// Functions with a pgx.Tx work in the caller's transaction: intake commits a debit together with its messages, the
// dispatcher a refund together with the failure.
package billing

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// A debit above the balance is not an error: its Charged.Admitted is false.
var (
	// ErrNoBalance means that the company has no balance row: Open was never called for it.
	ErrNoBalance = errors.New("no such company")
	// ErrNegative means that an adjustment would make the balance negative.
	ErrNegative = errors.New("the balance would fall below zero")
)

// Ledger reads and adjusts balances outside a send.
type Ledger struct {
	pool *pgxpool.Pool
}

// New returns the ledger in pool's database.
func New(pool *pgxpool.Pool) *Ledger { return &Ledger{pool: pool} }

// Open creates a company's zero balance in the transaction that creates the company.
func Open(ctx context.Context, tx pgx.Tx, companyID int64) error {
	if _, err := tx.Exec(ctx, `INSERT INTO balances (company_id) VALUES ($1)`, companyID); err != nil {
		return fmt.Errorf("opening the balance of company %d: %w", companyID, err)
	}
	return nil
}

// Balance returns a company's credits.
func (l *Ledger) Balance(ctx context.Context, companyID int64) (credits int64, err error) {
	return Balance(ctx, l.pool, companyID)
}

// Balance is [Ledger.Balance] in the caller's transaction.
func Balance(ctx context.Context, db postgres.DB, companyID int64) (credits int64, err error) {
	err = db.QueryRow(ctx, `SELECT credits FROM balances WHERE company_id = $1`, companyID).Scan(&credits)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, fmt.Errorf("company %d: %w", companyID, ErrNoBalance)
	}
	if err != nil {
		return 0, fmt.Errorf("reading the balance of company %d: %w", companyID, err)
	}
	return credits, nil
}

// Balances returns the credits of the companies that have a balance.
func (l *Ledger) Balances(ctx context.Context, companies []int64) (map[int64]int64, error) {
	balances := make(map[int64]int64, len(companies))
	var id, credits int64
	if err := postgres.Each(ctx, l.pool, fmt.Sprintf("reading %d balances", len(companies)), []any{&id, &credits},
		func() error { balances[id] = credits; return nil },
		`SELECT company_id, credits FROM balances WHERE company_id = ANY($1)`, companies); err != nil {
		return nil, err
	}
	return balances, nil
}

// SpentToday returns the credits of a company's sends today in Burundi, without subtracting refunds.
func (l *Ledger) SpentToday(ctx context.Context, company sms.CompanyID) (credits int64, err error) {
	err = l.pool.QueryRow(ctx, `SELECT CASE WHEN spent_on >= `+burundi+
		` THEN spent ELSE 0 END FROM balances WHERE company_id = $1`, int64(company)).Scan(&credits)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return 0, fmt.Errorf("reading what company %d has spent: %w", company, err)
	}
	return credits, nil
}

// TestUsed returns the used segments of a company's test pool: those of test messages that are sent or pending.
func (l *Ledger) TestUsed(ctx context.Context, company sms.CompanyID) (segments int, err error) {
	err = l.pool.QueryRow(ctx, `SELECT coalesce((SELECT test_used FROM balances WHERE company_id = $1), 0)`,
		int64(company)).Scan(&segments)
	if err != nil {
		return 0, fmt.Errorf("reading the test pool of company %d: %w", company, err)
	}
	return segments, nil
}

// ErrGranted means that an earlier grant has that key.
var ErrGranted = errors.New("granted already")

// Adjustment is a change of a company's balance by an administrator.
type Adjustment struct {
	Company    int64
	Amount     int64 // credits; negative: they are taken
	Note       string
	Correction bool      // not a purchase; always so if Amount is negative
	Once       *[16]byte // key of a request that may arrive twice, such as a form after a double click; nil: none
}

// Kind returns the kind of the adjustment's ledger row.
func (a *Adjustment) Kind() string {
	if a.Correction || a.Amount < 0 {
		return KindCorrection
	}
	return KindAdjustment
}

// Grant adds amount credits (negative: subtracts them) to a company's balance: [Adjust] without a key, a purchase if
// amount is positive.
func Grant(ctx context.Context, tx pgx.Tx, companyID, amount int64, note string) (int64, error) {
	return Adjust(ctx, tx, Adjustment{Company: companyID, Amount: amount, Note: note})
}

// Adjust changes a company's balance in the caller's transaction, for example together with the audit entry, and
// returns the new balance. The first call with a key makes the change, later ones return ErrGranted; concurrent calls
// wait for each other. On an error, ErrNoBalance and ErrNegative among them, nothing changes.
func Adjust(ctx context.Context, tx pgx.Tx, a Adjustment) (int64, error) {
	companyID, amount := a.Company, a.Amount
	var key pgtype.UUID
	if a.Once != nil {
		key = pgtype.UUID{Bytes: *a.Once, Valid: true}
	}
	if amount == 0 {
		return 0, errors.New("an adjustment of zero credits changes nothing")
	}
	var credits int64
	err := tx.QueryRow(ctx, `SELECT credits FROM balances WHERE company_id = $1 FOR UPDATE`, companyID).Scan(&credits)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, fmt.Errorf("company %d: %w", companyID, ErrNoBalance)
	}
	if err != nil {
		return 0, fmt.Errorf("locking the balance of company %d: %w", companyID, err)
	}
	if key.Valid {
		var granted bool
		if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM ledger WHERE kind <> 'send' AND ref = $1)`, key).Scan(
			&granted); err != nil {
			return 0, fmt.Errorf("looking for an earlier grant to company %d: %w", companyID, err)
		}
		if granted {
			return 0, ErrGranted
		}
	}
	after := credits + amount
	switch {
	case amount > 0 && after < credits:
		return 0, fmt.Errorf("company %d: %d credits more are past what a balance can hold", companyID, amount)
	case after < 0:
		return 0, fmt.Errorf("company %d has %d credits: %w", companyID, credits, ErrNegative)
	}
	if _, err := tx.Exec(ctx, `UPDATE balances SET credits = $2 WHERE company_id = $1`, companyID, after); err != nil {
		return 0, fmt.Errorf("writing the balance of company %d: %w", companyID, err)
	}
	if _, err = tx.Exec(ctx, `INSERT INTO ledger (company_id, kind, amount, balance_after, ref, note)
		VALUES ($1, $6, $2, $3, $4, $5)`, companyID, amount, after, key, a.Note, a.Kind()); err != nil {
		return 0, fmt.Errorf("writing the ledger of company %d: %w", companyID, err)
	}
	return after, nil
}

// Audit checks the ledger. It returns the number of companies, and of those whose balance is not the sum of their
// ledger, or whose ledger has a gap (a row whose balance_after does not continue the row before). It reads the whole
// ledger, which may take minutes.
func (l *Ledger) Audit(ctx context.Context) (companies, mismatches int64, err error) {
	err = pgx.BeginTxFunc(ctx, l.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL statement_timeout = 0`); err != nil {
			return fmt.Errorf("taking time: %w", err)
		}
		return tx.QueryRow(ctx, `
			WITH chain AS (
				SELECT company_id, amount,
					balance_after <> amount + coalesce(lag(balance_after) OVER (PARTITION BY company_id ORDER BY id), 0) AS gap
				FROM ledger
			), sums AS (
				SELECT company_id, sum(amount) AS total, bool_or(gap) AS gap FROM chain GROUP BY company_id
			)
			SELECT count(*), count(*) FILTER (WHERE coalesce(b.credits, -1) <> coalesce(s.total, 0) OR coalesce(s.gap, false))
			FROM balances b FULL JOIN sums s USING (company_id)`).Scan(&companies, &mismatches)
	})
	if err != nil {
		return 0, 0, fmt.Errorf("auditing the ledger: %w", err)
	}
	return companies, mismatches, nil
}
