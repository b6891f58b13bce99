package orders

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/billing"
	"intumwa/internal/postgres"
)

// Kind of a document; each has its own series of numbers.
type Kind string

// The kinds.
const (
	Sale       Kind = "sale"        // an invoice
	CreditNote Kind = "credit_note" // corrects an invoice
	Receipt    Kind = "receipt"     // of a sale where no invoices are configured
)

// Kinds are those of documents.
var Kinds = []Kind{Sale, CreditNote, Receipt}

// letters begin the names of documents.
var letters = map[Kind]string{Sale: "F", CreditNote: "A", Receipt: "R"}

// Name returns a document's name, which is unique among all kinds: F000012, A000003.
func Name(kind Kind, number int64) string { return fmt.Sprintf("%s%06d", letters[kind], number) }

// ParseName reads a document's name. Without a letter it is an invoice's number.
func ParseName(name string) (Kind, int64, error) {
	text := strings.ToUpper(strings.TrimSpace(name))
	kind := Sale
	for k, letter := range letters {
		if rest, ok := strings.CutPrefix(text, letter); ok {
			kind, text = k, rest
			break
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return "", 0, accounts.Errorf(accounts.ErrInvalid, "an invoice's number is such as F000012, a credit note's A000003")
	}
	return kind, n, nil
}

// Seller is the operator's company, with what an invoice must say. The JSON is stored with each invoice.
type Seller struct {
	Name          string `json:"name"`
	NIF           string `json:"nif"`
	TradeRegister string `json:"trade_register"`
	LegalForm     string `json:"legal_form"`
	Sector        string `json:"sector"`
	FiscalCenter  string `json:"fiscal_center"`     // DGC, DMC or DPMC
	Natural       bool   `json:"natural,omitempty"` // a natural person
	VAT           bool   `json:"vat_taxpayer"`
	CT            bool   `json:"ct_taxpayer"`
	TL            bool   `json:"tl_taxpayer"`
	Address       string `json:"address"`
	PostalNumber  string `json:"postal_number,omitempty"`
	Province      string `json:"province,omitempty"`
	Commune       string `json:"commune"`
	Quarter       string `json:"quarter"`
	Avenue        string `json:"avenue,omitempty"`
	Street        string `json:"street,omitempty"`
	House         string `json:"house,omitempty"`
	Phone         string `json:"phone"`
	Email         string `json:"email,omitempty"`
}

// Customer is a company as it was at the sale. The JSON is stored with each document.
type Customer struct {
	Name          string `json:"name"`
	NIF           string `json:"nif,omitempty"`
	TradeRegister string `json:"trade_register,omitempty"`
	Address       string `json:"address,omitempty"`
}

// Invoice is a document of a sale, or of its correction. It never changes.
type Invoice struct {
	Kind     Kind
	Number   int64
	Order    int64
	Company  int64
	RefersTo int64 // number of the invoice that a credit note corrects
	Issued   time.Time
	By       string // actor
	Sum
	Paid     Francs // 0 on a credit note
	Way      string // of the last payment
	Seller   Seller
	Customer Customer
	Reason   string   // of a credit note
	Ref      [16]byte // of its row in the ledger
}

// Name returns the document's name.
func (i *Invoice) Name() string { return Name(i.Kind, i.Number) }

// Corrected returns the name of the invoice that a credit note corrects, else "".
func (i *Invoice) Corrected() string {
	if i.RefersTo == 0 {
		return ""
	}
	return Name(Sale, i.RefersTo)
}

// Rest returns what was paid over the total: less than a credit costs.
func (i *Invoice) Rest() Francs { return max(0, i.Paid-i.Total) }

// issue numbers and stores a document. It locks the series: call it last.
func (s *Store) issue(ctx context.Context, i *Invoice) error {
	taxes, err := json.Marshal(i.Taxes)
	seller, err2 := json.Marshal(i.Seller)
	customer, err3 := json.Marshal(i.Customer)
	if err = errors.Join(err, err2, err3); err == nil {
		err = s.db.QueryRow(ctx, `
			WITH n AS (INSERT INTO invoice_series AS s (kind, last, issued_at) VALUES ($1, 1, clock_timestamp())
				ON CONFLICT (kind) DO UPDATE SET last = s.last + 1, issued_at = greatest(s.issued_at, clock_timestamp())
				RETURNING kind, last, issued_at)
			INSERT INTO invoices (kind, number, order_id, company_id, refers_to, issued_at, issued_by, credits, centimes, net,
				taxes, total, paid, way, seller, customer, reason, ref)
			SELECT kind, last, $2, $3, nullif($4::bigint, 0), issued_at, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16
			FROM n RETURNING number, issued_at`, i.Kind, i.Order, i.Company, i.RefersTo, i.By, i.Credits, int64(i.Price),
			int64(i.Net), taxes, int64(i.Total), int64(i.Paid), i.Way, seller, customer, i.Reason,
			i.Ref).Scan(&i.Number, &i.Issued)
	}
	if err != nil {
		return fmt.Errorf("issuing a document of order %d: %w", i.Order, err)
	}
	return s.queue(ctx, i)
}

const invoiceColumns = `kind, number, order_id, company_id, coalesce(refers_to, 0), issued_at, issued_by, credits,
	centimes, net, taxes, total, paid, way, seller, customer, reason, ref`

func scanInvoice(row pgx.CollectableRow) (i Invoice, err error) {
	err = row.Scan(&i.Kind, &i.Number, &i.Order, &i.Company, &i.RefersTo, &i.Issued, &i.By, &i.Credits, &i.Price, &i.Net,
		&i.Taxes, &i.Total, &i.Paid, &i.Way, &i.Seller, &i.Customer, &i.Reason, &i.Ref)
	return i, err
}

// Invoice returns a document; [accounts.ErrNotFound].
func (s *Store) Invoice(ctx context.Context, kind Kind, number int64) (Invoice, error) {
	return accounts.One(ctx, s.db, "reading an invoice", "there is no "+Name(kind, number), scanInvoice,
		`SELECT `+invoiceColumns+` FROM invoices WHERE kind = $1 AND number = $2`, kind, number)
}

// CreditNotes returns the credit notes of an invoice in the order of their numbers.
func (s *Store) CreditNotes(ctx context.Context, sale int64) ([]Invoice, error) {
	return postgres.All(ctx, s.db, "reading credit notes", scanInvoice, `SELECT `+invoiceColumns+` FROM invoices
		WHERE kind = 'credit_note' AND refers_to = $1 ORDER BY number`, sale)
}

// After returns up to limit documents of a kind with numbers above after, in their order.
func (s *Store) After(ctx context.Context, kind Kind, after int64, limit int) ([]Invoice, error) {
	return postgres.All(ctx, s.db, "reading invoices", scanInvoice, `SELECT `+invoiceColumns+` FROM invoices
		WHERE kind = $1 AND number > $2 ORDER BY number LIMIT $3`, kind, after, limit)
}

// Issued returns the documents of a period, the oldest first; those of one company, or with 0 of all. limit bounds
// them.
func (s *Store) Issued(ctx context.Context, company int64, from, to time.Time, limit int) ([]Invoice, error) {
	return postgres.All(ctx, s.db, "reading the invoices of a period", scanInvoice, `SELECT `+invoiceColumns+`
		FROM invoices WHERE issued_at >= $1 AND issued_at < $2 AND ($3 = 0 OR company_id = $3)
		ORDER BY issued_at, kind, number LIMIT $4`, from, to, company, limit)
}

// Documents returns the names of the documents of ledger rows by the rows' references. References of other rows have
// none.
func (s *Store) Documents(ctx context.Context, refs [][16]byte) (map[[16]byte]string, error) {
	names := map[[16]byte]string{}
	var own [][16]byte
	for _, ref := range refs {
		if beginning := string(ref[:8]); beginning == SaleRef || beginning == CreditRef {
			own = append(own, ref)
		}
	}
	if len(own) == 0 {
		return names, nil
	}
	var ref [16]byte
	var kind Kind
	var number int64
	return names, postgres.Each(ctx, s.db, "reading the invoices of the ledger", []any{&ref, &kind, &number},
		func() error { names[ref] = Name(kind, number); return nil },
		`SELECT ref, kind, number FROM invoices WHERE ref = ANY($1::uuid[])`, own)
}

// Credit is a correction of an invoice.
type Credit struct {
	Credits int64 // to be taken back; 0: all that are left
	Reason  string
	Once    *[16]byte // key of the form; nil: none
}

// Errors of credit notes.
var (
	// ErrCredited means that all credits of an invoice are credited.
	ErrCredited = accounts.Errorf(accounts.ErrExists, "all of the invoice is credited already")
	// ErrNoInvoice means that a receipt, or a credit note, was to be credited.
	ErrNoInvoice = accounts.Errorf(accounts.ErrInvalid, "only an invoice (F…) has credit notes")
)

// CreditInvoice takes credits of an invoice back in the caller's transaction: a correction in the ledger, and a credit
// note. The notes of an invoice never exceed it, and together with the last one they are exactly it. The caller has
// locked the invoice's order. The errors are [ErrNoInvoice], [ErrCredited], [ErrReason], [billing.ErrNegative] when the
// company has used too many of them, [billing.ErrGranted] for a repeated key, and [accounts.ErrInvalid] for more
// credits than are left.
func (s *Store) CreditInvoice(ctx context.Context, tx pgx.Tx, of Invoice, c Credit, by string) (
	note Invoice, err error) {
	s = s.In(tx)
	if of.Kind != Sale {
		return note, ErrNoInvoice
	}
	reason, ok := accounts.OneLine(c.Reason, MaxReason)
	if !ok {
		return note, ErrReason
	}
	ref := creditRef(c.Once)
	notes, err := s.CreditNotes(ctx, of.Number)
	if err != nil {
		return note, err
	}
	var before int64
	for i := range notes {
		if notes[i].Ref == ref {
			return note, billing.ErrGranted
		}
		before += notes[i].Credits
	}
	left := of.Credits - before
	n := c.Credits
	if n == 0 {
		n = left
	}
	switch {
	case left == 0:
		return note, ErrCredited
	case n < 0 || n > left:
		return note, accounts.Errorf(accounts.ErrInvalid, "of %s, %d credits can be credited", of.Name(), left)
	}
	terms := of.terms()
	upTo := of.Sum // exactly, whatever the rounding was then
	if before+n < of.Credits {
		upTo = terms.Sum(before + n)
	}
	note = Invoice{Kind: CreditNote, Order: of.Order, Company: of.Company, RefersTo: of.Number, By: by,
		Sum: upTo.minus(terms.Sum(before)), Way: of.Way, Seller: of.Seller, Customer: of.Customer, Reason: reason, Ref: ref}
	if _, err := billing.Adjust(ctx, tx, billing.Adjustment{Company: of.Company, Amount: -n, Note: reason,
		Once: &ref}); err != nil {
		return note, err
	}
	return note, s.issue(ctx, &note)
}

// terms are those of the invoice's sum.
func (i *Invoice) terms() Terms {
	t := Terms{Price: i.Price}
	for _, tax := range i.Taxes {
		t.Taxes = append(t.Taxes, tax.Tax)
	}
	return t
}

// creditRef is the reference of a credit note's row in the ledger.
func creditRef(once *[16]byte) (ref [16]byte) {
	if once != nil {
		ref = *once
	} else {
		_, _ = rand.Read(ref[:]) // never fails
	}
	copy(ref[:], CreditRef)
	return ref
}

// Last returns the last number of each kind that has one.
func (s *Store) Last(ctx context.Context) (map[Kind]int64, error) {
	last := map[Kind]int64{}
	var kind Kind
	var n int64
	return last, postgres.Each(ctx, s.db, "reading the last numbers of invoices", []any{&kind, &n},
		func() error { last[kind] = n; return nil }, `SELECT kind, last FROM invoice_series`)
}

// Skip makes a series go on after a number, because a restore lost the invoices up to it, and returns the first of
// the lost numbers; 0 when none are lost. Customers and the tax office have them, so no other invoice gets
// them.
func (s *Store) Skip(ctx context.Context, kind Kind, last int64, reason string) (first int64, err error) {
	reason, ok := accounts.OneLine(reason, MaxReason)
	if !ok {
		return 0, ErrReason
	}
	const most = 1_000_000 // lost at once: more is a mistake in typing
	var had int64
	err = s.db.QueryRow(ctx, `INSERT INTO invoice_series AS s (kind, last, issued_at) VALUES ($1, 0, clock_timestamp())
		ON CONFLICT (kind) DO UPDATE SET last = s.last RETURNING last`, kind).Scan(&had)
	switch {
	case err != nil:
		return 0, fmt.Errorf("locking the numbers of invoices: %w", err)
	case last <= had:
		return 0, nil
	case last-had > most:
		return 0, accounts.Errorf(accounts.ErrInvalid, "the last number is %s: a restore loses at most %d", Name(kind, had),
			most)
	}
	b := &pgx.Batch{}
	b.Queue(`INSERT INTO invoice_gaps (kind, first, last, reason) VALUES ($1, $2, $3, $4)`, kind, had+1, last, reason)
	b.Queue(`UPDATE invoice_series SET last = $2 WHERE kind = $1`, kind, last)
	if err := s.db.SendBatch(ctx, b).Close(); err != nil {
		return 0, fmt.Errorf("skipping numbers of invoices: %w", err)
	}
	return had + 1, nil
}
