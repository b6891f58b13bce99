package dispatcher

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"intumwa/messages"
	"intumwa/queue"
	"intumwa/smpp"
	"intumwa/submission"
)

// linkWorker carries messages over one leased link. It has three goroutines
// besides those of the binds: two feeders, one for each lane, that take from the
// queue and claim in Postgres, and one that submits.
//
// A feeder claims only as much as the prefetch holds, so that what comes later can
// still overtake: at 100 segments a second a single send waits behind a
// quarter of a second of campaign, not behind the campaign.
type linkWorker struct {
	d        *Dispatcher
	carrier  *carrier
	link     string // its name
	conf     *Link  // as it is now; the member's alone once the worker runs
	binds    *binds
	breaker  breaker
	slots    *slots
	prefetch *prefetch
	pace     *pace
	name     string // consumer on the queue

	withoutID smpp.Seldom // receipts
	notBegun  smpp.Seldom // messages, for want of the database

	cancel context.CancelFunc
	done   chan struct{}
	ending atomic.Bool
	open   sync.WaitGroup // messages not yet settled
	paused atomic.Bool
}

// settleWait is how long a worker waits at its end for its last answers to be
// written.
const settleWait = 2 * time.Second

func newLinkWorker(d *Dispatcher, c *carrier, conf *Link) (*linkWorker, error) {
	w := &linkWorker{d: d, carrier: c, link: conf.Name, conf: conf, name: identity() + "/" + conf.Name, done: make(chan struct{})}
	binds, err := newBinds(d, c.name, conf, smpp.Options{Deliver: w.deliver, OnLate: w.late,
		Class:        func(s smpp.Status) smpp.Class { return c.config().class(s) },
		OnCongestion: func(state uint8) { w.pace.congested(time.Now(), state) }})
	if err != nil {
		return nil, err
	}
	w.binds = binds
	w.breaker.first = d.opts.BreakerPause
	w.slots = newSlots(binds.window)
	w.prefetch = newPrefetch(prefetchSize(binds.window, conf.TPS))
	w.pace = newPace(binds, conf.TPS)
	return w, nil
}

// adopt takes over a link's configuration if that can be done without binding
// anew: pace, window and weight.
func (w *linkWorker) adopt(conf *Link) bool {
	if conf == w.conf {
		return true
	}
	same := *conf
	same.TPS, same.Window, same.Weight = w.conf.TPS, w.conf.Window, w.conf.Weight
	if !same.equal(w.conf) {
		return false
	}
	if conf.Window != w.conf.Window {
		w.slots.resize(conf.Window)
		w.binds.setWindow(conf.Window)
	}
	w.pace.set(conf.TPS)
	w.prefetch.resize(prefetchSize(conf.Window, conf.TPS))
	w.joinShares(conf.Weight)
	w.conf = conf
	return true
}

func (w *linkWorker) joinShares(weight int) {
	for _, share := range w.carrier.shares {
		share.join(w, weight)
	}
}

// state is the link as operators see it.
func (w *linkWorker) state() (snap smpp.Snapshot, broken bool) {
	snap = w.binds.snapshot()
	broken, reason := w.breaker.state()
	if broken {
		snap.LastError = "stopped: the carrier refuses everything with " + reason
	}
	return snap, broken
}

// prefetchSize is how many claimed messages may wait in each lane: enough
// to keep the link busy over a claim, no more than a quarter of a second.
func prefetchSize(window int, tps float64) int {
	if tps > 0 {
		return min(max(int(tps/4), 1), 500)
	}
	return min(max(2*window, 20), 500)
}

func (w *linkWorker) start() {
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	w.joinShares(w.conf.Weight)
	w.d.hold(w.link, w.binds)
	go w.run(ctx)
}

// end tells the worker to stop; wait waits until it has; ended looks.
func (w *linkWorker) end() {
	w.ending.Store(true)
	w.cancel()
}

func (w *linkWorker) wait() { <-w.done }
func (w *linkWorker) ended() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

func (w *linkWorker) setPaused(paused bool) {
	if w.paused.Swap(paused) == paused {
		return
	}
	w.binds.pause(paused)
	what := "link resumed by an operator"
	if paused {
		what = "link paused by an operator"
	}
	w.d.log.Info(what, "carrier", w.carrier.name, "link", w.link)
}

// run works until ctx ends: first nothing more is taken and what is
// prefetched goes back, then the link drains its window and unbinds, then the
// settler writes what was answered.
func (w *linkWorker) run(ctx context.Context) {
	defer close(w.done)
	linkCtx, stopLink := context.WithCancel(context.WithoutCancel(ctx))
	defer stopLink()
	defer w.d.hold(w.link, nil)
	var binds, loops sync.WaitGroup
	binds.Go(func() { w.binds.run(linkCtx) })
	loops.Go(func() { w.feed(ctx, queue.Single) })
	loops.Go(func() { w.feed(ctx, queue.Batch) })
	loops.Go(func() { w.submitPrefetched(ctx) })
	loops.Go(func() { w.watch(ctx) })
	loops.Go(func() { w.watchEchoes(ctx) })
	loops.Wait()
	for _, share := range w.carrier.shares {
		share.leave(w)
	}
	w.giveBack(w.prefetch.takeAll())
	stopLink()
	binds.Wait()
	w.awaitSettled()
	w.d.metrics.breakerOpen.DeleteLabelValues(w.carrier.name, w.link)
}

