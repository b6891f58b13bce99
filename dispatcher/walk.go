package dispatcher

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/messages"
	"intumwa/messages/outbox"
	"intumwa/queue"
)

// walkOutbox reads the next rows and acts on them.
func (d *recovery) walkOutbox(ctx context.Context) error {
	w := d.walk
	start := time.Now()
	var ways []laneKey
	for _, c := range d.running() {
		ways = append(ways, laneKey{c.name, queue.Single}, laneKey{c.name, queue.Batch})
	}
	for _, carrier := range w.carriers {
		for _, lane := range []queue.Lane{queue.Single, queue.Batch} {
			if at := (laneKey{carrier, lane}); !slices.Contains(ways, at) {
				ways = append(ways, at)
			}
		}
	}
	maps.DeleteFunc(w.lanes, func(at laneKey, _ *laneWalk) bool { return !slices.Contains(ways, at) })
	held, failed := d.heldBy(ctx)
	stretches := make([]outbox.Stretch, len(ways))
	var heads []outbox.Stretch
	var headOf []*laneWalk
	for i, at := range ways {
		st := w.stretch(at, start)
		st.Queued = held[at]
		stretches[i] = st
		if l := w.lanes[at]; l.midst {
			st.After = l.floor.id
			heads, headOf = append(heads, st), append(headOf, l)
		}
	}
	begin := time.Now()
	seen, next, err := d.store.outbox.Walk(ctx, append(stretches, heads...), w.quiet)
	if w.read = time.Since(begin); err != nil {
		return errors.Join(failed, err)
	}
	var all outbox.Seen
	counted := make([]outbox.Counted, len(ways))
	for i, at := range ways {
		l, s := w.lanes[at], &seen[i]
		l.saw(s, next, time.Since(begin))
		counted[i] = l.counted()
		if l.rush {
			w.read = 0
		}
	}
	for i, l := range headOf {
		l.floor.found(firstOf(&seen[len(ways)+i], next), false, 0)
	}
	for i := range seen {
		s := &seen[i]
		all.Claimants = append(all.Claimants, s.Claimants...)
		all.Expired = append(all.Expired, s.Expired...)
		all.Lost, all.Stranded = append(all.Lost, s.Lost...), append(all.Stranded, s.Stranded...)
		all.Quiet = append(all.Quiet, s.Quiet...)
	}
	all.Lost = slices.CompactFunc(slices.SortedFunc(slices.Values(all.Lost), byID), func(a, b outbox.Waiting) bool { return a.ID == b.ID })
	return errors.Join(failed, d.expire(ctx, all.Expired), d.quieten(ctx, all.Quiet), d.readdress(ctx, all.Stranded),
		d.pushAll(ctx, all.Lost), d.missClaimants(ctx, all.Claimants), d.store.outbox.KeepBacklogs(ctx, counted))
}

func byID(a, b outbox.Waiting) int { return cmp.Compare(a.ID, b.ID) }

// expire fails messages, by id, that could not be carried within their validity.
func (d *recovery) expire(ctx context.Context, ids []int64) error {
	for some := range slices.Chunk(ids, decidedAtOnce) {
		if err := d.finish(ctx, "expiring messages", func(tx pgx.Tx) ([]messages.Final, error) {
			return d.carrying.messages.Expired(ctx, tx, some)
		}); err != nil {
			return err
		}
	}
	return nil
}

// missClaimants triggers freeing the claims of dead dispatchers, if any of claimants is dead.
// Usually their death was noticed before.
func (d *recovery) missClaimants(ctx context.Context, claimants []int64) error {
	me := d.leases.id.Load()
	if claimants = slices.DeleteFunc(claimants, func(id int64) bool { return id == me }); len(claimants) == 0 {
		return nil
	}
	living, err := d.living(ctx) // after the claimants, as in free
	if err != nil {
		return err
	}
	if slices.ContainsFunc(claimants, func(id int64) bool { return !slices.Contains(living, id) }) {
		d.deaths.note()
	}
	return nil
}

// findStranded records the carriers of the outbox's rows, and those that are no longer
// configured anywhere.
func (d *recovery) findStranded(ctx context.Context) error {
	start := time.Now()
	if start.Before(d.walk.askAgain) {
		return nil
	}
	carriers, err := d.store.outbox.OutboxCarriers(ctx)
	if err != nil {
		return err
	}
	d.walk.askAgain = start.Add(rest(downRest, time.Since(start))) // the query reads below every floor
	served, err := d.served(ctx)
	if err != nil {
		return err
	}
	d.walk.carriers = carriers
	d.walk.stranded = slices.DeleteFunc(slices.Clone(carriers), func(name string) bool { return slices.Contains(served, name) })
	return nil
}

// readdress moves messages, by id, of carriers that are no longer configured
// anywhere to the carriers that now take their numbers.
func (d *recovery) readdress(ctx context.Context, ids []int64) error {
	if d.opts.Route == nil {
		return nil
	}
	var known []string
	for _, c := range d.running() {
		known = append(known, c.name)
	}
	type way struct{ from, to string }
	for some := range slices.Chunk(ids, decidedAtOnce) {
		stranded, err := d.carrying.rerouting.Stranded(ctx, some)
		if err != nil {
			return err
		}
		moves := map[way][]int64{}
		for _, m := range stranded {
			if to, ok := d.opts.Route(m.Number); ok && slices.Contains(known, to) {
				moves[way{m.Carrier, to}] = append(moves[way{m.Carrier, to}], m.ID)
			}
		}
		for way, ids := range moves {
			n, err := d.carrying.rerouting.Readdress(ctx, ids, way.from, d.to(way.to))
			if err != nil {
				return err
			}
			d.metrics.rerouted.WithLabelValues(way.from).Add(float64(n))
			d.log.Warn("carrier is no longer configured; another takes its messages", "event", "carrier_not_configured", "carrier", way.from, "by", way.to, "messages", n)
		}
	}
	return nil
}
