package intake

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"intumwa/internal/postgres"
	"intumwa/messages/rerouting"
	"intumwa/sms"
)

// routing finds the carrier of a number: by the configuration, and by what operators have retired since.
type routing struct {
	table atomic.Pointer[sms.Routes]

	mu         sync.Mutex // guards what table is made of
	configured *sms.Routes
	retired    map[string]string // to the next carrier; "": none
	changed    chan struct{}
}

// readRetiredEvery is how often the retired carriers are read, if no notice says that they have changed.
const readRetiredEvery = 5 * time.Second

func newRouting(configured *sms.Routes) *routing {
	r := &routing{configured: configured, changed: make(chan struct{}, 1)}
	r.table.Store(configured)
	return r
}

// SetRoutes replaces the routing table.
func (r *routing) SetRoutes(configured *sms.Routes) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.configured = configured
	r.table.Store(configured.Without(r.retired))
}

// Route returns the carrier of a number now.
func (r *routing) Route(n sms.Number) (carrier string, ok bool) { return r.table.Load().Carrier(n) }

// Routes returns the routing table in force.
func (r *routing) Routes() *sms.Routes { return r.table.Load() }

// readRetired applies what is retired now.
func (r *routing) readRetired(ctx context.Context, db postgres.Querier) error {
	list, err := rerouting.Retirements(ctx, db)
	if err != nil {
		return err
	}
	next := make(map[string]string, len(list))
	for _, one := range list {
		next[one.Carrier] = one.To
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.retired = next
	r.table.Store(r.configured.Without(next))
	return nil
}

// CarrierRetired lets [Intake.FollowRetired] read the retired carriers now. It never blocks.
func (r *routing) CarrierRetired(string) {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// ReadRetired reads which carriers are retired: their numbers are routed to others from then on, or refused. Call it
// before the first request.
func (in *Intake) ReadRetired(ctx context.Context) error { return in.readRetired(ctx, in.pool) }

// FollowRetired keeps the routes up with the retired carriers until ctx ends.
func (in *Intake) FollowRetired(ctx context.Context) error {
	tick := time.NewTicker(readRetiredEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-in.changed:
		case <-tick.C:
		}
		reading, cancel := context.WithTimeout(ctx, readRetiredEvery)
		if err := in.ReadRetired(reading); err != nil && ctx.Err() == nil {
			in.opts.Log.Warn("the retired carriers cannot be read; retrying", "event", "retired_not_read", "error", err)
		}
		cancel()
	}
}
