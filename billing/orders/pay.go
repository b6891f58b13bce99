package orders

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/billing"
	"intumwa/internal/postgres"
)

// Payment is a payment for an order, as an operator records it.
type Payment struct {
	Amount    Francs
	Way       string
	Reference string
	On        time.Time // its day; zero: today
	Once      *[16]byte // key of the form; nil: none
	Again     bool      // record it although its reference was recorded before
	More      bool      // sell more credits than were ordered, if it pays for them
}

// Recorded is a payment of an order.
type Recorded struct {
	ID        int64
	Amount    Francs
	Way       string
	Reference string
	On        time.Time
	At        time.Time
	By        string
}

// RepeatedError means that a reference was recorded before, perhaps for the same payment.
type RepeatedError struct {
	Reference string
	Orders    []int64 // at most five
}

// Error returns the text for the user.
func (e *RepeatedError) Error() string {
	return fmt.Sprintf("a payment with the reference %s is recorded already, for order %s: if this is another payment, "+
		"say so (--again)", e.Reference, strings.Trim(strings.ReplaceAll(fmt.Sprint(e.Orders), " ", ", "), "[]"))
}

func (e *RepeatedError) Unwrap() error { return accounts.ErrExists }

// ForUser marks the text.
func (e *RepeatedError) ForUser() {}

// MoreError means that a payment is too much: it pays for more credits than were ordered.
type MoreError struct{ Ordered, Credits int64 }

// Error returns the text for the user.
func (e *MoreError) Error() string {
	return fmt.Sprintf("with this payment the order is paid too much: it pays for %d credits, not for %d; if it is "+
		"right, say so (--more), and they are sold", e.Credits, e.Ordered)
}

func (e *MoreError) Unwrap() error { return accounts.ErrInvalid }

// ForUser marks the text.
func (e *MoreError) ForUser() {}

// referenceKey are a reference's letters and digits in capitals, by which it is compared.
func referenceKey(reference string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToUpper(r)
	}, reference)
}

// check normalises and checks a payment.
func (p *Payment) check() (err error) {
	now := postgres.Now()
	if p.On.IsZero() {
		p.On = now
	}
	p.On = billing.DayOf(p.On)
	line, ok := accounts.OneLine(p.Reference, MaxReference)
	p.Reference = line
	switch {
	case p.Amount < 1 || p.Amount > MaxFrancs:
		return ErrAmount
	case !slices.Contains(Ways, p.Way):
		return ErrWay
	case !ok || referenceKey(line) == "":
		return ErrReference
	case p.On.After(now) || now.Sub(p.On) > oldestPaid:
		return ErrPaidOn
	}
	return nil
}

