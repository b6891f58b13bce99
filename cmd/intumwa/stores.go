package main

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"intumwa/internal/postgres"
	"intumwa/queue"
)

const (
	storesInterval = 2 * time.Second
	storesPatience = time.Second     // an answer that takes longer is none
	commitPatience = 3 * time.Second // nor is a commit
	commitEvery    = 3               // tries to commit, in rounds; every round while it fails
	settingsEvery  = 30              // looks at Redis' settings, in rounds
	clockTolerance = 2 * time.Second // by which this machine's clock may differ from the database's
)

// stores asks PostgreSQL and Redis from time to time whether they are there, so
// that an outage shows in the metrics also when nobody sends anything. PostgreSQL
// is there when it can commit (postgres.Probe), and answers in between. Redis is
// there when it can be written to and still has what was written the time before.
type stores struct {
	pool  *pgxpool.Pool // of its own: that all connections are taken is no outage
	queue *queue.Queue
	log   *slog.Logger
	// look finds out which host of the URL is the primary; nil: there is nothing to find.
	look func(context.Context)
	// standby says that every commit has to be on a standby.
	standby bool

	said   []string              // warnings of Redis' settings
	unsafe string                // why commits are on no standby
	failed bool                  // the last try to commit, or to get an answer
	wrong  bool                  // this machine's clock, or the database's
	since  time.Time             // of the outage of PostgreSQL that is on
	ill    atomic.Pointer[error] // why PostgreSQL is down; nil: it commits

	database, redis, settings, safe, clock prometheus.Gauge
}

func newStores(pool *pgxpool.Pool, q *queue.Queue, log *slog.Logger, reg prometheus.Registerer) *stores {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	s := &stores{pool: pool, queue: q, log: log,
		database: gauge("intumwa_database_up", "1 while PostgreSQL commits (tried every six seconds), else 0."),
		redis:    gauge("intumwa_redis_up", "1 while Redis keeps what is written for two seconds, else 0."),
		settings: gauge("intumwa_redis_settings_ok", "1 while eviction, persistence, version and role of Redis suit a queue, else 0."),
		clock:    gauge("intumwa_clock_ahead_seconds", "Seconds by which this clock is ahead of the database's."),
		safe:     gauge("intumwa_database_standby_ok", "0 while database.require_standby does not hold, else 1."),
	}
	// Until the first round: a start is no outage.
	s.database.Set(1)
	s.redis.Set(1)
	s.settings.Set(1)
	s.safe.Set(1)
	reg.MustRegister(s.database, s.redis, s.settings, s.safe, s.clock)
	return s
}

// Run asks until ctx ends.
func (s *stores) Run(ctx context.Context) error {
	tick := time.NewTicker(storesInterval)
	defer tick.Stop()
	for round := 0; ; round++ {
		// Side by side: one that hangs is no reason to say nothing new of the other.
		var asked sync.WaitGroup
		if s.failed && s.look != nil { // another host may have been made the primary
			asked.Go(func() { s.look(ctx) })
		}
		asked.Go(func() {
			s.askDatabase(ctx, round)
			if round%settingsEvery == 0 {
				s.askStandby(ctx)
			}
		})
		_ = s.ask(ctx, s.redis, storesPatience, s.queue.Probe) // the gauge says it
		if round%settingsEvery == 0 {
			s.askSettings(ctx)
		}
		asked.Wait()
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// askDatabase tries a commit in some rounds and an answer in the others. After a
// commit that failed only another commit says that all is well.
func (s *stores) askDatabase(ctx context.Context, round int) {
	patience, ask := storesPatience, func(ctx context.Context) error { return postgres.ReadClock(ctx, s.pool) }
	if round%commitEvery == 0 || s.failed {
		patience, ask = commitPatience, func(ctx context.Context) error { return postgres.Probe(ctx, s.pool) }
	}
	err := s.ask(ctx, s.database, patience, ask)
	switch {
	case ctx.Err() != nil || (err != nil) == s.failed:
	case err != nil:
		s.since = time.Now()
		s.log.Error("PostgreSQL does not answer or does not commit; nothing is accepted or settled until it does", "event", "database_down", "error", err)
	default:
		s.log.Info("PostgreSQL commits again", "event", "database_back", "after", time.Since(s.since).Round(time.Second).String())
	}
	s.failed = err != nil
	if s.failed {
		s.ill.Store(&err)
	} else {
		s.ill.Store(nil)
	}
	s.tellClock()
}

// commits returns nil while PostgreSQL commits, and else why it does not, as far as this
// process has tried: at the latest nine seconds ago.
func (s *stores) commits() error {
	if ill := s.ill.Load(); ill != nil {
		return *ill
	}
	return nil
}

// tellClock says how wrong this machine's clock is, or the database's.
func (s *stores) tellClock() {
	ahead := postgres.Ahead()
	s.clock.Set(ahead.Seconds())
	wrong := ahead.Abs() > clockTolerance
	switch {
	case wrong == s.wrong:
		return
	case wrong:
		s.log.Warn("this machine's clock differs from the database's, which decides; one of the two is wrong", "event", "clock_differs", "ahead", ahead.Round(time.Millisecond).String())
	default:
		s.log.Info("this machine's clock agrees with the database's again", "event", "clock_agrees")
	}
	s.wrong = wrong
}

// askStandby leaves the gauge as it is when PostgreSQL cannot be asked.
func (s *stores) askStandby(ctx context.Context) {
	if !s.standby {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, storesPatience)
	defer cancel()
	why, err := postgres.Unsafe(ctx, s.pool)
	switch {
	case err != nil:
		return
	case why == s.unsafe:
	case why != "":
		s.log.Error("accepted messages may be lost with the database's server, although database.require_standby is set", "event", "standby_missing", "reason", why)
	default:
		s.log.Info("every commit is on a standby again", "event", "standby_back")
	}
	s.unsafe = why
	if why == "" {
		s.safe.Set(1)
	} else {
		s.safe.Set(0)
	}
}

func (s *stores) ask(ctx context.Context, up prometheus.Gauge, patience time.Duration, ping func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := ping(limited)
	switch {
	case ctx.Err() != nil: // the process ends: that is no outage
		return nil
	case err != nil:
		up.Set(0)
	default:
		up.Set(1)
	}
	return err
}

// askSettings leaves the gauge as it is when Redis cannot be asked; where some nodes
// can, what they say counts. What is new of its warnings is logged.
func (s *stores) askSettings(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, storesPatience)
	defer cancel()
	found, err := s.queue.CheckServer(ctx)
	warnings := found
	if err != nil {
		warnings = append(slices.Clone(found), "its settings cannot be read: "+err.Error())
	}
	for _, warning := range warnings {
		if !slices.Contains(s.said, warning) {
			s.log.Warn("redis is not set up for a queue", "event", "redis_unsuitable", "warning", warning)
		}
	}
	s.said = warnings
	switch {
	case len(found) > 0:
		s.settings.Set(0)
	case err != nil:
	default:
		s.settings.Set(1)
	}
}
