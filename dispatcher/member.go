package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"intumwa/smpp"
)

// member is this process's seat among the dispatchers of one database.
//
// Every heartbeat it says that it lives, and asks for the lease of each of its
// configured links. Whose session is gone (seat) or who has not been seen for
// DeadAfter is dead: its leases and its claims are anybody's. The session ends
// with a process that is killed, at once; the silence finds one that sleeps, or
// whose machine is gone. A process that was asleep longer than that finds itself
// replaced; until its first heartbeat succeeds again it submits nothing (fresh),
// and the database refuses whatever it still writes under its old id.
type member struct {
	d     *Dispatcher
	id    atomic.Int64
	beat  atomic.Int64 // when the last heartbeat that succeeded was sent, as time since start
	start time.Time
	seat  atomic.Pointer[seat]
	lanes map[string]*lane // by link name; owned by run
	wake  chan struct{}    // beat now: the configuration changed

	minutes   minutes   // what the links did lately; run's
	announced bool      // the links that are configured now; run's
	healed    time.Time // when heartbeats began to succeed again; run's
	last      time.Time // the last one that succeeded; run's

	others map[int64]time.Time // on the list, and since when their sessions are gone: zero while they are there; run's
	died   bool                // somebody was taken off the list, and the leases were not asked for since; run's
}

func newMember(d *Dispatcher) *member {
	now := time.Now()
	// At its start a process knows nothing of the others' silence: they get two
	// heartbeats to be heard.
	healed := now.Add(2*d.opts.Heartbeat - d.opts.DeadAfter)
	return &member{d: d, start: now, healed: healed, lanes: make(map[string]*lane), minutes: make(minutes), wake: make(chan struct{}, 1),
		others: make(map[int64]time.Time)}
}

func (m *member) kick() {
	ring(m.wake)
}

// fresh tells whether the others must still take this process for living, with
// a second in hand.
func (m *member) fresh() bool {
	if s := m.seat.Load(); s != nil && !s.held.Load() {
		return false
	}
	return time.Since(m.start)-time.Duration(m.beat.Load()) < m.d.opts.DeadAfter-m.d.opts.Heartbeat
}

// register takes a new seat, trying until the database gives one.
func (m *member) register(ctx context.Context) error {
	for failing := false; ; {
		sent := time.Since(m.start)
		taken, err := m.d.takeSeat(ctx)
		if err == nil {
			m.seat.Store(taken)
			m.id.Store(taken.id)
			m.beat.Store(int64(sent))
			m.announced = false
			return nil
		}
		if !failing {
			m.d.log.Error("registering this dispatcher; trying on", "error", err)
			failing = true
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(m.d.opts.Heartbeat):
		}
	}
}

// announce makes the rows of the configured links, and keeps those that nobody
// owns from being taken off the list (disown).
func (m *member) announce(ctx context.Context) error {
	var links, carriers []string
	for _, c := range m.d.running() {
		for _, l := range c.config().Links {
			links, carriers = append(links, l.Name), append(carriers, c.name)
		}
	}
	_, err := m.d.pool.Exec(ctx, `INSERT INTO links (name, carrier) SELECT * FROM unnest($1::text[], $2::text[]) l(name, carrier) ORDER BY name
		ON CONFLICT (name) DO UPDATE SET carrier = excluded.carrier, updated_at =
			CASE WHEN EXISTS (SELECT FROM dispatchers d WHERE d.id = links.owner) THEN links.updated_at ELSE now() END`, links, carriers)
	if err != nil {
		return fmt.Errorf("announcing the links: %w", err)
	}
	m.announced = true
	return nil
}

// run keeps the seat and the leases until ctx ends, then stops the lanes.
func (m *member) run(ctx context.Context) {
	tick := time.NewTicker(m.d.opts.Heartbeat)
	defer tick.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	failing := false
	for {
		err := m.heartbeat(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil && !failing:
			failing = true
			m.d.log.Error("heartbeat failed; links submit nothing until one succeeds", "error", err)
		case err == nil && failing:
			failing = false
			m.d.log.Info("heartbeat succeeds again")
		}
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				m.stop()
				return
			case <-look.C:
				waiting = len(m.others) == 0 || failing || !m.someDied(ctx)
			case <-tick.C:
				waiting = false
			case <-m.wake:
				m.announced, waiting = false, false
			}
		}
	}
}

