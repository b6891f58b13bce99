package webhooks

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/sms"
)

// Filter selects deliveries of a company; a zero field selects all.
type Filter struct {
	State     string // StatePending, StateDelivered or StateFailed
	Event     string // Sent, Failed, Received or LowBalance
	MessageID int64
	Since     time.Time // of events recorded then or later
}

// maxScanned limits how many of a company's deliveries one page reads, however few match the filter.
const maxScanned = 20_000

// Deliveries returns up to limit of a company's deliveries with ids below before (0: from the newest), latest messages
// first, and the before of the next page: 0 after the last one. When few deliveries match the filter, a page may have
// fewer than limit, even none, and still have a next page.
func (w *Webhooks) Deliveries(ctx context.Context, company sms.CompanyID, f Filter, before int64, limit int) (
	page []Delivery, next int64, err error) {
	if !company.Valid() || limit < 1 {
		return nil, 0, nil
	}
	if before <= 0 {
		before = math.MaxInt64
	}
	if f.MessageID > 0 {
		first, err := deliveryID(f.MessageID, Sent)
		if err != nil {
			return nil, 0, nil // there is no such message
		}
		return w.deliveryPage(ctx, company, f, min(before, first+idSpan), first, limit, 0)
	}
	if f == (Filter{}) || f == (Filter{State: StateFailed}) { // an index finds exactly the page's rows
		return w.deliveryPage(ctx, company, f, before, 0, limit, 0)
	}
	reach := `webhook_deliveries WHERE company_id = $1`
	if f.State == StateFailed {
		reach = `webhook_undelivered WHERE company_id = $1 AND due = 'infinity'`
	}
	var last, seen int64 // the page reads down to last
	err = w.lookups.QueryRow(ctx, `
		SELECT coalesce(min(id), 0), count(*) FROM (SELECT id FROM `+reach+` AND id < $2 ORDER BY id DESC LIMIT $3) r`,
		int64(company), before, maxScanned).Scan(&last, &seen)
	if err != nil {
		return nil, 0, fmt.Errorf("listing webhook deliveries: %w", err)
	}
	if seen < maxScanned {
		last = 0
	}
	return w.deliveryPage(ctx, company, f, before, last, limit, last)
}

// deliveryPage lists the filter's deliveries with ids from last up to below before. When it lists all of them, the next
// page is the one before rest. Stored deliveries and first calls are read separately: in one view of both, PostgreSQL
// would read all of a company's.
func (w *Webhooks) deliveryPage(ctx context.Context, company sms.CompanyID, f Filter, before, last int64, limit int,
	rest int64) (page []Delivery, next int64, err error) {
	condition, args := f.condition([]any{int64(company), before, last, limit + 1})
	condition = ` d WHERE d.company_id = $1 AND d.id < $2 AND d.id >= $3` + condition + ` ORDER BY d.id DESC LIMIT $4)`
	query := `(` + deliveryColumns + ` FROM webhook_deliveries` + condition + ` UNION ALL (` + deliveryColumns +
		` FROM webhook_called` + condition + ` ORDER BY 2 DESC LIMIT $4`
	if f.State == StateFailed {
		query = `(` + deliveryColumns + ` FROM webhook_undelivered` + condition
	}
	page, err = w.deliveries(ctx, query, args...)
	if err != nil {
		return nil, 0, err
	}
	if len(page) > limit {
		return page[:limit], page[limit-1].ID, nil
	}
	return page, rest, nil
}

// condition returns the filter as SQL, and args with its arguments appended.
func (f Filter) condition(args []any) (condition string, all []any) {
	var c strings.Builder
	switch f.State {
	case "":
	case StateFailed:
		c.WriteString(` AND d.due = 'infinity'`)
	case StateDelivered:
		c.WriteString(` AND d.delivered`)
	case StatePending:
		c.WriteString(` AND ` + pendingDelivery)
	default:
		c.WriteString(` AND false`)
	}
	if f.MessageID > 0 {
		c.WriteString(` AND d.data IS NULL`)
	}
	if f.Event != "" {
		// -1 for an unknown event: matches nothing
		fmt.Fprintf(&c, " AND d.id %% %d = %d", idSpan, slices.Index(eventNames[:], f.Event))
	}
	if !f.Since.IsZero() {
		args = append(args, f.Since)
		fmt.Fprintf(&c, " AND d.at >= $%d", len(args))
	}
	return c.String(), args
}

// Delivery returns one of a company's deliveries. It returns ErrNotFound if there is none, or if it belongs to another
// company.
func (w *Webhooks) Delivery(ctx context.Context, company sms.CompanyID, id int64) (Delivery, error) {
	found, _, err := w.deliveryPage(ctx, company, Filter{}, id+1, id, 1, 0)
	if err != nil {
		return Delivery{}, err
	}
	if len(found) == 0 {
		return Delivery{}, fmt.Errorf("webhook delivery %d: %w", id, ErrNotFound)
	}
	return found[0], nil
}

// CompanyOf returns the company of a delivery, for operators with only its id. It costs an index probe per company with
// an endpoint.
func (w *Webhooks) CompanyOf(ctx context.Context, id int64) (sms.CompanyID, error) {
	var company int64
	err := w.pool.QueryRow(ctx, `SELECT e.company_id FROM webhook_endpoints e
		WHERE e.company_id > 0 AND EXISTS (SELECT FROM webhook_deliveries d WHERE d.company_id = e.company_id AND d.id = $1)
		UNION ALL SELECT company_id FROM webhook_called WHERE id = $1`, id).Scan(&company)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNotFound
	}
	if err != nil {
		return 0, fmt.Errorf("looking up webhook delivery %d: %w", id, err)
	}
	return sms.CompanyID(company), nil
}
