package billing

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Debit is the cost of one API request, or, in a refund, of one message.
type Debit struct {
	CompanyID int64
	Amount    int64    // credits, or segments of the test pool; at least 1
	Ref       [16]byte // ULID of the single message or of the batch
	Cap       int64    // credits that the company's requests may take on a day; 0: no limit
	Test      bool     // it is paid by the company's test pool (rule api 4.4.5)
}

// Receipt is the result of one Debit.
type Receipt struct {
	Admitted  bool
	Remaining int64 // credits, or segments of the test pool, left after it; what is left when not admitted
	Capped    bool  // not admitted because of the Cap alone
	Left      int64 // of the day's Cap, when Capped
}

// Charge takes the credits of many requests at once, and of test messages the segments of their companies' pools, which
// have testQuota each: it locks the balances in the order of company ids, admits the debits of each company in the given
// order, skips those above the balance (a smaller debit after a skipped one may still be admitted), and writes one ledger
// row for each admitted debit of credits. It returns one Receipt for each Debit, in the same order. A company without a
// balance row counts as having no credits and no pool. What a day's debits take is counted beside the balance, under the
// same lock, so that a Cap is never exceeded; a day is one of Burundi, and a refund is not taken off it.
//
// All sends are paid here, in intake's group commit: requests that arrive while one transaction runs share the next.
func Charge(ctx context.Context, tx pgx.Tx, debits []Debit, testQuota int) ([]Receipt, error) {
	if len(debits) == 0 {
		return nil, nil
	}
	b := newBooks(debits)
	if err := b.lock(ctx, tx, ""); err != nil {
		return nil, err
	}
	receipts := make([]Receipt, len(debits))
	for i, d := range debits {
		receipts[i] = b.charge(d, int64(testQuota))
	}
	return receipts, b.write(ctx, tx, KindSend)
}

func (b *books) charge(d Debit, testQuota int64) Receipt {
	of, known := b.accounts[d.CompanyID]
	if !known {
		return Receipt{}
	}
	have := of.credits
	if d.Test {
		have = max(0, testQuota-of.testUsed)
	}
	switch {
	case d.Amount < 1 || d.Amount > have:
		return Receipt{Remaining: have}
	case d.Test:
		of.testUsed += d.Amount
		of.changed = true
	case d.Cap > 0 && d.Amount > d.Cap-of.spent:
		return Receipt{Remaining: have, Capped: true, Left: max(0, d.Cap-of.spent)}
	default:
		of.spent += d.Amount
		b.enter(d, -d.Amount)
	}
	return Receipt{Admitted: true, Remaining: have - d.Amount}
}
