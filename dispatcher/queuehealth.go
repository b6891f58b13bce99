package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"intumwa/queue"
)

const (
	// overdueAfter is how long a message may be due and unclaimed while the queue has
	// nothing to give.
	overdueAfter = time.Second
	// idleAfter is how long the queue must have had nothing more to give before the
	// database is queried: what was taken just now is claimed by then.
	idleAfter = 300 * time.Millisecond
	// idleGap ends that time: a lane without a take for so long begins anew.
	idleGap = 3 * time.Second

	lookInterval = time.Second     // between two looks that found nothing, at least
	lookRest     = 10              // as many times as long as a look took, at least
	lookMost     = 3 * time.Second // but no longer

	handBackEvery = 250 * time.Millisecond // tries to hand a lane back
	pauseFirst    = time.Second            // a lane is taken from the database for so long, at least
	pauseMost     = time.Minute            // and at most, when it fails again and again
	relapseAfter  = time.Minute            // a failure that comes later is a new one
	refillTime    = 5 * time.Second        // a lane that was emptied may lack messages for so long
)

// laneKey names one lane of a carrier.
type laneKey struct {
	carrier string
	lane    queue.Lane
}

// queueHealth decides of each carrier's lane whether this process takes it from
// the queue in Redis or straight from the database. There is one rule: when in
// doubt, from the database.
//
// A lane leaves the queue with any error of any call, and when the queue had
// nothing to give and the database has messages that were put there more than a
// second ago. After a pause, which doubles when that happens again soon, its keys
// in Redis are deleted, which also shows that Redis can be written to, and the
// lane is handed back. The walk over the outbox fills it again.
type queueHealth struct {
	d      *Dispatcher
	usable *prometheus.GaugeVec   // carrier, lane
	faults *prometheus.CounterVec // carrier, lane, fault

	mu    sync.Mutex
	lanes map[laneKey]*laneHealth
}

// laneHealth is one lane of the queue.
type laneHealth struct {
	lost   bool          // it is taken from the database
	fault  queue.Fault   // by which it was lost
	since  time.Time     // of lost, or of not lost
	pause  time.Duration // of the last time that it was lost
	until  time.Time     // it is not handed back before
	usable context.Context
	end    context.CancelFunc // of usable: takes that wait return

	idle time.Time // since when takes bring less than they could; zero: they do not
	took time.Time // when the last take ended
	look time.Time // the next look into the database
}

func newQueueHealth(d *Dispatcher) *queueHealth {
	auto := promauto.With(d.opts.Metrics)
	return &queueHealth{d: d, lanes: make(map[laneKey]*laneHealth),
		usable: auto.NewGaugeVec(prometheus.GaugeOpts{Name: "intumwa_queue_usable",
			Help: "1 while messages come from Redis, 0 while they come from the database."}, []string{"carrier", "lane"}),
		faults: auto.NewCounterVec(prometheus.CounterOpts{Name: "intumwa_queue_faults_total",
			Help: "Faults of the queue."}, []string{"carrier", "lane", "fault"}),
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
func (h *queueHealth) whileUsable(key laneKey) (ctx context.Context, usable bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.atLocked(key)
	return s.usable, !s.lost
}

func (h *queueHealth) isUsable(key laneKey) bool {
	_, usable := h.whileUsable(key)
	return usable
}

// isLost reports whether a lane is known not to be usable; of a carrier that this
// process does not serve nothing is known.
func (h *queueHealth) isLost(key laneKey) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.lanes[key]
	return s != nil && s.lost
}

// took notes how many messages a take got of those it wanted, and reports whether the
// caller is to look for overdue messages. A queue that gave less has no more.
func (h *queueHealth) took(key laneKey, got, asked int) (look bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s, now := h.atLocked(key), time.Now()
	switch {
	case got >= asked:
		s.idle = time.Time{}
	case s.idle.IsZero() || now.Sub(s.took) > idleGap:
		s.idle = now
	}
	s.took = now
	if s.lost || s.idle.IsZero() || now.Sub(s.idle) < idleAfter || now.Before(s.look) {
		return false
	}
	s.look = now.Add(lookInterval)
	return true
}

// looked notes how many overdue messages a look found, how many of them had been
// put on the queue, and what the look cost.
func (h *queueHealth) looked(key laneKey, found, pushed int, cost time.Duration) {
	h.mu.Lock()
	s, now := h.atLocked(key), time.Now()
	if s.look = now; found == 0 {
		s.look = now.Add(max(lookInterval, min(lookRest*cost, lookMost)))
	}
	refilling := now.Sub(s.since) < refillTime
	h.mu.Unlock()
	if pushed > 0 && !refilling {
		h.failed(key, &queue.FaultError{Fault: queue.Lost, Text: fmt.Sprintf("%d messages had been due for more than %s, and the queue had none", pushed, overdueAfter)})
	}
}

// failed notes an error of the queue. That the caller itself gave up, as at the
// end of the process, is none.
func (h *queueHealth) failed(key laneKey, err error) {
	if err == nil || errors.Is(err, context.Canceled) {
		return
	}
	fault := queue.FaultOf(err)
	h.faults.WithLabelValues(key.carrier, key.lane.String(), string(fault)).Inc()
	h.mu.Lock()
	defer h.mu.Unlock()
	s, now := h.atLocked(key), time.Now()
	if s.fault = fault; s.lost {
		return
	}
	if s.pause = min(2*s.pause, pauseMost); s.pause == 0 || now.Sub(s.since) > relapseAfter {
		s.pause = pauseFirst
	}
	s.lost, s.since, s.until, s.idle = true, now, now.Add(s.pause), time.Time{}
	s.end()
	h.usable.WithLabelValues(key.carrier, key.lane.String()).Set(0)
	h.d.log.Warn("redis queue is not usable; taking messages from the database", "event", "queue_unusable", "carrier", key.carrier, "lane", key.lane.String(),
		"fault", string(fault), "error", err)
}

// run hands lanes back when that can be done, until ctx ends.
func (h *queueHealth) run(ctx context.Context) {
	for sleep(ctx, handBackEvery) == nil {
		var lanes sync.WaitGroup
		for _, key := range h.pausedEnough() {
			lanes.Go(func() { h.handBack(ctx, key) })
		}
		lanes.Wait()
	}
}

// pausedEnough are the lanes that may be handed back.
func (h *queueHealth) pausedEnough() (lanes []laneKey) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, s := range h.lanes {
		if s.lost && !time.Now().Before(s.until) {
			lanes = append(lanes, key)
		}
	}
	return lanes
}

// handBack empties a lane of the queue and takes from there again. When that
// fails it is tried again a second later.
func (h *queueHealth) handBack(ctx context.Context, key laneKey) {
	err := h.d.queue.Empty(ctx, key.carrier, key.lane)
	if ctx.Err() != nil {
		return
	}
	h.failed(key, err)
	h.mu.Lock()
	defer h.mu.Unlock()
	s, now := h.atLocked(key), time.Now()
	if err != nil {
		s.until = now.Add(pauseFirst)
		return
	}
	h.d.log.Info("redis queue is usable again", "event", "queue_usable", "carrier", key.carrier, "lane", key.lane.String(), "fault", string(s.fault), "after", now.Sub(s.since).Round(time.Millisecond))
	s.lost, s.since = false, now
	s.usable, s.end = context.WithCancel(context.Background())
	h.usable.WithLabelValues(key.carrier, key.lane.String()).Set(1)
}
