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
	// probeInterval lies between two probes.
	probeInterval = 500 * time.Millisecond
	lookInterval  = 250 * time.Millisecond // between two looks at the database
	// lookMost is the longest pause between two looks, however long one took: with
	// overlookedAfter it is how late a queue that lies is found out. Looks that are dear
	// for what is in the outbox, those below the floor, are seldom by themselves.
	lookMost = 750 * time.Millisecond
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
	unusableFirst   = time.Second      // how long it is not, at least
	unusableLongest = time.Minute      // and at most, when it fails again and again
	relapseAfter    = time.Minute      // a failure that comes later is a new one
	resetStrikes    = 3                // so many relapses, and the lane is emptied before it is used again
	probeLimit      = 10 * time.Second // a round that takes longer is given up
)

// queueHealth says of each carrier's lane whether the queue in Redis is usable. It
// is the one place that decides so; while a lane is not usable, link workers take
// from the database and nothing is pushed there again.
//
// A lane becomes unusable by any error of any call, by a probe that fails (a message
// to nobody, queue.Queue.Probe), and by missing progress: the queue says that
// nothing waits, and the database has messages that have been due for a second
// and that nobody has claimed. So a queue that lies is treated like one that is
// away. It is usable again when probes pass and some time has gone by, longer
// each time that it fails again soon.
type queueHealth struct {
	d      *Dispatcher
	usable *prometheus.GaugeVec   // carrier, lane
	faults *prometheus.CounterVec // carrier, lane, fault

	mu    sync.Mutex
	lanes map[laneKey]*laneHealth
}

// laneHealth is what is known of one lane of the queue.
type laneHealth struct {
	lost    bool
	fault   queue.Fault // by which it was lost
	until   time.Time   // not before
	strikes int         // times in a row that it failed soon after it was restored
	since   time.Time   // of lost, or of not lost
	good    int         // probes in a row
	usable  context.Context
	end     context.CancelFunc // of during: takes that wait return

	idle     time.Time // since when takes bring less than they could; zero: they do not
	floor    floor     // of the lane in the database, as look needs it: of what is due and unclaimed
	never    int64     // the first message that is due and was never pushed
	neverFor time.Time // since when it is that one
}

func newQueueHealth(d *Dispatcher) *queueHealth {
	return &queueHealth{d: d, lanes: make(map[laneKey]*laneHealth),
		usable: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "intumwa_queue_usable",
			Help: "1 while this process takes a carrier's messages from Redis, 0 while it takes them from the database because Redis fails or lies."}, []string{"carrier", "lane"}),
		faults: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "intumwa_queue_faults_total",
			Help: "Faults of the queue in Redis that this process met, by carrier, lane and kind."}, []string{"carrier", "lane", "fault"}),
	}
}

// atLocked is the health of a lane, which begins usable.
func (h *queueHealth) atLocked(key laneKey) *laneHealth {
	s := h.lanes[key]
	if s == nil {
		s = &laneHealth{}
		s.usable, s.end = context.WithCancel(context.Background())
		h.lanes[key] = s
		h.usable.WithLabelValues(key.carrier, key.lane.String()).Set(1)
	}
	return s
}

// whileUsable reports whether a lane is usable; the context ends when it is no more.
func (h *queueHealth) whileUsable(carrier string, lane queue.Lane) (ctx context.Context, usable bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.atLocked(laneKey{carrier, lane})
	return s.usable, !s.lost
}

func (h *queueHealth) isUsable(carrier string, lane queue.Lane) bool {
	_, usable := h.whileUsable(carrier, lane)
	return usable
}

// took notes what a take brought of what it asked for. A queue that gave less
// says that nothing more waits.
func (h *queueHealth) took(carrier string, lane queue.Lane, got, asked int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch s := h.atLocked(laneKey{carrier, lane}); {
	case got >= asked:
		s.idle = time.Time{}
	case s.idle.IsZero():
		s.idle = time.Now()
	}
}

// failed notes an error of the queue. That the caller itself gave up, as at the
// end of the process, is none.
func (h *queueHealth) failed(carrier string, lane queue.Lane, err error) {
	if err == nil || errors.Is(err, context.Canceled) {
		return
	}
	fault := queue.FaultOf(err)
	h.faults.WithLabelValues(carrier, lane.String(), string(fault)).Inc()
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	s := h.atLocked(laneKey{carrier, lane})
	s.good = 0
	if s.lost {
		s.fault = fault
		return
	}
	if s.strikes == 0 || now.Sub(s.since) > relapseAfter {
		s.strikes = 0
	}
	s.strikes++
	s.lost, s.fault, s.since, s.idle, s.never, s.floor = true, fault, now, time.Time{}, 0, floor{}
	s.until = now.Add(min(unusableFirst<<min(s.strikes-1, 10), unusableLongest))
	s.end()
	h.usable.WithLabelValues(carrier, lane.String()).Set(0)
	h.d.log.Warn("redis queue is not usable; taking messages from the database", "carrier", carrier, "lane", lane.String(),
		"fault", string(fault), "times", s.strikes, "error", err)
}

// probed notes how a probe of a carrier's part of the queue ended, and makes
// the lanes usable again that may be.
func (h *queueHealth) probed(ctx context.Context, carrier string, err error) {
	for _, lane := range []queue.Lane{queue.Single, queue.Batch} {
		if err != nil {
			h.failed(carrier, lane, err)
			continue
		}
		if h.passed(carrier, lane) {
			h.restore(ctx, carrier, lane)
		}
	}
}

