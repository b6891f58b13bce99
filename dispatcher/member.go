package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"intumwa/internal/postgres"
	"intumwa/smpp"
)

// member is this process among the dispatchers of one database.
//
// Every heartbeat it says that it lives, and asks for the lease of each of its
// configured links. Whose session lock is gone (sessionLock) or whose heartbeat has stood
// still for DeadAfter, as the others see it, is dead: its leases and its claims are anybody's.
// The session ends with a process that is killed, at once; the silence finds one that sleeps,
// or whose machine is gone. A process that was asleep longer than that finds itself
// replaced; until its first heartbeat succeeds again it submits nothing (fresh),
// and the database refuses whatever it still writes under its old id.
type member struct {
	d       *Dispatcher
	id      atomic.Int64
	beat    atomic.Int64 // when the last heartbeat that succeeded was sent, as time since start
	heard   atomic.Int64 // when heartbeats began to succeed after a silence, likewise
	start   time.Time
	lock    atomic.Pointer[sessionLock]
	workers map[string]*linkWorker // by link name; owned by run
	wake    chan struct{}          // beat now: the configuration changed, or a link can be given up

	// run's
	minutes   minutes   // what the links did lately
	announced bool      // the links that are configured now
	since     time.Time // when they were
	healed    time.Time // when heartbeats last began to succeed again, after a time in which none did
	last      time.Time // the last one that succeeded

	others map[int64]sight // the dispatchers on the list
	died   bool            // a dispatcher was taken off the list since the leases were last asked for

	givenUp map[string]*givenUp     // by link, those whose carrier this process could not reach
	ending  map[string]bool         // links whose workers end in order to be given up
	retries map[string][]smpp.Retry // by link that is ours and has no worker yet, where its attempts had come to
}

func newMember(d *Dispatcher) *member {
	return &member{d: d, start: time.Now(), workers: make(map[string]*linkWorker), minutes: make(minutes), wake: make(chan struct{}, 1),
		others: make(map[int64]sight), givenUp: make(map[string]*givenUp), ending: make(map[string]bool), retries: make(map[string][]smpp.Retry)}
}

func (m *member) kick() {
	signal(m.wake)
}

// fresh reports whether the others must still take this process for alive, with a
// heartbeat to spare.
func (m *member) fresh() bool {
	if l := m.lock.Load(); l != nil && !l.held.Load() {
		return false
	}
	return !m.silent()
}

// silent reports whether the others have not heard of this process for so long that
// within a heartbeat they may take it for dead.
func (m *member) silent() bool { return m.silentAt(time.Since(m.start)) }

func (m *member) silentAt(now time.Duration) bool {
	return now-time.Duration(m.beat.Load()) >= m.d.opts.DeadAfter-m.d.opts.Heartbeat
}

// bindingFor is how long this process has been able to hold binds.
func (m *member) bindingFor() time.Duration {
	return time.Since(m.start) - time.Duration(m.heard.Load())
}

