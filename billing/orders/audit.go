package orders

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
)

// Faults are what an audit of the sales found.
type Faults struct {
	Invoices   int64 // documents of all kinds
	Uninvoiced int64 // purchases of orders and paid orders without a document, or with another number of credits
	Unbooked   int64 // documents without their row in the ledger, or with another number of credits
	Numbers    int64 // missing numbers, and documents that are older than the one before
	Unqueued   int64 // see [Store.Unqueued]; no fault
}

// Audit compares the ledger's purchases with the documents.
func (s *Store) Audit(ctx context.Context) (f Faults, err error) {
	err = s.db.QueryRow(ctx, `
		WITH booked AS (
			SELECT ref, company_id, amount FROM ledger WHERE kind <> 'send'
				AND (ref >= '6f726465-7200-0000-0000-000000000000' AND ref <= '6f726465-7200-0000-ffff-ffffffffffff'
				OR ref >= '63726564-6974-0000-0000-000000000000' AND ref <= '63726564-6974-0000-ffff-ffffffffffff')
		), issued AS (
			SELECT ref, company_id, CASE WHEN kind = 'credit_note' THEN -credits ELSE credits END AS amount FROM invoices
		)
		SELECT (SELECT count(*) FROM invoices),
			(SELECT count(*) FROM booked b WHERE NOT EXISTS (SELECT FROM issued i WHERE i.ref = b.ref
				AND i.company_id = b.company_id AND i.amount = b.amount))
			+ (SELECT count(*) FROM orders o WHERE o.paid_at IS NOT NULL AND NOT EXISTS (SELECT FROM invoices
				WHERE order_id = o.id AND kind <> 'credit_note')),
			(SELECT count(*) FROM issued i WHERE NOT EXISTS (SELECT FROM booked b WHERE b.ref = i.ref
				AND i.company_id = b.company_id AND i.amount = b.amount)),
			(SELECT coalesce(sum(last), 0)::bigint FROM invoice_series) - (SELECT count(*) FROM invoices)
			- (SELECT coalesce(sum(last - first + 1), 0)::bigint FROM invoice_gaps)
			+ (SELECT count(*) FROM (SELECT issued_at < lag(issued_at) OVER (PARTITION BY kind ORDER BY number) AS older
				FROM invoices) t WHERE older)`).Scan(&f.Invoices, &f.Uninvoiced, &f.Unbooked, &f.Numbers)
	if err == nil && s.opts.EBMS != "" {
		err = s.db.QueryRow(ctx, `SELECT count(*)`+unqueued).Scan(&f.Unqueued)
	}
	if err != nil {
		return f, fmt.Errorf("auditing the invoices: %w", err)
	}
	return f, nil
}

const unqueued = ` FROM invoices i WHERE kind <> 'receipt' AND NOT EXISTS (SELECT FROM ebms_reports WHERE name =
	CASE kind WHEN 'sale' THEN 'F' ELSE 'A' END || lpad(number::text, greatest(6, length(number::text)), '0'))`

// Unqueued is a document that nobody reports to the tax office.
type Unqueued struct {
	Kind   Kind
	Number int64
	Issued time.Time
}

// Unqueued returns up to limit invoices and credit notes that no process reports to the tax office, the oldest first:
// they were issued without a configured eBMS. Without one it returns nothing.
func (s *Store) Unqueued(ctx context.Context, limit int) ([]Unqueued, error) {
	if s.opts.EBMS == "" {
		return nil, nil
	}
	return postgres.All(ctx, s.db, "reading what is not reported", pgx.RowToStructByPos[Unqueued],
		`SELECT kind, number, issued_at`+unqueued+` ORDER BY issued_at, kind, number LIMIT $1`, limit)
}
