package dispatcher

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"intumwa/messages"
	"intumwa/queue"
	"intumwa/smpp"
	"intumwa/submission"
)

// lane is one leased link at work. Three goroutines besides the link's own:
// two feeders, one for single sends and one for batches, that take from the
// queue and claim in Postgres, and one that submits.
//
// A feeder keeps only a shelf's worth in hand, so that what comes later can
// still overtake: at 100 segments a second a single send waits behind a
// quarter of a second of campaign, not behind the campaign.
type lane struct {
	d       *Dispatcher
	carrier *carrier
	link    string // its name
	conf    *Link  // as it is now; the member's alone once the lane runs
	binds   *binds
	form    *idForm
	breaker breaker
	slots   *slots
	shelf   *shelf
	pace    *pace
	name    string // consumer on the queue

	withoutID smpp.Seldom // receipts
	notBegun  smpp.Seldom // messages, for want of the database

	cancel context.CancelFunc
	done   chan struct{}
	ending atomic.Bool
	open   sync.WaitGroup // journeys not yet settled
	paused atomic.Bool
}

// settleWait is how long a lane waits at its end for its last answers to be
// written.
const settleWait = 2 * time.Second

func newLane(d *Dispatcher, c *carrier, conf *Link) (*lane, error) {
	l := &lane{d: d, carrier: c, link: conf.Name, conf: conf, form: c.form(conf.Name), name: identity() + "/" + conf.Name, done: make(chan struct{})}
	binds, err := newBinds(d, c.name, conf, smpp.Options{Deliver: l.deliver, OnLate: l.late,
		Class:        func(s smpp.Status) smpp.Class { return c.config().class(s) },
		OnCongestion: func(state uint8) { l.pace.congested(time.Now(), state) }})
	if err != nil {
		return nil, err
	}
	l.binds = binds
	l.breaker.first = d.opts.BreakerPause
	l.slots = newSlots(binds.window)
	l.shelf = newShelf(shelfSize(binds.window, conf.TPS))
	l.pace = newPace(binds, conf.TPS)
	return l, nil
}

// adopt takes over a link's configuration if that can be done without binding
// anew: pace, window and weight.
func (l *lane) adopt(conf *Link) bool {
	if conf == l.conf {
		return true
	}
	same := *conf
	same.TPS, same.Window, same.Weight = l.conf.TPS, l.conf.Window, l.conf.Weight
	if !same.equal(l.conf) {
		return false
	}
	if conf.Window != l.conf.Window {
		l.slots.resize(conf.Window)
		l.binds.setWindow(conf.Window)
	}
	l.pace.set(conf.TPS)
	l.shelf.resize(shelfSize(conf.Window, conf.TPS))
	l.joinShares(conf.Weight)
	l.conf = conf
	return true
}

func (l *lane) joinShares(weight int) {
	for _, share := range l.carrier.shares {
		share.join(l, weight)
	}
}

// state is the lane as operators see it.
func (l *lane) state() (snap smpp.Snapshot, broken bool) {
	snap = l.binds.snapshot()
	broken, reason := l.breaker.state()
	if broken {
		snap.LastError = "stopped: the carrier refuses everything with " + reason
	}
	return snap, broken
}

// shelfSize is how many claimed messages may wait in hand in each lane: enough
// to keep the link busy over a claim, no more than a quarter of a second.
func shelfSize(window int, tps float64) int {
	if tps > 0 {
		return min(max(int(tps/4), 1), 500)
	}
	return min(max(2*window, 20), 500)
}

func (l *lane) start() {
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	l.joinShares(l.conf.Weight)
	l.d.hold(l.link, l.binds)
	go l.run(ctx)
}

// end tells the lane to stop; wait waits until it has; ended looks.
func (l *lane) end() {
	l.ending.Store(true)
	l.cancel()
}

func (l *lane) wait() { <-l.done }
func (l *lane) ended() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

func (l *lane) setPaused(paused bool) {
	if l.paused.Swap(paused) == paused {
		return
	}
	l.binds.pause(paused)
	what := "link resumed by an operator"
	if paused {
		what = "link paused by an operator"
	}
	l.d.log.Info(what, "carrier", l.carrier.name, "link", l.link)
}

