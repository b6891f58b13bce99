// Package orders sells credits: a company orders them at its price, pays, and gets them with an invoice.
//
//	order (30 days) → payments → [Store.Pay]: the ledger's purchase, the invoice's number, the end of the order
//
// Sums are whole francs ([Terms.Sum]). The price is that of the order, the taxes are those of the day: an order that is
// paid after a tax changed costs its sum of that day. Numbers of documents follow each other without a gap and in order
// of time, one series for each kind: the transaction that takes one locks the series last, until its commit. Documents
// and payments are never changed; a mistake is a credit note. Each document has one row of the ledger, whose reference
// begins with [SaleRef] or [CreditRef].
package orders

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/accounts"
	"intumwa/billing"
	"intumwa/internal/postgres"
	"intumwa/sms"
)

// Bounds.
const (
	MaxCredits   = 100_000_000          // of an order
	MaxFrancs    = Francs(1e14)         // of a payment
	MaxReference = 100                  // characters
	MaxReason    = 500                  // characters
	MaxOpen      = 20                   // open orders of a company
	Expiry       = 30 * 24 * time.Hour  // of an order without a payment
	oldestPaid   = 366 * 24 * time.Hour // how long ago a payment may have been made
	maxPayments  = 100                  // of an order
)

// State of an order.
type State string

// The states.
const (
	Open      State = "open"
	Paid      State = "paid"
	Cancelled State = "cancelled"
	Expired   State = "expired"
)

// Ways of payments.
const (
	Bank   = "bank"
	Mobile = "mobile"
	Cash   = "cash"
)

// Ways are those of payments.
var Ways = []string{Bank, Mobile, Cash}

// Errors of orders. Their texts are for the user.
var (
	ErrNoPrice = accounts.Errorf(accounts.ErrInvalid, "the company has no price of a credit: set one by admin price set")
	ErrCredits = accounts.Errorf(accounts.ErrInvalid, "an order is for 1 to %d credits, and costs at least one franc",
		MaxCredits)
	ErrManyOpen  = accounts.Errorf(accounts.ErrTooMany, "the company has %d open orders", MaxOpen)
	ErrPaid      = accounts.Errorf(accounts.ErrExists, "the order is paid already")
	ErrCancelled = accounts.Errorf(accounts.ErrInvalid, "the order is cancelled: order again")
	ErrExpired   = accounts.Errorf(accounts.ErrInvalid, "the payment was made after the order had expired: order again")
	ErrHasMoney  = accounts.Errorf(accounts.ErrInvalid, "a payment for the order is recorded: only an operator cancels it")
	ErrReference = accounts.Errorf(accounts.ErrInvalid, "a reference has 1 to %d characters, with a letter or digit",
		MaxReference)
	ErrReason = accounts.Errorf(accounts.ErrInvalid, "a reason has 1 to %d characters", MaxReason)
	ErrAmount = accounts.Errorf(accounts.ErrInvalid, "a payment is of 1 to %d whole francs", MaxFrancs)
	ErrWay    = accounts.Errorf(accounts.ErrInvalid, "a payment's way is bank, mobile or cash")
	ErrPaidOn = accounts.Errorf(accounts.ErrInvalid, "a payment was made within the last year, not in the future")
)

// Options are what orders need of the configuration.
type Options struct {
	Taxes  []Tax
	Seller *Seller // on invoices; nil: none are configured, and a sale gets a receipt
	// the operator's few facts, on receipts
	Operator Seller
	EBMS     string // id of this system at the tax office, which must have every invoice; empty: it is not told
}

// Store reads and changes orders. It is safe for concurrent use.
type Store struct {
	db   postgres.DB
	opts Options
}

// New returns the orders in pool's database.
func New(pool *pgxpool.Pool, opts Options) *Store { return &Store{pool, opts} }

// In returns a copy that works in the caller's transaction.
func (s *Store) In(tx pgx.Tx) *Store { return &Store{tx, s.opts} }

// Seller returns who is on invoices; nil: sales get receipts.
func (s *Store) Seller() *Seller { return s.opts.Seller }

// Terms returns a price with today's taxes.
func (s *Store) Terms(price billing.Centimes) Terms {
	return Terms{price, InForce(s.opts.Taxes, postgres.Now())}
}

// Order is an order of credits.
type Order struct {
	ID        int64
	Company   int64
	User      int64 // who ordered; 0: an operator
	Credits   int64
	Price     billing.Centimes
	Reference string // of the payment, by the customer
	Created   time.Time
	PaidAt    *time.Time
	Cancelled *time.Time
	By        string // who cancelled
	Reason    string
	Received  Francs // the sum of its payments
	Slip      accounts.Document
	Kind      Kind // of its document, and its number; 0 until it is paid
	Number    int64
	Sold      int64  // credits of its document
	Total     Francs // of its document
}

// Expires returns when the order expires without a payment.
func (o *Order) Expires() time.Time { return o.Created.Add(Expiry) }