// Pay records a payment of an order that the caller has locked, in the caller's transaction. When the payments reach
// the order's sum, it sells the credits: it writes the purchase in the ledger, numbers the document and ends the order;
// else sold is nil. A payment of more, which pays for more credits, is refused without More, and with it above the
// price of [MaxCredits]; what is left below the price of one credit is noted as paid. by is the actor. The errors are
// [ErrPaid], [ErrCancelled], [ErrExpired] if the payment is from after the expiry, a [RepeatedError], a [MoreError],
// [billing.ErrGranted] for a repeated key, and those of a wrong payment.
func (s *Store) Pay(ctx context.Context, tx pgx.Tx, o Order, of Customer, p Payment, by string) (
	sold *Invoice, err error) {
	s = s.In(tx)
	if err := p.check(); err != nil {
		return nil, err
	}
	if granted, err := s.granted(ctx, p.Once); err != nil {
		return nil, err
	} else if granted {
		return nil, billing.ErrGranted
	}
	switch o.State() {
	case Paid:
		return nil, ErrPaid
	case Cancelled:
		return nil, ErrCancelled
	case Expired: // the payment counts from its day
		if p.On.After(o.Expires()) {
			return nil, ErrExpired
		}
	case Open:
	}
	if o.Received > MaxFrancs {
		return nil, ErrAmount
	}
	if err := s.warn(ctx, o, p); err != nil {
		return nil, err
	}
	terms, paid := s.Terms(o.Price), o.Received+p.Amount
	sum := terms.Sum(o.Credits)
	whole := paid >= sum.Total
	switch {
	case whole && paid > terms.Sum(MaxCredits).Total:
		return nil, accounts.Errorf(ErrAmount, "with this payment more is paid than %d credits cost, the most of an order",
			MaxCredits)
	case paid > sum.Total: // what the order costs may be the price of more: credits below a franc
		if most := terms.Afford(paid); most > o.Credits && !p.More {
			return nil, &MoreError{o.Credits, most}
		} else if most > o.Credits {
			sum = terms.Sum(most)
		}
	}
	if _, err := tx.Exec(ctx, `INSERT INTO order_payments (order_id, once, francs, way, reference, reference_key, paid_on,
		recorded_by) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`, o.ID, key(p.Once), int64(p.Amount), p.Way, p.Reference,
		referenceKey(p.Reference), p.On, by); err != nil {
		return nil, fmt.Errorf("recording a payment of order %d: %w", o.ID, err)
	}
	if !whole {
		return nil, nil
	}
	ref := saleRef(o.ID)
	if _, err := billing.Adjust(ctx, tx, billing.Adjustment{Company: o.Company, Amount: sum.Credits,
		Note: fmt.Sprintf("order %d", o.ID), Once: &ref}); err != nil {
		return nil, err
	}
	if _, err := tx.Exec(ctx, `UPDATE orders SET paid_at = clock_timestamp() WHERE id = $1`, o.ID); err != nil {
		return nil, fmt.Errorf("ending order %d: %w", o.ID, err)
	}
	invoice := Invoice{Kind: Receipt, Order: o.ID, Company: o.Company, By: by, Sum: sum, Paid: paid, Way: p.Way,
		Seller: s.opts.Operator, Customer: of, Ref: ref}
	if s.opts.Seller != nil {
		invoice.Kind, invoice.Seller = Sale, *s.opts.Seller
	}
	return &invoice, s.issue(ctx, &invoice)
}

// granted reports whether the payment of a form is recorded. The caller has locked the order.
func (s *Store) granted(ctx context.Context, once *[16]byte) (granted bool, err error) {
	if once == nil {
		return false, nil
	}
	err = s.db.QueryRow(ctx, `SELECT EXISTS (SELECT FROM order_payments WHERE once = $1)`, key(once)).Scan(&granted)
	if err != nil {
		return false, fmt.Errorf("looking for the payment of a form: %w", err)
	}
	return granted, nil
}

// warn returns a [RepeatedError] if a payment's reference was recorded before, unless Again is true. Of two payments
// with a reference at once, the second waits for the first.
func (s *Store) warn(ctx context.Context, o Order, p Payment) error {
	if _, err := s.db.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('payments ' || $1, 0))`,
		referenceKey(p.Reference)); err != nil {
		return fmt.Errorf("waiting for payments with a reference: %w", err)
	}
	var payments int
	var before []int64
	if err := s.db.QueryRow(ctx, `SELECT (SELECT count(*) FROM order_payments WHERE order_id = $2),
		ARRAY(SELECT DISTINCT order_id FROM order_payments WHERE reference_key = $1 ORDER BY order_id DESC LIMIT 5)`,
		referenceKey(p.Reference), o.ID).Scan(&payments, &before); err != nil {
		return fmt.Errorf("looking for payments with a reference: %w", err)
	}
	switch {
	case payments >= maxPayments:
		return accounts.Errorf(accounts.ErrTooMany, "the order has %d payments: cancel it", maxPayments)
	case len(before) > 0 && !p.Again:
		return &RepeatedError{p.Reference, before}
	}
	return nil
}

// Payments returns an order's payments in the order of recording.
func (s *Store) Payments(ctx context.Context, order int64) ([]Recorded, error) {
	return postgres.All(ctx, s.db, "reading an order's payments", pgx.RowToStructByPos[Recorded], `
		SELECT id, francs, way, reference, paid_on, recorded_at, recorded_by FROM order_payments WHERE order_id = $1
		ORDER BY id`, order)
}

// Beginnings of references in the ledger.
const (
	SaleRef   = "order\x00\x00\x00"
	CreditRef = "credit\x00\x00"
)

// saleRef is the reference of an order's purchase.
func saleRef(order int64) (ref [16]byte) {
	copy(ref[:], SaleRef)
	binary.BigEndian.PutUint64(ref[8:], uint64(order))
	return ref
}