// run works until ctx ends: first nothing more is taken and what is on the
// shelf goes back, then the link drains its window and unbinds, then the
// settler writes what was answered.
func (l *lane) run(ctx context.Context) {
	defer close(l.done)
	linkCtx, stopLink := context.WithCancel(context.WithoutCancel(ctx))
	defer stopLink()
	defer l.d.hold(l.link, nil)
	var link, hands sync.WaitGroup
	link.Go(func() { l.binds.run(linkCtx) })
	hands.Go(func() { l.feed(ctx, queue.Single) })
	hands.Go(func() { l.feed(ctx, queue.Batch) })
	hands.Go(func() { l.submitAll(ctx) })
	hands.Go(func() { l.watch(ctx) })
	hands.Go(func() { l.heedEchoes(ctx) })
	hands.Wait()
	for _, share := range l.carrier.shares {
		share.leave(l)
	}
	l.giveBack(l.shelf.empty())
	stopLink()
	link.Wait()
	l.awaitSettled()
	l.d.metrics.breakerOpen.DeleteLabelValues(l.carrier.name, l.link)
}

// awaitSettled waits until the settler has written what the link answered, but
// not for a database that is away: the others then free the claims.
func (l *lane) awaitSettled() {
	settled := make(chan struct{})
	go func() {
		l.open.Wait()
		close(settled)
	}()
	select {
	case <-settled:
	case <-time.After(settleWait):
		l.d.log.Error("answers of the carrier could not be written before the end", "carrier", l.carrier.name, "link", l.link)
	}
}

// watch minds the link's pace and, when the link goes down or its carrier
// answers nothing, gives back what lies on the shelf: another link of the
// carrier may take it.
func (l *lane) watch(ctx context.Context) {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			l.pace.tick(now)
			l.binds.balance()
			if !l.binds.up() || !l.d.member.fresh() || !l.breaker.ready(now) || l.slots.stalled(now) {
				l.giveBack(l.shelf.empty())
			}
		}
	}
}