// register adds this process to the dispatchers under a new id. It tries until the
// database takes it, and returns an error if ctx ends before.
func (m *member) register(ctx context.Context) error {
	for failing := false; ; {
		sent := time.Since(m.start)
		taken, err := m.d.takeSessionLock(ctx)
		if err == nil {
			m.lock.Store(taken)
			m.id.Store(taken.id)
			m.beat.Store(int64(sent))
			m.heard.Store(int64(sent))
			m.announced = false
			return nil
		}
		if !failing {
			m.d.log.Error("registering this dispatcher fails; retrying", "error", err)
			failing = true
		}
		if ended := sleep(ctx, m.d.opts.Heartbeat); ended != nil {
			return fmt.Errorf("registering this dispatcher: %w", errors.Join(ended, err))
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
	m.announced, m.since = true, time.Now()
	return nil
}

// run keeps the membership and the leases until ctx ends, then stops the workers.
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
	links, rests := m.wants(time.Now())
	tag, err := m.d.pool.Exec(ctx, `UPDATE dispatchers SET seen_at = now(), links = $2, rests = $3 WHERE id = $1`, id, links, rests)
	if err != nil {
		return fmt.Errorf("saying that this dispatcher lives: %w", err)
	}
	if tag.RowsAffected() == 0 {
		for _, at := range m.workers {
			at.leave() // another may have the links
		}
		m.stop() // whatever they still write goes by the old id and changes nothing
		if l := m.lock.Load(); l != nil {
			l.release()
		}
		if err := m.register(ctx); err != nil {
			return err
		}
		return errReplaced
	}
	if m.silentAt(sent) {
		m.heard.Store(int64(sent))
	}
	m.beat.Store(int64(sent))
	m.beaten(time.Now())
	if !m.announced {
		if err := m.announce(ctx); err != nil {
			return err
		}
	}
	if err := m.removeDead(ctx); err != nil {
		return err
	}
	if m.died {
		m.died = false
		defer m.d.deaths.note() // their claims are freed behind the leases
	}
	return m.lease(ctx, id)
}

// lease asks for every configured link and starts or stops link workers accordingly.
func (m *member) lease(ctx context.Context, id int64) error {
	wishes := map[string]wantedLink{}
	var names, states, lastErrors []string
	var since []time.Time
	var windows, inFlight, accepted, throttled, overdue []int32
	var tps []float64
	var broken, rests []bool
	now := time.Now()
	if err := m.giveUp(ctx, id); err != nil {
		return err
	}
	for _, c := range m.d.running() {
		config := c.config()
		for i := range config.Links {
			l := &config.Links[i]
			wishes[l.Name] = wantedLink{c, l}
			snap, open := smpp.Snapshot{State: smpp.Down, Since: time.Now(), Window: l.Window, TPS: l.TPS}, false
			if at := m.workers[l.Name]; at != nil {
				snap, open = at.state()
			}
			minute := m.minutes.of(l.Name, snap.Totals)
			accepted, throttled, overdue = append(accepted, minute.accepted), append(throttled, minute.throttled), append(overdue, int32(snap.Overdue))
			names, states, since = append(names, l.Name), append(states, snap.State.String()), append(since, postgres.Moment(snap.Since))
			windows, inFlight, tps = append(windows, int32(snap.Window)), append(inFlight, int32(snap.InFlight)), append(tps, snap.TPS)
			lastErrors, broken = append(lastErrors, snap.LastError), append(broken, open)
			rests = append(rests, m.rests(l.Name, now))
		}
	}
	rows, err := m.d.pool.Query(ctx, `
		UPDATE links l SET owner = $1, state = u.state, since = CASE WHEN l.state = u.state THEN l.since ELSE u.since END,
			"window" = u."window", in_flight = u.in_flight, tps = u.tps, last_error = u.last_error, broken = u.broken, updated_at = now(),
			accepted = u.accepted, throttled = u.throttled, overdue = u.overdue, failures = '{}', retry_in = '{}',
			bound_by = CASE WHEN u.state = 'bound' THEN $1 ELSE l.bound_by END,
			served_at = CASE WHEN u.state = 'bound' AND NOT u.broken AND NOT l.paused THEN now() ELSE least(l.served_at, now()) END -- the clock may have been set back
		FROM unnest($2::text[], $3::text[], $4::timestamptz[], $5::int[], $6::int[], $7::float8[], $8::text[], $9::boolean[],
				$10::int[], $11::int[], $12::int[], $13::boolean[])
			u(name, state, since, "window", in_flight, tps, last_error, broken, accepted, throttled, overdue, rests)
			JOIN (SELECT name, failures, retry_in FROM links WHERE name = ANY($2) ORDER BY name FOR UPDATE) before USING (name) -- one order in all processes
		WHERE l.name = u.name AND (l.owner = $1 OR ((l.owner IS NULL OR NOT EXISTS (SELECT FROM dispatchers d WHERE d.id = l.owner))
			AND NOT (u.rests AND `+othersWant+`)))
		RETURNING l.name, l.paused, l.id_format, `+othersWant+`, coalesce(l.bound_by = $1, false), before.failures, before.retry_in`, id, names, states, since, windows, inFlight, tps, lastErrors, broken,
		accepted, throttled, overdue, rests)
	if err != nil {
		return fmt.Errorf("asking for links: %w", err)
	}
	defer rows.Close()
	held := map[string]leasedLink{}
	for rows.Next() {
		var name string
		var h leasedLink
		var failures []int32
		var in []float64
		if err := rows.Scan(&name, &h.paused, &h.format, &h.wanted, &h.boundHere, &failures, &in); err != nil {
			return fmt.Errorf("asking for links: %w", err)
		}
		if len(failures) > 0 {
			m.retries[name] = retriesOf(failures, in)
		}
		held[name] = h
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("asking for links: %w", err)
	}
	if err := m.arrange(wishes, held); err != nil {
		return err
	}
	m.chooseGivenUp(held, now)
	return m.disown(ctx, id, names)
}

// disown takes links off the list that are no longer configured, once their
// workers have ended: one's own, and those that no living dispatcher has had for
// long, unless an operator has paused them: an operator may want them back. One that
// another dispatcher is configured with stays, for that one: a link that leaves the
// configuration of all at the same time gets two heartbeats to leave all of them.
func (m *member) disown(ctx context.Context, id int64, names []string) error {
	keep := names
	for name := range m.workers {
		keep = append(keep, name)
	}
	own := time.Since(m.since) >= 2*m.d.opts.Heartbeat
	if _, err := m.d.pool.Exec(ctx, `WITH theirs AS (UPDATE links l SET owner = NULL, state = 'down', in_flight = 0, accepted = 0, throttled = 0, overdue = 0, updated_at = now()
			WHERE $4 AND name <> ALL($2) AND owner = $1 AND `+othersHave+`)
		DELETE FROM links l WHERE name <> ALL($2) AND NOT `+othersHave+` AND (($4 AND owner = $1)
			OR (NOT paused AND updated_at < now() - $3::interval AND NOT EXISTS (SELECT FROM dispatchers d WHERE d.id = l.owner)))`, id, keep, m.d.opts.StrandedAfter, own); err != nil {
		return fmt.Errorf("taking links off the list: %w", err)
	}
	return nil
}

// wantedLink is a link as configured, leasedLink what comes with its lease.
type (
	wantedLink struct {
		carrier *carrier
		link    *Link
	}
	leasedLink struct {
		paused bool
		format string
		wanted bool // another dispatcher would take it

		boundHere bool // this one was the last that had it bound
	}
)

// arrange makes the link workers what configuration and leases say. One that ends
// drains its window meanwhile; only then may another begin in its place.
func (m *member) arrange(wishes map[string]wantedLink, held map[string]leasedLink) error {
	for name, at := range m.workers {
		w, wanted := wishes[name]
		_, ours := held[name]
		if wanted && !ours {
			at.leave() // another dispatcher has the link
		}
		if !ours || !wanted || at.carrier != w.carrier || !at.adopt(w.link) {
			at.end() // or it is another link now
		}
		if at.ended() {
			delete(m.workers, name)
		}
	}
	for name, h := range held {
		at, w := m.workers[name], wishes[name]
		if m.ending[name] || (at == nil && m.drains(w.link)) {
			continue
		}
		if at == nil {
			if known := w.carrier.matcher.Hold(name, w.carrier.config().IDFormat, h.format); known != "" {
				m.d.metrics.showFormat(w.carrier.name, name, known)
			}
			var err error
			if at, err = newLinkWorker(m.d, w.carrier, w.link, m.retries[name]); err != nil {
				return err
			}
			delete(m.retries, name)
			m.workers[name] = at
			at.start()
		}
		w.carrier.matcher.Configure(name, w.carrier.config().IDFormat)
		at.setPaused(h.paused)
	}
	for name := range m.retries {
		if _, ours := held[name]; !ours {
			delete(m.retries, name)
		}
	}
	return nil
}

// drains reports whether the bind of a link is still in use by one that ends,
// under another name. A carrier may allow it once only.
func (m *member) drains(link *Link) bool {
	for _, at := range m.workers {
		if at.ending.Load() && at.conf.Address == link.Address && at.conf.SystemID == link.SystemID {
			return true
		}
	}
	return false
}

// stop ends all workers side by side and waits for them.
func (m *member) stop() {
	for _, at := range m.workers {
		at.end()
	}
	for name, at := range m.workers {
		at.wait()
		delete(m.workers, name)
	}
}

// leave gives up the membership, the leases and whatever is still claimed.
func (m *member) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	id := m.id.Load()
	if id == 0 {
		return
	}
	if l := m.lock.Load(); l != nil {
		defer l.release()
	}
	if _, err := m.d.pool.Exec(ctx, `DELETE FROM dispatchers WHERE id = $1`, id); err != nil {
		m.d.log.Warn("could not sign off from the database; other dispatchers will notice by its silence", "error", err)
		return
	}
	if _, err := m.d.pool.Exec(ctx, `UPDATE links SET owner = NULL, state = 'down', in_flight = 0, accepted = 0, throttled = 0, overdue = 0, since = now(), updated_at = now()
		WHERE owner = $1`, id); err != nil {
		m.d.log.Warn("could not give up the leases of the links; other dispatchers take them over in a few seconds", "error", err)
	}
}

// minutes keeps, by link, what its totals were at each heartbeat of the last
// minute, so that operators see what it does now and not since it began.
type minutes map[string][]sample

type sample struct {
	at                  time.Time
	accepted, throttled uint64
}

// minute is what a link did in the last minute.
type minute struct{ accepted, throttled int32 }

// of notes a link's totals and returns what it did in the last minute. Totals
// that fall are those of a link that began anew.
func (m minutes) of(link string, totals smpp.Totals) minute {
	now := sample{time.Now(), totals.Accepted, totals.Throttled}
	samples := m[link]
	if n := len(samples); n > 0 && (samples[n-1].accepted > now.accepted || samples[n-1].throttled > now.throttled) {
		samples = samples[:0]
		samples = append(samples, sample{at: now.at})
	}
	samples = append(samples, now)
	old := 0
	for now.at.Sub(samples[old].at) > time.Minute {
		old++
	}
	if old > 0 {
		samples = append(samples[:0], samples[old:]...)
	}
	m[link] = samples
	return minute{since(now.accepted, samples[0].accepted), since(now.throttled, samples[0].throttled)}
}

func since(now, then uint64) int32 { return int32(min(now-then, math.MaxInt32)) }