// State returns the order's state.
func (o *Order) State() State {
	switch {
	case o.PaidAt != nil:
		return Paid
	case o.Cancelled != nil:
		return Cancelled
	case o.Received == 0 && !postgres.Now().Before(o.Expires()):
		return Expired
	}
	return Open
}

// Document returns the name of the order's document; "" until it is paid.
func (o *Order) Document() string {
	if o.Number == 0 {
		return ""
	}
	return Name(o.Kind, o.Number)
}

const (
	columns = `o.id, o.company_id, coalesce(o.user_id, 0), o.credits, o.centimes, o.reference, o.created_at, o.paid_at,
	o.cancelled_at, o.cancelled_by, o.reason,
	(SELECT coalesce(sum(francs), 0)::bigint FROM order_payments WHERE order_id = o.id),
	coalesce(d.name, ''), coalesce(d.type, ''), coalesce(d.size, 0), d.at, coalesce(i.kind, ''), coalesce(i.number, 0),
	coalesce(i.credits, 0), coalesce(i.total, 0)`
	joined = ` FROM orders o LEFT JOIN order_slips d ON d.order_id = o.id
	LEFT JOIN invoices i ON i.order_id = o.id AND i.kind <> 'credit_note'`
)

func scan(row pgx.CollectableRow) (o Order, err error) {
	d := &o.Slip
	err = row.Scan(&o.ID, &o.Company, &o.User, &o.Credits, &o.Price, &o.Reference, &o.Created, &o.PaidAt, &o.Cancelled,
		&o.By, &o.Reason, &o.Received, &d.Name, &d.Type, &d.Size, &d.At, &o.Kind, &o.Number,
		&o.Sold, &o.Total)
	return o, err
}

func none(id int64) string { return fmt.Sprintf("there is no order %d", id) }

// Order returns an order; [accounts.ErrNotFound].
func (s *Store) Order(ctx context.Context, id int64) (Order, error) {
	return accounts.One(ctx, s.db, "reading an order", none(id), scan, `SELECT `+columns+joined+` WHERE o.id = $1`, id)
}

// Lock locks an order until the transaction ends, and returns it; [accounts.ErrNotFound]. Its document and payments are
// read after the lock.
func (s *Store) Lock(ctx context.Context, id int64) (Order, error) {
	if _, err := accounts.One(ctx, s.db, "locking an order", none(id), pgx.RowTo[int64],
		`SELECT id FROM orders WHERE id = $1 FOR UPDATE`, id); err != nil {
		return Order{}, err
	}
	return s.Order(ctx, id)
}

// Filter chooses orders.
type Filter struct {
	Company int64 // 0: all
	State   State // "": all
}

// List returns up to limit orders with ids below before (0: from the newest), the newest first, and the next page's
// before, 0 for none.
func (s *Store) List(ctx context.Context, f Filter, before int64, limit int) (page []Order, next int64, err error) {
	state := map[State]string{"": `true`, Paid: `o.paid_at IS NOT NULL`, Cancelled: `o.cancelled_at IS NOT NULL`,
		Open: `o.paid_at IS NULL AND o.cancelled_at IS NULL AND ` + alive, Expired: `o.paid_at IS NULL AND
			o.cancelled_at IS NULL AND NOT ` + alive}[f.State]
	if state == "" {
		return nil, 0, accounts.Errorf(accounts.ErrInvalid, "a state is open, paid, cancelled or expired")
	}
	page, err = postgres.All(ctx, s.db, "listing orders", scan, `SELECT `+columns+joined+` WHERE `+state+`
		AND ($1 = 0 OR o.company_id = $1) AND ($2 = 0 OR o.id < $2) ORDER BY o.id DESC LIMIT $3`, f.Company, before, limit+1)
	if err == nil && len(page) > limit {
		page, next = page[:limit], page[limit-1].ID
	}
	return page, next, err
}

// alive is whether an order that is neither paid nor cancelled has not expired.
const alive = `(o.created_at > now() - interval '30 days' OR EXISTS (SELECT FROM order_payments WHERE order_id = o.id))`

// NewOrder is an order to be placed.
type NewOrder struct {
	Company sms.CompanyID
	User    int64 // 0: an operator
	Credits int64
	Price   billing.Centimes
	Once    *[16]byte // key of the form; nil: none
}

