// Package core is what all parts of a dispatcher share: its carriers, leases, metrics and messages in flight, the
// health of its queue, periodic tasks, and what a verdict brings about. It knows none of the parts.
package core

import (
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/dispatcher/setup"
	"intumwa/inbound/handsets"
	"intumwa/internal/queue"
	"intumwa/messages"
	"intumwa/messages/lookup"
	"intumwa/messages/outbox"
	"intumwa/messages/rerouting"
	"intumwa/messages/retention"
	"intumwa/smpp"
	"intumwa/webhooks"
)

// Core is what the parts of a dispatcher share: the ways to the outside, this process's leases and carriers, and the
// messages that it has in flight. It knows none of the parts.
type Core struct {
	Opts     *setup.Options
	Pool     *pgxpool.Pool
	Hot      *pgxpool.Pool
	Store    Stores // on pool: for statements that read much of a table
	Carrying Stores // on hot: for many rows by their keys
	Handsets *handsets.Store
	Queue    *queue.Queue
	Webhooks *webhooks.Webhooks
	Log      *slog.Logger
	Metrics  *Metrics
	SMPP     *smpp.Metrics
	Leases   *Leases
	Carriers *Carriers
	InFlight *InFlightMessages
}

// Stores are those of messages on one pool.
type Stores struct {
	Messages  *messages.Store
	Outbox    *outbox.Store
	Rerouting *rerouting.Store
	Retention *retention.Store
	Lookup    *lookup.Store
}

// NewStores returns the stores on a pool.
func NewStores(pool *pgxpool.Pool) Stores {
	return Stores{messages.New(pool), outbox.New(pool), rerouting.New(pool), retention.New(pool), lookup.New(pool)}
}

// Running returns the configured carriers.
func (c *Core) Running() []*Carrier { return c.Carriers.running() }

// To is a carrier of the configuration that takes messages of another.
func (c *Core) To(name string) rerouting.To {
	to := rerouting.To{Carrier: name}
	for _, one := range c.Running() {
		to.Registration = to.Registration || one.Name == name && one.Config().Registration
	}
	return to
}