// awaitSettled waits until the settler has written what the link answered, but
// not for a database that is away: the others then free the claims.
func (w *linkWorker) awaitSettled() {
	settled := make(chan struct{})
	go func() {
		w.open.Wait()
		close(settled)
	}()
	select {
	case <-settled:
	case <-time.After(settleWait):
		w.d.log.Error("shutdown: the carrier's last answers could not be stored in time", "carrier", w.carrier.name, "link", w.link)
	}
}

// watch adjusts the link's pace and, when the link goes down or its carrier
// answers nothing, gives back what is prefetched: another link of the
// carrier may take it.
func (w *linkWorker) watch(ctx context.Context) {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			w.pace.tick(now)
			w.binds.balance()
			if !w.binds.up() || !w.d.member.fresh() || !w.breaker.ready(now) || w.slots.stalled(now) {
				w.giveBack(w.prefetch.takeAll())
			}
		}
	}
}

// ready waits until the link can carry something.
func (w *linkWorker) ready(ctx context.Context) error {
	for {
		if err := w.binds.waitBound(ctx); err != nil {
			return err
		}
		if now := time.Now(); w.d.member.fresh() && w.breaker.ready(now) && !w.slots.stalled(now) {
			return nil
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// feed keeps the prefetch of one lane filled, from the queue as long as that is
// usable and else from the database.
func (w *linkWorker) feed(ctx context.Context, lane queue.Lane) {
	for {
		if w.ready(ctx) != nil {
			return
		}
		room, err := w.prefetch.waitRoom(ctx, lane)
		if err != nil {
			return
		}
		done, err := w.carrier.shares[lane].turn(ctx, w)
		if err != nil {
			return
		}
		taken, usable := w.take(ctx, lane, room)
		pause := time.Duration(0)
		if !usable && ctx.Err() == nil {
			start := time.Now()
			if taken = w.takeDirect(ctx, lane, room); len(taken) == 0 {
				// What it costs to find nothing is the price of the whole backlog.
				pause = min(max(directPause, 5*time.Since(start)), 5*time.Second)
			}
		}
		done(len(taken))
		if ctx.Err() != nil {
			w.giveBack(taken)
			return
		}
		rest := w.turnAway(taken)
		w.prefetch.put(lane, rest)
		for len(rest) < len(taken) && w.carrier.settler.behind() { // nothing else bounds how many of a lane are turned away
			if sleep(ctx, 10*time.Millisecond) != nil {
				return
			}
		}
		if pause > 0 && sleep(ctx, pause) != nil {
			return
		}
	}
}

// directPause lies between two looks into the database for messages to take.
const directPause = 200 * time.Millisecond

// take claims messages from the queue; usable is false when the queue is not.
func (w *linkWorker) take(ctx context.Context, lane queue.Lane, room int) (ms []*inFlight, usable bool) {
	health := w.d.health
	stillUsable, usable := health.whileUsable(w.carrier.name, lane)
	if !usable {
		return nil, false
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(stillUsable, cancel)()
	entries, err := w.d.queue.Take(waiting, w.carrier.name, lane, w.name, room, time.Second)
	switch {
	case ctx.Err() != nil && len(entries) == 0:
		return nil, true
	case err != nil:
		if stillUsable.Err() == nil {
			health.failed(w.carrier.name, lane, err)
		}
		return nil, false
	}
	health.took(w.carrier.name, lane, len(entries), room)
	if len(entries) == 0 {
		return nil, true
	}
	ids := make([]int64, len(entries))
	byID := make(map[int64]string, len(entries))
	for i, e := range entries {
		ids[i] = e.MessageID
		byID[e.MessageID] = e.ID
	}
	claimed, err := w.d.carrying.Claim(context.WithoutCancel(ctx), w.d.member.id.Load(), w.carrier.name, ids)
	if err != nil {
		// The entries stay pending on the queue and their rows unclaimed: the walk
		// finds them. It says nothing about the queue's health.
		w.d.inFlight.claimFailed()
		w.d.log.Error("claiming messages", "carrier", w.carrier.name, "link", w.link, "error", err)
		_ = sleep(ctx, 200*time.Millisecond) // feed looks at ctx next
		return nil, true
	}
	ms = w.inFlight(claimed)
	held := make(map[string]bool, len(ms))
	for _, m := range ms {
		m.entry = byID[m.msg.ID]
		held[m.entry] = true
	}
	// Settled, not due, claimed by another process, or there twice: not needed in the queue.
	for _, e := range entries {
		if !held[e.ID] {
			w.d.acker.ack(w.carrier.name, lane, e.ID)
			w.d.metrics.stale.WithLabelValues(w.carrier.name).Inc()
		}
	}
	return ms, true
}

// takeDirect claims messages in the database, without the queue.
func (w *linkWorker) takeDirect(ctx context.Context, lane queue.Lane, room int) []*inFlight {
	claimed, err := w.d.store.ClaimDue(context.WithoutCancel(ctx), w.d.member.id.Load(), w.carrier.name, int(lane), room)
	if err != nil {
		w.d.inFlight.claimFailed()
		w.d.log.Error("claiming messages directly from the database", "carrier", w.carrier.name, "link", w.link, "error", err)
	}
	w.d.metrics.direct.WithLabelValues(w.carrier.name, lane.String()).Add(float64(len(claimed)))
	return w.inFlight(claimed)
}

func (w *linkWorker) inFlight(claimed []*messages.Claimed) []*inFlight {
	ms := make([]*inFlight, len(claimed))
	for i, m := range claimed {
		ms[i] = &inFlight{worker: w, msg: m}
		w.d.inFlight.add(ms[i])
	}
	return ms
}

// turnAway ends the messages whose handsets have opted out since they were accepted, and
// returns the others (rule choices 9.4).
func (w *linkWorker) turnAway(ms []*inFlight) []*inFlight {
	return slices.DeleteFunc(ms, func(m *inFlight) bool {
		if m.msg.OptedOut {
			w.open.Add(1)
			m.attempt.Open = 1
			w.carrier.settler.take(result{message: m, at: time.Now(), Result: smpp.Result{Outcome: smpp.NotWritten}, event: submission.OptedOut{}})
		}
		return m.msg.OptedOut
	})
}

// giveBack returns messages that were claimed and not begun.
func (w *linkWorker) giveBack(ms []*inFlight) {
	if len(ms) == 0 {
		return
	}
	claims := make([]messages.Claim, len(ms))
	for i, m := range ms {
		claims[i] = m.msg.Claim()
		m.ack()
		defer w.d.inFlight.remove(m)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := w.d.carrying.Release(ctx, w.d.member.id.Load(), claims, 0); err != nil {
		// They stay claimed until this process ends. Try through the settler,
		// which does not give up.
		w.carrier.settler.putBack(claims)
	}
}

// submitPrefetched submits what is prefetched, one message after another. The next
// is chosen when it can go out, so that nothing that comes meanwhile and goes
// before it is held up.
func (w *linkWorker) submitPrefetched(ctx context.Context) {
	for {
		if w.slots.wait(ctx) != nil || w.ready(ctx) != nil {
			return
		}
		m, err := w.prefetch.next(ctx)
		if err != nil {
			return
		}
		w.send(ctx, w.group(m, w.prefetch.poll))
	}
}

// send submits messages, one after another.
func (w *linkWorker) send(ctx context.Context, group []*inFlight) {
	if len(group) == 0 {
		_ = sleep(ctx, 200*time.Millisecond) // whoever calls looks at ctx next
	}
	for _, m := range group {
		if !w.breaker.enter(time.Now()) {
			w.giveBack([]*inFlight{m})
			continue
		}
		w.open.Add(1)
		m.begin(ctx)
	}
}

// submitSingles submits single sends that wait while a batch's message has
// segments to go: on a slow link a long one would hold them up for seconds.
func (w *linkWorker) submitSingles(ctx context.Context) {
	for range singlesBeforeBatch {
		if w.slots.wait(ctx) != nil || !w.d.member.fresh() || !w.binds.up() || !w.breaker.ready(time.Now()) {
			return
		}
		m := w.prefetch.pollSingle()
		if m == nil {
			return
		}
		group := w.group(m, func() *inFlight { return nil })
		if len(group) == 0 {
			return
		}
		w.send(ctx, group)
	}
}

// group returns what is submitted next: first, and more messages where that saves
// statements. Where the carrier must not be sent again what it may have
// (on_ambiguous), the messages are marked as begun before they go out, several at
// once and never more than the window has room for.
func (w *linkWorker) group(first *inFlight, more func() *inFlight) []*inFlight {
	group := []*inFlight{first}
	if _, f, _ := submission.Next(submission.Waiting, submission.Writing{}, w.carrier.config().OnAmbiguous); f.Record != submission.Mark {
		return group
	}
	claims := []messages.Claim{first.msg.Claim()}
	for len(group) < w.slots.left() {
		m := more()
		if m == nil {
			break
		}
		group, claims = append(group, m), append(claims, m.msg.Claim())
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := w.d.carrying.Begin(ctx, w.d.member.id.Load(), claims); err != nil {
		if n, due := w.notBegun.Due(time.Now()); due {
			w.d.log.Warn("messages wait: the database cannot record that they are being submitted", "carrier", w.carrier.name, "link", w.link, "count", n, "error", err)
		}
		w.giveBack(group)
		return nil
	}
	return group
}

// late takes the answer to a segment that had been given up.
func (w *linkWorker) late(key uint64, r smpp.Result) {
	id, segment, total := fromKey(key)
	w.carrier.settler.takeLate(lateAnswer{link: w.link, messageID: id, segment: segment, total: total, Result: r, at: time.Now()})
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
