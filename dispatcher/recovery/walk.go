package recovery

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/dispatcher/core"
	"intumwa/internal/queue"
	"intumwa/messages"
	"intumwa/messages/outbox"
)

// WalkOutbox reads the next rows and acts on them.
func (d *Recovery) WalkOutbox(ctx context.Context) error {
	w := d.Walk
	start := time.Now()
	var ways []core.LaneKey
	for _, c := range d.Running() {
		ways = append(ways, core.LaneKey{Carrier: c.Name, Lane: queue.Single},
			core.LaneKey{Carrier: c.Name, Lane: queue.Batch})
	}
	for _, carrier := range w.carriers {
		for _, lane := range []queue.Lane{queue.Single, queue.Batch} {
			if at := (core.LaneKey{Carrier: carrier, Lane: lane}); !slices.Contains(ways, at) {
				ways = append(ways, at)
			}
		}
	}
	maps.DeleteFunc(w.Lanes, func(at core.LaneKey, _ *laneWalk) bool { return !slices.Contains(ways, at) })
	held, failed := d.heldBy(ctx)
	stretches := make([]outbox.Stretch, len(ways))
	var heads []outbox.Stretch
	var headOf []*laneWalk
	for i, at := range ways {
		st := w.stretch(at, start)
		st.Queued = held[at]
		stretches[i] = st
		if l := w.Lanes[at]; l.midst {
			st.After = l.Floor.id
			heads, headOf = append(heads, st), append(headOf, l)
		}
	}
	begin := time.Now()
	seen, next, err := d.Store.Outbox.Walk(ctx, append(stretches, heads...), w.quiet)
	if w.read = time.Since(begin); err != nil {
		return errors.Join(failed, err)
	}
	var all outbox.Seen
	counted := make([]outbox.Counted, len(ways))
	for i, at := range ways {
		l, s := w.Lanes[at], &seen[i]
		l.saw(s, next, time.Since(begin))
		counted[i] = l.counted()
		if l.rush {
			w.read = 0
		}
	}
	for i, l := range headOf {
		l.Floor.found(firstOf(&seen[len(ways)+i], next), false, 0)
	}
	for i := range seen {
		s := &seen[i]
		all.Claimants = append(all.Claimants, s.Claimants...)
		all.Expired = append(all.Expired, s.Expired...)
		all.Lost, all.Stranded = append(all.Lost, s.Lost...), append(all.Stranded, s.Stranded...)
		all.Quiet = append(all.Quiet, s.Quiet...)
	}
	all.Lost = slices.CompactFunc(slices.SortedFunc(slices.Values(all.Lost), byID),
		func(a, b outbox.Waiting) bool { return a.ID == b.ID })
	return errors.Join(failed, d.expire(ctx, all.Expired), d.quieten(ctx, all.Quiet), d.readdress(ctx, all.Stranded),
		d.pushAll(ctx, all.Lost), d.missClaimants(ctx, all.Claimants), d.Store.Outbox.KeepBacklogs(ctx, counted))
}

func byID(a, b outbox.Waiting) int { return cmp.Compare(a.ID, b.ID) }

// expire fails messages, by id, that could not be carried within their validity.
func (d *Recovery) expire(ctx context.Context, ids []int64) error {
	for some := range slices.Chunk(ids, core.DecidedAtOnce) {
		if err := d.Finish(ctx, "expiring messages", func(tx pgx.Tx) ([]messages.Final, error) {
			return d.Carrying.Messages.Expired(ctx, tx, some)
		}); err != nil {
			return err
		}
	}
	return nil
}

// missClaimants triggers freeing the claims of dead dispatchers, if any of claimants is dead.
// Usually their death was noticed before.
func (d *Recovery) missClaimants(ctx context.Context, claimants []int64) error {
	me := d.Leases.ID.Load()
	if claimants = slices.DeleteFunc(claimants, func(id int64) bool { return id == me }); len(claimants) == 0 {
		return nil
	}
	living, err := d.living(ctx) // after the claimants, as in free
	if err != nil {
		return err
	}
	if slices.ContainsFunc(claimants, func(id int64) bool { return !slices.Contains(living, id) }) {
		d.Deaths.Note()
	}
	return nil
}

// FindStranded records the carriers of the outbox's rows, and those that are no longer
// configured anywhere.
func (d *Recovery) FindStranded(ctx context.Context) error {
	start := time.Now()
	if start.Before(d.Walk.AskAgain) {
		return nil
	}
	carriers, err := d.Store.Outbox.OutboxCarriers(ctx)
	if err != nil {
		return err
	}
	d.Walk.AskAgain = start.Add(core.Rest(downRest, time.Since(start))) // the query reads below every floor
	served, err := d.Served(ctx)
	if err != nil {
		return err
	}
	d.Walk.carriers = carriers
	d.Walk.stranded = slices.DeleteFunc(slices.Clone(carriers),
		func(name string) bool { return slices.Contains(served, name) })
	return nil
}

// readdress moves messages, by id, of carriers that are no longer configured
// anywhere to the carriers that now take their numbers.
func (d *Recovery) readdress(ctx context.Context, ids []int64) error {
	if d.Opts.Route == nil {
		return nil
	}
	var known []string
	for _, c := range d.Running() {
		known = append(known, c.Name)
	}
	type way struct{ from, to string }
	for some := range slices.Chunk(ids, core.DecidedAtOnce) {
		stranded, err := d.Carrying.Rerouting.Stranded(ctx, some)
		if err != nil {
			return err
		}
		moves := map[way][]int64{}
		for _, m := range stranded {
			if to, ok := d.Opts.Route(m.Number); ok && slices.Contains(known, to) {
				moves[way{m.Carrier, to}] = append(moves[way{m.Carrier, to}], m.ID)
			}
		}
		for way, ids := range moves {
			n, err := d.Carrying.Rerouting.Readdress(ctx, ids, way.from, d.To(way.to))
			if err != nil {
				return err
			}
			d.Metrics.Rerouted.WithLabelValues(way.from).Add(float64(n))
			d.Log.Warn("carrier is no longer configured; another takes its messages", "event", "carrier_not_configured",
				"carrier", way.from, "by", way.to, "messages", n)
		}
	}
	return nil
}
