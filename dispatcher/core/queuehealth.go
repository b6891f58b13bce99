package core

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"intumwa/internal/queue"
)

const (
	// OverdueAfter is how long a due message may stay unclaimed with an empty queue.
	OverdueAfter = time.Second
	// idleAfter is how long the queue must have been empty before the database is
	// queried. By then the messages taken last are claimed.
	idleAfter = 300 * time.Millisecond
	// idleGap restarts that time for a lane without a take for so long.
	idleGap = 3 * time.Second

	lookInterval = time.Second     // the least time between queries that found nothing
	lookRest     = 10              // and at least so many times a query's duration
	lookMost     = 3 * time.Second // but no longer

	handBackEvery = 250 * time.Millisecond // interval of trying to hand lanes back
	pauseFirst    = time.Second            // the least time for which a lane comes from the database
	pauseMost     = time.Minute            // and the most, when it fails again and again
	relapseAfter  = time.Minute            // a later failure starts over with pauseFirst
	refillTime    = 5 * time.Second        // how long an emptied lane may lack messages
)

// LaneKey names one lane of a carrier.
type LaneKey struct {
	Carrier string
	Lane    queue.Lane
}

// QueueHealth decides for each carrier's lane whether this process takes messages
// from the queue in Redis or straight from the database. In doubt, it takes them
// from the database.
//
// A lane leaves the queue after an error of any call, or when the queue was empty
// although messages that had been pushed were due for more than a second. After a
// pause, which doubles if that happens again soon, its keys in Redis are deleted,
// which also proves that Redis accepts writes, and the lane is handed back. The
// walk over the outbox fills it again.
type QueueHealth struct {
	queue  *queue.Queue
	log    *slog.Logger
	usable *prometheus.GaugeVec   // carrier, lane
	faults *prometheus.CounterVec // carrier, lane, fault

	mu    sync.Mutex
	lanes map[LaneKey]*laneHealth
}

// laneHealth is the health of one lane.
type laneHealth struct {
	lost   bool          // messages come from the database
	fault  queue.Fault   // the reason
	since  time.Time     // of lost, or of not lost
	pause  time.Duration // after it was last lost
	until  time.Time     // not handed back before
	usable context.Context
	end    context.CancelFunc // of usable: waiting takes return

	idle time.Time // since when takes have got less than they asked for; zero: they get all
	took time.Time // when the last take ended
	look time.Time // the next query of the database
}

// NewQueueHealth returns the health of a queue whose lanes are all usable.
func NewQueueHealth(q *queue.Queue, log *slog.Logger, reg prometheus.Registerer) *QueueHealth {
	auto := promauto.With(reg)
	return &QueueHealth{queue: q, log: log, lanes: make(map[LaneKey]*laneHealth),
		usable: auto.NewGaugeVec(prometheus.GaugeOpts{Name: "intumwa_queue_usable",
			Help: "1 while messages come from Redis, 0 while they come from the database."}, []string{"carrier", "lane"}),
		faults: auto.NewCounterVec(prometheus.CounterOpts{Name: "intumwa_queue_faults_total",
			Help: "Faults of the queue."}, []string{"carrier", "lane", "fault"}),
	}
}

// atLocked returns the health of a lane. A new lane is usable.
func (h *QueueHealth) atLocked(key LaneKey) *laneHealth {
	s := h.lanes[key]
	if s == nil {
		s = &laneHealth{}
		s.usable, s.end = context.WithCancel(context.Background())
		h.lanes[key] = s
		h.usable.WithLabelValues(key.Carrier, key.Lane.String()).Set(1)
	}
	return s
}

// WhileUsable reports whether a lane is usable; ctx ends when it no longer is.
func (h *QueueHealth) WhileUsable(key LaneKey) (ctx context.Context, usable bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.atLocked(key)
	return s.usable, !s.lost
}

// IsUsable reports whether a lane is usable.
func (h *QueueHealth) IsUsable(key LaneKey) bool {
	_, usable := h.WhileUsable(key)
	return usable
}

