package smppserver

import (
	"context"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"
)

// Outcome is outcome, for a submit_sm whose COMMIT got no answer.
func (s *Server) Outcome(id ulid.ULID) error { return s.outcome(0, id) }

// CountWaiting returns the gauge of what waits, measured now.
func (s *Server) CountWaiting(ctx context.Context) (float64, error) {
	if err := s.sweepOnce(ctx); err != nil {
		return 0, err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(s.metrics.waiting)
	families, err := registry.Gather()
	if err != nil {
		return 0, err
	}
	return families[0].GetMetric()[0].GetGauge().GetValue(), nil
}

// OnlyByNotice makes the keeper look at binds only when a notice wakes it. Call it before Run.
func (s *Server) OnlyByNotice() { s.renewEvery = time.Hour }
