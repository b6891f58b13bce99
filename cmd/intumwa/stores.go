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
	"intumwa/internal/queue"
)

const (
	storesInterval = 2 * time.Second
	storesPatience = time.Second     // a slower reply counts as none
	commitPatience = 3 * time.Second // likewise for a commit
	commitEvery    = 3               // rounds between commits; every round after a failure
	settingsEvery  = 30              // rounds between checks of Redis's settings
	clockTolerance = 2 * time.Second // tolerated difference between this clock and the database's
)

// stores probes PostgreSQL and Redis, so that the metrics show an outage without traffic.
// PostgreSQL is up if it commits (postgres.Probe) and replies in between. Redis is up if
// it accepts a write and still has the one before.
type stores struct {
	pool  *pgxpool.Pool // its own: an exhausted pool is not an outage
	queue *queue.Queue
	log   *slog.Logger
	// look finds the primary among the hosts of the URL; may be nil.
	look func(context.Context)
	// standby: every commit must be on a standby. archive: WAL must be archived.
	standby, archive bool

	warned []string              // logged warnings about Redis's settings
	unsafe string                // why no commit reaches a standby
	stale  string                // what is wrong with the archive
	failed bool                  // the last probe
	wrong  bool                  // the clocks differ
	since  time.Time             // start of PostgreSQL's outage
	down   atomic.Pointer[error] // why PostgreSQL is down; nil: it commits

	database, redis, settings, safe, clock, archived, archiveAge prometheus.Gauge

	xidAge, oldest, slots, unvacuumed, collations prometheus.Gauge

	archiveFailures atomic.Int64
}

func newStores(pool *pgxpool.Pool, q *queue.Queue, log *slog.Logger, reg prometheus.Registerer) *stores {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	s := &stores{pool: pool, queue: q, log: log,
		database: gauge("intumwa_database_up", "1 while PostgreSQL commits (tried every six seconds), else 0."),
		redis:    gauge("intumwa_redis_up", "1 while Redis keeps what is written for two seconds, else 0."),
		settings: gauge("intumwa_redis_settings_ok", "1 while eviction, persistence, version and role of Redis suit a "+
			"queue, else 0."),
		clock: gauge("intumwa_clock_ahead_seconds", "Seconds by which this clock is ahead of the database's."),
		safe:  gauge("intumwa_database_standby_ok", "0 while database.require_standby is not met, else 1."),
		archived: gauge("intumwa_database_archive_ok",
			"0 while PostgreSQL does not archive its WAL, fails to, or is late, although database.require_archive is "+
				"set; else 1."),
		archiveAge: gauge("intumwa_database_archive_age_seconds",
			"Age of the last archived WAL file; before the first, since PostgreSQL started. 0: archive_mode is off."),
	}
	s.xidAge = gauge("intumwa_database_xid_age", "Age of the oldest transaction or multixact id that is not frozen; "+
		"PostgreSQL stops at 2 billion.")
	s.oldest = gauge("intumwa_database_oldest_transaction_seconds",
		"Age of the oldest transaction of the server, also a prepared one.")
	s.slots = gauge("intumwa_database_inactive_slots", "Replication slots that nobody uses: they keep WAL.")
	s.unvacuumed = gauge("intumwa_database_autovacuum_off", "Number of settings and tables that switch autovacuum off.")
	s.collations = gauge("intumwa_database_collation_mismatches", "Collations of indexes whose version has changed.")
	reg.MustRegister(s.xidAge, s.oldest, s.slots, s.unvacuumed, s.collations)
	// Up until the first round: a start is not an outage.
	s.database.Set(1)
	s.redis.Set(1)
	s.settings.Set(1)
	s.safe.Set(1)
	s.archived.Set(1)
	reg.MustRegister(s.database, s.redis, s.settings, s.safe, s.clock, s.archived, s.archiveAge,
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "intumwa_database_archive_failures_total",
			Help: "Failures of archive_command, as PostgreSQL counts them."},
			func() float64 { return float64(s.archiveFailures.Load()) }))
	return s
}