// ready waits until the link can carry something.
func (l *lane) ready(ctx context.Context) error {
	for {
		if err := l.binds.waitBound(ctx); err != nil {
			return err
		}
		if now := time.Now(); l.d.member.fresh() && l.breaker.ready(now) && !l.slots.stalled(now) {
			return nil
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// feed keeps one side of the shelf filled, from the queue as long as that can be
// relied upon and else from the database.
func (l *lane) feed(ctx context.Context, kind queue.Lane) {
	for {
		if l.ready(ctx) != nil {
			return
		}
		room, err := l.shelf.waitRoom(ctx, kind)
		if err != nil {
			return
		}
		done, err := l.carrier.shares[kind].turn(ctx, l)
		if err != nil {
			return
		}
		taken, trusted := l.take(ctx, kind, room)
		pause := time.Duration(0)
		if !trusted && ctx.Err() == nil {
			start := time.Now()
			if taken = l.takeDirect(ctx, kind, room); len(taken) == 0 {
				// What it costs to find nothing is the price of the whole backlog.
				pause = min(max(directPause, 5*time.Since(start)), 5*time.Second)
			}
		}
		done(len(taken))
		if ctx.Err() != nil {
			l.giveBack(taken)
			return
		}
		l.shelf.put(kind, taken)
		if pause > 0 && sleep(ctx, pause) != nil {
			return
		}
	}
}

// directPause lies between two looks into the database for messages to take.
const directPause = 200 * time.Millisecond

// take brings journeys from the queue, unless that is not to be relied upon.
func (l *lane) take(ctx context.Context, kind queue.Lane, room int) (journeys []*journey, trusted bool) {
	trust := l.d.trust
	during, trusted := trust.during(l.carrier.name, kind)
	if !trusted {
		return nil, false
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(during, cancel)()
	entries, err := l.d.queue.Take(waiting, l.carrier.name, kind, l.name, room, time.Second)
	switch {
	case ctx.Err() != nil && len(entries) == 0:
		return nil, true
	case err != nil:
		if during.Err() == nil {
			trust.failed(l.carrier.name, kind, err)
		}
		return nil, false
	}
	trust.took(l.carrier.name, kind, len(entries), room)
	if len(entries) == 0 {
		return nil, true
	}
	ids := make([]int64, len(entries))
	byID := make(map[int64]string, len(entries))
	for i, e := range entries {
		ids[i] = e.MessageID
		byID[e.MessageID] = e.ID
	}
	claimed, err := l.d.carrying.Claim(context.WithoutCancel(ctx), l.d.member.id.Load(), l.carrier.name, ids)
	if err != nil {
		// The entries stay pending on the queue and their rows unclaimed: pushLost
		// finds them. Nothing is to be told about the queue.
		l.d.log.Error("claiming messages", "carrier", l.carrier.name, "link", l.link, "error", err)
		_ = sleep(ctx, 200*time.Millisecond) // feed looks at ctx next
		return nil, true
	}
	journeys = l.journeys(claimed)
	held := make(map[string]bool, len(journeys))
	for _, j := range journeys {
		j.entry = byID[j.msg.ID]
		held[j.entry] = true
	}
	// Done, not due, somebody else's, or there twice: of no use on the queue.
	for _, e := range entries {
		if !held[e.ID] {
			l.d.acker.ack(l.carrier.name, kind, e.ID)
			l.d.metrics.stale.WithLabelValues(l.carrier.name).Inc()
		}
	}
	return journeys, true
}

// takeDirect brings journeys past the queue.
func (l *lane) takeDirect(ctx context.Context, kind queue.Lane, room int) []*journey {
	claimed, err := l.d.store.ClaimDue(context.WithoutCancel(ctx), l.d.member.id.Load(), l.carrier.name, int(kind), room)
	if err != nil {
		l.d.log.Error("claiming messages past the queue", "carrier", l.carrier.name, "link", l.link, "error", err)
	}
	l.d.metrics.direct.WithLabelValues(l.carrier.name, kind.String()).Add(float64(len(claimed)))
	return l.journeys(claimed)
}

func (l *lane) journeys(claimed []*messages.Claimed) []*journey {
	journeys := make([]*journey, len(claimed))
	for i, m := range claimed {
		journeys[i] = &journey{lane: l, msg: m}
		l.d.hands.take(journeys[i])
	}
	return journeys
}

// giveBack returns messages that were claimed and not begun.
func (l *lane) giveBack(journeys []*journey) {
	if len(journeys) == 0 {
		return
	}
	claims := make([]messages.Claim, len(journeys))
	for i, j := range journeys {
		claims[i] = j.msg.Claim()
		j.ack()
		defer l.d.hands.leave(j)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := l.d.carrying.Release(ctx, l.d.member.id.Load(), claims, 0); err != nil {
		// They stay claimed until this process ends. Try through the settler,
		// which does not give up.
		l.carrier.settler.putBack(claims)
	}
}

// submitAll submits what is on the shelf, one message after another. The next
// is chosen when it can go out, so that nothing that comes meanwhile and goes
// before it is held up.
func (l *lane) submitAll(ctx context.Context) {
	for {
		if l.slots.wait(ctx) != nil || l.ready(ctx) != nil {
			return
		}
		j, err := l.shelf.next(ctx)
		if err != nil {
			return
		}
		l.send(ctx, l.lot(j, l.shelf.poll))
	}
}

// send submits messages, one after another.
func (l *lane) send(ctx context.Context, lot []*journey) {
	if len(lot) == 0 {
		_ = sleep(ctx, 200*time.Millisecond) // whoever calls looks at ctx next
	}
	for _, j := range lot {
		if !l.breaker.enter(time.Now()) {
			l.giveBack([]*journey{j})
			continue
		}
		l.open.Add(1)
		j.begin(ctx)
	}
}

// letSinglesPass submits single sends that wait while a batch's message has
// segments to go: on a slow link a long one would hold them up for seconds.
func (l *lane) letSinglesPass(ctx context.Context) {
	for range singlesBeforeBatch {
		if l.slots.wait(ctx) != nil || !l.d.member.fresh() || !l.binds.up() || !l.breaker.ready(time.Now()) {
			return
		}
		j := l.shelf.pollSingle()
		if j == nil {
			return
		}
		lot := l.lot(j, func() *journey { return nil })
		if len(lot) == 0 {
			return
		}
		l.send(ctx, lot)
	}
}

// lot is what goes out next, first at the head, and more where that helps. A carrier that may have what it
// was sent is not always to be sent it again (on_ambiguous): for such a one it
// is noted before a message goes out, for several at once and never more than
// the window has room for.
func (l *lane) lot(first *journey, more func() *journey) []*journey {
	lot := []*journey{first}
	if _, f, _ := submission.Next(submission.Waiting, submission.Writing{}, l.carrier.config().OnAmbiguous); f.Record != submission.Mark {
		return lot
	}
	claims := []messages.Claim{first.msg.Claim()}
	for len(lot) < l.slots.left() {
		j := more()
		if j == nil {
			break
		}
		lot, claims = append(lot, j), append(claims, j.msg.Claim())
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := l.d.carrying.Begin(ctx, l.d.member.id.Load(), claims); err != nil {
		if n, due := l.notBegun.Due(time.Now()); due {
			l.d.log.Warn("messages wait: it cannot be noted that they begin", "carrier", l.carrier.name, "link", l.link, "count", n, "error", err)
		}
		l.giveBack(lot)
		return nil
	}
	return lot
}

// late takes the answer to a segment that had been given up.
func (l *lane) late(key uint64, r smpp.Result) {
	id, segment, total := fromKey(key)
	l.carrier.settler.takeLate(lateAnswer{link: l.link, messageID: id, segment: segment, total: total, Result: r, at: time.Now()})
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
