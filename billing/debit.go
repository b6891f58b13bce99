package billing

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"intumwa/internal/postgres"
)

// Debit is the cost of one API request, or, in a refund, of one message.
type Debit struct {
	CompanyID int64
	Amount    int64    // credits, at least 1
	Ref       [16]byte // ULID of the single message or of the batch
	Cap       int64    // credits that the company's requests may take on a day; 0: no limit
}

// Receipt is the result of one Debit.
type Receipt struct {
	Admitted  bool
	Remaining int64 // credits left after it; the balance when not admitted
	Capped    bool  // not admitted because of the Cap alone
	Left      int64 // of the day's Cap, when Capped
}

// Charge takes the credits of many requests at once: it locks the balances in the
// order of company ids, admits the debits of each company in the given order, skips
// those above the balance (a smaller debit after a skipped one may still be admitted),
// and writes one ledger row for each admitted debit. It returns one Receipt for each
// Debit, in the same order. A company without a balance row counts as having no
// credits. What a day's debits take is counted beside the balance, under the same lock,
// so that a Cap is never exceeded; a day is one of Burundi, and a refund is not taken off
// it.
//
// All sends are paid here, in intake's group commit: requests that arrive while one
// transaction runs share the next.
func Charge(ctx context.Context, tx pgx.Tx, debits []Debit) ([]Receipt, error) {
	companies := make([]int64, len(debits))
	for i, d := range debits {
		companies[i] = d.CompanyID
	}
	balances, spendings, err := lockSpending(ctx, tx, sortedUnique(companies))
	if err != nil {
		return nil, err
	}

	receipts := make([]Receipt, len(debits))
	var entries entries
	for i, d := range debits {
		have := balances[d.CompanyID]
		if d.Amount < 1 || d.Amount > have {
			receipts[i] = Receipt{Remaining: have}
			continue
		}
		day := spendings[d.CompanyID]
		if d.Cap > 0 && d.Amount > d.Cap-day.credits {
			receipts[i] = Receipt{Remaining: have, Capped: true, Left: max(0, d.Cap-day.credits)}
			continue
		}
		day.credits += d.Amount
		have -= d.Amount
		balances[d.CompanyID] = have
		receipts[i] = Receipt{Admitted: true, Remaining: have}
		entries.add(d.CompanyID, -d.Amount, have, d.Ref)
	}
	if len(entries.company) == 0 {
		return receipts, nil
	}
	entries.spendings = spendings
	if err := entries.write(ctx, tx, "send", balances); err != nil {
		return nil, err
	}
	return receipts, nil
}

// lock locks and returns the balances of companies, which must be sorted: one order
// everywhere prevents deadlocks.
func lock(ctx context.Context, tx pgx.Tx, companies []int64) (map[int64]int64, error) {
	balances := make(map[int64]int64, len(companies))
	batch := &pgx.Batch{}
	lockBalances(batch, companies, "", balances)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("locking balances: %w", err)
	}
	return balances, nil
}

// lockBalances queues the statement that locks balances in the order of company ids
// and reads them into balances. With how "SKIP LOCKED", balances that another
// transaction has locked are left out.
func lockBalances(batch *pgx.Batch, companies []int64, how string, balances map[int64]int64) {
	batch.Queue(`SELECT b.company_id, b.credits FROM unnest($1::bigint[]) u(company_id)
			CROSS JOIN LATERAL (SELECT company_id, credits `+youngestBalance+` FOR UPDATE `+how+`) b`, companies).
		Query(func(rows pgx.Rows) error {
			var id, credits int64
			_, err := pgx.ForEachRow(rows, []any{&id, &credits}, func() error { balances[id] = credits; return nil })
			return err
		})
}

// youngestBalance finds the balance of u's company from the end of its versions.
// While somebody holds a snapshot (pg_dump) none of them goes, and a company that
// sends a lot has tens of thousands, which would all be looked at from the other
// end; a range is written so that the order is not taken for a matter of course.
const youngestBalance = `FROM balances c WHERE c.company_id >= u.company_id AND c.company_id <= u.company_id ORDER BY c.company_id DESC LIMIT 1`

// atYoungest goes on in an UPDATE of locked balances, whose addresses (ctid) nobody
// changes.
const atYoungest = ` CROSS JOIN LATERAL (SELECT c.ctid AS address ` + youngestBalance + `) y WHERE b.ctid = y.address`

// entries are ledger rows by column, as unnest takes them.
type entries struct {
	company, amount, after []int64
	ref                    []pgtype.UUID
	spendings              map[int64]*spending // of debits, by company; nil: of refunds
}

func (e *entries) add(company, amount, after int64, ref [16]byte) {
	e.company = append(e.company, company)
	e.amount = append(e.amount, amount)
	e.after = append(e.after, after)
	e.ref = append(e.ref, pgtype.UUID{Bytes: ref, Valid: true})
}

// write stores the entries and the new balances.
func (e *entries) write(ctx context.Context, tx pgx.Tx, kind string, balances map[int64]int64) error {
	var ids, credits, spent []int64
	var days []time.Time
	for id, have := range balances {
		if !slices.Contains(e.company, id) {
			continue
		}
		ids, credits = append(ids, id), append(credits, have)
		if day := e.spendings[id]; day != nil {
			spent, days = append(spent, day.credits), append(days, day.on)
		}
	}
	batch := &pgx.Batch{}
	if e.spendings == nil {
		batch.Queue(`UPDATE balances b SET credits = u.credits
			FROM unnest($1::bigint[], $2::bigint[]) u(company_id, credits)`+atYoungest, ids, credits)
	} else {
		batch.Queue(`UPDATE balances b SET credits = u.credits, spent = u.spent, spent_on = u.day
			FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::date[]) u(company_id, credits, spent, day)`+atYoungest, ids, credits, spent, days)
	}
	batch.Queue(`INSERT INTO ledger (company_id, kind, amount, balance_after, ref)
		SELECT c, $1, a, b, r FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::uuid[]) u(c, a, b, r)`,
		kind, e.company, e.amount, e.after, e.ref)
	return postgres.Later(ctx, tx, "writing the ledger", batch)
}
