package dispatcher

import (
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/inbound/handsets"
	"intumwa/messages"
	"intumwa/messages/lookup"
	"intumwa/messages/outbox"
	"intumwa/messages/rerouting"
	"intumwa/messages/retention"
	"intumwa/queue"
	"intumwa/smpp"
	"intumwa/webhooks"
)

// core is what the parts of a dispatcher share: the ways to the outside, this process's leases and carriers, and the
// messages that it has in flight. It knows none of the parts.
type core struct {
	opts     *Options
	pool     *pgxpool.Pool
	hot      *pgxpool.Pool
	store    stores // on pool: for statements that read much of a table
	carrying stores // on hot: for many rows by their keys
	handsets *handsets.Store
	queue    *queue.Queue
	webhooks *webhooks.Webhooks
	log      *slog.Logger
	metrics  *metrics
	smpp     *smpp.Metrics
	leases   *leases
	carriers *carriers
	inFlight *inFlightMessages
}

// stores are those of messages on one pool.
type stores struct {
	messages  *messages.Store
	outbox    *outbox.Store
	rerouting *rerouting.Store
	retention *retention.Store
	lookup    *lookup.Store
}

func newStores(pool *pgxpool.Pool) stores {
	return stores{messages.New(pool), outbox.New(pool), rerouting.New(pool), retention.New(pool), lookup.New(pool)}
}

// running returns the configured carriers.
func (c *core) running() []*carrier { return c.carriers.running() }

// to is a carrier of the configuration that takes messages of another.
func (c *core) to(name string) rerouting.To {
	to := rerouting.To{Carrier: name}
	for _, one := range c.running() {
		to.Registration = to.Registration || one.name == name && one.config().Registration
	}
	return to
}
