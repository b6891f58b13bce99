package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"intumwa/queue"
)

const (
	// trustInterval lies between two probes.
	trustInterval = 500 * time.Millisecond
	lookInterval  = 250 * time.Millisecond // between two looks at the database
	// overlookedAfter is how long a message may be due and unclaimed while the
	// queue says that nothing waits.
	overlookedAfter = time.Second
	// neverPushedAfter is how long refilling may leave the same message off the
	// queue: longer than its rounds are apart when it has little to do.
	neverPushedAfter = 3 * time.Second
	// idleAfter is how long a lane must have had all that the queue gave before the
	// database is asked whether there is more: what was just taken is claimed by then.
	idleAfter = 300 * time.Millisecond

	goodProbes      = 2                // in a row, before the queue is used again
	distrustFirst   = time.Second      // how long it is not, at least
	distrustLongest = time.Minute      // and at most, when it fails again and again
	relapseAfter    = time.Minute      // a failure that comes later is a new one
	resetStrikes    = 3                // so many relapses, and the lane is emptied before it is used again
	probeLimit      = 10 * time.Second // a round that takes longer is given up
)

// trust says of each carrier's lane whether the queue can be relied upon. It is
// the one place that decides so; the lanes take from the database as long as it
// cannot, and nothing is pushed there again.
//
// A lane loses trust by any error of any call, by a probe that fails (a message
// to nobody, queue.Queue.Probe), and by missing progress: the queue says that
// nothing waits, and the database has messages that have been due for a second
// and that nobody has claimed. So a queue that lies is treated like one that is
// away. It has trust again when probes pass and some time has gone by, longer
// each time that it fails again soon.
type trust struct {
	d      *Dispatcher
	usable *prometheus.GaugeVec   // carrier, lane
	faults *prometheus.CounterVec // carrier, lane, fault

	mu    sync.Mutex
	lanes map[ackKey]*standing
}

// standing is what is known of one lane of the queue.
type standing struct {
	lost    bool
	fault   queue.Fault // by which it was lost
	until   time.Time   // not before
	strikes int         // times in a row that it was lost soon after it was regained
	since   time.Time   // of lost, or of not lost
	good    int         // probes in a row
	during  context.Context
	end     context.CancelFunc // of during: takes that wait return

	idle     time.Time // since when takes bring less than they could; zero: they do not
	never    int64     // the first message that is due and was never pushed
	neverFor time.Time // since when it is that one
}

func newTrust(d *Dispatcher) *trust {
	return &trust{d: d, lanes: make(map[ackKey]*standing),
		usable: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "intumwa_queue_usable",
			Help: "1 while this process takes a carrier's messages from Redis, 0 while it takes them from the database because Redis fails or lies."}, []string{"carrier", "lane"}),
		faults: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "intumwa_queue_faults_total",
			Help: "Faults of the queue in Redis that this process met, by carrier, lane and kind."}, []string{"carrier", "lane", "fault"}),
	}
}

// atLocked is the standing of a lane, which begins trusted.
func (t *trust) atLocked(key ackKey) *standing {
	s := t.lanes[key]
	if s == nil {
		s = &standing{}
		s.during, s.end = context.WithCancel(context.Background())
		t.lanes[key] = s
		t.usable.WithLabelValues(key.carrier, key.lane.String()).Set(1)
	}
	return s
}

// during tells whether a lane has trust; the context ends when it loses it.
func (t *trust) during(carrier string, lane queue.Lane) (ctx context.Context, trusted bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.atLocked(ackKey{carrier, lane})
	return s.during, !s.lost
}

func (t *trust) trusts(carrier string, lane queue.Lane) bool {
	_, trusted := t.during(carrier, lane)
	return trusted
}

// took notes what a take brought of what it asked for. A queue that gave less
// says that nothing more waits.
func (t *trust) took(carrier string, lane queue.Lane, got, asked int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch s := t.atLocked(ackKey{carrier, lane}); {
	case got >= asked:
		s.idle = time.Time{}
	case s.idle.IsZero():
		s.idle = time.Now()
	}
}

// failed notes an error of the queue. That the caller itself gave up, as at the
// end of the process, is none.
func (t *trust) failed(carrier string, lane queue.Lane, err error) {
	if err == nil || errors.Is(err, context.Canceled) {
		return
	}
	fault := queue.FaultOf(err)
	t.faults.WithLabelValues(carrier, lane.String(), string(fault)).Inc()
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	s := t.atLocked(ackKey{carrier, lane})
	s.good = 0
	if s.lost {
		s.fault = fault
		return
	}
	if s.strikes == 0 || now.Sub(s.since) > relapseAfter {
		s.strikes = 0
	}
	s.strikes++
	s.lost, s.fault, s.since, s.idle, s.never = true, fault, now, time.Time{}, 0
	s.until = now.Add(min(distrustFirst<<min(s.strikes-1, 10), distrustLongest))
	s.end()
	t.usable.WithLabelValues(carrier, lane.String()).Set(0)
	t.d.log.Warn("redis queue is not usable; taking messages from the database", "carrier", carrier, "lane", lane.String(),
		"fault", string(fault), "times", s.strikes, "error", err)
}