// passed notes a probe that passed, and returns whether the lane may be used
// again.
func (h *queueHealth) passed(carrier string, lane queue.Lane) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.atLocked(laneKey{carrier, lane})
	s.good++
	return s.lost && s.good >= goodProbes && !time.Now().Before(s.until)
}

// restore makes a lane usable again. One that failed again and again is emptied
// first: something stands there that no single call comes upon.
func (h *queueHealth) restore(ctx context.Context, carrier string, lane queue.Lane) {
	h.mu.Lock()
	strikes := h.atLocked(laneKey{carrier, lane}).strikes
	h.mu.Unlock()
	if strikes >= resetStrikes {
		h.d.log.Warn("redis queue of a lane is emptied: it failed repeatedly; it is refilled from the database", "carrier", carrier, "lane", lane.String())
		if err := h.d.queue.Reset(ctx, carrier, lane); err != nil {
			h.failed(carrier, lane, err)
			return
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.atLocked(laneKey{carrier, lane})
	now := time.Now()
	h.d.log.Info("redis queue is usable again", "carrier", carrier, "lane", lane.String(), "fault", string(s.fault), "after", now.Sub(s.since).Round(time.Millisecond))
	s.lost, s.since, s.idle = false, now, time.Time{}
	s.usable, s.end = context.WithCancel(context.Background())
	h.usable.WithLabelValues(carrier, lane.String()).Set(1)
}

// run probes the queue and looks for what it keeps back, until ctx ends.
func (h *queueHealth) run(ctx context.Context) {
	var looks sync.WaitGroup
	looks.Go(func() { h.runLooks(ctx) })
	defer looks.Wait()
	for {
		start := time.Now()
		h.round(ctx)
		if sleep(ctx, max(probeInterval-time.Since(start), probeInterval/5)) != nil {
			return
		}
	}
}

func (h *queueHealth) runLooks(ctx context.Context) {
	for {
		start := time.Now()
		if err := h.look(ctx); err != nil && ctx.Err() == nil {
			h.d.log.Debug("looking for what the queue keeps back", "error", err)
		}
		// A database that is slow is not asked without pause.
		if sleep(ctx, max(lookInterval, min(swept*time.Since(start), lookMost))) != nil {
			return
		}
	}
}

// round probes every carrier's part of the queue, side by side.
func (h *queueHealth) round(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	var probes sync.WaitGroup
	for _, c := range h.d.running() {
		probes.Go(func() {
			if err := h.d.queue.Probe(ctx, c.name); ctx.Err() == nil {
				h.probed(ctx, c.name, err)
			}
		})
	}
	probes.Wait()
}

// look asks the database for messages that wait while the queue says that none
// does.
func (h *queueHealth) look(ctx context.Context) error {
	start := time.Now()
	carriers, lanes, after, below := h.idle(start)
	if len(carriers) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, h.d.opts.DeadAfter)
	defer cancel()
	overlooked, err := h.d.store.Overlooked(ctx, carriers, lanes, after, overlookedAfter)
	if err != nil {
		return err
	}
	never := make(map[laneKey]int64)
	for _, o := range overlooked {
		key := laneKey{o.Carrier, queue.Lane(o.Lane)}
		never[key] = o.Never
		h.found(key, o.First, below[key], time.Since(start))
		if o.Pushed > 0 {
			h.failed(o.Carrier, key.lane, &queue.FaultError{Fault: queue.Stalled,
				Text: fmt.Sprintf("%d messages have been due for more than %s, and the queue says that nothing waits", o.Pushed, overlookedAfter)})
		}
	}
	for i := range carriers {
		key := laneKey{carriers[i], queue.Lane(lanes[i])}
		if h.neverPushed(key, never[key]) {
			h.failed(key.carrier, key.lane, &queue.FaultError{Fault: queue.Stalled,
				Text: fmt.Sprintf("a message has been due for more than %s and was not put on the queue", neverPushedAfter)})
		}
	}
	return nil
}

// idle are the lanes, in pairs with their carriers, of which the queue has said
// for a while that nothing more waits; after is where the look at each begins, and
// below says of which it begins below the floor.
func (h *queueHealth) idle(now time.Time) (carriers []string, lanes []int16, after []int64, below map[laneKey]bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	below = make(map[laneKey]bool)
	for key, s := range h.lanes {
		if !s.lost && !s.idle.IsZero() && now.Sub(s.idle) >= idleAfter {
			id, down := s.floor.from(now)
			carriers, lanes, after = append(carriers, key.carrier), append(lanes, int16(key.lane)), append(after, id)
			below[key] = down
		}
	}
	return carriers, lanes, after, below
}

// found notes which message of a lane is the first that is due and unclaimed.
func (h *queueHealth) found(key laneKey, first int64, below bool, cost time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.atLocked(key).floor.found(first, below, cost)
}

// neverPushed notes which message is the first that waits off the queue, and
// answers whether it has been that one for too long.
func (h *queueHealth) neverPushed(key laneKey, id int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.atLocked(key)
	if s.never != id {
		s.never, s.neverFor = id, time.Now()
	}
	return id != 0 && time.Since(s.neverFor) > neverPushedAfter
}
