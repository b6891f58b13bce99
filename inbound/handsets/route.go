package handsets

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
)

// Route gives an address's messages to a company. Commands and the audit log have it in this form.
type Route struct {
	ID        int64  `json:"route_id"`
	Address   string `json:"address"` // as RouteAddress returns it
	Keyword   string `json:"keyword"` // the message's first word, as Keyword returns it; "": any text
	Carrier   string `json:"carrier"` // "": any
	CompanyID int64  `json:"company_id"`
	// to which STOP under this route applies; "": all senders of the company, or the one with Address as its name
	Sender    string    `json:"sender"`
	CreatedAt time.Time `json:"-"`
	Account   int64     `json:"smpp,omitempty"` // the API key of kind SMPP whose binds get its messages too; 0: none
}

// ErrTaken means that the address and keyword have a route.
var ErrTaken = errors.New("this address and keyword have a route already")

// AddRoute stores a route and returns it. ErrTaken when there is one of the same address, keyword and carrier; another
// error when it could never match (RouteAddress, Keyword). The caller checks that company, carrier and sender exist.
func (s *Store) AddRoute(ctx context.Context, r Route) (_ Route, err error) {
	if r.Address, err = RouteAddress(r.Address); err != nil {
		return Route{}, fmt.Errorf("adding a route from %w", err)
	}
	if r.Keyword != "" {
		if r.Keyword, err = Keyword(r.Keyword); err != nil {
			return Route{}, fmt.Errorf("adding a route from %s: the keyword %w", r.Address, err)
		}
	}
	err = s.pool.QueryRow(ctx, `INSERT INTO inbound_routes (address, keyword, carrier, company_id, sender, smpp_key)
		VALUES ($1, $2, $3, $4, $5, nullif($6::bigint, 0))
		ON CONFLICT DO NOTHING RETURNING id, created_at`, r.Address, r.Keyword, r.Carrier, r.CompanyID, r.Sender,
		r.Account).Scan(&r.ID, &r.CreatedAt)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrTaken
	}
	if err != nil {
		return Route{}, fmt.Errorf("adding a route from %s: %w", r.Address, err)
	}
	return r, nil
}

const routeColumns = `id, address, keyword, carrier, company_id, sender, created_at, coalesce(smpp_key, 0)`

// RemoveRoute deletes a route and returns it, or ErrNotFound.
func (s *Store) RemoveRoute(ctx context.Context, id int64) (Route, error) {
	rows, err := s.pool.Query(ctx, `DELETE FROM inbound_routes WHERE id = $1 RETURNING `+routeColumns, id)
	var r Route
	if err == nil {
		r, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Route])
	}
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNotFound
	}
	if err != nil {
		return Route{}, fmt.Errorf("removing route %d: %w", id, err)
	}
	return r, nil
}

// ListRoutes lists routes with ids above after, at most limit.
func (s *Store) ListRoutes(ctx context.Context, after int64, limit int) ([]Route, error) {
	return s.routes(ctx, `id > $1 ORDER BY id LIMIT $2`, after, limit)
}

// RoutesFrom returns the routes of an address, at most one for each keyword and carrier.
func (s *Store) RoutesFrom(ctx context.Context, address string) (Routes, error) {
	return s.routes(ctx, `address = $1`, Address(address))
}

func (s *Store) routes(ctx context.Context, condition string, args ...any) ([]Route, error) {
	return postgres.All(ctx, s.pool, "reading routes of messages from handsets", pgx.RowToStructByPos[Route],
		`SELECT `+routeColumns+` FROM inbound_routes WHERE `+condition, args...)
}

// Routes are the routes of one address.
type Routes []Route

// Find returns the route of a message that came by a carrier and begins with word; nil for none. A route of that
// carrier wins over one of any carrier, then one of the keyword over one of any text.
func (all Routes) Find(carrier, word string) *Route {
	for _, by := range []string{carrier, ""} {
		for _, key := range []string{word, ""} {
			if r := all.exactly(by, key); r != nil {
				return r
			}
		}
	}
	return nil
}

// Named returns the route of a keyword, never one of any text.
func (all Routes) Named(carrier, word string) *Route {
	if word == "" {
		return nil
	}
	if r := all.exactly(carrier, word); r != nil {
		return r
	}
	return all.exactly("", word)
}

func (all Routes) exactly(carrier, keyword string) *Route {
	for i := range all {
		if all[i].Carrier == carrier && all[i].Keyword == keyword {
			return &all[i]
		}
	}
	return nil
}
