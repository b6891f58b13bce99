package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"intumwa/accounts/companies"
	"intumwa/messages/retention"
)

// companyBounds are the flags for a company's own sending limits and retention of texts.
type companyBounds struct {
	DailyCap       bound    `help:"Credits that its sends may take on a day of Burundi." placeholder:"N|none"`
	RepeatInterval interval `help:"Time between two sends of a text to a number." placeholder:"DURATION|none"`
	RepeatsADay    bound    `name:"repeats-a-day" help:"Sends of a text to a number on a day." placeholder:"N|none"`
	NumberADay     bound    `name:"number-a-day" help:"Messages to a number on a day." placeholder:"N|none"`
	Bodies         bodies   `help:"How long its texts are kept; none: as configured." placeholder:"none|final|DURATION"`
}

// bound is a number, or "none" for no limit.
type bound struct{ change companies.LimitChange }

// mostBound fits into every column.
const mostBound = 1_000_000_000

// UnmarshalText implements kong's mapping.
func (b *bound) UnmarshalText(text []byte) error {
	switch s := string(text); s {
	case "none":
		b.change = companies.Limit(0)
	default:
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n < 1 || n > mostBound {
			return fmt.Errorf("%q is neither a number from 1 to %d nor none", s, mostBound)
		}
		b.change = companies.Limit(n)
	}
	return nil
}

// interval is a bound in whole seconds, up to a day.
type interval struct{ bound }

// UnmarshalText implements kong's mapping.
func (i *interval) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil {
		return i.bound.UnmarshalText(text)
	}
	if d < time.Second || d > 24*time.Hour || d%time.Second != 0 {
		return fmt.Errorf("%q is not whole seconds up to 24h", text)
	}
	i.change = companies.Limit(int64(d / time.Second))
	return nil
}

// leastBodies is the minimum of retention.bodies in configs.
const leastBodies = 24 * time.Hour

// bodies is a retention period of texts: the configured one if nil; not given if keep is nil.
type bodies struct{ keep **time.Duration }

// UnmarshalText implements kong's mapping.
func (b *bodies) UnmarshalText(text []byte) error {
	b.keep = new(*time.Duration)
	switch s := string(text); s {
	case "none":
	case "final":
		*b.keep = new(retention.BodiesUntilFinal)
	default:
		d, err := time.ParseDuration(s)
		if err != nil || d < leastBodies || d%time.Second != 0 {
			return fmt.Errorf("%q is neither none, final nor a duration of at least 24h", s)
		}
		*b.keep = &d
	}
	return nil
}

func (c *companyBounds) any() bool {
	return c.limits() != companies.LimitsChange{} || c.Bodies.keep != nil
}

func (c *companyBounds) limits() companies.LimitsChange {
	return companies.LimitsChange{CreditsADay: c.DailyCap.change, RepeatSeconds: c.RepeatInterval.change,
		RepeatsADay: c.RepeatsADay.change, NumberADay: c.NumberADay.change}
}

// check compares the flags with the configuration.
func (c *companyBounds) check(p *program) error {
	if c.Bodies.keep == nil || *c.Bodies.keep == nil {
		return nil
	}
	config, err := p.config()
	if err != nil {
		return err
	}
	if most := config.Retention.Messages; most > 0 && **c.Bodies.keep > most {
		return errors.New("--bodies must not be longer than retention.messages, " + most.String())
	}
	return nil
}