// IsLost reports whether this process found a lane unusable. It is false for carriers
// that this process does not serve.
func (h *QueueHealth) IsLost(key LaneKey) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.lanes[key]
	return s != nil && s.lost
}

// Took records how many of the wanted messages a take got, and reports whether the
// caller should look for overdue messages. A take that got fewer has emptied the
// queue.
func (h *QueueHealth) Took(key LaneKey, got, asked int) (look bool) {
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

// Looked records how many overdue messages a query found, how many of them had been
// pushed to the queue, and how long it took.
func (h *QueueHealth) Looked(key LaneKey, found, pushed int, cost time.Duration) {
	h.mu.Lock()
	s, now := h.atLocked(key), time.Now()
	if s.look = now; found == 0 {
		s.look = now.Add(max(lookInterval, min(lookRest*cost, lookMost)))
	}
	refilling := now.Sub(s.since) < refillTime
	h.mu.Unlock()
	if pushed > 0 && !refilling {
		h.Failed(key, &queue.FaultError{Fault: queue.Lost,
			Text: fmt.Sprintf("%d messages had been due for more than %s, and the queue had none", pushed, OverdueAfter)})
	}
}

// Failed records an error of the queue. A cancelled call, as at the end of the
// process, is not an error.
func (h *QueueHealth) Failed(key LaneKey, err error) {
	if err == nil || errors.Is(err, context.Canceled) {
		return
	}
	fault := queue.FaultOf(err)
	h.faults.WithLabelValues(key.Carrier, key.Lane.String(), string(fault)).Inc()
	h.mu.Lock()
	defer h.mu.Unlock()
	s, now := h.atLocked(key), time.Now()
	if s.fault = fault; s.lost {
		return
	}
	if s.pause = min(2*s.pause, pauseMost); s.pause == 0 || now.Sub(s.since) > relapseAfter || fault == queue.Unwritable ||
		fault == queue.Loading {
		// Empty notices when these are over
		s.pause = pauseFirst
	}
	s.lost, s.since, s.until, s.idle = true, now, now.Add(s.pause), time.Time{}
	s.end()
	h.usable.WithLabelValues(key.Carrier, key.Lane.String()).Set(0)
	h.log.Warn("redis queue is not usable; taking messages from the database", "event", "queue_unusable", "carrier",
		key.Carrier, "lane", key.Lane.String(),
		"fault", string(fault), "error", err)
}

// Run hands lanes back to the queue until ctx ends.
func (h *QueueHealth) Run(ctx context.Context) {
	for Sleep(ctx, handBackEvery) == nil {
		var lanes sync.WaitGroup
		for _, key := range h.pausedEnough() {
			lanes.Go(func() { h.handBack(ctx, key) })
		}
		lanes.Wait()
	}
}

// pausedEnough returns the lanes that may be handed back.
func (h *QueueHealth) pausedEnough() (lanes []LaneKey) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, s := range h.lanes {
		if s.lost && !time.Now().Before(s.until) {
			lanes = append(lanes, key)
		}
	}
	return lanes
}

// handBack empties a lane of the queue and uses it again. If that fails it tries
// again a second later.
func (h *QueueHealth) handBack(ctx context.Context, key LaneKey) {
	err := h.queue.Empty(ctx, key.Carrier, key.Lane)
	if ctx.Err() != nil {
		return
	}
	h.Failed(key, err)
	h.mu.Lock()
	defer h.mu.Unlock()
	s, now := h.atLocked(key), time.Now()
	if err != nil {
		s.until = now.Add(pauseFirst)
		return
	}
	h.log.Info("redis queue is usable again", "event", "queue_usable", "carrier", key.Carrier, "lane", key.Lane.String(),
		"fault", string(s.fault), "after", now.Sub(s.since).Round(time.Millisecond))
	s.lost, s.since = false, now
	s.usable, s.end = context.WithCancel(context.Background())
	h.usable.WithLabelValues(key.Carrier, key.Lane.String()).Set(1)
}