// probed notes how a probe of a carrier's part of the queue ended, and gives the
// lanes their trust back that have earned it.
func (t *trust) probed(ctx context.Context, carrier string, err error) {
	for _, lane := range []queue.Lane{queue.Single, queue.Batch} {
		if err != nil {
			t.failed(carrier, lane, err)
			continue
		}
		if t.passed(carrier, lane) {
			t.regain(ctx, carrier, lane)
		}
	}
}

// passed notes a probe that passed, and answers whether the lane may have trust
// again.
func (t *trust) passed(carrier string, lane queue.Lane) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.atLocked(ackKey{carrier, lane})
	s.good++
	return s.lost && s.good >= goodProbes && !time.Now().Before(s.until)
}

// regain gives a lane its trust back. One that has lost it again and again is
// emptied first: something stands there that no single call comes upon.
func (t *trust) regain(ctx context.Context, carrier string, lane queue.Lane) {
	t.mu.Lock()
	strikes := t.atLocked(ackKey{carrier, lane}).strikes
	t.mu.Unlock()
	if strikes >= resetStrikes {
		t.d.log.Warn("redis queue of a lane is emptied: it failed repeatedly; it is refilled from the database", "carrier", carrier, "lane", lane.String())
		if err := t.d.queue.Reset(ctx, carrier, lane); err != nil {
			t.failed(carrier, lane, err)
			return
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.atLocked(ackKey{carrier, lane})
	now := time.Now()
	t.d.log.Info("redis queue is usable again", "carrier", carrier, "lane", lane.String(), "fault", string(s.fault), "after", now.Sub(s.since).Round(time.Millisecond))
	s.lost, s.since, s.idle = false, now, time.Time{}
	s.during, s.end = context.WithCancel(context.Background())
	t.usable.WithLabelValues(carrier, lane.String()).Set(1)
}

// run probes the queue and looks for what it keeps back, until ctx ends.
func (t *trust) run(ctx context.Context) {
	var looks sync.WaitGroup
	looks.Go(func() { t.runLooks(ctx) })
	defer looks.Wait()
	for {
		start := time.Now()
		t.round(ctx)
		if sleep(ctx, max(trustInterval-time.Since(start), trustInterval/5)) != nil {
			return
		}
	}
}

func (t *trust) runLooks(ctx context.Context) {
	for {
		start := time.Now()
		if err := t.look(ctx); err != nil && ctx.Err() == nil {
			t.d.log.Debug("looking for what the queue keeps back", "error", err)
		}
		// A backlog of millions is not counted without pause.
		if sleep(ctx, max(lookInterval, 10*time.Since(start))) != nil {
			return
		}
	}
}

// round probes every carrier's part of the queue, side by side.
func (t *trust) round(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	var probes sync.WaitGroup
	for _, c := range t.d.running() {
		probes.Go(func() {
			if err := t.d.queue.Probe(ctx, c.name); ctx.Err() == nil {
				t.probed(ctx, c.name, err)
			}
		})
	}
	probes.Wait()
}

// look asks the database for messages that wait while the queue says that none
// does.
func (t *trust) look(ctx context.Context) error {
	carriers, lanes := t.idle()
	if len(carriers) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, t.d.opts.DeadAfter)
	defer cancel()
	overlooked, err := t.d.store.Overlooked(ctx, carriers, lanes, overlookedAfter)
	if err != nil {
		return err
	}
	never := make(map[ackKey]int64)
	for _, o := range overlooked {
		key := ackKey{o.Carrier, queue.Lane(o.Lane)}
		never[key] = o.Never
		if o.Pushed > 0 {
			t.failed(o.Carrier, key.lane, &queue.FaultError{Fault: queue.Stalled,
				Text: fmt.Sprintf("%d messages have been due for more than %s, and the queue says that nothing waits", o.Pushed, overlookedAfter)})
		}
	}
	for i := range carriers {
		key := ackKey{carriers[i], queue.Lane(lanes[i])}
		if t.neverPushed(key, never[key]) {
			t.failed(key.carrier, key.lane, &queue.FaultError{Fault: queue.Stalled,
				Text: fmt.Sprintf("a message has been due for more than %s and was not put on the queue", neverPushedAfter)})
		}
	}
	return nil
}

// idle are the lanes, in pairs with their carriers, of which the queue has said
// for a while that nothing more waits.
func (t *trust) idle() (carriers []string, lanes []int16) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, s := range t.lanes {
		if !s.lost && !s.idle.IsZero() && time.Since(s.idle) >= idleAfter {
			carriers, lanes = append(carriers, key.carrier), append(lanes, int16(key.lane))
		}
	}
	return carriers, lanes
}

// neverPushed notes which message is the first that waits off the queue, and
// answers whether it has been that one for too long.
func (t *trust) neverPushed(key ackKey, id int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.atLocked(key)
	if s.never != id {
		s.never, s.neverFor = id, time.Now()
	}
	return id != 0 && time.Since(s.neverFor) > neverPushedAfter
}
