package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/configs"
	"intumwa/inbound/handsets"
	"intumwa/internal/audit"
	"intumwa/sms"
)

type adminInboundCmd struct {
	List  adminInboundListCmd  `cmd:"" default:"withargs" help:"List messages from handsets."`
	Route adminInboundRouteCmd `cmd:"" help:"Whose the messages to an address are."`
}

type adminInboundListCmd struct {
	Limit  int     `default:"50" help:"How many at most."`
	Before int64   `help:"Only those with smaller ids: the next page."`
	Since  instant `help:"Only those of then or later: a time, a date, or 24h for a day ago." placeholder:"T"`
}

type adminInbound struct {
	ID         int64     `json:"id"`
	ReceivedAt time.Time `json:"received_at"`
	Carrier    string    `json:"carrier"`
	Link       string    `json:"link"`
	From       string    `json:"from"`
	To         string    `json:"to"`
	Message    *string   `json:"message"` // null: not text in a coding that is read
	DataCoding uint8     `json:"data_coding"`
	Octets     int       `json:"octets"`
	Part       *string   `json:"part"`    // 2/3; null: a whole message
	Outcome    *string   `json:"outcome"` // null: nobody has looked at it yet
}

// do lists what carriers delivered of handsets, the latest first.
func (c *adminInboundListCmd) do(ctx context.Context, o *operator) (any, error) {
	if c.Limit < 1 {
		return nil, errors.New("--limit must be at least 1")
	}
	inbound, err := handsets.New(o.pool).Inbounds(ctx, c.Before, c.Limit)
	if err != nil {
		return nil, err
	}
	list := []adminInbound{} // [] in JSON, not null
	since := c.Since.moment()
	for _, m := range inbound {
		if m.At.Before(since) {
			continue
		}
		shown := adminInbound{ID: m.ID, ReceivedAt: m.At, Carrier: m.Carrier, Link: m.Link, From: m.Source, To: m.Destination,
			Message: m.Body, DataCoding: m.DataCoding, Octets: len(m.Octets)}
		if m.Part != nil {
			part := fmt.Sprintf("%d/%d", m.Part.Number, m.Part.Total)
			shown.Part = &part
		}
		if m.Outcome != "" {
			outcome := string(m.Outcome)
			shown.Outcome = &outcome
		}
		list = append(list, shown)
	}
	return list, nil
}

type adminInboundRouteCmd struct {
	Add    adminRouteAddCmd    `cmd:"" help:"Give the messages to an address, or those that begin with a keyword, to a company."`
	List   adminRouteListCmd   `cmd:"" help:"List the routes."`
	Remove adminRouteRemoveCmd `cmd:"" help:"Remove a route."`
}

type adminRouteAddCmd struct {
	Address string  `required:"" help:"What handsets send to: a short code, a number, or a name."`
	Keyword *string `help:"Only messages that begin with this word; case and accents do not count."`
	Carrier string  `help:"Only messages that come by this carrier." placeholder:"NAME"`
	Company int64   `required:"" help:"Whose they are." placeholder:"ID"`
	Sender  string  `help:"The company's sender that STOP means here; all of its senders if not given." placeholder:"NAME"`
}

type adminRoute struct {
	RouteID   int64  `json:"route_id"`
	Address   string `json:"address"`
	Keyword   string `json:"keyword"`
	Carrier   string `json:"carrier"`
	CompanyID int64  `json:"company_id"`
	Sender    string `json:"sender"`
}

func routeOf(r handsets.Route) adminRoute {
	return adminRoute{RouteID: r.ID, Address: r.Address, Keyword: r.Keyword, Carrier: r.Carrier, CompanyID: r.CompanyID, Sender: r.Sender}
}

// do adds a route. It holds for what comes from then on.
func (c *adminRouteAddCmd) do(ctx context.Context, o *operator) (any, error) {
	address, err := handsets.RouteAddress(c.Address)
	if err != nil {
		return nil, fmt.Errorf("--address %w", err)
	}
	keyword := "" // any text
	if c.Keyword != nil {
		if keyword, err = handsets.Keyword(*c.Keyword); err != nil {
			return nil, fmt.Errorf("--keyword %w", err)
		}
	}
	if c.Carrier != "" && !slices.ContainsFunc(o.config.Carriers, func(each configs.Carrier) bool { return each.Name == c.Carrier }) {
		return nil, fmt.Errorf("no carrier is called %q", c.Carrier)
	}
	if slices.Contains(handsetWords(slices.Concat(o.config.Inbound.StopWords, o.config.Inbound.StartWords)), keyword) {
		return nil, fmt.Errorf("--keyword %s is a word by which handsets opt out or in (inbound.stop_words, inbound.start_words)", keyword)
	}
	var result adminRoute
	err = o.change(ctx, func(tx pgx.Tx) (audit.Entry, error) {
		users := o.accounts().In(tx)
		if _, err := users.CompanyByID(ctx, c.Company); err != nil {
			return audit.Entry{}, err
		}
		if c.Sender != "" {
			senders, err := users.SendersOf(ctx, c.Company)
			if err != nil {
				return audit.Entry{}, err
			}
			if !slices.ContainsFunc(senders, func(s accounts.Sender) bool { return s.Name == c.Sender }) {
				return audit.Entry{}, fmt.Errorf("company %d has no sender %q", c.Company, c.Sender)
			}
		}
		r, err := handsets.New(o.pool).In(tx).AddRoute(ctx, handsets.Route{Address: address, Keyword: keyword, Carrier: c.Carrier,
			CompanyID: c.Company, Sender: c.Sender})
		result = routeOf(r)
		return audit.Entry{Act: "inbound.route_add", Subject: fmt.Sprintf("route %d", r.ID), Company: sms.CompanyID(c.Company), After: result}, err
	})
	return answer(result, err)
}

type adminRouteListCmd struct{ stretch }

// do lists the routes.
func (c *adminRouteListCmd) do(ctx context.Context, o *operator) (any, error) {
	store := handsets.New(o.pool)
	return collect(c.stretch, func(after int64, limit int) ([]handsets.Route, error) { return store.ListRoutes(ctx, after, limit) },
		func(r handsets.Route) int64 { return r.ID }, routeOf)
}

type adminRouteRemoveCmd struct {
	ID int64 `required:"" help:"The route: route_id of 'admin inbound route list'." placeholder:"ID"`
}

// do removes a route. Messages that are there already stay with their company.
func (c *adminRouteRemoveCmd) do(ctx context.Context, o *operator) (any, error) {
	var result adminRoute
	err := o.change(ctx, func(tx pgx.Tx) (audit.Entry, error) {
		r, err := handsets.New(o.pool).In(tx).RemoveRoute(ctx, c.ID)
		result = routeOf(r)
		return audit.Entry{Act: "inbound.route_remove", Subject: fmt.Sprintf("route %d", c.ID), Company: sms.CompanyID(r.CompanyID), Before: result}, err
	})
	return answer(result, err)
}