// Run probes until ctx ends.
func (s *stores) Run(ctx context.Context) error {
	tick := time.NewTicker(storesInterval)
	defer tick.Stop()
	for round := 0; ; round++ {
		// In parallel: one store that hangs must not delay the other's probe.
		var probes sync.WaitGroup
		if s.failed && s.look != nil { // another host may be the primary now
			probes.Go(func() { s.look(ctx) })
		}
		probes.Go(func() {
			s.probeDatabase(ctx, round)
			if round%settingsEvery == 0 {
				s.checkStandby(ctx)
				s.checkArchive(ctx)
				s.checkHealth(ctx)
			}
		})
		_ = s.probe(ctx, s.redis, storesPatience, s.queue.Probe) // the gauge has the result
		if round%settingsEvery == 0 {
			s.checkSettings(ctx)
		}
		probes.Wait()
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// probeDatabase commits in some rounds and reads in the others. After a failed commit,
// only a commit counts as recovery.
func (s *stores) probeDatabase(ctx context.Context, round int) {
	patience, ping := storesPatience, func(ctx context.Context) error { return postgres.ReadClock(ctx, s.pool) }
	if round%commitEvery == 0 || s.failed {
		patience, ping = commitPatience, func(ctx context.Context) error { return postgres.Probe(ctx, s.pool) }
	}
	err := s.probe(ctx, s.database, patience, ping)
	switch {
	case ctx.Err() != nil || (err != nil) == s.failed:
	case err != nil:
		s.since = time.Now()
		s.log.Error("PostgreSQL does not answer or does not commit; nothing is accepted or settled until it does", "event",
			"database_down", "error", err)
	default:
		s.log.Info("PostgreSQL commits again", "event", "database_back", "after",
			time.Since(s.since).Round(time.Second).String())
	}
	s.failed = err != nil
	if s.failed {
		s.down.Store(&err)
	} else {
		s.down.Store(nil)
	}
	s.compareClocks()
}

// commits returns nil while PostgreSQL commits, else the reason, at most nine seconds
// old.
func (s *stores) commits() error {
	if down := s.down.Load(); down != nil {
		return *down
	}
	return nil
}

// compareClocks reports how far this machine's clock is from the database's.
func (s *stores) compareClocks() {
	ahead := postgres.Ahead()
	s.clock.Set(ahead.Seconds())
	wrong := ahead.Abs() > clockTolerance
	switch {
	case wrong == s.wrong:
		return
	case wrong:
		s.log.Warn("this machine's clock differs from the database's, which decides; one of the two is wrong", "event",
			"clock_differs", "ahead", ahead.Round(time.Millisecond).String())
	default:
		s.log.Info("this machine's clock agrees with the database's again", "event", "clock_agrees")
	}
	s.wrong = wrong
}

// checkStandby keeps the gauge if PostgreSQL does not answer.
func (s *stores) checkStandby(ctx context.Context) {
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
		s.log.Error("accepted messages may be lost with the database's server, although database.require_standby is set",
			"event", "standby_missing", "reason", why)
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

// checkArchive keeps the gauges if PostgreSQL does not answer.
func (s *stores) checkArchive(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, storesPatience)
	defer cancel()
	archive, err := postgres.ReadArchive(ctx, s.pool)
	if err != nil {
		return
	}
	if s.archiveAge.Set(0); archive.On {
		s.archiveAge.Set(archive.Age.Seconds())
	}
	s.archiveFailures.Store(archive.Failures)
	why := ""
	if s.archive {
		why = archive.Problem()
	}
	switch {
	case (why == "") == (s.stale == ""):
	case why != "":
		s.log.Warn("a restore would lose messages, although database.require_archive is set", "event", "archive_missing",
			"reason", why)
	default:
		s.log.Info("WAL is archived again", "event", "archive_back")
	}
	s.stale = why
	if why == "" {
		s.archived.Set(1)
	} else {
		s.archived.Set(0)
	}
}

// checkHealth keeps the gauges if PostgreSQL does not answer.
func (s *stores) checkHealth(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, storesPatience)
	defer cancel()
	health, err := postgres.ReadHealth(ctx, s.pool)
	if err != nil {
		return
	}
	s.xidAge.Set(float64(health.XIDAge))
	s.oldest.Set(health.Oldest.Seconds())
	s.slots.Set(float64(len(health.Slots)))
	s.unvacuumed.Set(float64(len(health.Unvacuumed)))
	s.collations.Set(float64(len(health.Collations)))
}

func (s *stores) probe(ctx context.Context, up prometheus.Gauge, patience time.Duration,
	ping func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := ping(limited)
	switch {
	case ctx.Err() != nil: // the process ends: not an outage
		return nil
	case err != nil:
		up.Set(0)
	default:
		up.Set(1)
	}
	return err
}

// checkSettings keeps the gauge if Redis does not answer; if some nodes do, their answers
// count. It logs new warnings.
func (s *stores) checkSettings(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, storesPatience)
	defer cancel()
	found, err := s.queue.CheckServer(ctx)
	warnings := found
	if err != nil {
		warnings = append(slices.Clone(found), "its settings cannot be read: "+err.Error())
	}
	for _, warning := range warnings {
		if !slices.Contains(s.warned, warning) {
			s.log.Warn("redis is not set up for a queue", "event", "redis_unsuitable", "warning", warning)
		}
	}
	s.warned = warnings
	switch {
	case len(found) > 0:
		s.settings.Set(0)
	case err != nil:
	default:
		s.settings.Set(1)
	}
}
