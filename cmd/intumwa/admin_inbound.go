package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"intumwa/configs"
	"intumwa/contacts"
	"intumwa/inbound/handsets"
)

type adminInboundCmd struct {
	List  adminInboundListCmd  `cmd:"" default:"withargs" help:"List messages from handsets."`
	Route adminInboundRouteCmd `cmd:"" help:"Companies that get the messages to an address."`
}

type adminInboundListCmd struct {
	Limit  int     `default:"50" help:"How many at most."`
	Before int64   `help:"Only those with smaller ids: the next page."`
	Since  instant `help:"Only those of then or later: a time, a date, or 24h for a day ago." placeholder:"T"`
}

// do lists MO messages, newest first.
func (c *adminInboundListCmd) do(ctx context.Context, o *operator) (any, error) {
	since := c.Since.moment()
	return collect(c.Before, c.Limit, func(before int64, limit int) (rows []handsets.Inbound, next int64, err error) {
		rows, err = handsets.New(o.pool).Inbounds(ctx, before, limit)
		if len(rows) == limit && !rows[limit-1].At.Before(since) {
			next = rows[limit-1].ID
		}
		return rows, next, err
	}, func(m handsets.Inbound) any {
		if m.At.Before(since) {
			return nil
		}
		part := "" // 2/3; null: a whole message
		if m.Part != nil {
			part = fmt.Sprintf("%d/%d", m.Part.Number, m.Part.Total)
		}
		return object{{"id", m.ID}, {"received_at", m.At}, {"carrier", m.Carrier}, {"link", m.Link}, {"from", m.Source},
			{"to", m.Destination},
			{"message", m.Body}, // null: not decodable text, or a company may have it
			{"data_coding", m.DataCoding}, {"octets", len(m.Octets)}, {"part", orNull(part)},
			{"outcome", orNull(string(m.Outcome))}, // null: not routed yet
			{"answer", orNull(string(m.Answer))}}   // null: its route has none
	})
}

type adminInboundRouteCmd struct {
	Add    adminRouteAddCmd    `cmd:"" help:"Give the messages to an address or with a keyword to a company."`
	List   adminRouteListCmd   `cmd:"" help:"List the routes."`
	Remove adminRouteRemoveCmd `cmd:"" help:"Remove a route."`
}

type adminRouteAddCmd struct {
	Address string  `required:"" help:"The address that handsets send to: a short code, a number, or a name."`
	Keyword *string `help:"Only messages that begin with this word; case and accents do not count."`
	Carrier string  `help:"Only messages that come by this carrier." placeholder:"NAME"`
	Company int64   `required:"" help:"The company that gets them." placeholder:"ID"`
	SMPP    int64   `name:"smpp" help:"The company's SMPP key whose binds get them too." placeholder:"ID"`
	Sender  string  `help:"The company's sender that STOP means here; all of its senders if not given." placeholder:"NAME"`
	Answer  string  `help:"Send this text to the handset: a message of the company, which pays for it. Without --keyword: to what no keyword matches." placeholder:"TEXT"`
	Hours   string  `help:"Answer only then, in Burundi's time." placeholder:"08:00-18:00"`
	Join    string  `help:"The number joins this group of contacts: its id or name." placeholder:"GROUP"`
	Leave   string  `help:"The number leaves this group of contacts." placeholder:"GROUP"`
}

// do adds a route for future messages.
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
	if c.Carrier != "" && !slices.ContainsFunc(o.config.Carriers,
		func(each configs.Carrier) bool { return each.Name == c.Carrier }) {
		return nil, fmt.Errorf("no carrier is called %q", c.Carrier)
	}
	if slices.Contains(handsetWords(slices.Concat(o.config.Inbound.StopWords, o.config.Inbound.StartWords)), keyword) {
		return nil, fmt.Errorf("--keyword %s is a word by which handsets opt out or in (inbound.stop_words, "+
			"inbound.start_words)", keyword)
	}
	join, err := groupNamed(ctx, o, c.Company, c.Join)
	if err != nil {
		return nil, fmt.Errorf("--join: %w", err)
	}
	leave, err := groupNamed(ctx, o, c.Company, c.Leave)
	if err != nil {
		return nil, fmt.Errorf("--leave: %w", err)
	}
	return done(o.by(nil).AddRoute(ctx, handsets.Route{Address: address, Keyword: keyword, Carrier: c.Carrier,
		CompanyID: c.Company, Sender: c.Sender, Account: c.SMPP, Answer: c.Answer, Hours: c.Hours, Join: join,
		Leave: leave}))
}

// groupNamed returns the id of a company's group of contacts, by its id or name; 0 for "".
func groupNamed(ctx context.Context, o *operator, company int64, text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	store := contacts.New(o.pool)
	if id, err := strconv.ParseInt(text, 10, 64); err == nil {
		if _, err := store.Group(ctx, company, id); err == nil || !errors.Is(err, contacts.ErrNoGroup) {
			return id, err
		}
	}
	group, err := store.GroupByName(ctx, company, text) // a name may have digits only
	if err != nil {
		return 0, fmt.Errorf("company %d, group %q: %w", company, text, err)
	}
	return group.ID, nil
}

type adminRouteListCmd struct{ listFlags }

func (c *adminRouteListCmd) do(ctx context.Context, o *operator) (any, error) {
	return collectByID(ctx, c.listFlags, handsets.New(o.pool).ListRoutes, asIs)
}

type adminRouteRemoveCmd struct {
	ID int64 `required:"" help:"The route: route_id of 'admin inbound route list'." placeholder:"ID"`
}

// do removes a route. Stored messages stay with their company.
func (c *adminRouteRemoveCmd) do(ctx context.Context, o *operator) (any, error) {
	return done(o.by(nil).RemoveRoute(ctx, c.ID))
}