var errReplaced = errors.New("this dispatcher was taken for dead; it starts anew")

// heartbeat says that this process lives, tells the state of its links, and
// takes or loses leases.
func (m *member) heartbeat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, m.d.opts.DeadAfter)
	defer cancel()
	sent := time.Since(m.start)
	id := m.id.Load()
	tag, err := m.d.pool.Exec(ctx, `UPDATE dispatchers SET seen_at = now() WHERE id = $1`, id)
	if err != nil {
		return fmt.Errorf("saying that this dispatcher lives: %w", err)
	}
	if tag.RowsAffected() == 0 {
		m.stop() // whatever they still write goes by the old id and changes nothing
		if s := m.seat.Load(); s != nil {
			s.leave()
		}
		if err := m.register(ctx); err != nil {
			return err
		}
		return errReplaced
	}
	m.beat.Store(int64(sent))
	if !m.announced {
		if err := m.announce(ctx); err != nil {
			return err
		}
	}
	if m.mayBury() {
		if err := m.bury(ctx); err != nil {
			return err
		}
	}
	if err := m.buryAbsent(ctx); err != nil {
		return err
	}
	if m.died {
		m.died = false
		defer m.d.deaths.note() // their claims are freed behind the leases
	}
	return m.lease(ctx, id)
}

// lease asks for every configured link and starts or stops lanes accordingly.
func (m *member) lease(ctx context.Context, id int64) error {
	wishes := map[string]wish{}
	var names, states, lastErrors []string
	var since []time.Time
	var windows, inFlight, accepted, throttled, overdue []int32
	var tps []float64
	var broken []bool
	for _, c := range m.d.running() {
		config := c.config()
		for i := range config.Links {
			l := &config.Links[i]
			wishes[l.Name] = wish{c, l}
			snap, open := smpp.Snapshot{State: smpp.Down, Since: time.Now(), Window: l.Window, TPS: l.TPS}, false
			if at := m.lanes[l.Name]; at != nil {
				snap, open = at.state()
			}
			minute := m.minutes.of(l.Name, snap.Totals)
			accepted, throttled, overdue = append(accepted, minute.accepted), append(throttled, minute.throttled), append(overdue, int32(snap.Overdue))
			names, states, since = append(names, l.Name), append(states, snap.State.String()), append(since, snap.Since)
			windows, inFlight, tps = append(windows, int32(snap.Window)), append(inFlight, int32(snap.InFlight)), append(tps, snap.TPS)
			lastErrors, broken = append(lastErrors, snap.LastError), append(broken, open)
		}
	}
	rows, err := m.d.pool.Query(ctx, `
		UPDATE links l SET owner = $1, state = u.state, since = CASE WHEN l.state = u.state THEN l.since ELSE u.since END,
			"window" = u."window", in_flight = u.in_flight, tps = u.tps, last_error = u.last_error, broken = u.broken, updated_at = now(),
			accepted = u.accepted, throttled = u.throttled, overdue = u.overdue,
			served_at = CASE WHEN u.state = 'bound' AND NOT u.broken AND NOT l.paused THEN now() ELSE l.served_at END
		FROM unnest($2::text[], $3::text[], $4::timestamptz[], $5::int[], $6::int[], $7::float8[], $8::text[], $9::boolean[],
				$10::int[], $11::int[], $12::int[])
			u(name, state, since, "window", in_flight, tps, last_error, broken, accepted, throttled, overdue)
			JOIN (SELECT name FROM links WHERE name = ANY($2) ORDER BY name FOR UPDATE) locked USING (name) -- one order in all processes
		WHERE l.name = u.name AND (l.owner IS NULL OR l.owner = $1 OR NOT EXISTS (SELECT FROM dispatchers d WHERE d.id = l.owner))
		RETURNING l.name, l.paused, l.id_format`, id, names, states, since, windows, inFlight, tps, lastErrors, broken,
		accepted, throttled, overdue)
	if err != nil {
		return fmt.Errorf("asking for links: %w", err)
	}
	defer rows.Close()
	held := map[string]holding{}
	for rows.Next() {
		var name string
		var h holding
		if err := rows.Scan(&name, &h.paused, &h.form); err != nil {
			return fmt.Errorf("asking for links: %w", err)
		}
		held[name] = h
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("asking for links: %w", err)
	}
	if err := m.arrange(wishes, held); err != nil {
		return err
	}
	return m.disown(ctx, id, names)
}