// Place stores an order in the caller's transaction. A second call with a key returns the first one's order. The errors
// are [ErrCredits] and [ErrManyOpen].
func (s *Store) Place(ctx context.Context, n NewOrder) (o Order, placed bool, err error) {
	if n.Credits < 1 || n.Credits > MaxCredits || n.Price < 1 || s.Terms(n.Price).Sum(n.Credits).Total < 1 {
		return o, false, ErrCredits
	}
	if _, err := s.db.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('orders', $1))`,
		int64(n.Company)); err != nil {
		return o, false, fmt.Errorf("waiting for a company's orders: %w", err)
	}
	var id int64
	var open int
	err = s.db.QueryRow(ctx, `SELECT coalesce((SELECT id FROM orders WHERE once = $2 AND company_id = $1), 0),
		(SELECT count(*) FROM orders o WHERE o.company_id = $1 AND o.paid_at IS NULL AND o.cancelled_at IS NULL
		AND `+alive+`)`,
		int64(n.Company), key(n.Once)).Scan(&id, &open)
	switch {
	case err != nil:
	case id == 0 && open >= MaxOpen:
		return o, false, ErrManyOpen
	case id == 0:
		placed = true
		err = s.db.QueryRow(ctx, `INSERT INTO orders (company_id, user_id, once, credits, centimes)
			VALUES ($1, nullif($2::bigint, 0), $3, $4, $5) RETURNING id`, int64(n.Company), n.User, key(n.Once), n.Credits,
			int64(n.Price)).Scan(&id)
	}
	if err != nil {
		return o, false, fmt.Errorf("storing an order of company %d: %w", n.Company, err)
	}
	o, err = s.Order(ctx, id)
	return o, placed, err
}

func key(once *[16]byte) (id pgtype.UUID) {
	if once != nil {
		id = pgtype.UUID{Bytes: *once, Valid: true}
	}
	return id
}

// mayChange returns why nothing can be added to an order.
func (o *Order) mayChange() error {
	switch o.State() {
	case Paid:
		return ErrPaid
	case Cancelled:
		return ErrCancelled
	case Expired:
		return ErrExpired
	case Open:
	}
	return nil
}

// SetReference stores the customer's reference of the payment of an order that the caller has locked.
func (s *Store) SetReference(ctx context.Context, o Order, reference string) error {
	if err := o.mayChange(); err != nil {
		return err
	}
	line, ok := accounts.OneLine(reference, MaxReference)
	if !ok {
		return ErrReference
	}
	_, err := accounts.Exec(ctx, s.db, "storing an order's reference", `UPDATE orders SET reference = $2 WHERE id = $1`,
		o.ID, line)
	return err
}

// SetSlip stores the latest slip of an order that the caller has locked. The errors are those of
// [accounts.NewDocument].
func (s *Store) SetSlip(ctx context.Context, o Order, name string, file []byte) error {
	if err := o.mayChange(); err != nil {
		return err
	}
	d, err := accounts.NewDocument(name, file)
	if err != nil {
		return err
	}
	_, err = accounts.Exec(ctx, s.db, "storing a slip", `
		INSERT INTO order_slips (order_id, name, type, size, at, document) VALUES ($1, $2, $3, $4, clock_timestamp(), $5)
		ON CONFLICT (order_id) DO UPDATE SET name = excluded.name, type = excluded.type, size = excluded.size,
		at = excluded.at, document = excluded.document`, o.ID, d.Name, d.Type, d.Size, file)
	return err
}

// SlipPart returns at most size bytes of a slip, as an [Order] has it, from an offset.
func (s *Store) SlipPart(ctx context.Context, o Order, from, size int) ([]byte, error) {
	return accounts.One(ctx, s.db, "reading a slip", "the slip was replaced or deleted", pgx.RowTo[[]byte],
		`SELECT substring(document FROM $3 FOR $4) FROM order_slips WHERE order_id = $1 AND at = $2`, o.ID, o.Slip.At,
		from+1, size)
}

// DeleteSlip deletes a slip; [accounts.ErrNotFound] when there is none.
func (s *Store) DeleteSlip(ctx context.Context, order int64) error {
	n, err := accounts.Exec(ctx, s.db, "deleting a slip", `DELETE FROM order_slips WHERE order_id = $1`, order)
	if err == nil && n == 0 {
		err = accounts.Errorf(accounts.ErrNotFound, "order %d has no slip", order)
	}
	return err
}

// Cancel ends an order that the caller has locked, and deletes its slip. Money that was received must be given back:
// only an operator cancels such an order. The errors are [ErrPaid], [ErrCancelled], [ErrHasMoney] and [ErrReason].
func (s *Store) Cancel(ctx context.Context, o Order, by, reason string, operator bool) error {
	line, ok := accounts.OneLine(reason, MaxReason)
	switch err := o.mayChange(); {
	case err != nil && !errors.Is(err, ErrExpired):
		return err
	case o.Received > 0 && !operator:
		return ErrHasMoney
	case !ok && (operator || reason != ""):
		return ErrReason
	}
	b := &pgx.Batch{}
	b.Queue(`UPDATE orders SET cancelled_at = clock_timestamp(), cancelled_by = $2, reason = $3 WHERE id = $1`, o.ID, by,
		line)
	b.Queue(`DELETE FROM order_slips WHERE order_id = $1`, o.ID)
	if err := s.db.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("cancelling order %d: %w", o.ID, err)
	}
	return nil
}
