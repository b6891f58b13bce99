package billing

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
)

// Kinds of ledger rows.
const (
	KindAdjustment = "adjustment" // by an administrator: a purchase
	KindCorrection = "correction" // by an administrator: credits taken back, or given for a mistake
	KindSend       = "send"       // of one API request
	KindRefund     = "refund"     // of one message
)

// Debit is the cost of one API request or, in a refund, of one message.
type Debit struct {
	CompanyID int64
	Amount    int64    // credits, or segments of the test pool; at least 1
	Ref       [16]byte // ULID of the single message or of the batch
	Cap       int64    // credits that the company's requests may take on a day; 0: no limit
	Test      bool     // the company's test pool pays (rule api 4.4.5)
}

// account is a locked row of balances.
type account struct {
	credits  int64
	testUsed int64     // used segments of the test pool
	day      time.Time // day of spent
	spent    int64     // credits of that day's debits
	changed  bool
}

// Locked are companies' accounts while a transaction has them locked, and the ledger rows that it will write, by column
// for unnest.
type Locked struct {
	companies []int64 // each once, in the order of locking
	accounts  map[int64]*account

	company, amount, after []int64
	ref                    [][16]byte
}

func newLocked(debits []Debit) *Locked {
	b := &Locked{accounts: make(map[int64]*account)}
	for _, d := range debits {
		b.companies = append(b.companies, d.CompanyID)
	}
	slices.Sort(b.companies)
	b.companies = slices.Compact(b.companies)
	return b
}

// burundi is the day in Burundi (UTC+2) when the transaction began.
const burundi = `((now() AT TIME ZONE 'UTC') + interval '2 hours')::date`

// spendingColumns are the day that counts and its debits. A transaction from before midnight that gets the lock after
// one from the new day counts for the new day: the sum never goes back. A day further ahead comes from a wrong clock.
const (
	spendingColumns = burundiDay + `, ` + burundiSpent
	burundiDay      = `CASE WHEN spent_on = ` + burundi + ` + 1 THEN spent_on ELSE ` + burundi + ` END`
	burundiSpent    = `CASE WHEN spent_on BETWEEN ` + burundi + ` AND ` + burundi + ` + 1 THEN spent ELSE 0 END`
)

// youngestBalance finds the balance of u's company from the newest of its versions. While a snapshot is open (pg_dump),
// dead versions stay: tens of thousands for a busy company, all of which would be read from the other end. The
// condition is a range, so the planner keeps the order. An update takes the address (ctid) that it found: with 20,000
// dead versions it reads 3 pages; by company_id it reads 149.
const youngestBalance = `FROM balances c WHERE c.company_id >= u.company_id AND c.company_id <= u.company_id
	ORDER BY c.company_id DESC LIMIT 1`

const skipLocked = "SKIP LOCKED"

// lock locks and reads the accounts in the order of company ids, which prevents deadlocks. With how skipLocked it
// leaves out those that another transaction has locked; with "" it waits. patience is how long the transaction waits
// for each lock from now on; 0: as before.
func (b *Locked) lock(ctx context.Context, tx pgx.Tx, how string, patience time.Duration) error {
	batch := &pgx.Batch{}
	b.queueLock(batch, how, patience)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("locking balances: %w", err)
	}
	return nil
}

// queueLock adds lock to a pipeline.
func (b *Locked) queueLock(batch *pgx.Batch, how string, patience time.Duration) {
	companies, args := `$1::bigint[]`, []any{b.companies}
	if patience > 0 { // the rows to be locked depend on the result
		companies = `(SELECT $1::bigint[] FROM set_config('lock_timeout', $2, true))`
		args = append(args, strconv.FormatInt(patience.Milliseconds(), 10))
	}
	batch.Queue(`SELECT b.* FROM unnest(`+companies+`) u(company_id) CROSS JOIN LATERAL (
			SELECT company_id, credits, test_used, `+spendingColumns+` `+youngestBalance+` FOR UPDATE `+how+`) b`, args...).
		Query(func(rows pgx.Rows) error {
			var id int64
			var a account
			_, err := pgx.ForEachRow(rows, []any{&id, &a.credits, &a.testUsed, &a.day, &a.spent}, func() error {
				b.accounts[id] = new(a)
				return nil
			})
			return err
		})
}

// enter changes a locked account's credits and adds the ledger row.
func (b *Locked) enter(d Debit, amount int64) {
	of := b.accounts[d.CompanyID]
	of.credits += amount
	of.changed = true
	b.company = append(b.company, d.CompanyID)
	b.amount = append(b.amount, amount)
	b.after = append(b.after, of.credits)
	b.ref = append(b.ref, d.Ref)
}

// write stores the changed accounts and the ledger rows.
func (b *Locked) write(ctx context.Context, tx pgx.Tx, kind string) error {
	var ids, credits, used, spent []int64
	var days []time.Time
	for _, id := range b.companies {
		if a := b.accounts[id]; a != nil && a.changed {
			ids, credits, used = append(ids, id), append(credits, a.credits), append(used, a.testUsed)
			days, spent = append(days, a.day), append(spent, a.spent)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	batch := &pgx.Batch{}
	// The rows are locked: their addresses (ctid) cannot change.
	batch.Queue(`UPDATE balances b SET credits = u.credits, test_used = u.used, spent = u.spent, spent_on = u.day
		FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::date[]) u(company_id, credits, used, spent,
		day)
		CROSS JOIN LATERAL (SELECT c.ctid AS address `+youngestBalance+`) y WHERE b.ctid = y.address`, ids, credits, used,
		spent, days)
	if len(b.company) > 0 {
		batch.Queue(`INSERT INTO ledger (company_id, kind, amount, balance_after, ref)
			SELECT unnest($2::bigint[]), $1, unnest($3::bigint[]), unnest($4::bigint[]), unnest($5::uuid[])`,
			kind, b.company, b.amount, b.after, b.ref)
	}
	return postgres.Pipeline(ctx, tx, "writing the ledger", batch)
}