// disown takes links off the list that are configured no more, once their
// lanes have ended: one's own, and those that no living dispatcher has had for
// long, unless an operator has paused them: somebody may yet come back for them.
func (m *member) disown(ctx context.Context, id int64, names []string) error {
	keep := names
	for name := range m.lanes {
		keep = append(keep, name)
	}
	if _, err := m.d.pool.Exec(ctx, `DELETE FROM links l WHERE name <> ALL($2) AND (owner = $1
		OR (NOT paused AND updated_at < now() - $3::interval AND NOT EXISTS (SELECT FROM dispatchers d WHERE d.id = l.owner)))`, id, keep, m.d.opts.StrandedAfter); err != nil {
		return fmt.Errorf("taking links off the list: %w", err)
	}
	return nil
}

// wish is a link as configured, holding what the lease of a link brings along.
type (
	wish struct {
		carrier *carrier
		link    *Link
	}
	holding struct {
		paused bool
		form   string
	}
)

// arrange makes the lanes what configuration and leases say. A lane that ends
// drains its window meanwhile; only then may another begin in its place.
func (m *member) arrange(wishes map[string]wish, held map[string]holding) error {
	for name, at := range m.lanes {
		w, wanted := wishes[name]
		if _, ok := held[name]; !ok || !wanted || at.carrier != w.carrier || !at.adopt(w.link) {
			at.end() // another dispatcher has the link, or it is another link now
		}
		if at.ended() {
			delete(m.lanes, name)
		}
	}
	for name, h := range held {
		at, w := m.lanes[name], wishes[name]
		if at == nil && m.drains(w.link) {
			continue
		}
		if at == nil {
			form := newIDForm(w.carrier.config().IDFormat, h.form)
			if known := form.name(); known != "" {
				m.d.metrics.formOf(w.carrier.name, name, known)
			}
			w.carrier.setForm(name, form) // from here on it is the settler's and the tasks' as well
			var err error
			if at, err = newLane(m.d, w.carrier, w.link); err != nil {
				return err
			}
			m.lanes[name] = at
			at.start()
		}
		at.form.configure(w.carrier.config().IDFormat)
		at.setPaused(h.paused)
	}
	return nil
}

// drains tells whether the bind of a link is still in use by one that ends,
// under another name. A carrier may allow it once only.
func (m *member) drains(link *Link) bool {
	for _, at := range m.lanes {
		if at.ending.Load() && at.conf.Address == link.Address && at.conf.SystemID == link.SystemID {
			return true
		}
	}
	return false
}

// stop ends all lanes side by side and waits for them.
func (m *member) stop() {
	for _, at := range m.lanes {
		at.end()
	}
	for name, at := range m.lanes {
		at.wait()
		delete(m.lanes, name)
	}
}

// leave gives up the seat, the leases and whatever is still claimed.
func (m *member) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	id := m.id.Load()
	if id == 0 {
		return
	}
	if s := m.seat.Load(); s != nil {
		defer s.leave()
	}
	if _, err := m.d.pool.Exec(ctx, `DELETE FROM dispatchers WHERE id = $1`, id); err != nil {
		m.d.log.Warn("giving up the seat; the others will find out", "error", err)
		return
	}
	if _, err := m.d.pool.Exec(ctx, `UPDATE links SET owner = NULL, state = 'down', in_flight = 0, accepted = 0, throttled = 0, overdue = 0, since = now(), updated_at = now()
		WHERE owner = $1`, id); err != nil {
		m.d.log.Warn("giving up the leases; the others will find out", "error", err)
	}
}
