package handsets

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/sms"
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
	Account   int64     `json:"smpp,omitempty"`   // the API key of kind SMPP whose binds get its messages too; 0: none
	Answer    string    `json:"answer,omitempty"` // sent to the handset at the company's expense; "": none
	Hours     string    `json:"hours,omitempty"`  // of answers, as sms.QuietHours writes them; "": always
	Join      int64     `json:"join,omitempty"`   // the group of contacts that the number joins; 0: none
	Leave     int64     `json:"leave,omitempty"`  // that it leaves; 0: none

	Segments int    `json:"answer_segments,omitempty" db:"-"` // of the answer, which cost as many credits
	Encoding string `json:"answer_encoding,omitempty" db:"-"`
}

// Acts reports whether the route does more than giving messages to its company.
func (r *Route) Acts() bool { return r.Answer != "" || r.Join != 0 || r.Leave != 0 }

// Open reports whether the route answers at a moment.
func (r *Route) Open(at time.Time) bool {
	hours, err := sms.ParseQuietHours(r.Hours) // AddRoute takes no invalid ones
	_, within := hours.End(at)
	return r.Hours == "" || err == nil && within
}

// check returns what is wrong with a route's acts.
func (r *Route) check() error {
	_, err := sms.ParseQuietHours(r.Hours)
	switch {
	case r.Answer != "" && (strings.TrimSpace(r.Answer) == "" || !utf8.ValidString(r.Answer) ||
		strings.ContainsRune(r.Answer, 0)):
		return errors.New("the answer is blank, not UTF-8, or has a NUL")
	case utf8.RuneCountInString(r.Answer) > sms.MaxText:
		return fmt.Errorf("the answer has more than %d characters", sms.MaxText)
	case err != nil || r.Hours == sms.NoQuietHours:
		return fmt.Errorf("the hours %q are not written as 08:00-18:00", r.Hours)
	case r.Hours != "" && r.Answer == "":
		return errors.New("the hours are those of an answer, and there is none")
	case r.Join != 0 && r.Join == r.Leave:
		return errors.New("the number would join and leave the same group")
	case (r.Join != 0 || r.Leave != 0) && r.Keyword == "":
		return errors.New("a number joins or leaves a group by a keyword, and the route has none")
	}
	return nil
}

// ErrTaken means that the address and keyword have a route.
var ErrTaken = errors.New("this address and keyword have a route already")

// AddRoute stores a route and returns it. ErrTaken when there is one of the same address, keyword and carrier; another
// error when it could never match (RouteAddress, Keyword). The caller checks that company, carrier,
// sender and groups exist.
func (s *Store) AddRoute(ctx context.Context, r Route) (_ Route, err error) {
	if r.Address, err = RouteAddress(r.Address); err != nil {
		return Route{}, fmt.Errorf("adding a route from %w", err)
	}
	if r.Keyword != "" {
		if r.Keyword, err = Keyword(r.Keyword); err != nil {
			return Route{}, fmt.Errorf("adding a route from %s: the keyword %w", r.Address, err)
		}
	}
	if err := r.check(); err != nil {
		return Route{}, fmt.Errorf("adding a route from %s: %w", r.Address, err)
	}
	err = s.pool.QueryRow(ctx, `INSERT INTO inbound_routes (address, keyword, carrier, company_id, sender, smpp_key,
		answer,
			hours, join_group, leave_group)
		VALUES ($1, $2, $3, $4, $5, nullif($6::bigint, 0), nullif($7, ''), nullif($8, ''), nullif($9::bigint, 0),
			nullif($10::bigint, 0))
		ON CONFLICT DO NOTHING RETURNING id, created_at`, r.Address, r.Keyword, r.Carrier, r.CompanyID, r.Sender,
		r.Account, r.Answer, r.Hours, r.Join, r.Leave).Scan(&r.ID, &r.CreatedAt)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		err = ErrTaken
	case postgres.SQLState(err) == "23503":
		err = errors.New("the group was deleted a moment ago")
	}
	if err != nil {
		return Route{}, fmt.Errorf("adding a route from %s: %w", r.Address, err)
	}
	return r, nil
}

const routeColumns = `id, address, keyword, carrier, company_id, sender, created_at, coalesce(smpp_key, 0),
	coalesce(answer, ''), coalesce(hours, ''), coalesce(join_group, 0), coalesce(leave_group, 0)`

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

// RouteOfGroup returns a route by which numbers join or leave a group, or ErrNotFound.
func (s *Store) RouteOfGroup(ctx context.Context, group int64) (Route, error) {
	found, err := s.routes(ctx, `join_group = $1 OR leave_group = $1 ORDER BY id LIMIT 1`, group)
	if err != nil {
		return Route{}, err
	}
	if len(found) == 0 {
		return Route{}, ErrNotFound
	}
	return found[0], nil
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
