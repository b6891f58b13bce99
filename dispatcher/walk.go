package dispatcher

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/queue"
)

// outboxWalk is the progress of the walk over the outbox. It belongs to the recovery tasks.
//
// Each step reads the next 20,000 rows of each carrier's lane, in the order of their ids. In
// this one read it counts the rows and finds those that have expired, that the queue has lost,
// that must wait for the end of quiet hours, whose carrier is no longer configured, and whose
// claimants are dead. It reads a shorter lane whole each time. In a longer one it also reads
// the first 20,000 rows, which go out next, each time. So the cost of a step does not grow
// with the backlog; only the duration of a pass does.
type outboxWalk struct {
	lanes map[laneKey]*laneWalk

	carriers []string       // of the outbox's rows, at the last query
	stranded []string       // those of them configured nowhere
	quiet    messages.Quiet // the companies whose batches are not sent now
	read     time.Duration  // the duration of the last read, which sets the walk's rest
	askAgain time.Time      // the next query for carriers
}

// laneWalk is the walk's progress in one lane.
type laneWalk struct {
	after int64 // the id to continue after; 0: at the start
	floor floor
	below bool             // the pass started below the floor
	midst bool             // the next stretch is not the pass's first
	pass  messages.Counted // counted in this pass
	whole messages.Counted // counted in the last whole pass
	ended bool             // a pass has come to the end
	rush  bool             // quiet hours have begun: this pass does not rest
}

func newOutboxWalk() *outboxWalk { return &outboxWalk{lanes: make(map[laneKey]*laneWalk)} }

// stretch returns the next rows of a lane to read.
func (w *outboxWalk) stretch(at laneKey, now time.Time) messages.Stretch {
	l := w.lanes[at]
	if l == nil {
		l = &laneWalk{}
		w.lanes[at] = l
	}
	if l.after == 0 {
		l.after, l.below = l.floor.from(now)
		l.midst, l.pass = false, messages.Counted{Carrier: at.carrier, Lane: int(at.lane)}
	}
	return messages.Stretch{Carrier: at.carrier, Lane: int(at.lane), After: l.after, Stranded: slices.Contains(w.stranded, at.carrier)}
}

// saw adds the rows seen in a lane and moves on.
func (l *laneWalk) saw(seen *messages.Seen, next int64, cost time.Duration) {
	first := l.pass.First == 0
	if l.pass.Messages += seen.Rows; first {
		l.pass.First = seen.First
		l.floor.found(firstOf(seen, next), l.below, cost)
	}
	if l.pass.Due.IsZero() || (seen.Rows > 0 && seen.Due.Before(l.pass.Due)) {
		l.pass.Due = seen.Due
	}
	if l.after, l.midst = seen.Last, true; seen.Rows < messages.WalkRows {
		l.after, l.whole, l.ended, l.rush = 0, l.pass, true, false
	}
}

// firstOf returns the first row seen, or the id of the next new row if there was none.
func firstOf(seen *messages.Seen, next int64) int64 {
	if seen.Rows == 0 {
		return next
	}
	return seen.First
}

// counted returns the lane's count: of the last whole pass, or of this one if it is
// already larger. It is partial until the first pass has come to the end.
func (l *laneWalk) counted() messages.Counted {
	of := l.whole
	if l.after != 0 && l.pass.Messages > l.whole.Messages {
		of = l.pass
	}
	of.Partial = !l.ended
	return of
}

// walkOutbox reads the next rows and acts on them.
func (d *Dispatcher) walkOutbox(ctx context.Context) error {
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
	stretches := make([]messages.Stretch, len(ways))
	var heads []messages.Stretch
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
	seen, next, err := d.store.Walk(ctx, append(stretches, heads...), w.quiet)
	if w.read = time.Since(begin); err != nil {
		return errors.Join(failed, err)
	}
	var all messages.Seen
	counted := make([]messages.Counted, len(ways))
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
	all.Lost = slices.CompactFunc(slices.SortedFunc(slices.Values(all.Lost), byID), func(a, b messages.Waiting) bool { return a.ID == b.ID })
	return errors.Join(failed, d.expire(ctx, all.Expired), d.quieten(ctx, all.Quiet), d.readdress(ctx, all.Stranded),
		d.pushAll(ctx, all.Lost), d.missClaimants(ctx, all.Claimants), d.store.KeepBacklogs(ctx, counted))
}

func byID(a, b messages.Waiting) int { return cmp.Compare(a.ID, b.ID) }

// expire fails messages, by id, that could not be carried within their validity.
func (d *Dispatcher) expire(ctx context.Context, ids []int64) error {
	for some := range slices.Chunk(ids, decidedAtOnce) {
		if err := d.finish(ctx, "expiring messages", func(tx pgx.Tx) ([]messages.Final, error) {
			return d.carrying.Expired(ctx, tx, some)
		}); err != nil {
			return err
		}
	}
	return nil
}

// missClaimants triggers freeing the claims of dead dispatchers, if any of claimants is dead.
// Usually their death was noticed before.
func (d *Dispatcher) missClaimants(ctx context.Context, claimants []int64) error {
	me := d.member.id.Load()
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
func (d *Dispatcher) findStranded(ctx context.Context) error {
	start := time.Now()
	if start.Before(d.walk.askAgain) {
		return nil
	}
	carriers, err := d.store.OutboxCarriers(ctx)
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

// served returns the carriers of which a process has links, or had some less than StrandedAfter ago.
func (d *Dispatcher) served(ctx context.Context) ([]string, error) {
	served, err := postgres.All(ctx, d.pool, "reading which carriers have links", pgx.RowTo[string], `SELECT DISTINCT carrier FROM links l WHERE updated_at > now() - $1::interval
		OR EXISTS (SELECT FROM dispatchers d WHERE l.name = ANY(d.links))`, d.opts.StrandedAfter)
	for _, c := range d.running() {
		served = append(served, c.name)
	}
	return served, err
}

// readdress moves messages, by id, of carriers that are no longer configured
// anywhere to the carriers that now take their numbers.
func (d *Dispatcher) readdress(ctx context.Context, ids []int64) error {
	if d.opts.Route == nil {
		return nil
	}
	var known []string
	for _, c := range d.running() {
		known = append(known, c.name)
	}
	type way struct{ from, to string }
	for some := range slices.Chunk(ids, decidedAtOnce) {
		stranded, err := d.carrying.Stranded(ctx, some)
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
			n, err := d.carrying.Readdress(ctx, ids, way.from, way.to)
			if err != nil {
				return err
			}
			d.metrics.rerouted.WithLabelValues(way.from).Add(float64(n))
			d.log.Warn("carrier is no longer configured; another takes its messages", "event", "carrier_not_configured", "carrier", way.from, "by", way.to, "messages", n)
		}
	}
	return nil
}
