package billing

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"intumwa/internal/postgres"
)

// Charged is the result of one Debit.
type Charged struct {
	Admitted  bool
	Remaining int64 // credits, or segments of the test pool, after it; if not admitted, the current ones
	Capped    bool  // not admitted because of the Cap alone
	Left      int64 // of the day's Cap, when Capped
}

// Lock locks the balances for debits. It also runs the statements left for later (postgres.Pipeline), which may show
// that some of the debits must not be made.
func Lock(ctx context.Context, tx pgx.Tx, debits []Debit) (*Locked, error) {
	b := newLocked(debits)
	return b, b.lock(ctx, tx, "", 0)
}

// Charge takes the credits of many requests at once, and the segments of test messages from their companies' pools of
// testQuota each. It admits each company's debits in the given order, skips those above the balance (a smaller debit
// after a skipped one may be admitted), and writes one ledger row for each admitted debit of credits. It returns one
// Charged for each Debit, in the same order. A company without a balance row has no credits and no pool. The day's
// debits are counted in the row of the balance, so a Cap is never exceeded; a day is one of Burundi, and refunds are
// not subtracted.
func (b *Locked) Charge(ctx context.Context, tx pgx.Tx, debits []Debit, testQuota int) ([]Charged, error) {
	receipts := make([]Charged, len(debits))
	for i, d := range debits {
		receipts[i] = b.charge(d, int64(testQuota))
	}
	return receipts, b.write(ctx, tx, KindSend)
}

// ChargeAll locks the balances for debits of at least one credit, without a Cap, that their companies can probably pay,
// and makes all of them. It is left for later (postgres.Pipeline), and its receipts are set when tx is committed. If a
// company cannot pay, PostgreSQL refuses the transaction (postgres.Refused); use Lock and Charge then. The transaction
// waits at most patience for each lock.
func ChargeAll(ctx context.Context, tx pgx.Tx, debits []Debit, patience time.Duration) ([]Charged, error) {
	b := newLocked(debits)
	place := make(map[int64]int64, len(b.companies))
	for i, id := range b.companies {
		place[id] = int64(i)
	}
	n := len(debits)
	totals, places, amounts, following, refs := make([]int64, len(b.companies)), make([]int64, n), make([]int64, n),
		make([]int64, n), make([][16]byte, n)
	for i := n - 1; i >= 0; i-- {
		d := debits[i]
		at := place[d.CompanyID]
		places[i], amounts[i], following[i], refs[i] = at+1, d.Amount, totals[at], d.Ref
		totals[at] += d.Amount
	}
	receipts := make([]Charged, n)
	batch := &pgx.Batch{}
	b.queueLock(batch, "", patience)
	batch.Queue(`
		WITH paid AS (
			UPDATE balances b SET credits = b.credits - u.total, spent_on = `+burundiDay+`, spent = `+burundiSpent+` + u.total
			FROM unnest($1::bigint[], $2::bigint[]) u(company_id, total) CROSS JOIN LATERAL (SELECT c.ctid AS address `+
		youngestBalance+`) y
			WHERE b.ctid = y.address
			RETURNING b.company_id, b.credits
		), balance AS (
			SELECT array_agg(credits ORDER BY company_id) AS after FROM paid
		)
		INSERT INTO ledger (company_id, kind, amount, balance_after, ref)
		SELECT ($1::bigint[])[place], $3, -amount, after[place] + following, ref
		FROM balance CROSS JOIN (SELECT unnest($4::bigint[]) AS place, unnest($5::bigint[]) AS amount, unnest($6::bigint[]) AS following, unnest($7::uuid[]) AS ref) u`,
		b.companies, totals, KindSend, places, amounts, following, refs).Exec(func(pgconn.CommandTag) error {
		for i, d := range debits {
			receipts[i] = b.charge(d, 0)
		}
		return nil
	})
	return receipts, postgres.Pipeline(ctx, tx, "writing the ledger", batch)
}

// remaining reads a company's ledger from its end: ref has no index for sends, and the planner would read the whole
// ledger. The debit is seconds old.
const remaining = `SELECT balance_after FROM (SELECT kind, ref, balance_after FROM ledger WHERE company_id = $1
	ORDER BY id DESC LIMIT 100000) l
	WHERE kind = 'send' AND ref = $2 LIMIT 1`

// Remaining returns a company's credits after a debit that was just committed.
func (l *Ledger) Remaining(ctx context.Context, company int64, ref [16]byte) (credits int64, err error) {
	err = l.pool.QueryRow(ctx, remaining, company, pgtype.UUID{Bytes: ref, Valid: true}).Scan(&credits)
	if err != nil {
		return 0, fmt.Errorf("reading what company %d had left: %w", company, err)
	}
	return credits, nil
}

func (b *Locked) charge(d Debit, testQuota int64) Charged {
	of, known := b.accounts[d.CompanyID]
	if !known {
		return Charged{}
	}
	have := of.credits
	if d.Test {
		have = max(0, testQuota-of.testUsed)
	}
	switch {
	case d.Amount < 1 || d.Amount > have:
		return Charged{Remaining: have}
	case d.Test:
		of.testUsed += d.Amount
		of.changed = true
	case d.Cap > 0 && d.Amount > d.Cap-of.spent:
		return Charged{Remaining: have, Capped: true, Left: max(0, d.Cap-of.spent)}
	default:
		of.spent += d.Amount
		b.enter(d, -d.Amount)
	}
	return Charged{Admitted: true, Remaining: have - d.Amount}
}
