package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"intumwa/configs"
	"intumwa/dispatcher"
	"intumwa/messages/rerouting"
	"intumwa/operations"
)

// retireWithin is how long retire takes messages away. Dispatchers take the others.
const retireWithin = 20 * time.Second

type adminCarrierRetireCmd struct {
	Name   string `required:"" help:"The carrier that closes." placeholder:"CARRIER"`
	To     string `help:"Who takes over; refuse: none, its messages fail." placeholder:"CARRIER|refuse"`
	DryRun bool   `help:"Only count what is affected."`
	Undo   bool   `help:"End the retirement: the carrier gets its numbers again."`
}

// do retires the carrier and takes away what waits for it, or shows what that would affect.
func (c *adminCarrierRetireCmd) do(ctx context.Context, o *operator) (any, error) {
	if c.Undo != (c.To == "") {
		return nil, errors.New("--to: name the carrier that takes over, or refuse; or --undo without it")
	}
	if err := c.known(ctx, o); err != nil {
		return nil, err
	}
	store := rerouting.New(o.pool)
	to := c.successor()
	affected, err := store.Affected(ctx, c.Name, takerOf(o.config)(to))
	if err != nil {
		return nil, err
	}
	head := object{{"carrier", c.Name}, {"to", c.To}, {"dry_run", c.DryRun}}
	if c.Undo {
		head[1].value = nil
	}
	leaving := affected.Leaving
	all := append(head, pair{"messages", leaving.Messages}, pair{"segments", leaving.Segments},
		pair{"companies", leaving.Companies}, pair{"credits", leaving.Credits}, pair{"more", leaving.More},
		pair{"waiting", affected.Waiting}, pair{"scheduled", affected.Scheduled}, pair{"in_hand", affected.InHand},
		pair{"at_carrier", affected.AtCarrier})
	if to != "" {
		all = append(all, pair{"unregistered", affected.Unregistered})
	}
	if leaving.More {
		_,
			_ = fmt.Fprintf(o.stderr, "intumwa: more messages may wait than were counted; admin status has the backlog of %s\n",
			c.Name)
	}
	switch {
	case c.Undo && c.DryRun:
		return deep{all}, nil
	case c.Undo:
		was, err := o.by(nil).ReopenCarrier(ctx, c.Name)
		if err == nil && !was {
			err = fmt.Errorf("%s is not retired", c.Name)
		}
		return done(deep{append(head, pair{"retired", false})}, err)
	case c.DryRun:
		return done(deep{all}, c.mayTakeOver(ctx, o))
	}
	many, err := o.busyPool(ctx)
	if err != nil {
		return nil, err
	}
	defer many.Close()
	is, err := o.by(many).RetireCarrier(ctx, operations.Retirement{Carrier: c.Name, To: c.successor(),
		Refund: refunds[o.config.Billing.Refund], Taker: takerOf(o.config), Wait: retireWithin})
	if errors.Is(err, rerouting.ErrRetired) {
		return nil, fmt.Errorf("--to %w; name a carrier that works", err)
	}
	if is.Left > 0 {
		_, _ = fmt.Fprintf(o.stderr, "intumwa: %d messages are left; dispatchers go on to take them away\n", is.Left)
	}
	return deep{append(all, pair{"handed_over", is.HandedOver}, pair{"failed", is.Failed},
		pair{"credits_returned", is.CreditsReturned}, pair{"left", is.Left})}, err
}

// successor is the carrier that takes over; "": none.
func (c *adminCarrierRetireCmd) successor() string {
	if c.To == dispatcher.Refuse {
		return ""
	}
	return c.To
}

// known refuses names that mean no carrier. One that left the configuration may still have messages.
func (c *adminCarrierRetireCmd) known(ctx context.Context, o *operator) error {
	configured := func(name string) bool {
		return slices.ContainsFunc(o.config.Carriers, func(each configs.Carrier) bool { return each.Name == name })
	}
	if to := c.successor(); to != "" && !configured(to) {
		return fmt.Errorf("--to: the configuration has no carrier %q", to)
	}
	if c.To == c.Name {
		return fmt.Errorf("--to: %s cannot take over from itself", c.Name)
	}
	if configured(c.Name) || c.Undo {
		return nil
	}
	left, err := rerouting.New(o.pool).Leavable(ctx, c.Name)
	if err == nil && left == 0 {
		err = fmt.Errorf("--name: the configuration has no carrier %q, and nothing waits for it", c.Name)
	}
	return err
}

// mayTakeOver returns the error that the act would have.
func (c *adminCarrierRetireCmd) mayTakeOver(ctx context.Context, o *operator) error {
	list, err := rerouting.Retirements(ctx, o.pool)
	if err == nil && slices.ContainsFunc(list, func(r rerouting.Retired) bool { return r.Carrier == c.To }) {
		err = fmt.Errorf("--to %s: %w; name a carrier that works", c.To, rerouting.ErrRetired)
	}
	return err
}

// takerOf returns the carriers of a configuration as those that take messages of another.
func takerOf(config *configs.Config) func(name string) rerouting.To {
	return func(name string) rerouting.To {
		to := rerouting.To{Carrier: name}
		for i := range config.Carriers {
			if config.Carriers[i].Name == name {
				to.Registration = registrations[config.Carriers[i].SenderRegistration]
			}
		}
		return to
	}
}
